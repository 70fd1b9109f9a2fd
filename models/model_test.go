package models

import (
	"slices"
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// script drives a model by hand. An operation must succeed unless the test says
// otherwise.
type script struct {
	*testing.T
	m *Model
}

func newScript(t *testing.T, sem ring.Semantics) *script {
	return &script{T: t, m: New(sem, corpus.Shape{KVHeads: 2, KeyDim: 32, ValueDim: 64, DType: ring.BFloat16}, &corpus.Quant{GroupSize: 32, Bits: 4})}
}

func (s *script) do(op corpus.Op) *Expect {
	s.Helper()
	e := s.m.Apply(&op)
	if !e.Known || e.Error != "" {
		s.Fatalf("%s on %s: known %v, error %q; want success", op.Verb, op.Cache, e.Known, e.Error)
	}
	return e
}

// refuse wants a refusal with the code; "" for an operation outside the domain.
func (s *script) refuse(code string, op corpus.Op) {
	s.Helper()
	if ok, got := s.m.Legal(&op); ok || got != code {
		s.Fatalf("%s on %s: legal %v, code %q; want %q", op.Verb, op.Cache, ok, got, code)
	}
	if e := s.m.Apply(&op); e.Known != (code != "") || e.Error != code {
		s.Fatalf("%s on %s: known %v, error %q; want %q", op.Verb, op.Cache, e.Known, e.Error, code)
	}
}

func (s *script) batch(name string, w int, left ...int) {
	s.Helper()
	s.do(corpus.Op{Verb: corpus.New, Out: name, Kind: corpus.BatchRotating, MaxSize: w, LeftPadding: left})
}

func (s *script) serial(name string, w int) {
	s.Helper()
	s.do(corpus.Op{Verb: corpus.New, Out: name, Kind: corpus.Rotating, MaxSize: w})
}

func update(name string, rows ...[]int) corpus.Op {
	return corpus.Op{Verb: corpus.Update, Cache: name, Tokens: rows}
}

// feed writes and returns what each real query of each row sees within window.
func (s *script) feed(name string, window int, rows ...[]int) [][][]int {
	s.Helper()
	e := s.do(update(name, rows...))
	sees := make([][][]int, len(e.Rows))
	for i := range e.Rows {
		for q := range e.Rows[i].Real {
			sees[i] = append(sees[i], slices.Clone(e.Rows[i].Visible(q, window)))
		}
	}
	return sees
}

// decodes feeds tokens one at a time.
func (s *script) decodes(name string, ids []int) {
	s.Helper()
	for _, id := range ids {
		s.do(update(name, []int{id}))
	}
}

func (s *script) prepare(name string, lengths, right []int) {
	s.Helper()
	s.do(corpus.Op{Verb: corpus.Prepare, Cache: name, Lengths: lengths, RightPadding: right})
}

func (s *script) finalize(name string) {
	s.Helper()
	s.do(corpus.Op{Verb: corpus.Finalize, Cache: name})
}

// extract wants a cache of that many columns in front that mean nothing, then
// the tokens, and a row of length n.
func (s *script) extract(name string, row, front int, tokens []int, n int) {
	s.Helper()
	e := s.do(corpus.Op{Verb: corpus.Extract, Cache: name, Row: row, Out: "extracted"})
	if c := e.Contents[0]; c.Front != front || !slices.Equal(c.Tail, tokens) || e.State.Offset[0] != n {
		s.Fatalf("extract of row %d is %d columns, then %v, offset %d; want %d, %v, %d", row, c.Front, c.Tail, e.State.Offset[0], front, tokens, n)
	}
}

func (s *script) leftPadding(name string, want ...int) {
	s.Helper()
	c := s.m.caches[name]
	for i, w := range want {
		if got := c.leftPadding(i); got != w {
			s.Fatalf("left padding of row %d is %d, want %d", i, got, w)
		}
	}
}

func (s *script) holds(name string, rows ...[]int) {
	s.Helper()
	for i, want := range rows {
		if got := s.m.Tokens(name, i); !slices.Equal(got, want) {
			s.Fatalf("row %d of %s holds %v, want %v", i, name, got, want)
		}
	}
}

func seq(from, to int) []int {
	var out []int
	for i := from; i <= to; i++ {
		out = append(out, i)
	}
	return out
}

// ids concatenates token lists.
func ids(lists ...[]int) []int { return slices.Concat(lists...) }

// p makes n pads.
var p = func() func(n int) []int {
	next := 0
	return func(n int) []int {
		var out []int
		for range n {
			next--
			out = append(out, next)
		}
		return out
	}
}()

// both runs a test under the two semantics.
func both(t *testing.T, f func(t *testing.T, s *script, exact bool)) {
	for _, sem := range []ring.Semantics{ring.MLXLM, ring.Exact} {
		t.Run(sem.String(), func(t *testing.T) { f(t, newScript(t, sem), sem == ring.Exact) })
	}
}

// pick is a where exact holds and b elsewhere.
func pick[T any](exact bool, a, b T) T {
	if exact {
		return a
	}
	return b
}

// The worked examples of docs/semantics.md.

func TestPaddedPrefill(t *testing.T) {
	both(t, func(t *testing.T, s *script, exact bool) {
		s.batch("b", 6, 0, 2)
		s.feed("b", 6, seq(1001, 1004), ids(p(2), seq(2001, 2002)))
		for k := range 3 {
			sees := s.feed("b", 6, []int{1005 + k}, []int{2003 + k})
			if want := seq(max(1001, 1000+k), 1005+k); k < 2 && !slices.Equal(sees[0][0], want) {
				t.Fatalf("query %d sees %v, want %v", k, sees[0][0], want)
			}
		}
		s.leftPadding("b", pick(exact, 0, -1), 1)
		s.extract("b", 1, 0, seq(2001, 2005), 5)
		s.extract("b", 0, 0, seq(1002, 1007), 7)
	})
}

// O-2: left padding below zero absorbs the roll of finalize.
func TestFinalizeGarbage(t *testing.T) {
	both(t, func(t *testing.T, s *script, exact bool) {
		for i, name := range []string{"r0", "r1"} {
			s.serial(name, 4)
			s.do(update(name, seq(10*i+1, 10*i+5)))
		}
		s.do(corpus.Op{Verb: corpus.Merge, Caches: []string{"r0", "r1"}, Out: "b"})
		s.feed("b", 4, []int{6}, []int{16})
		s.leftPadding("b", pick(exact, 0, -1), pick(exact, 0, -1))
		s.prepare("b", []int{3, 1}, []int{0, 2})
		s.feed("b", 4, seq(7, 9), ids([]int{17}, p(2)))
		s.finalize("b")
		s.leftPadding("b", pick(exact, 0, -2), pick(exact, 2, 0))
		s.extract("b", 1, pick(exact, 0, 2), seq(14, 17), 7)
		s.feed("b", 4, []int{10}, []int{18})
		s.leftPadding("b", pick(exact, 0, -5), pick(exact, 0, -3))
		s.extract("b", 1, 0, seq(15, 18), 8)
	})
}

func TestRollbackOnAFullRing(t *testing.T) {
	both(t, func(t *testing.T, s *script, exact bool) {
		s.batch("b", 4, 0, 1)
		s.feed("b", 4, seq(1, 5), ids(p(1), seq(12, 15)))
		s.feed("b", 4, seq(6, 8), seq(16, 18))
		s.do(corpus.Op{Verb: corpus.Rollback, Cache: "b", KeepRows: []int{2, 1}})
		s.leftPadding("b", pick(exact, 1, -1), pick(exact, 2, 1))
		s.extract("b", 0, pick(exact, 0, 1), seq(3, 7), 7)
		s.extract("b", 1, pick(exact, 0, 1), seq(13, 16), 5)
	})
	both(t, func(t *testing.T, s *script, exact bool) { // nothing kept: one token short
		s.batch("b", 4, 0, 0)
		s.feed("b", 4, seq(1, 4), seq(11, 14))
		s.feed("b", 4, seq(5, 7), seq(15, 17))
		s.do(corpus.Op{Verb: corpus.Rollback, Cache: "b", Keep: 0})
		s.holds("b", seq(2, 4), seq(12, 14))
	})
	both(t, func(t *testing.T, s *script, exact bool) { // one row below its window is trimmed, or not
		for _, preserve := range []bool{false, true} {
			s.batch("b", 8, 0)
			s.feed("b", 8, seq(1, 3))
			s.feed("b", 8, seq(4, 6))
			e := s.do(corpus.Op{Verb: corpus.Rollback, Cache: "b", Keep: 1, Preserve: preserve})
			if e.State.Idx != pick(preserve, 6, 4) || e.State.LeftPadding[0] != pick(preserve, 2, 0) {
				t.Fatalf("idx is %d, left padding %v", e.State.Idx, e.State.LeftPadding)
			}
			s.holds("b", seq(1, 4))
		}
	})
}

// O-3: a row that got nothing in a chunk holds one token less than its window.
func TestExhaustedRow(t *testing.T) {
	both(t, func(t *testing.T, s *script, exact bool) {
		s.batch("b", 4, 0, 0)
		s.feed("b", 4, seq(1, 5), seq(11, 15))
		s.prepare("b", []int{4, 2}, []int{0, 2})
		s.feed("b", 4, seq(6, 7), seq(16, 17))
		s.feed("b", 4, seq(8, 9), p(2))
		s.finalize("b")
		s.holds("b", seq(5, 9), seq(15, 17))
		s.extract("b", 1, pick(exact, 0, 2), seq(15, 17), 7)
		merge := corpus.Op{Verb: corpus.Merge, Caches: []string{"extracted"}, Out: "m"}
		if !exact {
			s.refuse("", merge) // a pad would come in as a token
			return
		}
		s.do(merge)
		s.holds("m", seq(15, 17))
	})
}

func TestExtendByATallerBatch(t *testing.T) {
	both(t, func(t *testing.T, s *script, exact bool) {
		s.batch("b", 4, 0)
		s.feed("b", 4, seq(2, 5))
		s.feed("b", 4, []int{6})
		s.batch("o", 4, 0)
		s.feed("o", 4, seq(21, 27))
		s.leftPadding("b", pick(exact, 0, -1))
		s.do(corpus.Op{Verb: corpus.Extend, Cache: "b", Other: "o"})
		s.leftPadding("b", pick(exact, 3, 2), 0)
		s.extract("b", 0, pick(exact, 0, 1), seq(3, 6), 5)
		sees := s.feed("b", 4, []int{7}, []int{28})
		if !slices.Equal(sees[0][0], seq(4, 7)) || !slices.Equal(sees[1][0], seq(25, 28)) {
			t.Fatalf("the next queries see %v", sees)
		}
		if slices.Contains(s.m.Names(), "o") {
			t.Fatal("the other batch is still there")
		}
	})
}

func TestWindowOfOne(t *testing.T) {
	both(t, func(t *testing.T, s *script, exact bool) {
		s.batch("b", 1, 0)
		e := s.do(update("b", seq(1, 3)))
		if e.State.Idx != 3 || e.Width != 3 {
			t.Fatalf("idx is %d of %d columns, want 3 of 3", e.State.Idx, e.Width)
		}
		e = s.do(update("b", []int{4}))
		if e.Width != 1 || !e.State.Rotated || !slices.Equal(e.Rows[0].Tail, []int{4}) {
			t.Fatalf("a decode leaves %v in %d columns, rotated %v", e.Rows[0].Tail, e.Width, e.State.Rotated)
		}
		e = s.do(corpus.Op{Verb: corpus.MaskOp, Cache: "b", N: 2})
		if e.Width != 2 || e.Rows[0].Sees(0, e.Mask.Window) != 1 || e.Rows[0].Sees(1, e.Mask.Window) != 1 {
			t.Fatalf("mask is %+v", e.Mask)
		}
	})
}

// O-1: after a merge of an empty row and 12 tokens, and one decode, the first
// query of a block does not see its row's oldest token.
func TestBlockMaskOnARotatedRing(t *testing.T) {
	both(t, func(t *testing.T, s *script, exact bool) {
		s.serial("empty", 8)
		s.serial("r", 8)
		s.do(update("r", seq(1, 12)))
		s.do(corpus.Op{Verb: corpus.Merge, Caches: []string{"empty", "r"}, Out: "b"})
		s.feed("b", 8, []int{101}, []int{13})
		sees := s.feed("b", 8, seq(102, 104), seq(14, 16))
		want := [][]int{
			pick(exact, seq(101, 102), []int{102}), pick(exact, seq(101, 103), seq(102, 103)), pick(exact, seq(101, 104), seq(102, 104)),
		}
		for q := range want {
			if !slices.Equal(sees[0][q], want[q]) {
				t.Errorf("query %d of the short row sees %v, want %v", q, sees[0][q], want[q])
			}
			if w := seq(7+q, 14+q); !slices.Equal(sees[1][q], w) {
				t.Errorf("query %d of the long row sees %v, want %v", q, sees[1][q], w)
			}
		}
		// A row that holds nothing loses its own first token.
		s.batch("e", 4, 0, 9)
		s.feed("e", 4, seq(201, 206), p(6))
		s.feed("e", 4, []int{207}, p(1))
		sees = s.feed("e", 4, seq(208, 211), ids(p(2), seq(301, 302)))
		if got, want := sees[1][0], pick(exact, []int{301}, nil); !slices.Equal(got, want) {
			t.Errorf("the first token of an empty row sees %v, want %v", got, want)
		}
	})
}

// O-4: a batch saved by mlx-lm cannot be used after loading.
func TestSavedBatch(t *testing.T) {
	both(t, func(t *testing.T, s *script, exact bool) {
		s.batch("b", 4, 0)
		s.feed("b", 4, seq(1, 6))
		save := corpus.Op{Verb: corpus.Save, Caches: []string{"b"}, File: "f"}
		load := corpus.Op{Verb: corpus.Load, Outs: []string{"l"}, File: "f"}
		if !exact {
			s.refuse("", save)
			s.refuse("", load)
			s.refuse("", update("l", []int{7}))
			return
		}
		s.do(save)
		s.feed("b", 4, []int{7})
		s.do(load)
		s.holds("l", seq(1, 6))
	})
}

// O-5: a batch cannot be trimmed below its shortest row.
func TestTrimBelowAShortRow(t *testing.T) {
	both(t, func(t *testing.T, s *script, exact bool) {
		s.batch("b", 8, 0, 3)
		s.feed("b", 8, seq(1, 4), ids(p(3), []int{11}))
		if i, _ := s.m.Info("b"); i.Trim != 1 {
			t.Fatalf("the most to trim is %d, want 1", i.Trim)
		}
		s.refuse(pick(exact, "over_trim", ""), corpus.Op{Verb: corpus.Trim, Cache: "b", N: 2})
		if exact {
			s.do(corpus.Op{Verb: corpus.Trim, Cache: "b", N: 1})
			s.holds("b", seq(1, 3), nil)
		} else if i, _ := s.m.Info("b"); !i.Lost {
			t.Fatal("the model still claims to know a corrupt cache")
		}
	})
}
