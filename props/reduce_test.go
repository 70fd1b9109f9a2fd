package props

import (
	"context"
	"errors"
	"slices"
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

// TestFindingText: a finding names the operation once, and not the case, which
// may be one that was made from the one that is named.
func TestFindingText(t *testing.T) {
	const want = `property "reference" does not hold of buggy: #0 r = new rotating max_size=4: state.offset is 1, want 0`
	if got := checked(t, spoiled(nil, nil), decoding(), "reference").Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
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

// TestReduceMinimum: of a failure that shows on some cases, what is left is the
// smallest on which it does.
func TestReduceMinimum(t *testing.T) {
	count := func(c *corpus.Case, is func(op *corpus.Op) bool) (n int) {
		for i := range c.Ops {
			if is(&c.Ops[i]) {
				n++
			}
		}
		return n
	}
	fed := func(c *corpus.Case) (n int) {
		for range c.TokenIDs() {
			n++
		}
		return n
	}
	some := func(is func(op *corpus.Op) bool) func(*corpus.Case) bool {
		return func(c *corpus.Case) bool { return count(c, is) > 0 }
	}
	verb := func(v corpus.Verb) func(op *corpus.Op) bool {
		return func(op *corpus.Op) bool { return op.Verb == v }
	}
	positive := func(n int) bool { return n > 0 }
	op := func(v corpus.Verb, o corpus.Op) corpus.Op { o.Verb = v; return o }
	put := func(cache string, tokens ...[]int) corpus.Op {
		return corpus.Op{Verb: corpus.Update, Cache: cache, Tokens: tokens}
	}
	see := func(cache string, n int) corpus.Op { return corpus.Op{Verb: corpus.MaskOp, Cache: cache, N: n} }
	five, three, yes := 5, 3, true
	serial := op(corpus.New, corpus.Op{Out: "r", Kind: corpus.Rotating, MaxSize: 6})
	batch := op(corpus.New, corpus.Op{Out: "b", Kind: corpus.BatchRotating, MaxSize: 6, LeftPadding: []int{0, 2, 3}})
	prompt := put("b", []int{1, 2, 3, 4}, []int{-1, -2, 5, 6}, []int{-3, -4, -5, 7})
	tests := []struct {
		name      string
		semantics ring.Semantics
		ops       []corpus.Op
		fails     func(c *corpus.Case) bool
		want      string
	}{
		{
			"three tokens at once", ring.MLXLM,
			[]corpus.Op{serial, see("r", 7), put("r", []int{1, 2, 3, 4, 5, 6, 7}), see("r", 1), put("r", []int{8})},
			some(func(op *corpus.Op) bool { return len(op.Tokens) > 0 && len(op.Tokens[0]) >= 3 }),
			"#0 c1 = new rotating max_size=1\n#1 c1.update [[1 2 3]]\n",
		},
		{
			"a window of at least four", ring.MLXLM,
			[]corpus.Op{op(corpus.New, corpus.Op{Out: "q", Kind: corpus.Rotating, MaxSize: 9}), put("q", []int{1, 2})},
			some(func(op *corpus.Op) bool { return op.MaxSize >= 4 }),
			"#0 c1 = new rotating max_size=4\n",
		},
		{
			"three tokens in all", ring.MLXLM,
			[]corpus.Op{serial, put("r", []int{1}), see("r", 1), put("r", []int{2}), see("r", 2), put("r", []int{3, 4})},
			func(c *corpus.Case) bool { return fed(c) >= 3 },
			"#0 c1 = new rotating max_size=1\n#1 c1.update [[1 2 3]]\n",
		},
		{
			"an even number of masks", ring.MLXLM,
			[]corpus.Op{serial, see("r", 1), put("r", []int{1}), see("r", 1), put("r", []int{2})},
			func(c *corpus.Case) bool {
				return count(c, verb(corpus.MaskOp))%2 == 0 && count(c, verb(corpus.Update)) > 0
			},
			"#0 c1 = new rotating max_size=1\n#1 c1.update [[1]]\n",
		},
		{
			"a row with left padding", ring.MLXLM,
			[]corpus.Op{batch, see("b", 4), prompt},
			func(c *corpus.Case) bool {
				return count(c, verb(corpus.Update)) > 0 && slices.ContainsFunc(c.Ops[0].LeftPadding, positive)
			},
			"#0 c1 = new batch_rotating max_size=1 left_padding=[1]\n#1 c1.update [[-1]]\n",
		},
		{
			"the last of the rows", ring.MLXLM,
			[]corpus.Op{batch, prompt, op(corpus.Filter, corpus.Op{Cache: "b", Rows: []int{0, 2}}), op(corpus.Extract, corpus.Op{Cache: "b", Row: 1, Out: "e"})},
			func(c *corpus.Case) bool {
				return count(c, func(op *corpus.Op) bool { return op.Verb == corpus.Extract && op.Row >= 1 }) > 0
			},
			"#0 c1 = new batch_rotating max_size=1 left_padding=[0]\n#1 c2 = c1.extract row=1\n",
		},
		{
			"a filter to two", ring.MLXLM,
			[]corpus.Op{batch, prompt, op(corpus.Filter, corpus.Op{Cache: "b", Rows: []int{2, 0, 1}})},
			some(func(op *corpus.Op) bool { return len(op.Rows) >= 2 }),
			"#0 c1 = new batch_rotating max_size=1 left_padding=[0 0]\n#1 c1.filter rows=[1 0]\n",
		},
		{
			"a merge", ring.MLXLM,
			[]corpus.Op{
				serial, op(corpus.New, corpus.Op{Out: "s", Kind: corpus.Rotating, MaxSize: 6}), put("r", []int{1, 2}), put("s", []int{3}),
				op(corpus.Merge, corpus.Op{Caches: []string{"r", "s"}, Out: "m"}), put("m", []int{4}, []int{5}),
			},
			some(verb(corpus.Merge)),
			"#0 c1 = new rotating max_size=1\n#1 c2 = merge c1\n",
		},
		{
			"a batch that is written to", ring.MLXLM,
			[]corpus.Op{
				serial, op(corpus.New, corpus.Op{Out: "s", Kind: corpus.Rotating, MaxSize: 6}), put("r", []int{1, 2}), put("s", []int{3}),
				op(corpus.Merge, corpus.Op{Caches: []string{"r", "s"}, Out: "m"}), put("m", []int{4}, []int{5}),
			},
			some(func(op *corpus.Op) bool { return len(op.Tokens) == 2 }),
			"#0 c1 = new batch_rotating max_size=1 left_padding=[0 0]\n#1 c1.update [[1] [2]]\n",
		},
		{
			"a second cache", ring.MLXLM,
			[]corpus.Op{
				serial, put("r", []int{1, 2}), op(corpus.New, corpus.Op{Out: "e", Kind: corpus.Rotating, MaxSize: 6}), put("e", []int{3}),
				op(corpus.Snapshot, corpus.Op{Cache: "e", As: "s"}), op(corpus.Adopt, corpus.Op{From: "s", Out: "a"}), put("a", []int{8, 9}), op(corpus.Trim, corpus.Op{Cache: "a", N: 2}),
			},
			some(func(op *corpus.Op) bool { return op.Verb == corpus.Trim && op.N > 0 }),
			"#0 c1 = new rotating max_size=2\n#1 c1.update [[1]]\n#2 c1.trim n=1\n",
		},
		{
			"right padding", ring.MLXLM,
			[]corpus.Op{
				op(corpus.New, corpus.Op{Out: "b", Kind: corpus.BatchRotating, MaxSize: 6, LeftPadding: []int{0, 0, 0}}),
				op(corpus.Prepare, corpus.Op{Cache: "b", Lengths: []int{5, 3, 2}, RightPadding: []int{0, 2, 3}}),
				put("b", []int{1, 2, 3, 4, 5}, []int{6, 7, 8, -1, -2}, []int{9, 10, -3, -4, -5}),
				op(corpus.Finalize, corpus.Op{Cache: "b"}),
			},
			func(c *corpus.Case) bool {
				return count(c, func(op *corpus.Op) bool {
					return op.Verb == corpus.Prepare && slices.ContainsFunc(op.RightPadding, positive)
				}) > 0 &&
					count(c, verb(corpus.Finalize)) > 0
			},
			"#0 c1 = new batch_rotating max_size=1 left_padding=[0]\n#1 c1.prepare lengths=[0] right_padding=[1]\n#2 c1.finalize\n",
		},
		{
			"a prepare", ring.MLXLM,
			[]corpus.Op{
				op(corpus.New, corpus.Op{Out: "b", Kind: corpus.BatchRotating, MaxSize: 6, LeftPadding: []int{0, 0}}),
				op(corpus.Prepare, corpus.Op{Cache: "b", LeftPadding: []int{1, 2}, Lengths: []int{4, 3}, RightPadding: []int{0, 1}}),
			},
			some(verb(corpus.Prepare)),
			"#0 c1 = new batch_rotating max_size=1 left_padding=[0]\n#1 c1.prepare lengths=[0] right_padding=[0]\n",
		},
		{
			"a rollback", ring.Exact,
			[]corpus.Op{
				op(corpus.New, corpus.Op{Out: "b", Kind: corpus.BatchRotating, MaxSize: 6, LeftPadding: []int{0, 0}}),
				op(corpus.AppendWindow, corpus.Op{Cache: "b", Tokens: [][]int{{1, 2, 3}, {4, 5, 6}}}),
				op(corpus.Rollback, corpus.Op{Cache: "b", KeepRows: []int{2, 1}}),
			},
			some(verb(corpus.Rollback)),
			"#0 c1 = new batch_rotating max_size=1 left_padding=[0]\n#1 c1.rollback keep=0\n",
		},
		{
			"a rollback of one row", ring.Exact,
			[]corpus.Op{
				op(corpus.New, corpus.Op{Out: "b", Kind: corpus.BatchRotating, MaxSize: 6, LeftPadding: []int{0, 0}}),
				op(corpus.AppendWindow, corpus.Op{Cache: "b", Tokens: [][]int{{1, 2, 3}, {4, 5, 6}}}),
				op(corpus.Rollback, corpus.Op{Cache: "b", KeepRows: []int{2, 1}}),
			},
			some(func(op *corpus.Op) bool {
				return op.Verb == corpus.Rollback && slices.ContainsFunc(op.KeepRows, positive)
			}),
			"#0 c1 = new batch_rotating max_size=1 left_padding=[0]\n#1 c1.rollback keep=[1]\n",
		},
		{
			"a decode", ring.Exact,
			[]corpus.Op{
				op(corpus.New, corpus.Op{Out: "b", Kind: corpus.BatchRotating, MaxSize: 6, LeftPadding: []int{0, 0}}),
				op(corpus.AppendDecode, corpus.Op{Cache: "b", Tokens: [][]int{{1}, {2}}}),
				op(corpus.AppendDecode, corpus.Op{Cache: "b", Tokens: [][]int{{3}, {4}}}),
			},
			func(c *corpus.Case) bool { return fed(c) >= 2 },
			"#0 c1 = new batch_rotating max_size=1 left_padding=[0 0]\n#1 c1.append_decode [[1] [2]]\n",
		},
		{
			"a mask of a window", ring.MLXLM,
			[]corpus.Op{serial, put("r", []int{1, 2, 3}), op(corpus.MaskOp, corpus.Op{Cache: "r", N: 4, Window: &five}), put("r", []int{4, 5, 6, 7})},
			some(func(op *corpus.Op) bool { return op.Window != nil && *op.Window >= 2 }),
			"#0 c1 = new rotating max_size=1\n#1 c1.mask n=1 window=2\n",
		},
		{
			"a mask", ring.MLXLM,
			[]corpus.Op{serial, put("r", []int{1, 2, 3}), op(corpus.MaskOp, corpus.Op{Cache: "r", N: 4, Window: &five}), put("r", []int{4, 5, 6, 7})},
			some(verb(corpus.MaskOp)),
			"#0 c1 = new rotating max_size=1\n#1 c1.mask n=1\n",
		},
		{
			"an extract with a limit", ring.Exact,
			[]corpus.Op{batch, prompt, op(corpus.Extract, corpus.Op{Cache: "b", Row: 2, Limit: &three, Out: "e"})},
			some(func(op *corpus.Op) bool { return op.Limit != nil }),
			"#0 c1 = new batch_rotating max_size=1 left_padding=[0]\n#1 c2 = c1.extract row=0 limit=1\n",
		},
		{
			"an extract", ring.Exact,
			[]corpus.Op{batch, prompt, op(corpus.Extract, corpus.Op{Cache: "b", Row: 2, Limit: &three, Out: "e"})},
			some(verb(corpus.Extract)),
			"#0 c1 = new batch_rotating max_size=1 left_padding=[0]\n#1 c2 = c1.extract row=0\n",
		},
		{
			"a load of two", ring.MLXLM,
			[]corpus.Op{
				serial, op(corpus.New, corpus.Op{Out: "k", Kind: corpus.KV}), put("r", []int{1, 2}), put("k", []int{3}),
				op(corpus.Save, corpus.Op{Caches: []string{"r", "k"}, File: "f"}), op(corpus.Load, corpus.Op{File: "f", Outs: []string{"x", "y"}}),
				put("y", []int{4}),
			},
			some(verb(corpus.Load)),
			"#0 c1 = new rotating max_size=1\n#1 c2 = new kv\n#2 c1.update [[1]]\n#3 c2.update [[2]]\n#4 save f1 c1 c2\n#5 c3, c4 = load f1\n",
		},
		{
			"chunks and windows of one size", ring.MLXLM,
			[]corpus.Op{
				op(corpus.New, corpus.Op{Out: "c", Kind: corpus.Chunked, ChunkSize: 5}), op(corpus.New, corpus.Op{Out: "d", Kind: corpus.Chunked, ChunkSize: 5}),
				put("c", []int{1, 2}), put("d", []int{3}),
			},
			func(c *corpus.Case) bool {
				return len(c.Ops) > 1 && c.Ops[0].ChunkSize > 1 && c.Ops[0].ChunkSize == c.Ops[1].ChunkSize
			},
			"#0 c1 = new chunked chunk_size=2\n#1 c2 = new chunked chunk_size=2\n",
		},
		{
			"slots", ring.MLXLM,
			[]corpus.Op{
				op(corpus.New, corpus.Op{Out: "s", Kind: corpus.Arrays, Slots: 4}), op(corpus.Write, corpus.Op{Cache: "s", Slot: 3, Tokens: [][]int{{1}}}),
				op(corpus.Write, corpus.Op{Cache: "s", Slot: 2, Tokens: [][]int{{2}}}),
			},
			some(func(op *corpus.Op) bool { return op.Slots >= 2 }),
			"#0 c1 = new arrays slots=2\n",
		},
		{
			"a slot that is written", ring.MLXLM,
			[]corpus.Op{
				op(corpus.New, corpus.Op{Out: "s", Kind: corpus.Arrays, Slots: 4}), op(corpus.Write, corpus.Op{Cache: "s", Slot: 3, Tokens: [][]int{{1}}}),
				op(corpus.Write, corpus.Op{Cache: "s", Slot: 2, Tokens: [][]int{{2}}}),
			},
			some(verb(corpus.Write)),
			"#0 c1 = new arrays slots=1\n#1 c1.write [[1]] slot=0\n",
		},
		{
			"two that belong to each other", ring.MLXLM,
			[]corpus.Op{op(corpus.New, corpus.Op{Out: "k", Kind: corpus.KV}), serial, see("r", 1)},
			func(c *corpus.Case) bool {
				kv, rotating := func(op *corpus.Op) bool { return op.Kind == corpus.KV }, func(op *corpus.Op) bool { return op.Kind == corpus.Rotating }
				return count(c, rotating) > 0 && count(c, kv) == count(c, verb(corpus.MaskOp))
			},
			"#0 c1 = new rotating max_size=1\n",
		},
		{
			"a trim of what is loaded", ring.MLXLM,
			[]corpus.Op{
				op(corpus.New, corpus.Op{Out: "k", Kind: corpus.KV}), put("k", []int{1, 2}), op(corpus.Save, corpus.Op{Caches: []string{"k"}, File: "f"}),
				op(corpus.Load, corpus.Op{File: "f", Outs: []string{"x"}}), op(corpus.Trim, corpus.Op{Cache: "x", N: 2}),
			},
			some(func(op *corpus.Op) bool { return op.Verb == corpus.Trim && op.N > 0 }),
			"#0 c1 = new kv\n#1 c1.trim n=1\n",
		},
		{
			"a batch without a window that is written to", ring.MLXLM,
			[]corpus.Op{
				op(corpus.New, corpus.Op{Out: "r", Kind: corpus.KV}), op(corpus.New, corpus.Op{Out: "s", Kind: corpus.KV}), put("r", []int{1, 2}), put("s", []int{3}),
				op(corpus.Merge, corpus.Op{Caches: []string{"r", "s"}, Out: "m"}), put("m", []int{4}, []int{5}),
			},
			some(func(op *corpus.Op) bool { return len(op.Tokens) == 2 }),
			"#0 c1 = new batch_kv left_padding=[0 0]\n#1 c1.update [[1] [2]]\n",
		},
		{
			"a merge of something", ring.MLXLM,
			[]corpus.Op{
				serial, put("r", []int{1, 2}), op(corpus.Snapshot, corpus.Op{Cache: "r", As: "s"}), op(corpus.Adopt, corpus.Op{From: "s", Out: "a"}),
				op(corpus.Merge, corpus.Op{Caches: []string{"a"}, Out: "m"}),
			},
			func(c *corpus.Case) bool {
				return count(c, verb(corpus.Merge)) > 0 && count(c, verb(corpus.Update)) > 0
			},
			"#0 c1 = new rotating max_size=1\n#1 c1.update [[1]]\n#2 c2 = merge c1\n",
		},
		{
			"a merge beside another cache", ring.MLXLM,
			[]corpus.Op{serial, op(corpus.New, corpus.Op{Out: "s", Kind: corpus.Rotating, MaxSize: 6}), op(corpus.Merge, corpus.Op{Caches: []string{"r", "s"}, Out: "m"})},
			func(c *corpus.Case) bool {
				return count(c, verb(corpus.Merge)) > 0 && count(c, verb(corpus.New)) > 1
			},
			"#0 c1 = new rotating max_size=1\n#1 c2 = new rotating max_size=1\n#2 c3 = merge c2\n",
		},
		{
			"a mask and three tokens", ring.MLXLM,
			[]corpus.Op{serial, put("r", []int{1}), see("r", 2), put("r", []int{2, 3})},
			func(c *corpus.Case) bool { return fed(c) >= 3 && count(c, verb(corpus.MaskOp)) > 0 },
			"#0 c1 = new rotating max_size=1\n#1 c1.mask n=1\n#2 c1.update [[1 2 3]]\n",
		},
		{
			"two decodes", ring.Exact,
			[]corpus.Op{
				op(corpus.New, corpus.Op{Out: "b", Kind: corpus.BatchRotating, MaxSize: 6, LeftPadding: []int{0}}),
				op(corpus.AppendDecode, corpus.Op{Cache: "b", Tokens: [][]int{{1}}}), op(corpus.AppendDecode, corpus.Op{Cache: "b", Tokens: [][]int{{2}}}),
			},
			func(c *corpus.Case) bool { return fed(c) >= 2 },
			"#0 c1 = new batch_rotating max_size=1 left_padding=[0]\n#1 c1.update [[1 2]]\n",
		},
		{
			"a mask and its write", ring.MLXLM,
			[]corpus.Op{serial, see("r", 6), put("r", []int{1, 2, 3, 4, 5, 6})},
			func(c *corpus.Case) bool {
				for i, op := range c.Ops {
					if i > 0 && len(op.Tokens) == 1 && len(op.Tokens[0]) == c.Ops[i-1].N && c.Ops[i-1].N > 1 {
						return true
					}
				}
				return false
			},
			"#0 c1 = new rotating max_size=1\n#1 c1.mask n=2\n#2 c1.update [[1 2]]\n",
		},
		{
			"an extract of a padded row", ring.MLXLM,
			[]corpus.Op{
				op(corpus.New, corpus.Op{Out: "b", Kind: corpus.BatchRotating, MaxSize: 6, LeftPadding: []int{0, 2, 1}}),
				put("b", []int{1, 2}, []int{-1, -2}, []int{-3, 3}), op(corpus.Extract, corpus.Op{Cache: "b", Row: 2, Out: "e"}),
			},
			func(c *corpus.Case) bool {
				left := c.Ops[0].LeftPadding
				return count(c, func(op *corpus.Op) bool {
					return op.Verb == corpus.Extract && op.Row < len(left) && left[op.Row] == 1
				}) > 0
			},
			"#0 c1 = new batch_rotating max_size=1 left_padding=[1]\n#1 c2 = c1.extract row=0\n",
		},
		{
			"a filter of three", ring.MLXLM,
			[]corpus.Op{batch, prompt, op(corpus.Filter, corpus.Op{Cache: "b", Rows: []int{2, 0, 1}})},
			func(c *corpus.Case) bool {
				return len(c.Ops[0].LeftPadding) == 3 && count(c, verb(corpus.Filter)) > 0
			},
			"#0 c1 = new batch_rotating max_size=1 left_padding=[0 0 0]\n#1 c1.filter rows=[1]\n",
		},
		{
			"a mask that could be refused", ring.Exact,
			[]corpus.Op{batch, prompt, see("b", 3)},
			some(verb(corpus.MaskOp)),
			"#0 c1 = new batch_rotating max_size=1 left_padding=[0]\n#1 c1.mask n=1\n",
		},
		{
			"a prepare that says what it does", ring.MLXLM,
			[]corpus.Op{
				op(corpus.New, corpus.Op{Out: "b", Kind: corpus.BatchKV, LeftPadding: []int{0}}),
				op(corpus.Prepare, corpus.Op{Cache: "b", Lengths: []int{2}, RightPadding: []int{1}, RightPadded: &yes}),
			},
			some(verb(corpus.Prepare)),
			"#0 c1 = new batch_kv left_padding=[0]\n#1 c1.prepare lengths=[0] right_padding=[0]\n",
		},
		{
			"attention", ring.MLXLM,
			[]corpus.Op{serial, put("r", []int{1, 2}), op(corpus.Attend, corpus.Op{Cache: "r", Queries: 3, Scale: 1})},
			some(verb(corpus.Attend)),
			"#0 c1 = new rotating max_size=1\n#1 c1.attend queries=1 scale=1\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := corpus.Case{
				Name: "minimum", Source: "made for a test", Semantics: test.semantics, Step: corpus.DefaultStep,
				Shape: corpus.Shape{KVHeads: 2, KeyDim: 6, ValueDim: 2, DType: ring.Float32}, Ops: test.ops,
			}
			before := Listing(c, nil)
			target := buggy{func(a *answersTo) {
				if test.fails(a.c) {
					state(corpus.FSize, oneMore)(a)
					state(corpus.FOffset, oneMore)(a)
				}
			}}
			small := reduced(t, target, checked(t, target, c, "reference"))
			if got := Listing(small.Case, nil); got != test.want {
				t.Errorf("got\n%s\nwant\n%s\nfrom\n%s", got, test.want, before)
			}
			if s := small.Case; s.Shape != (corpus.Shape{KVHeads: 1, KeyDim: 4, ValueDim: 4, DType: ring.BFloat16}) {
				t.Errorf("%+v is left", s.Shape)
			}
			if !wellFormed(small.Case) {
				t.Errorf("what is left is not well-formed: %v", corpus.Lint(small.Case))
			}
			if Listing(c, nil) != before {
				t.Error("the case itself has changed")
			}
		})
	}
}

