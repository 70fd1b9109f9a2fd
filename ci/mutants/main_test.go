package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/ringcheck/corpus"
	_ "pgregory.net/rapid"
)

func TestTable(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	cases, names := map[string]bool{}, map[string]bool{}
	for f, err := range corpus.All(corpus.FS()) {
		if err != nil {
			t.Fatal(err)
		}
		cases[f.Case.Name] = true
	}
	for _, m := range mutants {
		if names[m.name] {
			t.Errorf("%s: two mutants have this name", m.name)
		}
		names[m.name] = true
		if len(m.kills) == 0 && m.property == "" {
			t.Errorf("%s: nothing is named that kills it", m.name)
		}
		for _, name := range m.kills {
			if !cases[name] {
				t.Errorf("%s: the corpus has no case %s", m.name, name)
			}
		}
		source, err := os.ReadFile(filepath.Join(root, m.file))
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		text, err := m.apply(string(source))
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), m.file, text, parser.SkipObjectResolution); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

// Each known case is there for a bug, and bites it.
func TestEveryKnownCaseKills(t *testing.T) {
	for f, err := range corpus.All(corpus.FS()) {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(f.Path, "known/") {
			continue
		}
		if !slices.ContainsFunc(mutants, func(m mutant) bool { return slices.Contains(m.kills, f.Case.Name) }) {
			t.Errorf("%s: no mutant names it; plant the bug that it is about", f.Path)
		}
	}
}

func TestApply(t *testing.T) {
	m := mutant{file: "f.go", old: "a + 1", new: "a"}
	if text, err := m.apply("x := a + 1\n"); err != nil || text != "x := a\n" {
		t.Errorf("%q, %v", text, err)
	}
	for _, source := range []string{"x := a\n", "x := a + 1\ny := a + 1\n"} {
		if text, err := m.apply(source); err == nil {
			t.Errorf("planted in %q: %q", source, text)
		}
	}
}

// One mutant that is killed, one that is not for lack of a case, and one that
// does not build: run through the tool itself.
func TestJudge(t *testing.T) {
	table := mutants
	defer func() { mutants = table }()
	size := mutant{
		name: "size", file: "reference/rotating.go",
		old: "Size() int { return min(c.offset, c.maxSize) }", new: "Size() int { return c.offset }",
		kills: []string{"Q15"},
	}
	harmless, broken := size, size
	harmless.name, harmless.new = "harmless", "Size() int { return min(c.maxSize, c.offset) }"
	broken.name, broken.new = "broken", "Size() int { return }"
	mutants = []mutant{size, harmless, broken}
	for pattern, want := range map[string][2]int{"size": {1, 0}, "harmless|broken": {0, 2}} {
		killed, survived, err := judge(pattern, true)
		if err != nil || killed != want[0] || survived != want[1] {
			t.Errorf("-run %s: %d killed, %d survived, %v; want %v", pattern, killed, survived, err, want)
		}
	}
	for _, pattern := range []string{"(", "none"} {
		if _, _, err := judge(pattern, false); err == nil {
			t.Errorf("-run %s: accepted", pattern)
		}
	}
}
