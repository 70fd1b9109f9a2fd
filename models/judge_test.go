package models

import (
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// judged drives a judge by hand.
type judged struct {
	*testing.T
	j *Judge
}

func newJudged(t *testing.T, sem ring.Semantics) *judged {
	return &judged{t, NewJudge(&corpus.Case{Semantics: sem, Shape: corpus.Shape{KVHeads: 2, KeyDim: 32, ValueDim: 64, DType: ring.BFloat16}})}
}

// step wants the text of what is wrong, "" for nothing.
func (s *judged) step(want string, op corpus.Op, got corpus.Want) {
	s.Helper()
	text := ""
	if v := s.j.Step(&op, &got); v != nil {
		text = v.Error()
	}
	if text != want {
		s.Errorf("%s: judged %q, want %q", op.Verb, text, want)
	}
}

func maskOf(b, n, s int, bits ...int) *ring.Mask {
	m := &ring.Mask{B: b, N: n, S: s, Data: make([]bool, b*n*s)}
	for i := range bits {
		m.Data[i] = bits[i] == 1
	}
	return m
}

// TestJudgeAppends: the mask that an append answers itself is judged as that of a
// mask operation is, and one that it was called with must come back.
func TestJudgeAppends(t *testing.T) {
	open := corpus.Op{Verb: corpus.New, Out: "b", Kind: corpus.BatchRotating, MaxSize: 2, LeftPadding: []int{1}}
	app := func(v corpus.Verb, m *ring.Mask, ids ...int) corpus.Op {
		return corpus.Op{Verb: v, Cache: "b", Tokens: [][]int{ids}, Mask: m}
	}
	right := maskOf(1, 3, 3, 1, 0, 0, 0, 1, 0, 0, 1, 1)
	for name, test := range map[string]struct {
		mask *ring.Mask
		want string
	}{
		"right":             {right, ""},
		"none":              {nil, ""},
		"what padding sees": {maskOf(1, 3, 3, 1, 1, 1, 0, 1, 0, 0, 1, 1), ""},
		"too narrow":        {maskOf(1, 3, 2), "mask fits keys: b: extent [b n s] is [1 3 2], want [1 3 3]"},
		"of two rows":       {maskOf(2, 3, 3), "mask fits keys: b: extent [b n s] is [2 3 3], want [1 3 3]"},
		"null":              {&ring.Mask{}, "mask fits keys: b: whether there is no mask is true, want false"},
		"too many":          {maskOf(1, 3, 3, 1, 0, 0, 1, 1, 0, 0, 1, 1), "mask fits keys: b, row 0, query 1: number of columns seen is 2, want 1"},
		"too few":           {maskOf(1, 3, 3, 1, 0, 0, 0, 1, 0, 0, 0, 1), "mask fits keys: b, row 0, query 2: number of columns seen is 1, want 2"},
		"padding":           {maskOf(1, 3, 3, 1, 0, 0, 1, 0, 0, 0, 1, 1), "no ghost: b, row 0, query 1: what the query sees is [-1], want [5]"},
		"a later token":     {maskOf(1, 3, 3, 1, 0, 0, 0, 0, 1, 0, 1, 1), "no ghost: b, row 0, query 1: what the query sees is [6], want [5]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newJudged(t, ring.Exact)
			s.step("", open, corpus.Want{})
			s.step(test.want, app(corpus.AppendWindow, nil, -1, 5, 6), corpus.Want{Returned: [][]int{{-1, 5, 6}}, Mask: test.mask})
		})
	}
}

// TestJudgeUnder: a mask that the caller gave comes back as it is.
func TestJudgeUnder(t *testing.T) {
	given := maskOf(1, 2, 2, 1, 0, 1, 1)
	for want, mask := range map[string]*ring.Mask{
		"": given, "mask fits keys: b: mask is [true true true true], want [true false true true]": maskOf(1, 2, 2, 1, 1, 1, 1),
	} {
		s := newJudged(t, ring.Exact)
		s.step("", corpus.Op{Verb: corpus.New, Out: "b", Kind: corpus.BatchRotating, MaxSize: 4, LeftPadding: []int{0}}, corpus.Want{})
		s.step(want, corpus.Op{Verb: corpus.AppendWindowUnder, Cache: "b", Tokens: [][]int{{1, 2}}, Mask: given}, corpus.Want{Returned: [][]int{{1, 2}}, Mask: mask})
	}
}

