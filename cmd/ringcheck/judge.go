package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
	"example.com/ringcheck/reference/ring"
)

// A judge holds a target against one case. The verdict has a finding, or
// nothing; the error is for a case that could not be judged.
type judge func(ctx context.Context, t props.Target, c corpus.Case) (verdict, error)

// verdict is what came of one case.
type verdict struct {
	skip    string        // why the case says nothing; "" if it does
	finding error         // what is wrong with the target; nil if nothing
	answers []corpus.Step // the target's, as far as there are any
	wanted  corpus.Case   // the case with the wants that were not met, for filing
}

// judgeFiled asks for what the case itself wants and, where a run has filed it,
// for the property that failed then.
func judgeFiled(ctx context.Context, t props.Target, c corpus.Case) (verdict, error) {
	v, err := judgeWants(ctx, t, c)
	if err != nil || v.finding != nil || c.Found == nil {
		return v, err
	}
	for _, p := range properties() {
		if p.name == c.Found.Property && p.random {
			return p.judge(ctx, t, c)
		}
	}
	return v, nil
}

// judgeWants asks for what the case itself wants.
func judgeWants(ctx context.Context, t props.Target, c corpus.Case) (verdict, error) {
	v := verdict{wanted: c}
	dir, done, err := props.Scratch(c)
	if err != nil {
		return v, err
	}
	defer done()
	if v.answers, err = t.Run(ctx, c, dir); err != nil {
		return v.fault(err)
	}
	if !slices.ContainsFunc(c.Ops, func(op corpus.Op) bool { return op.Want != nil }) {
		v.skip = "the case wants nothing; ringcheck add fills in what the reference answers"
		return v, nil
	}
	return v.difference(props.CompareWants(c, v.answers, t.Info().Level)), nil
}

// judgeReference asks for the reference's answers, and, where the case saves
// and loads, that each side can load what the other has saved.
func judgeReference(ctx context.Context, t props.Target, c corpus.Case) (verdict, error) {
	reference := props.ReferenceTarget()
	ours, done, err := props.Scratch(c)
	if err != nil {
		return verdict{}, err
	}
	defer done()
	theirs, done, err := props.Scratch(c)
	if err != nil {
		return verdict{}, err
	}
	defer done()

	want, err := reference.Run(ctx, c, ours)
	if err != nil {
		return verdict{}, fmt.Errorf("the reference: %w", err)
	}
	v := verdict{wanted: props.WithWants(c, want)}
	if v.answers, err = t.Run(ctx, c, theirs); err != nil {
		return v.fault(err)
	}
	level := t.Info().Level
	if v = v.difference(props.CompareRuns(c, want, v.answers, level)); v.finding != nil {
		return v, nil
	}

	loads, want, ok := loadsOnly(c, want)
	if !ok {
		return v, nil
	}
	answers, err := t.Run(ctx, loads, ours)
	if err != nil {
		return v.fault(err)
	}
	if d := props.CompareRuns(loads, want, answers, level); d != nil {
		v.finding = fmt.Errorf("loading what the reference saved: %w", d)
		return v, nil
	}
	answers, err = reference.Run(ctx, loads, theirs)
	if err != nil {
		v.finding = fmt.Errorf("the reference cannot load what was saved: %w", err)
	} else if d := props.CompareRuns(loads, want, answers, level); d != nil {
		v.finding = fmt.Errorf("the reference, loading what was saved: %w", d)
	}
	return v, nil
}

// judgeSound asks for what holds of any implementation, whatever it answers: it
// answers every operation, the same each time, with a known code where it
// refuses, and what it refuses has changed nothing.
func judgeSound(ctx context.Context, t props.Target, c corpus.Case) (verdict, error) {
	var v verdict
	runs := make([][]corpus.Step, 2)
	for i := range runs {
		dir, done, err := props.Scratch(c)
		if err != nil {
			return v, err
		}
		defer done()
		if runs[i], err = t.Run(ctx, c, dir); err != nil {
			v.wanted = c
			return v.fault(err)
		}
	}
	v.answers, v.wanted = runs[0], props.WithWants(c, runs[0])
	if len(v.answers) < len(c.Ops) && (len(v.answers) == 0 || v.answers[len(v.answers)-1].Unsupported == "") {
		v.finding = fmt.Errorf("%d answers to %d operations", len(v.answers), len(c.Ops))
		return v, nil
	}
	if d := props.CompareRuns(c, runs[0], runs[1], props.Layout); d != nil {
		v.finding = fmt.Errorf("a second run answers differently: %w", d)
		return v, nil
	}
	spoiled := props.DropAfterRaises(c, v.answers)
	last := map[string]corpus.State{} // by cache, where nothing could have changed it since
	for i, s := range v.answers {
		op := &c.Ops[i]
		switch before, known := last[op.Cache]; {
		case s.Error == "" && op.Verb == corpus.MaskOp:
		case s.Error == "":
			clear(last) // a list and its children share what they hold
			if name := cmp.Or(op.Out, op.Cache); name != "" && s.State != nil {
				last[name] = s.State
			}
		case !slices.Contains(ring.Codes, s.Error):
			v.finding = fmt.Errorf("#%d %s: refused with the unknown code %q", i, op.Verb, s.Error)
			return v, nil
		case known && s.State != nil && s.Error != "raises" && (spoiled == nil || !spoiled[i]) &&
			string(corpus.AppendState(nil, before)) != string(corpus.AppendState(nil, s.State)):
			v.finding = fmt.Errorf("#%d %s: refused (%s), and yet the state changed from %s to %s",
				i, op.Verb, s.Error, corpus.AppendState(nil, before), corpus.AppendState(nil, s.State))
			return v, nil
		}
	}
	return v, nil
}

// fault is the verdict on a run that ended with err: a finding where the target
// is to blame.
func (v verdict) fault(err error) (verdict, error) {
	var f *props.Fault
	if !errors.As(err, &f) {
		return v, err
	}
	v.finding = err
	return v, nil
}

// difference is the verdict with what a comparison found.
func (v verdict) difference(d *props.Difference) verdict {
	if d != nil {
		v.finding = d
	}
	return v
}

// loadsOnly returns c, and the answers to it, without its save operations, so
// that it loads what another run of c has saved. It is false where that would
// be another case: where nothing is loaded, a save was refused, or a file did
// not hold at its load what it held at the end.
func loadsOnly(c corpus.Case, answers []corpus.Step) (corpus.Case, []corpus.Step, bool) {
	saved, loaded := map[string]bool{}, false
	spoiled := props.DropAfterRaises(c, answers)
	ops, steps := []corpus.Op{}, []corpus.Step{}
	for i, op := range c.Ops {
		switch op.Verb {
		case corpus.Save:
			if saved[op.File] || answers[i].Error != "" || spoiled != nil && spoiled[i] {
				return c, answers, false
			}
			saved[op.File] = true
			continue
		case corpus.Load:
			if !saved[op.File] {
				return c, answers, false
			}
			loaded = true
		}
		ops, steps = append(ops, op), append(steps, answers[i])
	}
	c.Ops = ops
	return c, steps, loaded
}
