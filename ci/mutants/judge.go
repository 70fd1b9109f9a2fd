package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"example.com/ringcheck/ci/mutants/look"
	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
)

// verdict is what came of one mutant.
type verdict struct {
	failed []string // cases of the corpus
	look.Found
	err error
}

// judge plants the mutants whose name matches run, and prints what came of
// each to out.
func judge(out io.Writer, run string, seeds int) (killed, survived int, err error) {
	pattern, err := regexp.Compile(run)
	if err != nil {
		return 0, 0, fmt.Errorf("-run: %w", err)
	}
	chosen := slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool {
		return !pattern.MatchString(m.name) || seeds == 0 && len(m.kills) == 0
	})
	if len(chosen) == 0 {
		return 0, 0, fmt.Errorf("-run: no mutant has a name that matches %s", run)
	}
	lengths, err := corpusLengths()
	if err != nil {
		return 0, 0, err
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
	for _, target := range targets(chosen) {
		v := trial{program, 0, target, false}.run(min(seeds, 1))
		if v.err != nil {
			return 0, 0, fmt.Errorf("with no bug planted, target %s: %w", target, v.err)
		}
		if len(v.failed) > 0 || v.Property != "" {
			return 0, 0, fmt.Errorf("with no bug planted, target %s: cases %v fail, property %q does not hold", target, v.failed, v.Property)
		}
	}

	verdicts := make([]chan verdict, len(chosen))
	for i := range verdicts {
		verdicts[i] = make(chan verdict, 1)
	}
	go func() {
		free := make(chan struct{}, workers)
		for i, m := range chosen {
			free <- struct{}{}
			go func() {
				verdicts[i] <- trial{program, i + 1, m.target(), m.attend}.run(seeds)
				<-free
			}()
		}
	}()
	var medians []int
	for i, m := range chosen {
		v := <-verdicts[i]
		if why := m.survives(v, lengths); why != "" {
			survived++
			fmt.Fprintf(out, "SURVIVED %s: %s\n", m.name, why)
			continue
		}
		killed++
		fmt.Fprintf(out, "killed   %s: %s\n", m.name, v)
		if v.Property != "" {
			medians = append(medians, median(v.Checks))
		}
	}
	if len(medians) > 0 {
		fmt.Fprintf(out, "%d killed by a property, after %d checks in the median\n", len(medians), median(medians))
	}
	return killed, survived, nil
}

// survives says why a mutant is not killed; "" if it is.
func (m *mutant) survives(v verdict, lengths map[string]int) string {
	if v.err != nil {
		return v.err.Error()
	}
	if missed := slices.DeleteFunc(slices.Clone(m.kills), func(name string) bool { return slices.Contains(v.failed, name) }); len(missed) > 0 {
		return "passed " + strings.Join(missed, " ")
	}
	if len(v.Checks) == 0 {
		return ""
	}
	if m.blind == "" && slices.Max(v.Checks) > look.Checks {
		return fmt.Sprintf("%v; checks by seed: %v", v, v.Checks)
	}
	if v.Property == "" || len(m.kills) == 0 {
		return ""
	}
	least := lengths[slices.MinFunc(m.kills, func(a, b string) int { return cmp.Compare(lengths[a], lengths[b]) })]
	if v.Operations > least+2 {
		return fmt.Sprintf("%v; a case of the corpus has %d operations", v, least)
	}
	return ""
}

func (v verdict) String() string {
	text := ""
	if v.Property != "" {
		text = fmt.Sprintf("%s, %d checks, %d operations, ", v.Property, median(v.Checks), v.Operations)
	}
	return text + fmt.Sprintf("%d cases", len(v.failed))
}

// corpusLengths is how many operations each case of the corpus has, by name.
func corpusLengths() (map[string]int, error) {
	lengths := map[string]int{}
	for f, err := range corpus.All(corpus.FS()) {
		if err != nil {
			return nil, err
		}
		lengths[f.Case.Name] = len(f.Case.Ops)
	}
	return lengths, nil
}

// targets are the implementations that the mutants are planted in.
func targets(list []mutant) []string {
	var names []string
	for _, m := range list {
		names = append(names, m.target())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func median(list []int) int {
	list = slices.Sorted(slices.Values(list))
	return list[(len(list)-1)/2]
}

// trial is one mutant that runs.
type trial struct {
	program string
	number  int // 0: none
	target  string
	attend  bool
}

func (t trial) run(seeds int) (v verdict) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out []byte
	out, v.err = t.output(ctx, "replay")
	if v.failed = strings.Fields(string(out)); v.err != nil || seeds == 0 {
		return v
	}
	if t.attend {
		if out, v.err = t.output(ctx, "attend", strconv.Itoa(seeds)); v.err == nil {
			v.err = json.Unmarshal(out, &v.Found)
		}
		return v
	}
	child, err := props.StartChild(ctx, t.command("serve"), props.ChildOptions{})
	if err != nil {
		v.err = err
		return v
	}
	defer child.Close()
	v.Found, v.err = look.For(ctx, child, seeds)
	return v
}

func (t trial) command(what ...string) []string {
	return append([]string{t.program, strconv.Itoa(t.number), t.target}, what...)
}

// output is what the program prints.
func (t trial) output(ctx context.Context, what ...string) ([]byte, error) {
	words := t.command(what...)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(what, " "), err)
	}
	return out, nil
}

// moduleRoot is the folder of the module that the working folder is in.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", errors.Join(err, errors.New("go list: run this inside the module"))
	}
	return filepath.FromSlash(strings.TrimSpace(string(out))), nil
}