// TestJudgeAnswers: what operations other than writes answer.
func TestJudgeAnswers(t *testing.T) {
	op := func(v corpus.Verb, n int) corpus.Op { return corpus.Op{Verb: v, Cache: "b", N: n} }
	for _, test := range []struct {
		op   corpus.Op
		got  corpus.Want
		want string
	}{
		{op(corpus.TemporalView, 0), corpus.Want{}, ""},
		{op(corpus.TemporalView, 0), corpus.Want{Returned: [][]int{{1, 2}, {0, 3}}}, ""},
		{op(corpus.TemporalView, 0), corpus.Want{Returned: [][]int{{1, 2}}}, "temporal view: b: number of rows is 1, want 2"},
		{op(corpus.TemporalView, 0), corpus.Want{Returned: [][]int{{1, 2}, {3, 3}}}, ""},
		{op(corpus.TemporalView, 0), corpus.Want{Returned: [][]int{{2, 1}, {0, 3}}}, "temporal view: b, row 0: columns is [2 1], want 2 columns, from 0 on [1 2]"},
		{op(corpus.TemporalView, 0), corpus.Want{Returned: [][]int{{1, 2}, {0, 3, 0}}}, "temporal view: b, row 1: columns is [0 3 0], want 2 columns, from 1 on [3]"},
		{op(corpus.TemporalView, 0), corpus.Want{Returned: [][]int{{1}, {0, 3}}}, "temporal view: b, row 0: columns is [1], want 2 columns, from 0 on [1 2]"},
		{op(corpus.ValidOffset, 0), corpus.Want{}, ""},
		{op(corpus.ValidOffset, 0), corpus.Want{Offsets: []int{2, 1}}, ""},
		{op(corpus.ValidOffset, 0), corpus.Want{Offsets: []int{2, 2}}, "valid offset: b: offsets is [2 2], want [2 1]"},
		{op(corpus.ProjectedBytes, 3), corpus.Want{}, ""},
		{op(corpus.ProjectedBytes, 3), corpus.Want{Bytes: new(2 * (32 + 64) * 2 * 3)}, ""},
		{op(corpus.ProjectedBytes, 3), corpus.Want{Bytes: new(1)}, "projected bytes: b: bytes is 1, want 1152"},
		{op(corpus.Trim, 1), corpus.Want{}, ""},
		{op(corpus.Trim, 1), corpus.Want{Trimmed: new(2)}, "trimmed: b: trimmed is 2, want 1"},
		{op(corpus.Trim, 2), corpus.Want{}, "refusal: b: error is none, want over_trim"},
		{op(corpus.MaskOp, 1), corpus.Want{}, ""},
		{op(corpus.MaskOp, 1), corpus.Want{State: corpus.State{corpus.IntField(corpus.FSize, 9)}}, ""}, // it says nothing of a state
		{op(corpus.MaskOp, 1), corpus.Want{Error: "range"}, "refusal: b: error is range, want none"},
		{op(corpus.Release, 0), corpus.Want{State: corpus.State{corpus.BoolField(corpus.FTrimmable, false)}}, "size: b: trimmable is false, want true"},
		{
			corpus.Op{Verb: corpus.New, Out: "n", Kind: corpus.BatchRotating, MaxSize: 4, LeftPadding: []int{0}},
			corpus.Want{State: corpus.State{corpus.IntField(corpus.FSize, 1)}}, "size: n: size is 1, want 0",
		},
	} {
		if !corpus.BatchRotating.Has(test.op.Verb, ring.Exact) {
			continue
		}
		s := newJudged(t, ring.Exact)
		s.step("", corpus.Op{Verb: corpus.New, Out: "b", Kind: corpus.BatchRotating, MaxSize: 4, LeftPadding: []int{0, 1}}, corpus.Want{})
		s.step("", update("b", []int{1, 2}, []int{-1, 3}), corpus.Want{})
		s.step(test.want, test.op, test.got)
		if n := s.j.Checks[RuleView]; test.want == "" && n != len(test.got.Returned) {
			t.Errorf("%d rows of views were counted of %d", n, len(test.got.Returned))
		}
	}
}

