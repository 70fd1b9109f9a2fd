package props

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/ringcheck/corpus"
)

// filingEnv makes this test's program file cases into the folder that it names,
// until it is killed.
const filingEnv = "RINGCHECK_TEST_FILING"

func fileForEver(dir string) {
	for i := 0; ; i++ {
		file, err := File(dir, invented(i), 1)
		if err != nil {
			fmt.Println("error:", err)
			return
		}
		fmt.Println(file)
	}
}

// invented is a finding on random case i.
func invented(i int) *Finding {
	c := Generate(RandomSource(1, i), Domain{Info: ReferenceTarget().Info()})
	return &Finding{Property: "window", Target: "buggy", Case: c}
}

// TestFileKilled kills two processes that file the same cases into one folder.
// Every case there is whole, and is there once.
func TestFileKilled(t *testing.T) {
	const n = 40
	dir := filepath.Join(t.TempDir(), "found")
	var children [2]*exec.Cmd
	var lines [2]*bufio.Scanner
	for i := range children {
		children[i] = exec.Command(os.Args[0])
		children[i].Env = append(os.Environ(), filingEnv+"="+dir)
		out, err := children[i].StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := children[i].Start(); err != nil {
			t.Fatal(err)
		}
		lines[i] = bufio.NewScanner(out)
	}
	for i := range n {
		for k := range lines {
			if !lines[k].Scan() || strings.HasPrefix(lines[k].Text(), "error") {
				t.Errorf("process %d, case %d: it said %q", k, i, lines[k].Text())
			}
		}
	}
	for _, child := range children {
		if err := child.Process.Kill(); err != nil {
			t.Error(err)
		}
	}
	for _, child := range children {
		child.Wait() // it was killed
	}

	names := map[string]bool{}
	for f, err := range corpus.Dir(dir) {
		if err != nil {
			t.Error(err)
			continue
		}
		name := filepath.Base(f.Path)
		if want := f.Case.Content() + ".json"; name != want {
			t.Errorf("%s holds the case of %s", f.Path, want)
		}
		names[name] = true
	}
	if len(names) < n {
		t.Errorf("there are %d cases, want at least %d", len(names), n)
	}
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range all {
		if name := entry.Name(); !names[name] && !strings.HasPrefix(name, ".case-") {
			t.Errorf("%s was left behind", name)
		}
	}
	for i := range n { // what is there already is filed again
		if _, err := File(dir, invented(i), 2); err != nil {
			t.Error(err)
		}
	}
}

// TestFolder: the corpus of the module here, and elsewhere a folder of its own.
func TestFolder(t *testing.T) {
	if got := Folder(); filepath.Base(got) != "found" || filepath.Base(filepath.Dir(got)) != "cases" {
		t.Errorf("in the module failures go to %s", got)
	}
	t.Chdir(t.TempDir())
	if got := Folder(); got != "ringcheck-found" {
		t.Errorf("elsewhere failures go to %s", got)
	}
	cases := filepath.Join("corpus", "cases")
	if err := os.MkdirAll(cases, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cases, "found"), nil, 0o444); err != nil { // where no folder can be
		t.Fatal(err)
	}
	if got := Folder(); got != "ringcheck-found" {
		t.Errorf("where the corpus cannot be written failures go to %s", got)
	}
}
