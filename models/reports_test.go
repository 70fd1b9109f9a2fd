package models

import (
	"slices"
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// TestReports steps through what people reported of these caches and what is
// right. Unless named, the window is 8.
func TestReports(t *testing.T) {
	wantSees := func(s *script, got [][]int, want ...[]int) {
		s.Helper()
		if !slices.EqualFunc(got, want, slices.Equal) {
			s.Fatalf("the queries see %v, want %v", got, want)
		}
	}
	trim := func(name string, n int) corpus.Op { return corpus.Op{Verb: corpus.Trim, Cache: name, N: n} }
	merge := func(out string, from ...string) corpus.Op {
		return corpus.Op{Verb: corpus.Merge, Caches: from, Out: out}
	}
	mask := func(name string, n int, window *int) corpus.Op {
		return corpus.Op{Verb: corpus.MaskOp, Cache: name, N: n, Window: window}
	}
	window := func(n int) *int { return &n }
	filter := func(rows ...int) corpus.Op { return corpus.Op{Verb: corpus.Filter, Cache: "b", Rows: rows} }

	for _, test := range []struct {
		id    string
		exact bool // the right value is of exact alone
		run   func(s *script)
	}{
		{"M01", false, func(s *script) {
			s.serial("r", 8)
			s.do(update("r", seq(1, 4)))
			s.decodes("r", seq(5, 12))
			e := s.do(update("r", seq(13, 15)))
			s.holds("r", seq(6, 15))
			if e.Width != 10 {
				s.Fatalf("returns %d columns, want 10", e.Width)
			}
		}},
		{"M02", false, func(s *script) {
			s.serial("r", 8)
			s.decodes("r", seq(1, 20))
			s.holds("r", seq(13, 20))
			s.serial("r", 8)
			s.do(update("r", seq(1, 12)))
			if e := s.do(mask("r", 3, nil)); e.Width != 10 {
				s.Fatalf("the mask of a block has %d columns, want 10", e.Width)
			}
			if e := s.do(update("r", []int{13})); e.Width != 8 {
				s.Fatalf("a decode returns %d columns, want 8", e.Width)
			}
		}},
		{"M03", false, func(s *script) {
			s.batch("b", 4, 0)
			s.feed("b", 4, seq(1, 8))
			if e := s.do(mask("b", 1, nil)); e.Rows[0].Sees(0, e.Mask.Window) != 4 {
				s.Fatal("a decode does not see 4 columns")
			}
		}},
		{"M04", false, func(s *script) {
			s.serial("r", 8)
			s.decodes("r", seq(1, 10))
			s.do(update("r", seq(11, 13)))
			s.holds("r", seq(4, 13))
		}},
		{"M05", false, func(s *script) {
			s.batch("b", 6, 0, 2)
			s.feed("b", 6, seq(1, 4), ids(p(2), seq(11, 12)))
			for k := range 5 {
				sees := s.feed("b", 6, []int{5 + k}, []int{13 + k})
				wantSees(s, sees[1], seq(max(11, 8+k), 13+k))
			}
		}},
		{"M06", false, func(s *script) {
			s.serial("r", 8)
			s.decodes("r", seq(1, 12))
			s.serial("q", 8)
			s.decodes("q", seq(21, 23))
			e := s.do(merge("b", "r", "q"))
			if e.State.Idx != 8 || !slices.Equal(e.State.Offset, []int{12, 3}) || !slices.Equal(e.State.LeftPadding, []int{0, 5}) {
				s.Fatalf("merged: %+v", e.State)
			}
			s.batch("one", 8, 0)
			s.feed("one", 8, seq(1, 3))
			s.feed("one", 8, []int{4})
			s.extract("one", 0, 0, seq(1, 4), 4)
		}},
		{"M07", false, func(s *script) {
			s.serial("r", 8)
			s.do(update("r", seq(1, 12)))
			s.serial("q", 8)
			s.decodes("q", seq(21, 23))
			s.do(merge("b", "r", "q"))
			s.holds("b", seq(5, 12), seq(21, 23))
		}},
		{"M08", false, func(s *script) {
			s.serial("r", 8)
			s.serial("q", 8)
			s.do(update("q", seq(1, 4)))
			if e := s.do(merge("b", "r", "q")); !slices.Equal(e.State.LeftPadding, []int{4, 0}) {
				s.Fatalf("left padding is %v, want [4 0]", e.State.LeftPadding)
			}
			s.serial("q", 8)
			if e := s.do(merge("b", "r", "q")); e.State.Idx != 0 || !slices.Equal(e.State.LeftPadding, []int{0, 0}) {
				s.Fatalf("merged: %+v", e.State)
			}
		}},
		{"M09", false, func(s *script) {
			s.batch("b", 8, 0, 0)
			s.feed("b", 8, seq(1, 3), seq(4, 6))
			s.batch("e", 8, 0, 0, 0)
			s.do(corpus.Op{Verb: corpus.Extend, Cache: "b", Other: "e"})
			s.prepare("b", []int{10, 8, 12, 7, 11}, []int{2, 4, 0, 5, 1})
			s.feed("b", 8, ids(seq(11, 20), p(2)), ids(seq(31, 38), p(4)), seq(41, 52), ids(seq(61, 67), p(5)), ids(seq(71, 81), p(1)))
			s.finalize("b")
			if i, _ := s.m.Info("b"); i.Rows != 5 {
				s.Fatalf("%d rows", i.Rows)
			}
			s.extract("b", 3, 0, seq(61, 67), 7)
		}},
		{"M11", false, func(s *script) {
			s.batch("b", 8, 0)
			s.decodes("b", seq(1, 12))
			s.extract("b", 0, 0, seq(5, 12), 12)
		}},
		{"M17", false, func(s *script) {
			s.serial("r", 64)
			s.do(update("r", seq(1, 32)))
			e := s.do(mask("r", 1, window(4)))
			if e.Mask.Null || e.Rows[0].Sees(0, e.Mask.Window) != 4 {
				s.Fatalf("mask: %+v", e.Mask)
			}
		}},
		{"M27", true, func(s *script) {
			s.batch("b", 8, 2, 3)
			s.do(filter(0, 1))
			s.leftPadding("b", 2, 3)
		}},
		{"M28", true, func(s *script) {
			s.batch("b", 8, 0, 0)
			s.prepare("b", []int{4, 2}, []int{0, 2})
			s.feed("b", 8, seq(11, 14), ids(seq(1, 2), p(2)))
			s.do(filter(1))
			s.finalize("b")
			s.leftPadding("b", 2)
			s.extract("b", 0, 0, seq(1, 2), 2)
		}},
		{"M29", true, func(s *script) {
			s.batch("b", 8, 0, 0)
			s.prepare("b", []int{4, 2}, []int{0, 2})
			s.feed("b", 8, seq(11, 14), ids(seq(1, 2), p(2)))
			s.refuse("pending_padding", corpus.Op{Verb: corpus.Extract, Cache: "b", Row: 1, Out: "x"})
		}},
		{"M31", true, func(s *script) {
			s.serial("r", 8)
			s.decodes("r", seq(1, 20))
			s.refuse("not_trimmable", trim("r", 5))
			s.do(update("r", []int{99}))
			s.holds("r", ids(seq(14, 20), []int{99}))
		}},
		{"M32", true, func(s *script) {
			s.batch("b", 8, 0)
			s.feed("b", 8, seq(1, 6))
			s.feed("b", 8, seq(7, 10))
			s.do(corpus.Op{Verb: corpus.Rollback, Cache: "b", Keep: 1})
			sees := s.feed("b", 8, []int{8})
			wantSees(s, sees[0], seq(1, 8))
		}},
		{"M33", true, func(s *script) {
			s.serial("r", 8)
			s.do(update("r", seq(1, 3)))
			s.refuse("range", trim("r", -2))
			s.do(update("r", []int{4}))
			s.holds("r", seq(1, 4))
		}},
		{"M34", true, func(s *script) {
			s.serial("r", 8)
			s.decodes("r", seq(1, 10))
			s.refuse("no_tokens", update("r", []int{}))
			s.do(update("r", []int{11}))
			s.holds("r", seq(4, 11))
		}},
		{"M35", true, func(s *script) {
			s.refuse("keep", corpus.Op{Verb: corpus.New, Out: "r", Kind: corpus.Rotating, MaxSize: 8, Keep: 4})
		}},
		{"P12", true, func(s *script) { // fewer columns than positions, and below the window
			s.batch("b", 8, 0)
			s.feed("b", 8, seq(1, 12))
			s.do(corpus.Op{Verb: corpus.Extract, Cache: "b", Out: "x", Limit: window(3)})
			e := s.do(update("x", []int{13}))
			s.holds("x", seq(10, 13))
			if e.Width != 4 || e.State.Offset[0] != 13 {
				s.Fatalf("%d columns, offset %v", e.Width, e.State.Offset)
			}
		}},
		{"P17", true, func(s *script) {
			s.batch("b", 8, 0, 0)
			s.feed("b", 8, seq(1, 9), seq(11, 19))
			s.feed("b", 8, seq(21, 24), seq(31, 34))
			s.do(corpus.Op{Verb: corpus.Rollback, Cache: "b", KeepRows: []int{3, 1}})
			s.extract("b", 0, 0, ids(seq(3, 9), seq(21, 23)), 12)
			s.extract("b", 1, 0, ids(seq(13, 19), []int{31}), 10)
			sees := s.feed("b", 8, []int{25}, []int{35})
			wantSees(s, sees[1], ids(seq(14, 19), []int{31, 35}))
		}},
		{"P22", false, func(s *script) {
			s.serial("r", 8)
			s.do(update("r", seq(1, 12)))
			e := s.do(update("r", seq(13, 20)))
			if e.Width != 15 {
				s.Fatalf("%d columns, want 15", e.Width)
			}
			for q := range 8 {
				if n := e.Rows[0].Sees(q, 8); n != 8 {
					s.Fatalf("query %d sees %d tokens", q, n)
				}
			}
		}},
		{"P29", false, func(s *script) {
			s.serial("r", 8)
			s.do(update("r", seq(1, 6)))
			s.decodes("r", seq(7, 8))
			s.holds("r", seq(1, 8))
			s.decodes("r", []int{9})
			s.holds("r", seq(2, 9))
		}},
		{"Q02", true, func(s *script) {
			s.batch("b", 8, 0, 0)
			s.prepare("b", []int{5, 2}, []int{0, 3})
			s.feed("b", 8, seq(1, 4), ids(seq(11, 12), p(2)))
			e := s.do(update("b", []int{5}, p(1)))
			if !e.Block || e.Width != 5 {
				s.Fatalf("block %v of %d columns", e.Block, e.Width)
			}
			s.finalize("b")
			s.extract("b", 0, 0, seq(1, 5), 5)
			s.extract("b", 1, 0, seq(11, 12), 2)
		}},
		{"Q05", false, func(s *script) { // under mlxlm a block's queries lose the sinks
			if s.m.exact {
				return
			}
			s.do(corpus.Op{Verb: corpus.New, Out: "r", Kind: corpus.Rotating, MaxSize: 8, Keep: 2})
			s.decodes("r", seq(1, 12))
			s.holds("r", ids(seq(1, 2), seq(7, 12)))
			sees := s.feed("r", 8, seq(13, 15))
			wantSees(s, sees[0], ids(seq(1, 2), seq(8, 13)), ids([]int{2}, seq(8, 14)), seq(8, 15))
		}},
		{"Q13", true, func(s *script) {
			s.batch("b", 8, 0)
			s.refuse("empty", corpus.Op{Verb: corpus.TemporalView, Cache: "b"})
			s.extract("b", 0, 0, nil, 0)
			s.do(corpus.Op{Verb: corpus.Save, Caches: []string{"b"}, File: "f"})
		}},
		{"Q16", true, func(s *script) {
			s.batch("b", 8, 0)
			s.batch("o", 4, 0)
			s.refuse("max_size", corpus.Op{Verb: corpus.Extend, Cache: "b", Other: "o"})
			s.serial("r", 8)
			s.serial("q", 4)
			s.refuse("max_size", merge("m", "r", "q"))
		}},
		{"Q24", true, func(s *script) {
			s.batch("b", 8, 0)
			s.feed("b", 8, seq(1, 3))
			s.refuse("window", mask("b", 1, window(0)))
			s.serial("r", 8)
			if e := s.do(mask("r", 1, nil)); e.Mask.Null {
				s.Fatal("no mask")
			}
		}},
		{"S-1", true, func(s *script) { // a merge of an overshooting batch keeps every row's tokens
			s.batch("b", 4, 0, 3)
			s.feed("b", 4, seq(1, 6), ids(p(3), seq(11, 13)))
			s.do(merge("m", "b"))
			s.holds("m", seq(3, 6), seq(11, 13))
		}},
		{"S-2", true, func(s *script) {
			s.batch("b", 4, 0, 0)
			s.prepare("b", []int{2, 1}, []int{0, 1})
			s.refuse("pending_padding", corpus.Op{Verb: corpus.AppendDecode, Cache: "b", Tokens: [][]int{{1}, {2}}})
		}},
		{"D-6", true, func(s *script) {
			s.batch("b", 4, 0)
			yes := true
			s.do(corpus.Op{Verb: corpus.Prepare, Cache: "b", Lengths: []int{3}, RightPadded: &yes})
			if e := s.do(update("b", []int{1})); !e.Block {
				s.Fatal("an update while padding is pending does not append")
			}
		}},
		{"D-7", true, func(s *script) {
			s.do(corpus.Op{Verb: corpus.New, Out: "b", Kind: corpus.BatchRotating, MaxSize: 4, LeftPadding: []int{}})
			s.prepare("b", []int{2, 3}, []int{1, 0})
			s.feed("b", 4, ids(seq(1, 2), p(1)), seq(11, 13))
			s.finalize("b")
			s.extract("b", 0, 0, seq(1, 2), 2)
		}},
		{"D-8", false, func(s *script) {
			s.batch("b", 8, 0, 0)
			s.feed("b", 8, seq(1, 2), seq(11, 12))
			s.refuse("left_padding_on_non_empty", corpus.Op{Verb: corpus.Prepare, Cache: "b", LeftPadding: []int{0, 1}})
		}},
		{"D-9", false, func(s *script) {
			s.batch("b", 8, 0, 0)
			s.prepare("b", []int{1, 2}, []int{1, 0})
			if s.m.exact {
				s.finalize("b")
			} else {
				s.refuse("raises", corpus.Op{Verb: corpus.Finalize, Cache: "b"})
			}
		}},
		{"D-11", true, func(s *script) {
			s.batch("b", 4, 0)
			s.feed("b", 4, seq(1, 6))
			e := s.do(corpus.Op{Verb: corpus.Extract, Cache: "b", Out: "x", Limit: window(4)})
			if !slices.Equal(e.Contents[0].Tail, seq(3, 6)) {
				s.Fatalf("extract: %v", e.Contents[0])
			}
		}},
		{"D-13", true, func(s *script) { // the newest window, pads last while pending
			s.batch("b", 4, 0, 0)
			s.prepare("b", []int{6, 4}, []int{0, 2})
			s.feed("b", 4, seq(1, 6), ids(seq(11, 14), p(2)))
			e := s.do(corpus.Op{Verb: corpus.TemporalView, Cache: "b"})
			if c := e.Contents; !slices.Equal(c[0].Tail, seq(3, 6)) || !slices.Equal(c[1].Tail, seq(13, 14)) || c[1].Back != 2 {
				s.Fatalf("view: %v", c)
			}
		}},
		{"item 7", true, func(s *script) {
			s.batch("b", 4, 0, 0)
			s.prepare("b", []int{6, 4}, []int{0, 2})
			s.feed("b", 4, seq(1, 6), ids(seq(11, 14), p(2)))
			e := s.do(corpus.Op{Verb: corpus.ValidOffset, Cache: "b"})
			if !slices.Equal(e.Offsets, []int{6, 4}) || !slices.Equal(e.State.Offset, []int{6, 6}) {
				s.Fatalf("valid offsets %v, offsets %v", e.Offsets, e.State.Offset)
			}
		}},
		{"item 70", true, func(s *script) {
			s.do(corpus.Op{Verb: corpus.New, Out: "b", Kind: corpus.BatchRotatingQuantized, MaxSize: 4, LeftPadding: []int{0}})
			bytes := func(tokens, want int) {
				s.Helper()
				if e := s.do(corpus.Op{Verb: corpus.ProjectedBytes, Cache: "b", N: tokens}); e.Bytes != want {
					s.Fatalf("%d tokens take %d bytes, want %d", tokens, e.Bytes, want)
				}
			}
			bytes(3, 0)
			s.do(update("b", []int{1}))
			// 2 heads, 4 bits a code, a scale and a bias of 2 bytes for each 32
			one := 2 * (32/2 + 2*2 + 64/2 + 2*2*2)
			bytes(3, 3*one)
			bytes(9, 4*one)
		}},
		{"E5", true, func(s *script) {
			s.batch("b", 4, 0)
			s.feed("b", 4, seq(1, 3))
			s.do(corpus.Op{Verb: corpus.Snapshot, Cache: "b", As: "s"})
			s.prepare("b", []int{1}, []int{1})
			for _, op := range []corpus.Op{
				{Verb: corpus.Extract, Cache: "b", Row: 7, Out: "x"}, trim("b", -1), merge("m", "b"),
				{Verb: corpus.Rollback, Cache: "b", Keep: 9}, {Verb: corpus.Prepare, Cache: "b", Lengths: []int{1, 2}},
			} {
				s.refuse("pending_padding", op)
			}
			s.do(corpus.Op{Verb: corpus.Restore, Cache: "b", From: "s"})
			s.do(trim("b", 1))
			s.holds("b", seq(1, 2))
		}},
		{"E9", true, func(s *script) {
			s.batch("b", 4, 0, 0)
			s.feed("b", 4, seq(1, 2), seq(11, 12))
			s.refuse("rows", update("b", []int{3}))
			s.refuse("no_tokens", update("b", []int{}))
			s.refuse("rows", corpus.Op{Verb: corpus.Prepare, Cache: "b", Lengths: []int{1}, RightPadding: []int{1}})
			s.refuse("shape", corpus.Op{Verb: corpus.Prepare, Cache: "b", Lengths: []int{1, 2}, RightPadding: []int{1, 1}, LeftPadding: []int{1, 1}})
			s.refuse("range", filter(0, 2))
			s.refuse("range", corpus.Op{Verb: corpus.Extract, Cache: "b", Row: 2, Out: "x"})
			s.refuse("range", corpus.Op{Verb: corpus.Extract, Cache: "b", Out: "x", Limit: window(0)})
			s.refuse("over_trim", trim("b", 3))
			s.refuse("rows", corpus.Op{Verb: corpus.Rollback, Cache: "b", KeepRows: []int{9}})
			s.refuse("range", corpus.Op{Verb: corpus.Rollback, Cache: "b", Keep: 3})
			s.refuse("not_supported", corpus.Op{Verb: corpus.TrimFront, Cache: "b"})
			s.refuse("not_supported", corpus.Op{Verb: corpus.New, Out: "k", Kind: corpus.KV})
			s.refuse("max_size", corpus.Op{Verb: corpus.New, Out: "k", Kind: corpus.Rotating, Keep: 1})
			s.do(filter())
			if i, _ := s.m.Info("b"); i.Rows != 0 {
				s.Fatalf("%d rows", i.Rows)
			}
		}},
	} {
		for _, sem := range []ring.Semantics{ring.MLXLM, ring.Exact} {
			if test.exact && sem != ring.Exact {
				continue
			}
			t.Run(test.id+"/"+sem.String(), func(t *testing.T) { test.run(newScript(t, sem)) })
		}
	}
}

// TestRecurrent steps through D-26 to D-28 and their neighbours.
func TestRecurrent(t *testing.T) {
	s := newScript(t, ring.Exact)
	write := func(name string, slot int, tokens ...int) corpus.Op {
		op := corpus.Op{Verb: corpus.Write, Cache: name, Slot: slot}
		for _, id := range tokens {
			op.Tokens = append(op.Tokens, []int{id})
		}
		return op
	}
	open := func(name string, lengths ...int) {
		s.do(corpus.Op{Verb: corpus.New, Out: name, Kind: corpus.BatchRecurrent, Slots: 2})
		s.do(corpus.Op{Verb: corpus.Prepare, Cache: name, Lengths: lengths})
	}
	state := func(name string, offsets []int, slots ...[]int) {
		t.Helper()
		c := s.m.caches[name]
		if !slices.Equal(c.slots.offsets, offsets) || !slices.EqualFunc(c.slots.ids, slots, slices.Equal) {
			t.Fatalf("%s: offsets %v, slots %v; want %v, %v", name, c.slots.offsets, c.slots.ids, offsets, slots)
		}
	}
	s.do(corpus.Op{Verb: corpus.New, Out: "b", Kind: corpus.BatchRecurrent, Slots: 2})
	s.do(corpus.Op{Verb: corpus.Prepare, Cache: "b", LeftPadding: []int{1}, Lengths: []int{3}})
	e := s.do(corpus.Op{Verb: corpus.MaskOp, Cache: "b", N: 4}) // D-26
	if !slices.Equal(e.Mask.Padding[0], []bool{false, true, true, false}) {
		t.Fatalf("mask is %v", e.Mask.Padding)
	}
	s.do(corpus.Op{Verb: corpus.New, Out: "c", Kind: corpus.BatchRecurrent, Slots: 2})
	s.do(corpus.Op{Verb: corpus.Prepare, Cache: "c", Lengths: []int{5, 9}, RightPadding: []int{4, 0}})
	s.do(corpus.Op{Verb: corpus.Advance, Cache: "c", N: 3})
	state("c", []int{3, 3}, nil, nil)
	s.do(corpus.Op{Verb: corpus.Advance, Cache: "c", N: 4})
	state("c", []int{5, 7}, nil, nil) // D-27
	s.do(corpus.Op{Verb: corpus.Advance, Cache: "c", N: 2})
	s.do(write("c", 0, 1, 2))
	s.finalize("c")
	s.do(corpus.Op{Verb: corpus.Advance, Cache: "c", N: 1})
	state("c", []int{6, 10}, []int{1, 2}, nil)
	open("d", 0)
	s.do(write("d", 1, 3))
	s.do(corpus.Op{Verb: corpus.Merge, Caches: []string{"c", "d"}, Out: "m"})
	state("m", []int{6, 10, 0}, []int{1, 2, 0}, []int{0, 0, 3})
	s.do(corpus.Op{Verb: corpus.Filter, Cache: "m", Rows: []int{2, 0}})
	state("m", []int{0, 6}, []int{0, 1}, []int{3, 0})
	s.do(corpus.Op{Verb: corpus.Extract, Cache: "m", Row: 1, Out: "x"})
	state("x", []int{6}, []int{1}, []int{0})
	open("f", 1)
	open("g", 1)
	s.do(corpus.Op{Verb: corpus.Merge, Caches: []string{"f", "g"}, Out: "m"}) // D-28
	state("m", []int{0, 0}, nil, nil)
	s.refuse("not_trimmable", corpus.Op{Verb: corpus.Trim, Cache: "m", N: 1})
	s.refuse("not_supported", update("m", []int{1}, []int{2}))
}
