package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "pgregory.net/rapid" // so that -rapid.checks is known everywhere
)

const root = "../.."

func TestPagesAreFresh(t *testing.T) {
	files, err := pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("%v; run: go run ./ci/docs", err)
		} else if string(got) != want {
			t.Errorf("%s is not what its sources say; run: go run ./ci/docs", name)
		}
	}
}

// TestLinksLeadSomewhere follows the links between the files of the module,
// and those to headings of the pages.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	followed := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			followed++
			file := name
			if to != "" {
				file = filepath.Join(filepath.Dir(name), to)
			}
			info, err := os.Stat(file)
			if err != nil {
				t.Errorf("%s: a link to %s: %v", name, m[1], err)
			} else if heading != "" && !info.IsDir() && !hasHeading(t, file, heading) {
				t.Errorf("%s: a link to %s, which has no such heading", name, m[1])
			}
		}
	}
	if followed < 10 {
		t.Errorf("only %d links were followed", followed)
	}
}

// hasHeading reports whether a page has a heading of that anchor.
func hasHeading(t *testing.T, file, anchor string) bool {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	drop := regexp.MustCompile(`[^a-z0-9 _-]`)
	for line := range strings.Lines(string(text)) {
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if strings.HasPrefix(line, "#") && ok &&
			strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}

func TestDeclaration(t *testing.T) {
	code := "package p\n\n// F does.\nfunc F() {\n\tx()\n}\n\nfunc FF() {}\n"
	for name, want := range map[string]string{"F": "// F does.\nfunc F() {\n\tx()\n}\n", "FF": "func FF() {}\n"} {
		if got, err := declaration(code, name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	python := "class A:\n    def f(self):\n        pass\n\n    x = 1\n\n\ndef g():\n    pass\n"
	for name, want := range map[string]string{"A": "class A:\n    def f(self):\n        pass\n\n    x = 1\n", "g": "def g():\n    pass\n"} {
		if got, err := declaration(python, name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := declaration(code, "G"); err == nil {
		t.Error("G is declared nowhere, and found")
	}
}

func TestMarkers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.py"), []byte("x = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	page := "one\n<!-- code: a.py -->\n```python\nold\n```\ntwo\n"
	got, err := withCode(dir, page)
	if want := strings.Replace(page, "old", "x = 1", 1); err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	for _, bad := range []string{
		"<!-- code: b.py -->\n```\n```\n", "<!-- code: a.py y -->\n```\n```\n", "<!-- code: a.py -->\n", "<!-- code: a.py -->\n```\nopen\n",
	} {
		if _, err := withCode(dir, bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