// TestJudgeMasks: a mask is judged with the writes that it fits, and with no
// other; rules that are skipped do not speak, nor does anything else in their
// place.
func TestJudgeMasks(t *testing.T) {
	open := corpus.Op{Verb: corpus.New, Out: "b", Kind: corpus.BatchRotating, MaxSize: 4, LeftPadding: []int{0}}
	see := func(n int) corpus.Op { return corpus.Op{Verb: corpus.MaskOp, Cache: "b", N: n} }
	causal, crossed := maskOf(1, 2, 2, 1, 0, 1, 1), maskOf(1, 2, 2, 0, 1, 1, 1)
	write := func(s *judged, want string) {
		s.Helper()
		s.step(want, update("b", []int{1, 2}), corpus.Want{Returned: [][]int{{1, 2}}})
	}
	s := newJudged(t, ring.Exact)
	s.step("", open, corpus.Want{})
	s.step("", see(2), corpus.Want{Mask: causal})
	s.step("", update("b", []int{1, 2, 3}), corpus.Want{Returned: [][]int{{1, 2, 3}}}) // of another width
	if c := s.j.Checks; c[RuleWindow] != 0 || c[RuleNoGhost] != 0 || c[RuleReturned] != 1 || c[RuleMaskFits] != 1 {
		t.Errorf("counted %v", c)
	}
	s = newJudged(t, ring.Exact)
	s.step("", open, corpus.Want{})
	s.step("", see(2), corpus.Want{Mask: causal})
	write(s, "")
	if c := s.j.Checks; c[RuleWindow] != 2 || c[RuleNoGhost] != 2 {
		t.Errorf("counted %v", c)
	}
	const sees = "row 0, query 0: what the query sees is [2], want [1]"
	for _, test := range []struct {
		skip RuleSet
		want string
	}{
		{0, "no ghost: b, " + sees}, {Rules(RuleWindow), "no ghost: b, " + sees}, {Rules(RuleNoGhost), "window: b, " + sees},
		{Rules(RuleWindow, RuleNoGhost), ""},
	} {
		s := newJudged(t, ring.Exact)
		s.j.Skip = test.skip
		s.step("", open, corpus.Want{})
		s.step("", see(2), corpus.Want{Mask: crossed})
		write(s, test.want)
	}
	s = newJudged(t, ring.Exact) // too narrow a mask hides what it does not reach
	s.j.Skip = Rules(RuleMaskFits)
	s.step("", open, corpus.Want{})
	s.step("", see(2), corpus.Want{Mask: maskOf(1, 2, 1, 1, 1)})
	write(s, "window: b, row 0, query 1: what the query sees is [1], want [1 2]")

	s = newJudged(t, ring.Exact) // too few rows say nothing of what a query sees
	s.j.Skip = Rules(RuleReturned)
	s.step("", open, corpus.Want{})
	s.step("", see(2), corpus.Want{Mask: causal})
	s.step("", update("b", []int{1, 2}), corpus.Want{Returned: [][]int{}})

	none := 0 // a window of nothing
	s = newJudged(t, ring.MLXLM)
	s.step("", corpus.Op{Verb: corpus.New, Out: "k", Kind: corpus.KV}, corpus.Want{})
	s.step("", corpus.Op{Verb: corpus.MaskOp, Cache: "k", N: 2, Window: &none}, corpus.Want{Mask: maskOf(1, 2, 2)})
	s.step("", update("k", []int{1, 2}), corpus.Want{Returned: [][]int{{1, 2}}})
	s.step("mask fits keys: k, row 0, query 0: number of columns seen is 1, want 0",
		corpus.Op{Verb: corpus.MaskOp, Cache: "k", N: 1 + 1, Window: &none}, corpus.Want{Mask: maskOf(1, 2, 4, 1)})

	// What should have been refused, and was not, is judged no further.
	s = newJudged(t, ring.Exact)
	s.j.Skip = Rules(RuleRefusal)
	s.step("", open, corpus.Want{})
	s.step("", update("b", []int{}), corpus.Want{Returned: [][]int{{1}}})
	s.step("", update("nobody", []int{1}), corpus.Want{})
	if s.j.Unknown != 1 {
		t.Errorf("%d operations are unknown", s.j.Unknown)
	}
}

