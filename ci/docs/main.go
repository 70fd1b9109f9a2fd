package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) > 3 && os.Args[1] == "-try" {
		for _, page := range os.Args[3:] {
			if err := try(os.Args[2], page); err != nil {
				fmt.Fprintln(os.Stderr, "docs:", err)
				os.Exit(1)
			}
		}
		return
	}
	files, err := pages(".")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err == nil {
			err = write(name, files[name])
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(2)
	}
}

// write makes or replaces a file, whole or not at all.
func write(name, text string) error {
	tmp := name + ".new"
	if err := os.WriteFile(tmp, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}

// pages returns what the pages of docs should be, by their file's name under
// root, the module's folder.
func pages(root string) (map[string]string, error) {
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if files[name], err = withCode(root, string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	files[filepath.Join(root, "docs", "quirks.md")], err = quirks()
	return files, err
}

const marker = "<!-- code: "

// withCode returns a page with each block of code that follows a marker
// replaced by what the marker names.
func withCode(root, page string) (string, error) {
	var out strings.Builder
	lines := strings.SplitAfter(page, "\n")
	for i := 0; i < len(lines); i++ {
		out.WriteString(lines[i])
		what, ok := strings.CutPrefix(strings.TrimSpace(lines[i]), marker)
		if !ok {
			continue
		}
		file, name, _ := strings.Cut(strings.TrimSuffix(what, " -->"), " ")
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			return "", err
		}
		code := string(text)
		if name != "" {
			if code, err = declaration(code, name); err != nil {
				return "", fmt.Errorf("%s: %w", file, err)
			}
		}
		fence := i + 1
		if fence == len(lines) || !strings.HasPrefix(lines[fence], "```") {
			return "", fmt.Errorf("no block of code follows the marker of %s", file)
		}
		end := fence + 1
		for end < len(lines) && strings.TrimSpace(lines[end]) != "```" {
			end++
		}
		if end == len(lines) {
			return "", fmt.Errorf("the block of code of %s does not end", file)
		}
		out.WriteString(lines[fence] + code + lines[end])
		i = end
	}
	return out.String(), nil
}

// declaration returns the function, method or class of that name in Go or
// Python: the comment before it, and all lines up to the next one that begins
// at the margin, a closing brace included.
func declaration(code, name string) (string, error) {
	lines := strings.SplitAfter(code, "\n")
	declares := regexp.MustCompile(`^(func (\([^)]*\) )?|def |class |type )` + regexp.QuoteMeta(name) + `\b`)
	from := slices.IndexFunc(lines, declares.MatchString)
	if from < 0 {
		return "", fmt.Errorf("it declares no %s", name)
	}
	to := from + 1
	for to < len(lines) && !atMargin(lines[to]) {
		to++
	}
	if to < len(lines) && strings.HasPrefix(lines[to], "}") {
		to++
	}
	for from > 0 && strings.HasPrefix(lines[from-1], "//") {
		from--
	}
	return strings.TrimRight(strings.Join(lines[from:to], ""), "\n") + "\n", nil
}

// atMargin reports whether a line begins with text.
func atMargin(line string) bool {
	return strings.TrimSpace(line) != "" && strings.TrimLeft(line, " \t") == line
}
