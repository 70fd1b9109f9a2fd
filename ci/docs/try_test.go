package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		want, got string
		match     bool
	}{
		{"a\nb\n", "a\nb\n", true},
		{"a\nb\n", "a\nc\n", false},
		{"a\nb\n", "a\nb\nc\n", false},
		{"…\nb\n", "a\na\nb\n", true},
		{"a\n…\n", "a\nb\n", true},
		{"a\n…\n", "b\n", false},
		{"a … c\n", "a b c\n", true},
		{"a … c\n", "a b\nc\n", false},
		{"", "", true},
		{"", "a\n", false},
	} {
		if got := pattern(c.want).MatchString(c.got); got != c.match {
			t.Errorf("%q for %q: %t", c.got, c.want, got)
		}
	}
}

func TestTry(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	for _, c := range []struct {
		text string
		ok   bool
	}{
		{"```console\n$ echo one >f\n$ cat f\none\n```\n", true},
		{"```console\n$ echo 7 passed, 0 failed, 3 skipped\n… passed, 0 failed, … skipped\n```\n", true},
		{"```console\n$ echo 7 passed, 1 failed, 3 skipped\n… passed, 0 failed, … skipped\n```\n", false},
		{"```console\n$ echo one\ntwo\n```\n", false},
		{"no commands\n", false},
	} {
		if err := os.WriteFile(page, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := try(dir, page); (err == nil) != c.ok {
			t.Errorf("%s%v", c.text, err)
		}
	}
}