// TestJudgeLists: the children of a list are judged as caches are.
func TestJudgeLists(t *testing.T) {
	s := newJudged(t, ring.MLXLM)
	s.step("", corpus.Op{Verb: corpus.New, Out: "b", Kind: corpus.BatchRotating, MaxSize: 4, LeftPadding: []int{0, 0}}, corpus.Want{})
	list := func(size int) corpus.Want {
		return corpus.Want{State: corpus.State{{Name: corpus.FCaches, Kind: corpus.States, States: []corpus.State{{corpus.IntField(corpus.FSize, size)}}}}}
	}
	s.step("", corpus.Op{Verb: corpus.New, Out: "l", Kind: corpus.List, Caches: []string{"b"}}, list(0))
	s.step("size: l: size is 3, want 0", corpus.Op{Verb: corpus.Filter, Cache: "l", Rows: []int{0}}, list(3))
}

// TestInfo: what a generator is told of a cache.
func TestInfo(t *testing.T) {
	s := newScript(t, ring.Exact)
	info := func(name string, want Info) {
		t.Helper()
		if got, ok := s.m.Info(name); !ok || got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	s.batch("b", 3, 0, 1)
	info("b", Info{Kind: corpus.BatchRotating, Rows: 2, MaxSize: 3})
	s.do(update("b", []int{1, 2}, []int{-1, 3}))
	info("b", Info{Kind: corpus.BatchRotating, Rows: 2, MaxSize: 3, Columns: 2, Total: 2, Started: true, Trim: 1})
	s.do(corpus.Op{Verb: corpus.AppendWindow, Cache: "b", Tokens: [][]int{{4, 5}, {6, 7}}})
	info("b", Info{Kind: corpus.BatchRotating, Rows: 2, MaxSize: 3, Columns: 4, Total: 4, Started: true, Trim: -1, Round: 2})
	s.do(corpus.Op{Verb: corpus.Filter, Cache: "b"})
	info("b", Info{Kind: corpus.BatchRotating, MaxSize: 3, Columns: 4, Total: 4, Started: true, Trim: -1})
	s.batch("p", 9, 0, 0)
	s.prepare("p", []int{4, 2}, []int{1, 3})
	info("p", Info{Kind: corpus.BatchRotating, Rows: 2, MaxSize: 9, Pending: true, Due: 5, Trim: -1})
	s.do(update("p", []int{1, 2, 3}, []int{4, 5, -1}))
	info("p", Info{Kind: corpus.BatchRotating, Rows: 2, MaxSize: 9, Columns: 3, Total: 3, Started: true, Pending: true, Due: 2, Trim: -1})
	s.batch("e", 3, 0)
	s.batch("f", 3, 0)
	s.do(corpus.Op{Verb: corpus.Merge, Caches: []string{"e", "f"}, Out: "m"})
	info("m", Info{Kind: corpus.BatchRotating, Rows: 2, MaxSize: 3}) // left padding may still come
	s.do(corpus.Op{Verb: corpus.New, Out: "r", Kind: corpus.BatchRecurrent, Slots: 2})
	info("r", Info{Kind: corpus.BatchRecurrent, Slots: 2, Trim: -1})
	s.do(corpus.Op{Verb: corpus.Prepare, Cache: "r", Lengths: []int{1}, RightPadding: []int{1}})
	info("r", Info{Kind: corpus.BatchRecurrent, Slots: 2, Rows: 1, Pending: true, Trim: -1})
	s.do(corpus.Op{Verb: corpus.New, Out: "u", Kind: corpus.BatchRecurrent, Slots: 2})
	s.do(corpus.Op{Verb: corpus.Prepare, Cache: "u", LeftPadding: []int{0}, Lengths: []int{2}, RightPadding: []int{0}})
	info("u", Info{Kind: corpus.BatchRecurrent, Slots: 2, Rows: 1, Trim: -1}) // nothing is padded
	s = newScript(t, ring.MLXLM)
	s.batch("x", 4, 0)
	s.batch("y", 5, 0)
	s.refuse("", corpus.Op{Verb: corpus.Extend, Cache: "x", Other: "y"})
	if _, ok := s.m.Info("y"); ok {
		t.Error("what may have been taken over is still there")
	}
	s.do(corpus.Op{Verb: corpus.New, Out: "k", Kind: corpus.KV})
	s.do(update("k", []int{1, 2}))
	info("k", Info{Kind: corpus.KV, Rows: 1, Columns: 2, Total: 2, Started: true, Trim: 2})
}

// TestArraysRows: what an arrays cache takes for its rows, before a slot is
// written and after.
func TestArraysRows(t *testing.T) {
	for name, test := range map[string]struct {
		left, lengths []int
		slot          []int
		rows          int
	}{
		"nothing known": {rows: 1}, "left padding": {left: []int{1, 0, 2}, rows: 3}, "lengths": {lengths: []int{4}, rows: 1},
		"a slot": {slot: []int{5, 6}, rows: 2}, "left padding of none": {left: []int{0, 0}, rows: 2},
	} {
		s := newScript(t, ring.MLXLM)
		s.do(corpus.Op{Verb: corpus.New, Out: "a", Kind: corpus.Arrays, Slots: 2, LeftPadding: test.left})
		if test.lengths != nil {
			s.do(corpus.Op{Verb: corpus.Prepare, Cache: "a", Lengths: test.lengths})
		}
		if test.slot != nil {
			s.do(corpus.Op{Verb: corpus.Write, Cache: "a", Slot: 1, Tokens: [][]int{{5}, {6}}})
		}
		if i, _ := s.m.Info("a"); i.Rows != test.rows {
			t.Errorf("%s: %d rows, want %d", name, i.Rows, test.rows)
		}
		three := corpus.Op{Verb: corpus.Write, Cache: "a", Slot: 0, Tokens: [][]int{{7}, {8}, {9}}}
		if ok, _ := s.m.Legal(&three); ok != (name == "nothing known" || test.rows == 3) {
			t.Errorf("%s: a write of three rows is legal: %v", name, ok)
		}
		last := corpus.Op{Verb: corpus.Write, Cache: "a", Slot: 2, Tokens: make([][]int, test.rows)}
		for i := range last.Tokens {
			last.Tokens[i] = []int{10 + i}
		}
		if ok, _ := s.m.Legal(&last); ok {
			t.Errorf("%s: there is no slot 2", name)
		}
	}
}

// A mask of one row serves all rows; one that lacks a row or a query is judged by
// its extents alone, and where these are not judged, by nothing: never by a panic.
func TestJudgeMaskThatDoesNotFit(t *testing.T) {
	c := corpus.Case{Semantics: ring.Exact, Shape: corpus.Shape{KVHeads: 1, KeyDim: 4, ValueDim: 4, DType: ring.Float32}}
	ops := []corpus.Op{
		{Verb: corpus.New, Out: "b", Kind: corpus.BatchRotating, MaxSize: 4, LeftPadding: []int{0, 0}},
		{Verb: corpus.MaskOp, Cache: "b", N: 2},
		{Verb: corpus.Update, Cache: "b", Tokens: [][]int{{1, 2}, {11, 12}}},
	}
	returned := [][]int{{1, 2}, {11, 12}}
	for name, test := range map[string]struct {
		mask *ring.Mask
		want string
	}{
		"one row for all": {&ring.Mask{B: 1, N: 2, S: 2, Data: []bool{true, false, true, true}}, ""},
		"one row, wrong":  {&ring.Mask{B: 1, N: 2, S: 2, Data: []bool{true, true, true, true}}, "no ghost"},
		"a query too few": {&ring.Mask{B: 2, N: 1, S: 2, Data: []bool{true, false, true, false}}, ""},
		"short of data":   {&ring.Mask{B: 2, N: 2, S: 2, Data: []bool{true}}, ""},
	} {
		j := NewJudge(&c)
		j.Skip = Rules(RuleMaskFits, RuleReturned, RulePositions, RuleConservation)
		got := ""
		for i, w := range []corpus.Want{{}, {Mask: test.mask}, {Returned: returned}} {
			if v := j.Step(&ops[i], &w); v != nil {
				got = v.Rule.String()
			}
		}
		if got != test.want {
			t.Errorf("%s: judged %q, want %q", name, got, test.want)
		}
	}
}
