package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// mutant is one planted bug.
type mutant struct {
	name     string
	file     string   // in the module
	old, new string   // old occurs in file exactly once
	kills    []string // the cases of the corpus that fail for it, among others
	property string   // the property of models that finds it as well; "" where none is named
}

const (
	workers  = 2
	patience = 60 * time.Second // for the replay of one mutant
)

func main() {
	run := flag.String("run", "", "only the mutants whose name matches this `regexp`")
	verbose := flag.Bool("v", false, "print every known case that a mutant fails")
	flag.Parse()
	killed, survived, err := judge(*run, *verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Printf("%d killed, %d survived\n", killed, survived)
	if survived > 0 {
		os.Exit(1)
	}
}

func judge(run string, verbose bool) (killed, survived int, err error) {
	pattern, err := regexp.Compile(run)
	if err != nil {
		return 0, 0, fmt.Errorf("-run: %w", err)
	}
	chosen := slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool { return !pattern.MatchString(m.name) })
	if len(chosen) == 0 {
		return 0, 0, fmt.Errorf("-run: no mutant has a name that matches %s", run)
	}
	root, err := moduleRoot()
	if err != nil {
		return 0, 0, err
	}
	dir, err := os.MkdirTemp("", "ringcheck-mutants-")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)

	type verdict struct {
		failed []string
		err    error
	}
	verdicts := make([]chan verdict, len(chosen))
	free := make(chan struct{}, workers)
	for i, m := range chosen {
		verdicts[i] = make(chan verdict, 1)
		go func() {
			free <- struct{}{}
			failed, err := m.replay(root, filepath.Join(dir, fmt.Sprint(i)))
			<-free
			verdicts[i] <- verdict{failed, err}
		}()
	}
	for i, m := range chosen {
		v := <-verdicts[i]
		missed := slices.DeleteFunc(slices.Clone(m.kills), func(name string) bool { return slices.Contains(v.failed, name) })
		switch {
		case v.err != nil:
			survived++
			fmt.Printf("SURVIVED %s: %v\n", m.name, v.err)
		case len(missed) > 0:
			survived++
			fmt.Printf("SURVIVED %s: passed %s\n", m.name, strings.Join(missed, " "))
		default:
			killed++
			fmt.Printf("killed   %s: %d cases\n", m.name, len(v.failed))
		}
		if verbose {
			fmt.Println("        ", strings.Join(v.failed, " "))
		}
	}
	return killed, survived, nil
}

// replay builds the mutant in dir and returns the cases of the corpus that
// fail for it.
func (m mutant) replay(root, dir string) (failed []string, err error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(root, m.file)
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	text, err := m.apply(string(source))
	if err != nil {
		return nil, err
	}
	mutated, overlay, program := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "replay")
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutated}})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.WriteFile(mutated, []byte(text), 0o644), os.WriteFile(overlay, replaced, 0o644)); err != nil {
		return nil, err
	}
	// It is built once and run once, so that what optimizing costs is not earned.
	build := exec.Command("go", "build", "-overlay", overlay, "-gcflags=./...=-l", "-ldflags=-s -w", "-o", program, "./ci/mutants/replay")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("it does not build: %w\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	replay := exec.CommandContext(ctx, program)
	out, err := replay.Output()
	if err != nil {
		return nil, fmt.Errorf("its replay: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// apply plants the bug in the source of its file.
func (m mutant) apply(source string) (string, error) {
	if n := strings.Count(source, m.old); n != 1 {
		return "", fmt.Errorf("%s has its text %d times, want once: %q", m.file, n, m.old)
	}
	return strings.Replace(source, m.old, m.new, 1), nil
}

// moduleRoot is the folder of the module that the working folder is in.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w; run it inside the module", err)
	}
	return strings.TrimSpace(string(out)), nil
}
