package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
)

// A judge holds a target against one case. The verdict has a finding, or
// nothing; the error is for a case that could not be judged.
type judge func(ctx context.Context, t props.Target, c corpus.Case) (verdict, error)

// verdict is what came of one case.
type verdict struct {
	skip    string         // why the case says nothing; "" if it does
	finding error          // what is wrong with the target; nil if nothing
	small   *props.Finding // finding, on the smallest case that shows it; nil where it was not made smaller
	answers []corpus.Step  // the target's, as far as there are any
	wanted  corpus.Case    // the case with the wants that were not met, for filing
}

// judgeFiled asks for what the case itself wants and, where a run has filed it,
// for the property that failed then.
func judgeFiled(ctx context.Context, t props.Target, c corpus.Case) (verdict, error) {
	v, err := judgeWants(ctx, t, c)
	if err != nil || v.finding != nil || c.Found == nil {
		return v, err
	}
	list, err := props.Named([]string{c.Found.Property})
	if err != nil {
		return v, nil // the wants are all that is left of a property that is no more
	}
	return judgeProperties(list)(ctx, t, c)
}

// judgeProperties asks for properties.
func judgeProperties(list []props.Property) judge {
	return func(ctx context.Context, t props.Target, c corpus.Case) (verdict, error) {
		f, err := props.Check(ctx, t, c, list)
		if f == nil {
			return verdict{wanted: c}, err
		}
		return verdict{wanted: f.Run, answers: f.Answers, finding: f}, nil
	}
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

// judgeLiteral asks for the reference's answers, and, where the case saves
// and loads, that each side can load what the other has saved.
func judgeLiteral(ctx context.Context, t props.Target, c corpus.Case) (verdict, error) {
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
