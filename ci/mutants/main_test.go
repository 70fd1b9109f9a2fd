package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/ringcheck/corpus"
	_ "pgregory.net/rapid"
)

func TestTable(t *testing.T) {
	cases, names := map[string]bool{}, map[string]bool{}
	for f, err := range corpus.All(corpus.FS()) {
		if err != nil {
			t.Fatal(err)
		}
		cases[f.Case.Name] = true
	}
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range mutants {
		if names[m.name] {
			t.Errorf("%s: two mutants have this name", m.name)
		}
		names[m.name] = true
		if m.blind != "" && len(m.kills) == 0 {
			t.Errorf("%s: no case is named that kills it, and no property can", m.name)
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
		text, _, err := plant(string(source), map[int]mutant{i + 1: m})
		if err != nil {
			t.Error(err)
		} else if _, _, err := functions(text); err != nil {
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

func TestPlant(t *testing.T) {
	source := "package p\n\nfunc (r T) a(x int) int { return x + 1 }\n\nfunc b() {\n\tc()\n\td()\n}\n"
	one, two := mutant{name: "one", old: "x + 1", new: "x"}, mutant{name: "two", old: "x + 1", new: "x - 1"}
	three := mutant{name: "three", old: "\td()\n", new: ""}
	text, pkg, err := plant(source, map[int]mutant{7: one, 9: three})
	want := "package p\n\nfunc (r T) a(x int) int {\nif planted == 7 { return x \n}\n return x + 1 }\n\n" +
		"func b() {\nif planted == 9 {\n\tc()\n\nreturn\n}\n\n\tc()\n\td()\n}\n"
	if err != nil || pkg != "p" || text != want {
		t.Errorf("planted in %s, %v:\n%s", pkg, err, text)
	}
	if text, _, err := plant(source, map[int]mutant{1: one, 2: two}); err != nil || !strings.Contains(text, "return x \n") || !strings.Contains(text, "return x - 1 \n") {
		t.Errorf("two in one function, %v:\n%s", err, text)
	}
	for why, m := range map[string]mutant{
		"absent":     {old: "x + 2", new: "x"},
		"twice":      {old: "()", new: "(1)"},
		"no change":  {old: "x + 1", new: "x + 1"},
		"signature":  {old: "a(x int)", new: "a(x, y int)"},
		"gone":       {old: "func b() {\n\tc()\n\td()\n}\n", new: ""},
		"new":        {old: "func b()", new: "func c() {}\n\nfunc b()"},
		"two bodies": {old: "x + 1 }\n\nfunc b() {\n\tc()", new: "x }\n\nfunc b() {\n"},
		"no Go":      {old: "x + 1", new: "x +"},
	} {
		if text, _, err := plant(source, map[int]mutant{1: m}); err == nil {
			t.Errorf("%s: accepted:\n%s", why, text)
		}
	}
}

// One mutant that is killed and one that is not, one that does not build, and
// two patterns that choose none, through the tool itself.
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
	if killed, survived, err := judge(t.Output(), "size|harmless", 0); err != nil || killed != 1 || survived != 1 {
		t.Errorf("by the corpus: %d killed, %d survived, %v; want 1 of each", killed, survived, err)
	}
	if killed, survived, err := judge(t.Output(), "size", 1); err != nil || killed != 1 || survived != 0 {
		t.Errorf("by properties: %d killed, %d survived, %v; want 1 and none", killed, survived, err)
	}
	for pattern, want := range map[string]string{"broken": "do not build", "none": "no mutant", "(": "-run"} {
		if _, _, err := judge(t.Output(), pattern, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-run %s: %v, want an error about %q", pattern, err, want)
		}
	}
}
