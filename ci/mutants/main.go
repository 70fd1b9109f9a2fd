package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	patience = time.Minute // for the replay of one mutant
)

func main() {
	run := flag.String("run", "", "only the mutants whose name matches this `regexp`")
	verbose := flag.Bool("v", false, "print every case that a mutant fails")
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

// judge plants the mutants whose name matches run, and prints what came of
// each.
func judge(run string, verbose bool) (killed, survived int, err error) {
	pattern, err := regexp.Compile(run)
	if err != nil {
		return 0, 0, fmt.Errorf("-run: %w", err)
	}
	chosen := slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool { return !pattern.MatchString(m.name) })
	if len(chosen) == 0 {
		return 0, 0, fmt.Errorf("-run: no mutant has a name that matches %s", run)
	}
	dir, err := os.MkdirTemp("", "ringcheck-mutants-")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	program, err := build(chosen, dir)
	if err != nil {
		return 0, 0, err
	}
	if failed, err := replay(program, 0); err != nil || len(failed) > 0 {
		return 0, 0, errors.Join(err, fmt.Errorf("with no bug planted these cases fail: %v", failed))
	}

	type verdict struct {
		failed []string
		err    error
	}
	verdicts := make([]chan verdict, len(chosen))
	free := make(chan struct{}, workers)
	for i := range chosen {
		verdicts[i] = make(chan verdict, 1)
		go func() {
			free <- struct{}{}
			failed, err := replay(program, i+1)
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

// replay runs the corpus with bug i planted, counted from 1, or none, and
// returns the cases that fail.
func replay(program string, i int) (failed []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), environment+"="+strconv.Itoa(i))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the replay: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// moduleRoot is the folder of the module that the working folder is in.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w; run this inside the module", err)
	}
	return filepath.FromSlash(strings.TrimSpace(string(out))), nil
}
