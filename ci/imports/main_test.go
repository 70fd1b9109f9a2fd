package main

import (
	"strings"
	"testing"

	_ "pgregory.net/rapid" // so that -rapid.checks is known here
)

func TestRules(t *testing.T) {
	const m = "example.com/ringcheck"
	for name, tc := range map[string]struct {
		path string
		imp  string
		want string // part of the complaint; "" for none
	}{
		"reference may use the vocabulary":       {"reference", m + "/reference/ring", ""},
		"reference may not use corpus":           {"reference", m + "/corpus", "may import of ours only [reference/ring]"},
		"reference is standard library only":     {"reference", "github.com/google/go-cmp/cmp", "standard library only"},
		"the standard library is free":           {"reference", "encoding/binary", ""},
		"prompt files may use a library":         {"reference/promptfile", "github.com/nlpodyssey/safetensors", ""},
		"the vocabulary may not use reference":   {"reference/ring", m + "/reference", "of ours only []"},
		"corpus may not use models":              {"corpus", m + "/models", "of ours only"},
		"models may not use reference":           {"models", m + "/reference", "of ours only"},
		"accelerated may use its devices":        {"accelerated", m + "/accelerated/cpu", ""},
		"a device may use the vocabulary":        {"accelerated/cpu", m + "/reference/ring", ""},
		"a device may not use reference":         {"accelerated/cpu", m + "/reference", "of ours only [reference/ring]"},
		"accelerated may not use prompt files":   {"accelerated", m + "/reference/promptfile", "of ours only"},
		"props may use rapid":                    {"props", rapid, ""},
		"models may not use rapid":               {"models", rapid, "only props"},
		"the command may not use rapid":          {"cmd/ringcheck", rapid, "only props"},
		"the command may use props":              {"cmd/ringcheck", m + "/props", ""},
		"props may not use the command's parts":  {"props", m + "/cmd/ringcheck/x", "of ours only"},
		"a folder that starts alike is not ours": {"propsy", "fmt", "in no layer"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pkg{ImportPath: m + "/" + tc.path, Imports: []string{tc.imp}}
			p.Module.Path = m
			got := strings.Join(check(p), "\n")
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s imports %s: got %q, want %q", tc.path, tc.imp, got, tc.want)
			}
		})
	}
}

func TestCgoIsRefused(t *testing.T) {
	p := pkg{ImportPath: "example.com/ringcheck/props", CgoFiles: []string{"c.go"}}
	p.Module.Path = "example.com/ringcheck"
	if got := check(p); len(got) != 1 || !strings.Contains(got[0], "uses cgo in [c.go]") {
		t.Errorf("got %q", got)
	}
}

func TestListSeesEveryPlatform(t *testing.T) {
	for _, goos := range platforms {
		pkgs, err := list(goos)
		if err != nil {
			t.Fatal(err)
		}
		if len(pkgs) != 1 || pkgs[0].ImportPath != pkgs[0].Module.Path+"/ci/imports" || len(pkgs[0].Imports) == 0 {
			t.Errorf("%s: go list gave %+v", goos, pkgs)
		}
	}
}
