package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	_ "pgregory.net/rapid"
)

// TestGenerated holds the committed assembly to its generator.
func TestGenerated(t *testing.T) {
	dir := t.TempDir()
	files := []string{"kernels_amd64.s", "stubs_amd64.go"}
	made := []string{filepath.Join(dir, files[0]), filepath.Join(dir, files[1])}
	out, err := exec.Command("go", "run", ".", "-out", made[0], "-stubs", made[1], "-pkg", "cpu").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, file := range files {
		got, err := os.ReadFile(made[i])
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			t.Fatal(err)
		}
		// The first line names the command's arguments.
		_, got, _ = bytes.Cut(got, []byte("\n"))
		_, want, _ = bytes.Cut(want, []byte("\n"))
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator makes; run go generate ./accelerated/cpu", file)
		}
	}
}
