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

// spoiled is the reference with an offset too high, and one thing more.
func spoiled(info func(*Info), run func(corpus.Case) error) Target {
	return wrong{buggy{state(corpus.FOffset, oneMore)}, info, run}
}

type wrong struct {
	buggy
	info func(*Info)
	run  func(corpus.Case) error
}

func (w wrong) Info() Info {
	info := w.buggy.Info()
	if w.info != nil {
		w.info(&info)
	}
	return info
}

func (w wrong) Run(ctx context.Context, c corpus.Case, dir string) ([]corpus.Step, error) {
	if w.run != nil {
		if err := w.run(c); err != nil {
			return nil, err
		}
	}
	return w.buggy.Run(ctx, c, dir)
}

// checked is the finding of a property on a case.
func checked(t *testing.T, target Target, c corpus.Case, property string) *Finding {
	t.Helper()
	list, err := Named([]string{property})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Check(t.Context(), target, c, list)
	if f == nil || err != nil {
		t.Fatalf("nothing was found: %v", err)
	}
	return f
}

func reduced(t *testing.T, target Target, f *Finding) *Finding {
	t.Helper()
	small, err := Reduce(t.Context(), target, f)
	if err != nil {
		t.Fatal(err)
	}
	return small
}

func decoding() corpus.Case {
	c := corpus.Case{
		Name: "decoding", Source: "made for a test", ID: "M01", Link: "https://example.com", Notes: "It decodes.",
		Semantics: ring.MLXLM, Step: corpus.DefaultStep, Shape: corpus.Shape{KVHeads: 2, KeyDim: 6, ValueDim: 2, DType: ring.Float32},
		Ops: []corpus.Op{{Verb: corpus.New, Out: "r", Kind: corpus.Rotating, MaxSize: 4}},
	}
	for i := range 5 {
		c.Ops = append(c.Ops, corpus.Op{Verb: corpus.MaskOp, Cache: "r", N: 1}, corpus.Op{Verb: corpus.Update, Cache: "r", Tokens: [][]int{{i + 1}}})
	}
	return c
}

// TestReduceClaims: what the target does not claim it is not asked.
func TestReduceClaims(t *testing.T) {
	for _, test := range []struct {
		name  string
		claim func(*Info)
		dtype ring.DType
	}{
		{"all", nil, ring.BFloat16},
		{"two data types", func(i *Info) { i.DTypes = []ring.DType{ring.Float32, ring.Float16} }, ring.Float16},
		{"one data type", func(i *Info) { i.DTypes = []ring.DType{ring.Float32} }, ring.Float32},
	} {
		var target Target
		target = spoiled(test.claim, func(c corpus.Case) error {
			if lacks := target.Info().Lacks(c); lacks != "" {
				t.Errorf("%s: it was asked for %s", test.name, lacks)
			}
			return nil
		})
		small := reduced(t, target, checked(t, target, decoding(), "reference"))
		if small.Case.Shape.DType != test.dtype || len(small.Case.Ops) != 1 {
			t.Errorf("%s:\n%v, %s", test.name, small.Case.Shape, small.Report())
		}
	}
}

// TestReduceKeepsFaults: a wrong answer is not reduced to a crash, nor a crash to
// a wrong answer.
func TestReduceKeepsFaults(t *testing.T) {
	crash := &Fault{Reason: "crashed"}
	short := spoiled(nil, func(c corpus.Case) error {
		if len(c.Ops) < 4 {
			return crash
		}
		return nil
	})
	f := checked(t, short, decoding(), "reference")
	if small := reduced(t, short, f); f.Fault != nil || small.Fault != nil || len(small.Case.Ops) != 4 {
		t.Errorf("of a wrong answer:\n%s", small.Report())
	}
	long := spoiled(nil, func(c corpus.Case) error {
		if len(c.Ops) > 3 {
			return crash
		}
		return nil
	})
	f = checked(t, long, decoding(), "reference")
	if small := reduced(t, long, f); f.Fault == nil || small.Fault == nil || len(small.Case.Ops) != 4 {
		t.Errorf("of a crash:\n%s", small.Report())
	}
}

// TestReduceWants: a case that is not answered as it wants is made smaller where
// the reference answers otherwise, too. Else it stays as it is, and is filed with
// what it wants.
func TestReduceWants(t *testing.T) {
	target := spoiled(nil, nil)
	c := expected(decoding())
	if small := reduced(t, target, checked(t, target, c, "corpus")); small.Property != "reference" || len(small.Case.Ops) != 1 {
		t.Errorf("%s", small.Report())
	}
	runs := 0
	moody := spoiled(nil, func(corpus.Case) error {
		if runs++; runs > 1 {
			return &Fault{Reason: "crashed"}
		}
		return nil
	})
	f := checked(t, moody, c, "corpus")
	if small := reduced(t, moody, f); small != f {
		t.Errorf("a wrong answer has become a crash:\n%s", small.Report())
	}
	right := metered{Target: ReferenceTarget(), runs: new(int)}
	c.Ops[10].Want = &corpus.Want{Returned: [][]int{{4, 5}}}
	f = checked(t, right, c, "corpus")
	if small := reduced(t, right, f); small != f {
		t.Fatalf("what it wants is lost:\n%s", small.Report())
	}
	dir := t.TempDir()
	if _, err := File(dir, f, 1); err != nil {
		t.Fatal(err)
	}
	for there, err := range corpus.Dir(dir) {
		if err != nil {
			t.Fatal(err)
		}
		checked(t, right, there.Case, "corpus")
	}
}

// TestReduceOrigin: what a case says of its origin is not said of the reduced one,
// and of plain widths there is one.
func TestReduceOrigin(t *testing.T) {
	target := spoiled(nil, nil)
	small := reduced(t, target, checked(t, target, decoding(), "reference")).Case
	if small.Source != "reduced from decoding" || small.ID != "" || small.Link != "" || small.Notes != "" {
		t.Errorf("source %q, id %q, link %q, notes %q", small.Source, small.ID, small.Link, small.Notes)
	}
	if s := small.Shape; s.KVHeads != 1 || s.KeyDim != 4 || s.ValueDim != 4 {
		t.Errorf("%+v", s)
	}
	f := checked(t, target, small, "reference")
	if again := reduced(t, target, f); again != f {
		t.Errorf("reduced again it is %s", again.Report())
	}
}

// TestReportFault: of what a target did not answer, nobody knows where it failed.
func TestReportFault(t *testing.T) {
	target := spoiled(nil, func(corpus.Case) error { return &Fault{Reason: "crashed", Stderr: "first\nlast"} })
	c := decoding()
	c.Ops = c.Ops[:3]
	const want = `property "reference" does not hold of buggy: the target failed: crashed; its standard error ends: last
first
last
operations (a case is answered as a whole, so it is not known which of them failed):
#0 r = new rotating max_size=4
#1 r.mask n=1
#2 r.update [[1]]
`
	if got := checked(t, target, c, "reference").Report(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
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
