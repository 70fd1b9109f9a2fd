package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// build builds the program planted with all of the mutants in it, and returns its
// path in dir. Its first argument says which of them runs: its number in the list,
// from 1; with 0 none does.
func build(all []mutant, dir string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	overlay := map[string]string{}
	add := func(path, text string) error {
		copied := filepath.Join(dir, fmt.Sprintf("%d.go", len(overlay)))
		overlay[path] = copied
		return os.WriteFile(copied, []byte(text), 0o644)
	}
	numbered := map[string]map[int]mutant{} // by file
	for i, m := range all {
		if numbered[m.file] == nil {
			numbered[m.file] = map[int]mutant{}
		}
		numbered[m.file][i+1] = m
	}
	for _, name := range slices.Sorted(maps.Keys(numbered)) {
		file := filepath.Join(root, name)
		source, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		text, pkg, err := plant(string(source), numbered[name])
		if err != nil {
			return "", err
		}
		selector := fmt.Sprintf("package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar planted, _ = strconv.Atoi(os.Args[1])\n", pkg)
		if err := add(file, text); err != nil {
			return "", err
		}
		if path := filepath.Join(filepath.Dir(file), "zz_planted.go"); overlay[path] == "" {
			if err := add(path, selector); err != nil {
				return "", err
			}
		}
	}
	replaced, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return "", err
	}
	list, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "planted")
	if err := os.WriteFile(list, replaced, 0o644); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-overlay", list, "-o", program, "./ci/mutants/planted")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the mutants do not build: %w\n%s", err, out)
	}
	return program, nil
}

// plant returns the source of one file in which each mutated function begins
// with a copy of its body for each of its mutants, and the name of its package.
func plant(source string, ms map[int]mutant) (text, pkg string, err error) {
	bodies, pkg, err := functions(source)
	if err != nil {
		return "", "", err
	}
	copies := map[string]string{} // by function
	for _, i := range slices.Sorted(maps.Keys(ms)) {
		m := ms[i]
		mutated, err := m.apply(source)
		if err != nil {
			return "", "", err
		}
		others, _, err := functions(mutated)
		if err != nil {
			return "", "", fmt.Errorf("%s: %w", m.name, err)
		}
		changed := ""
		for name, f := range bodies {
			switch other, ok := others[name]; {
			case !ok || other.head != f.head || len(others) != len(bodies):
				return "", "", fmt.Errorf("%s: it changes more than the body of a function", m.name)
			case other.body != f.body && changed != "":
				return "", "", fmt.Errorf("%s: it changes both %s and %s", m.name, changed, name)
			case other.body != f.body:
				changed = name
			}
		}
		if changed == "" {
			return "", "", fmt.Errorf("%s: it changes no function", m.name)
		}
		end := ""
		if !bodies[changed].results {
			end = "\nreturn"
		}
		copies[changed] += fmt.Sprintf("\nif planted == %d {%s%s\n}\n", i, others[changed].body, end)
	}
	for name, f := range bodies {
		if copies[name] == "" {
			delete(bodies, name)
		} else if strings.Count(source, f.head+f.body) != 1 {
			return "", "", fmt.Errorf("%s occurs twice", name)
		}
	}
	for name, f := range bodies {
		source = strings.Replace(source, f.head+f.body, f.head+copies[name]+f.body, 1)
	}
	return source, pkg, nil
}

// function is the text of a function: up to and with its opening brace, and
// from there to its closing brace.
type function struct {
	head, body string
	results    bool
}

// functions returns the functions of a source by receiver and name.
func functions(source string) (all map[string]function, pkg string, err error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, "", err
	}
	at := func(p token.Pos) int { return files.Position(p).Offset }
	all = map[string]function{}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		open, end := at(f.Body.Lbrace)+1, at(f.Body.Rbrace)
		name := source[at(f.Pos()):at(f.Type.Params.Pos())] // with the receiver
		all[name] = function{source[at(f.Pos()):open], source[open:end], f.Type.Results != nil}
	}
	return all, parsed.Name.Name, nil
}

// apply plants the bug alone in the source of its file.
func (m mutant) apply(source string) (string, error) {
	if n := strings.Count(source, m.old); n != 1 {
		return "", fmt.Errorf("%s: %s has its text %d times, want once: %q", m.name, m.file, n, m.old)
	}
	return strings.Replace(source, m.old, m.new, 1), nil
}
