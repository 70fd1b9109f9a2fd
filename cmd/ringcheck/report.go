package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
	"example.com/ringcheck/props/draw"
)

// reporting gathers what -report writes.
type reporting struct {
	report   draw.Report
	verdicts map[[2]string]*draw.Verdict // by property and kind
	list     []props.Property            // that random cases are held against
	seen     props.Situations
}

// allKinds stands for the kind where something is of no one kind.
const allKinds = "all kinds"

// newReporting makes a report of the run that cmd was asked for. It has a verdict
// for each property and each kind, whatever the cases will be.
func newReporting(info props.Info, f *checkFlags, cmd *cobra.Command) *reporting {
	r := &reporting{
		report:   draw.Report{Target: titled(info), Command: f.again(cmd), Seed: f.seed},
		verdicts: map[[2]string]*draw.Verdict{},
		list:     f.list,
	}
	for _, property := range f.properties {
		if property == ledgerProperty {
			r.verdict(property, allKinds)
			continue
		}
		for _, kind := range info.Kinds {
			r.verdict(property, string(kind))
		}
	}
	return r
}

// again is the command that repeats the run that cmd was asked for.
func (f *checkFlags) again(cmd *cobra.Command) string {
	command := fmt.Sprintf("ringcheck check -seed %d", f.seed)
	if f.checks >= 0 {
		command += " -checks " + strconv.Itoa(f.checks)
	}
	for _, flag := range []struct{ name, value string }{
		{"duration", f.duration.String()},
		{"kinds", strings.Join(f.kinds, ",")},
		{"property", strings.Join(f.properties, ",")},
		{"semantics", f.semantics},
		{"known", f.knownFile},
		{"shard", f.shard},
		{"timeout", f.timeout.String()},
	} {
		if cmd.Flags().Changed(flag.name) {
			command += " -" + flag.name + " " + shellQuote(flag.value)
		}
	}
	return command + " " + f.arguments()
}

// verdict is the one on a property and a kind.
func (r *reporting) verdict(property, kind string) *draw.Verdict {
	key := [2]string{property, kind}
	if r.verdicts[key] == nil {
		r.verdicts[key] = &draw.Verdict{Property: property, Kind: kind}
	}
	return r.verdicts[key]
}

// ledger counts what came of the rows of the quirk ledger, a line for each that
// is not true of the target.
func (r *reporting) ledger(passed int, failed []string) {
	v := r.verdict(ledgerProperty, allKinds)
	v.Passed += passed
	for _, line := range failed {
		v.Failed++
		name, _, _ := strings.Cut(line, ": ")
		r.report.Failures = append(r.report.Failures, draw.Failure{Case: name, Property: ledgerProperty, Kinds: []string{allKinds}, What: line})
	}
}

// broken adds what went wrong besides the cases; nil is nothing.
func (r *reporting) broken(list ...error) {
	for _, err := range list {
		if err != nil {
			r.report.Broken = append(r.report.Broken, err.Error())
		}
	}
}

// add counts what came of one case.
func (r *reporting) add(ctx context.Context, t props.Target, j judged, file, repeat, show string) {
	if j.err != nil {
		r.report.Broken = append(r.report.Broken, j.line())
		return
	}
	asked := []string{j.property}
	switch {
	case j.property != "":
	case j.finding != nil: // a listed case that passes
		asked[0] = "all properties"
	default:
		asked = nil
		for _, p := range props.Turn(r.list, j.number) {
			asked = append(asked, p.Name)
		}
	}
	kinds := texts(kindsOf(j.c))
	for _, property := range asked {
		for _, kind := range kinds {
			switch v := r.verdict(property, kind); {
			case j.finding != nil:
				v.Failed++
			case j.skip != "":
				v.Skipped++
			default:
				v.Passed++
			}
		}
	}
	if j.skip == "" {
		if dir, done, err := props.Scratch(j.c); err == nil {
			if steps, err := props.ReferenceTarget().Run(ctx, j.c, dir); err == nil {
				r.seen.Add(j.c, steps)
			}
			done()
		}
	}
	if j.finding == nil {
		return
	}
	f := draw.Failure{Case: j.name, Property: asked[0], Kinds: kinds, What: j.finding.Error(), File: file, Repeat: repeat, Show: show}
	if d, err := drawn(ctx, t, j.c, j); err == nil {
		f.Drawing = d
	}
	r.report.Failures = append(r.report.Failures, f)
}

// kindsOf lists the kinds of cache that a case makes anew.
func kindsOf(c corpus.Case) []corpus.Kind {
	var out []corpus.Kind
	for _, op := range c.Ops {
		if op.Kind != "" && !slices.Contains(out, op.Kind) {
			out = append(out, op.Kind)
		}
	}
	return out
}

// write writes the report into a folder: index.html, a page for each failure
// that is drawn, and junit.xml.
func (r *reporting) write(dir string, total *tally) error {
	r.report.Passed, r.report.Failed, r.report.Skipped = total.passed, total.failed, total.skipped
	for _, key := range sortedKeys(r.verdicts) {
		r.report.Verdicts = append(r.report.Verdicts, *r.verdicts[key])
	}
	for _, c := range r.seen.Counts() {
		r.report.Situations = append(r.report.Situations, draw.Count(c))
	}
	for why, n := range total.why {
		r.report.Skips = append(r.report.Skips, draw.Count{Name: why, N: n})
	}
	slices.SortFunc(r.report.Skips, func(a, b draw.Count) int { return strings.Compare(a.Name, b.Name) })
	files := map[string][]byte{}
	var page, junit bytes.Buffer
	if err := r.report.Page(&page); err != nil {
		return err
	}
	if err := r.report.JUnit(&junit); err != nil {
		return err
	}
	files["index.html"], files["junit.xml"] = page.Bytes(), junit.Bytes()
	for i, f := range r.report.Failures {
		if name := r.report.FailureFile(i); name != "" {
			var b bytes.Buffer
			if err := f.Drawing.Page(&b); err != nil {
				return err
			}
			files[name] = b.Bytes()
		}
	}
	for name, text := range files {
		if err := writeBytes(filepath.Join(dir, name), text); err != nil {
			return fmt.Errorf("-report: %w", err)
		}
	}
	return nil
}

func sortedKeys(m map[[2]string]*draw.Verdict) [][2]string {
	var keys [][2]string
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return keys
}