// TestReduceBound: a crash of which nothing can be left out is not tried without
// end.
func TestReduceBound(t *testing.T) {
	c := decoding()
	for i := range 60 {
		c.Ops = append(c.Ops, corpus.Op{Verb: corpus.Update, Cache: "r", Tokens: [][]int{{10 + i}}})
	}
	n := len(c.Ops)
	runs := 0
	target := metered{Target: spoiled(nil, func(c corpus.Case) error {
		if len(c.Ops) == n {
			return &Fault{Reason: "crashed"}
		}
		return nil
	}), runs: &runs}
	f := checked(t, target, c, "reference")
	runs = 0
	if small := reduced(t, target, f); len(small.Case.Ops) != n || runs < 100 || runs > 2*reduceFaults {
		t.Errorf("%d operations are left after %d runs", len(small.Case.Ops), runs)
	}
}

// TestSize: what is simpler counts as smaller.
func TestSize(t *testing.T) {
	of := func(ops ...corpus.Op) corpus.Case { return corpus.Case{Step: corpus.DefaultStep, Ops: ops} }
	shaped := func(change func(c *corpus.Case)) corpus.Case {
		c := decoding()
		change(&c)
		return c
	}
	nothing := func(*corpus.Case) {}
	yes, zero := true, 0
	trim := func(n int) corpus.Op { return corpus.Op{Verb: corpus.Trim, Cache: "a", N: n} }
	for name, pair := range map[string][2]corpus.Case{
		"fewer operations":     {of(trim(9)), of(trim(0), trim(0))},
		"a new cache":          {of(corpus.Op{Verb: corpus.New, Out: "a", MaxSize: 9}), of(corpus.Op{Verb: corpus.Extract, Out: "a"})},
		"no cache":             {of(trim(9)), of(corpus.Op{Verb: corpus.Extract, Cache: "a", Out: "b"})},
		"none loaded":          {of(trim(9)), of(corpus.Op{Verb: corpus.Load, Outs: []string{"a"}})},
		"fewer names":          {of(corpus.Op{Verb: corpus.Save, Caches: []string{"a"}, N: 9}), of(corpus.Op{Verb: corpus.Save, Caches: []string{"a", "b"}})},
		"fewer loaded":         {of(corpus.Op{Verb: corpus.Load, Outs: []string{"a"}, N: 9}), of(corpus.Op{Verb: corpus.Load, Outs: []string{"a", "b"}})},
		"fewer tokens":         {of(update([]int{1})), of(update([]int{1, 2}))},
		"fewer rows":           {of(update([]int{1, 2})), of(update([]int{1}, []int{2}))},
		"a number":             {of(trim(1)), of(trim(3))},
		"a number below 0":     {of(trim(-1)), of(trim(-3))},
		"a flag":               {of(corpus.Op{}), of(corpus.Op{Preserve: true})},
		"no window":            {of(corpus.Op{}), of(corpus.Op{Window: &zero})},
		"right padding unsaid": {of(corpus.Op{}), of(corpus.Op{RightPadded: &yes})},
		"fill":                 {shaped(nothing), shaped(func(c *corpus.Case) { c.Fill = corpus.Bits })},
		"data type":            {shaped(func(c *corpus.Case) { c.Shape.DType = ring.BFloat16 }), shaped(nothing)},
		"heads":                {shaped(func(c *corpus.Case) { c.Shape.KVHeads = 1 }), shaped(nothing)},
		"width":                {shaped(func(c *corpus.Case) { c.Shape.KeyDim = 4 }), shaped(nothing)},
		"the usual step":       {shaped(nothing), shaped(func(c *corpus.Case) { c.Step = 1 })},
		"a lower step":         {shaped(func(c *corpus.Case) { c.Step = 2 }), shaped(func(c *corpus.Case) { c.Step = 8 })},
		"unquantized":          {shaped(nothing), shaped(func(c *corpus.Case) { c.Quant = &corpus.Quant{GroupSize: 32, Bits: 2} })},
		"bits":                 {shaped(func(c *corpus.Case) { c.Quant = &corpus.Quant{GroupSize: 32, Bits: 4} }), shaped(func(c *corpus.Case) { c.Quant = &corpus.Quant{GroupSize: 32, Bits: 8} })},
		"groups":               {shaped(func(c *corpus.Case) { c.Quant = &corpus.Quant{GroupSize: 32, Bits: 4} }), shaped(func(c *corpus.Case) { c.Quant = &corpus.Quant{GroupSize: 64, Bits: 4} })},
	} {
		if slices.Compare(size(&pair[0]), size(&pair[1])) >= 0 {
			t.Errorf("%s: %v is not below %v", name, size(&pair[0]), size(&pair[1]))
		}
	}
}

