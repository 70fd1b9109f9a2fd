package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
	"example.com/ringcheck/props/draw"
)

// reporting gathers what -report writes.
type reporting struct {
	report   draw.Report
	verdicts map[[2]string]*draw.Verdict // by property and kind
	seen     props.Situations
}

func newReporting(info props.Info, f *checkFlags) *reporting {
	command := fmt.Sprintf("ringcheck check -seed %d", f.seed)
	if f.checks >= 0 {
		command += " -checks " + strconv.Itoa(f.checks)
	}
	return &reporting{
		report:   draw.Report{Target: titled(info), Command: command + " " + f.arguments(), Seed: f.seed},
		verdicts: map[[2]string]*draw.Verdict{},
	}
}

// add counts what came of one case.
func (r *reporting) add(ctx context.Context, t props.Target, j judged, file, repeat, show string) {
	if j.err != nil {
		r.report.Broken = append(r.report.Broken, j.line())
		return
	}
	property := j.property
	if property == "" {
		property = "all properties"
	}
	for _, kind := range kindsOf(j.c) {
		key := [2]string{property, string(kind)}
		v := r.verdicts[key]
		if v == nil {
			v = &draw.Verdict{Property: property, Kind: string(kind)}
			r.verdicts[key] = v
		}
		switch {
		case j.finding != nil:
			v.Failed++
		case j.skip != "":
			v.Skipped++
		default:
			v.Passed++
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
	f := draw.Failure{Case: j.name, Property: property, Kind: strings.Join(kindNames(j.c), ", "), What: j.finding.Error(), File: file, Repeat: repeat, Show: show}
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

func kindNames(c corpus.Case) []string { return texts(kindsOf(c)) }

// write writes the report into a folder: index.html, a page for each failure
// that is drawn, and junit.xml.
func (r *reporting) write(dir string, total *tally) error {
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
