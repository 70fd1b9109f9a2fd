package props

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"example.com/ringcheck/corpus"
)

// TestTargets holds every implementation of this module to everything; so does
// the test at the module's root.
func TestTargets(t *testing.T) {
	for _, target := range BuiltinTargets() {
		t.Run(target.Info().Name, NewSuite(target).Test)
	}
}

// buggyEnv makes TestTwoProperties test a buggy target, and file into the
// folder that it names.
const buggyEnv = "RINGCHECK_TEST_BUGGY"

func TestTwoProperties(t *testing.T) {
	s := NewSuite(ReferenceTarget())
	if dir := os.Getenv(buggyEnv); dir != "" {
		s = NewSuite(bugs["window"]())
		s.Folder = dir
	}
	var err error
	if s.Properties, err = Named([]string{"offsets", "window"}); err != nil {
		t.Fatal(err)
	}
	s.Test(t)
}

// TestSuiteFails: a property that does not hold fails in the test of its name,
// alone; the test says all that there is to say, and the case is kept.
func TestSuiteFails(t *testing.T) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.v", "-test.run=^TestTwoProperties$", "-rapid.checks=300")
	child.Env = append(os.Environ(), buggyEnv+"="+dir)
	out, err := child.CombinedOutput()
	if child.ProcessState.ExitCode() != 1 {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, want := range []string{
		"--- FAIL: TestTwoProperties/window", "--- PASS: TestTwoProperties/offsets", "--- FAIL: TestTwoProperties/corpus_replay",
		`property "window" does not hold of buggy: #`, "columns at #", "operations:\n", "= new ",
		"repeat: go test -run '^TestTwoProperties$/^window$' -rapid.checks=300 -rapid.seed=", "kept: " + dir,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if strings.Contains(string(out), "-target buggy") {
		t.Error("the output names a target that the command does not know")
	}
	n := 0
	for f, err := range corpus.Dir(dir) {
		if n++; err != nil || f.Case.Found == nil || f.Case.Found.Property != "window" {
			t.Errorf("%s: %v, found by %+v", f.Path, err, f.Case.Found)
			continue
		}
		// The seed is that of the run, which repeats it.
		again := exec.Command(os.Args[0], "-test.run=^TestTwoProperties$/^window$", "-rapid.checks=300", "-rapid.seed="+strconv.FormatUint(f.Case.Found.Seed, 10))
		again.Env = append(os.Environ(), buggyEnv+"="+t.TempDir())
		repeated, err := again.CombinedOutput()
		if file := filepath.Base(f.Path); f.Case.Found.Seed == 0 || err == nil || !strings.Contains(string(repeated), file) {
			t.Errorf("seed %d does not find %s again: %v\n%s", f.Case.Found.Seed, file, err, repeated)
		}
	}
	if n != 1 {
		t.Errorf("%d cases were filed, want 1", n)
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

// TestRepeat: only a built-in target is repeated by the command, which knows it
// by name.
func TestRepeat(t *testing.T) {
	for name, want := range map[string]string{
		"reference": "repeat: go run ./cmd/ringcheck replay -target reference ",
		"cuda":      "repeat: go run ./cmd/ringcheck replay -target cuda ",
		"host":      "repeat: go test -run '^TestA$/^b\\.c$' -rapid.checks=",
	} {
		s := NewSuite(ReferenceTarget())
		s.Folder, s.Domain.Info.Name = t.TempDir(), name
		f := &Finding{Property: "window", Target: name, Case: fakeCases[0], Run: fakeCases[0], What: "made up"}
		text := s.Explain(t.Context(), f, "TestA/b.c", 7)
		if !strings.Contains(text, want) || strings.Count(text, "repeat: ") != 1 || !strings.Contains(text, s.Folder) {
			t.Errorf("%s: the text lacks %q:\n%s", name, want, text)
		}
	}
}