// TestFitted: operations that lost what they were made for are made to fit what
// is there, or dropped.
func TestFitted(t *testing.T) {
	shape := corpus.Shape{KVHeads: 1, KeyDim: 4, ValueDim: 4, DType: ring.BFloat16}
	ring3 := func(left ...int) corpus.Op {
		return corpus.Op{Verb: corpus.New, Out: "a", Kind: corpus.BatchRotating, MaxSize: 3, LeftPadding: left}
	}
	serial := corpus.Op{Verb: corpus.New, Out: "a", Kind: corpus.KV}
	arrays := corpus.Op{Verb: corpus.New, Out: "a", Kind: corpus.Arrays, Slots: 1}
	for want, ops := range map[string][]corpus.Op{
		"a.update [[-1] [-2] [-3]]": {ring3(1, 1, 1), update([]int{-1})},
		"a.update [[1 -2]]": {
			ring3(0), {Verb: corpus.Prepare, Cache: "a", Lengths: []int{1}, RightPadding: []int{1}}, update([]int{1, 2}),
		},
		"m = merge a":            {serial, {Verb: corpus.Merge, Out: "m", Caches: []string{"a", "gone"}}},
		"save f a":               {serial, update([]int{1}), {Verb: corpus.Save, File: "f", Caches: []string{"gone", "a"}}},
		"x = a.extract row=0":    {arrays, {Verb: corpus.Write, Cache: "a", Tokens: [][]int{{1}}}, extract(1, "x")},
		"a.filter rows=[1 0]":    {ring3(0, 0), {Verb: corpus.Filter, Cache: "a", Rows: []int{1, 2, 0}}},
		"a.prepare lengths=[1]":  {ring3(0), {Verb: corpus.Prepare, Cache: "a", Lengths: []int{1, 2}}},
		"a.update [[1 2 3 4 5]]": {ring3(0), update([]int{1, 2, 3, 4, 5}), {Verb: corpus.Update, Cache: "gone", Tokens: [][]int{{6}}}},
	} {
		c := fitted(corpus.Case{Semantics: ring.MLXLM, Shape: shape, Step: corpus.DefaultStep, Ops: ops})
		if got := opText(c.Ops[len(c.Ops)-1]); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	// A mask that the caller gives has the extents of its write.
	for _, m := range []*ring.Mask{seeAll(2, 2, 4), seeAll(1, 3, 4), seeAll(1, 2, 5), seeAll(1, 2, 4)} {
		c := fitted(corpus.Case{Semantics: ring.Exact, Shape: shape, Step: corpus.DefaultStep, Ops: []corpus.Op{
			ring3(0), update([]int{1, 2, 3, 4}), {Verb: corpus.AppendWindowUnder, Cache: "a", Tokens: [][]int{{5, 6}}, Mask: m},
		}})
		if len(c.Ops) != 3 {
			t.Errorf("%d operations are left", len(c.Ops))
		} else if m := c.Ops[2].Mask; m.B != 1 || m.N != 2 || m.S != 4 {
			t.Errorf("the mask is of %d, %d, %d", m.B, m.N, m.S)
		}
	}
}

// TestWellFormed: what is refused makes no name.
func TestWellFormed(t *testing.T) {
	c := fakeCase("refused", corpus.BatchRotating, extract(2, "x"), corpus.Op{Verb: corpus.Trim, Cache: "x", N: 1})
	if wellFormed(c) {
		t.Error("a cache that was never made can be trimmed")
	}
	if c.Ops = c.Ops[:2]; !wellFormed(c) {
		t.Errorf("a refused extract is not well-formed: %v", corpus.Lint(c))
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
