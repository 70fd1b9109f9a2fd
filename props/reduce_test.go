package props

import (
	"context"
	"errors"
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// metered is a target that counts its runs and calls each.
type metered struct {
	Target
	runs *int
	each func()
}

func (c metered) Run(ctx context.Context, k corpus.Case, dir string) ([]corpus.Step, error) {
	*c.runs++
	if c.each != nil {
		c.each()
	}
	return c.Target.Run(ctx, k, dir)
}

// TestReduceLiteral: a case of which package models cannot speak stays
// well-formed while it is reduced.
func TestReduceLiteral(t *testing.T) {
	runs := 0
	target := metered{Target: bugs["offsets"](), runs: &runs}
	list, err := Named([]string{"reference"})
	if err != nil {
		t.Fatal(err)
	}
	strange := 0
	for i := range 40 {
		c := Literal(7, i, target.Info())
		f, err := Check(t.Context(), target, c, list)
		if err != nil {
			t.Fatal(err)
		}
		if f == nil {
			continue // no cache of the case has an offset
		}
		if !modelled(&c) {
			strange++
		}
		runs = 0
		small, err := Reduce(t.Context(), target, f)
		if err != nil {
			t.Fatal(err)
		}
		if runs > reduceChecks {
			t.Errorf("case %d: %d runs, want at most %d", i, runs, reduceChecks)
		}
		if n := len(small.Case.Ops); n != 1 || !wellFormed(small.Case) {
			t.Errorf("case %d: %d operations are left, %v:\n%s", i, n, corpus.Lint(small.Case), small.Report())
		}
	}
	if strange < 5 {
		t.Errorf("%d of the cases are beyond package models; the test needs some", strange)
	}
}

// TestReduceCancelled: what was reached until then is what is returned.
func TestReduceCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	runs := 0
	target := metered{Target: bugs["finite"](), runs: &runs, each: func() {
		if runs == 20 {
			cancel()
		}
	}}
	list, err := Named([]string{"finite"})
	if err != nil {
		t.Fatal(err)
	}
	var f *Finding
	for i := 0; f == nil; i++ {
		if f, err = Check(t.Context(), buggy{target.Target.(buggy).spoil}, Generate(RandomSource(11, i), Domain{Info: target.Info()}), list); err != nil {
			t.Fatal(err)
		}
	}
	small, err := Reduce(ctx, target, f)
	if !errors.Is(err, context.Canceled) || runs > 21 {
		t.Errorf("after %d runs: %v", runs, err)
	}
	if len(small.Case.Ops) >= len(f.Case.Ops) {
		t.Errorf("20 runs have not made it smaller: %d operations of %d", len(small.Case.Ops), len(f.Case.Ops))
	}
	if again, err := Check(t.Context(), target, small.Case, list); again == nil || err != nil {
		t.Errorf("what it returned does not fail: %v", err)
	}
}

// TestReduceUnknown: a finding of a property that there is not.
func TestReduceUnknown(t *testing.T) {
	if _, err := Reduce(t.Context(), ReferenceTarget(), &Finding{Property: "beauty"}); err == nil {
		t.Error("a property that there is not was reduced by")
	}
}

func TestCanonical(t *testing.T) {
	c := corpus.Case{Semantics: ring.MLXLM, Ops: []corpus.Op{
		{Verb: corpus.New, Kind: corpus.Rotating, Out: "zebra", MaxSize: 4},
		{Verb: corpus.Update, Cache: "zebra", Tokens: [][]int{{70, -12}, {9, 70}}},
		{Verb: corpus.Snapshot, Cache: "zebra", As: "zebra"},
		{Verb: corpus.Adopt, From: "zebra", Out: "yak"},
		{Verb: corpus.Merge, Caches: []string{"yak", "zebra"}, Out: "x"},
		{Verb: corpus.Save, Caches: []string{"x"}, File: "x"},
		{Verb: corpus.Load, File: "x", Outs: []string{"w"}},
	}}
	before := Listing(c, nil)
	const want = `#0 c1 = new rotating max_size=4
#1 c1.update [[1 -2] [3 1]]
#2 s1 = c1.snapshot
#3 c2 = adopt s1
#4 c3 = merge c2 c1
#5 save f1 c3
#6 c4 = load f1
`
	if got := Listing(canonical(c), nil); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if Listing(c, nil) != before {
		t.Error("the case itself has changed")
	}
}
