package reference_test

import (
	"slices"
	"testing"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// pad is a column of padding that is fed in: a token below zero, never zero
// bytes.
const pad = -1

func right(lengths, right []int) reference.Padding {
	return reference.Padding{Lengths: lengths, RightPadding: right}
}

// merged merges rings of one row each that were fed the given tokens at once.
func merged(t *testing.T, semantics ring.Semantics, maxSize int, rows ...[]int) *reference.BatchRotatingKVCache {
	t.Helper()
	var sources []*reference.RotatingKVCache
	for _, row := range rows {
		c := serial(t, semantics, maxSize, 0)
		if len(row) > 0 {
			feed(t, c, row)
		}
		sources = append(sources, c)
	}
	return must(reference.MergeRotating(sources))
}

func TestBatchConstructor(t *testing.T) {
	for _, test := range []struct {
		semantics ring.Semantics
		maxSize   int
		left      []int
		code      string
	}{
		{ring.Exact, 0, nil, "max_size"}, {ring.Exact, 2, []int{0, -1}, "range"}, {ring.Exact, 2, nil, ""},
		{ring.MLXLM, 0, []int{-1}, ""},
	} {
		c, err := reference.NewBatchRotatingKVCache(test.semantics, test.maxSize, test.left)
		if ring.CodeOf(err) != test.code || (c == nil) != (err != nil) {
			t.Errorf("%+v: %v, %v", test, c, err)
		}
	}
	c := batch(t, ring.Exact, 8, 0, 2)
	same(t, "semantics", c.Semantics(), ring.Exact)
	same(t, "format", c.Format(), reference.Format{})
	same(t, "position", c.Position(), ring.Position{MaxSize: 8, Offset: []int{0, -2}, LeftPadding: []int{0, 2}})
	same(t, "row positions", c.RowPositions(), []int{0, -2})
	same(t, "empty, size, bytes, buffer", []any{c.Empty(), c.Size(), must(c.NBytes()), c.BufferColumns()}, []any{true, 0, 0, 0})
	f := reference.Format{GroupSize: 32, Bits: 4}
	same(t, "format", must(reference.NewBatchRotatingQuantizedKVCache(ring.Exact, 8, nil, f)).Format(), f)
	same(t, "format", must(reference.NewRotatingQuantizedKVCache(ring.Exact, 8, f)).Format(), f)
	for _, f := range []reference.Format{{}, {GroupSize: 16, Bits: 4}, {GroupSize: 32, Bits: 7}} {
		same(t, "a format that is none", ring.CodeOf(one(reference.NewBatchRotatingQuantizedKVCache(ring.Exact, 8, nil, f))), "quant")
		same(t, "a format that is none", ring.CodeOf(one(reference.NewRotatingQuantizedKVCache(ring.Exact, 8, f))), "quant")
	}
	f = reference.Format{GroupSize: 32, Bits: 4}
	same(t, "no window", ring.CodeOf(one(reference.NewBatchRotatingQuantizedKVCache(ring.Exact, 0, nil, f))), "max_size")
	same(t, "no window", ring.CodeOf(one(reference.NewRotatingQuantizedKVCache(ring.Exact, 0, f))), "max_size")
}

// TestMixedLengthsDecode: rows of 4 and 2 tokens prefilled together in a window
// of 6, then three decodes.
func TestMixedLengthsDecode(t *testing.T) {
	for _, s := range semanticses {
		c := batch(t, s, 6, 0, 2)
		feed(t, c, span(1001, 1004), []int{pad, pad, 2001, 2002})
		feed(t, c, []int{1005}, []int{2003})
		feed(t, c, []int{1006}, []int{2004})
		same(t, "mask before the wrap", masked(c.Mask(1, nil))[1], []string{"101111"})
		same(t, "columns after it", feed(t, c, []int{1007}, []int{2005})[1], []int{2005, pad, 2001, 2002, 2003, 2004})
		left := []int{-1, 1}
		if s == ring.Exact {
			left[0] = 0
		}
		same(t, "left padding", c.Position().LeftPadding, left)
		same(t, "row 1", extracted(t, c, 1), span(2001, 2005))
		same(t, "row 0", extracted(t, c, 0), span(1002, 1007))
		same(t, "in order", ids(t, must(c.TemporalView())), [][]int{span(1002, 1007), {pad, 2001, 2002, 2003, 2004, 2005}})
	}
}

// TestFinalizeAfterWrap: upstream, padding that is rolled to the front vanishes
// in left padding below zero, and columns of padding come out with the row
// (O-2).
func TestFinalizeAfterWrap(t *testing.T) {
	for _, s := range semanticses {
		exact := s == ring.Exact
		c := merged(t, s, 4, span(1, 5), span(11, 15))
		feed(t, c, []int{6}, []int{16})
		ok(t, c.Prepare(right([]int{3, 1}, []int{0, 2})))
		feed(t, c, []int{7, 8, 9}, []int{17, pad, pad})
		ok(t, c.Finalize())
		same(t, "offsets", c.Position().Offset, []int{9, 7})
		if exact {
			same(t, "left padding", c.Position().LeftPadding, []int{0, 2})
			same(t, "row 1", extracted(t, c, 1), span(14, 17))
		} else {
			same(t, "left padding", c.Position().LeftPadding, []int{-2, 0})
			same(t, "row 1", extracted(t, c, 1), append([]int{pad, pad}, span(14, 17)...))
		}
		same(t, "row 1, at most 4", limited(t, c, 1, 4), span(14, 17))
		feed(t, c, []int{10}, []int{18})
		same(t, "row 1 after a decode", extracted(t, c, 1), span(15, 18))
		if !exact {
			same(t, "left padding", c.Position().LeftPadding, []int{-5, -3})
		}
	}
}

// TestRollback takes back tokens of a block on a ring that holds more than its
// window.
func TestRollback(t *testing.T) {
	for _, s := range semanticses {
		exact := s == ring.Exact
		c := batch(t, s, 4, 0, 1)
		feed(t, c, span(1, 5), append([]int{pad}, span(11, 14)...))
		before := c.Position().Offset
		feed(t, c, []int{6, 7, 8}, []int{15, 16, 17})
		ok(t, c.Rollback(before, []int{2, 1}, false))
		same(t, "buffer", held(t, c), [][]int{{8, 3, 4, 5, 6, 7}, {16, 17, 12, 13, 14, 15}})
		same(t, "offsets", c.Position().Offset, []int{7, 5})
		same(t, "row positions", c.RowPositions(), []int{7, 5})
		if exact {
			same(t, "left padding", c.Position().LeftPadding, []int{1, 2})
			same(t, "row 0", extracted(t, c, 0), span(3, 7))
			same(t, "row 1", extracted(t, c, 1), span(12, 15))
		} else {
			same(t, "left padding", c.Position().LeftPadding, []int{-1, 1})
			same(t, "row 0", extracted(t, c, 0), append([]int{8}, span(3, 7)...))
			same(t, "row 1", extracted(t, c, 1), append([]int{17}, span(12, 15)...))
		}
		same(t, "row 0, at most 4", limited(t, c, 0, 4), span(4, 7))
		same(t, "row 1, at most 4", limited(t, c, 1, 4), span(12, 15))

		// Nothing kept of a block on a full ring: W-1 tokens are left.
		c = batch(t, s, 4, 0)
		feed(t, c, span(1, 4))
		feed(t, c, []int{5, 6, 7})
		ok(t, c.Rollback([]int{4}, []int{0}, false))
		want := []int{7, 2, 3, 4}
		if exact {
			want = want[1:]
		}
		same(t, "nothing kept", limited(t, c, 0, 4), want)
		same(t, "and a decode", feed(t, c, []int{9}), [][]int{{9, 2, 3, 4}})

		// One row that never filled: a trim, unless columns are to be preserved.
		for _, preserve := range []bool{false, true} {
			c := batch(t, s, 8, 0)
			feed(t, c, span(1, 3))
			feed(t, c, []int{4, 5, 6})
			ok(t, c.Rollback([]int{3}, []int{1}, preserve))
			same(t, "the row", extracted(t, c, 0), span(1, 4))
			if preserve {
				same(t, "position", c.Position(), ring.Position{MaxSize: 8, Offset: []int{4}, LeftPadding: []int{2}, Idx: 6, Total: 6})
				same(t, "buffer", held(t, c), [][]int{{5, 6, 1, 2, 3, 4}})
			} else {
				same(t, "position", c.Position(), ring.Position{MaxSize: 8, Offset: []int{4}, LeftPadding: []int{0}, Idx: 4, Total: 4})
				same(t, "buffer", held(t, c), [][]int{span(1, 6)})
			}
			same(t, "go on", feed(t, c, []int{7, 8})[0][c.Size()-6:], []int{1, 2, 3, 4, 7, 8})
		}

		// On a ring that has wrapped, and with all kept.
		c = batch(t, s, 3, 0, 0)
		for i := range 4 {
			feed(t, c, []int{i + 1}, []int{i + 11})
		}
		ok(t, c.Rollback([]int{3, 3}, []int{1, 0}, false))
		same(t, "wrapped", [][]int{limited(t, c, 0, 2), limited(t, c, 1, 2)}, [][]int{{3, 4}, {12, 13}}) // 14 stood where 11 had been
		ok(t, c.Rollback([]int{4, 3}, []int{0, 0}, false))
		same(t, "nothing more to take back", [][]int{limited(t, c, 0, 2), limited(t, c, 1, 2)}, [][]int{{3, 4}, {12, 13}})

		for name, test := range map[string]struct {
			before, keep []int
			code         string
		}{
			"before of one row":  {[]int{0}, []int{0, 0}, "rows"},
			"keep of three rows": {[]int{0, 0}, []int{0, 0, 0}, "rows"},
			"a negative keep":    {[]int{0, 0}, []int{0, -1}, "range"},
			"more than written":  {[]int{3, 3}, []int{2, 0}, "range"},
			"before what is now": {[]int{9, 0}, []int{0, 0}, "range"},
		} {
			refuses(t, name, test.code, func() error { return c.Rollback(test.before, test.keep, false) }, c)
		}
		ok(t, c.Prepare(right([]int{2, 1}, []int{0, 1})))
		refuses(t, "pending", "pending_padding", func() error { return c.Rollback([]int{0, 0}, []int{0, 0}, false) }, c)
		empty := batch(t, s, 3, 0)
		ok(t, empty.Rollback([]int{0}, []int{0}, false))
	}
}

// TestExhaustedRow: a row that ends before the last chunk of a padded prefill
// keeps one token less (O-3).
func TestExhaustedRow(t *testing.T) {
	for _, s := range semanticses {
		c := batch(t, s, 4, 0, 0)
		feed(t, c, span(1, 5), span(11, 15))
		ok(t, c.Prepare(right([]int{4, 2}, []int{0, 2})))
		feed(t, c, []int{6, 7}, []int{16, 17})
		feed(t, c, []int{8, 9}, []int{pad, pad})
		ok(t, c.Finalize())
		same(t, "row 1", limited(t, c, 1, 3), []int{15, 16, 17})
		same(t, "offset", c.Position().Offset, []int{9, 7})

		// Upstream's merge believes the offset: it takes padding for a token (O-2),
		// or raises where there is none.
		rows := []*reference.RotatingKVCache{must(c.Extract(0)), must(c.Extract(1))}
		batch := must(reference.MergeRotating(rows))
		if s == ring.MLXLM {
			same(t, "merge", held(t, batch), [][]int{span(6, 9), {pad, 15, 16, 17}})
			rows[1] = must(c.ExtractLimit(1, 3))
			refuses(t, "merge", "raises", func() error { return one(reference.MergeRotating(rows)) }, rows[0], rows[1])
			continue
		}
		same(t, "merge (E10)", held(t, batch), [][]int{span(6, 9), {0, 15, 16, 17}})
		same(t, "position", batch.Position(), ring.Position{MaxSize: 4, Offset: []int{9, 7}, LeftPadding: []int{0, 1}, Idx: 4, Total: 4})
	}
}

func TestExtendWithAnOvershoot(t *testing.T) {
	for _, s := range semanticses {
		exact := s == ring.Exact
		c := merged(t, s, 4, span(1, 5))
		feed(t, c, []int{6})
		other := batch(t, s, 4, 0)
		feed(t, other, span(11, 17))
		ok(t, c.Extend(other))
		same(t, "buffer", held(t, c), [][]int{{0, 0, 0, 3, 4, 5, 6}, span(11, 17)})
		left, row := []int{2, 0}, []int{0, 3, 4, 5, 6}
		if exact {
			left, row = []int{3, 0}, row[1:]
		}
		same(t, "position", c.Position(), ring.Position{MaxSize: 4, Offset: []int{6, 7}, LeftPadding: left, Idx: 7, Total: 7})
		same(t, "row 0", extracted(t, c, 0), row)
		same(t, "mask", masked(c.Mask(1, nil)), [][]string{{"1111"}, {"1111"}})
		same(t, "decode", feed(t, c, []int{7}, []int{18}), [][]int{{7, 4, 5, 6}, {18, 15, 16, 17}})
	}
}

func TestWindowOfOne(t *testing.T) {
	for _, s := range semanticses {
		c := batch(t, s, 1, 0)
		feed(t, c, []int{1, 2, 3})
		same(t, "idx", c.Position().Idx, 3)
		same(t, "decode", feed(t, c, []int{4}), [][]int{{4}})
		same(t, "rotated", c.Position().Rotated, true)
		same(t, "mask", masked(c.Mask(2, nil)), [][]string{{"10", "01"}})
	}
}

// TestBlockMaskOfAWrappedRing: upstream hides one token of every row that still
// has left padding (O-1, Q01).
func TestBlockMaskOfAWrappedRing(t *testing.T) {
	for _, s := range semanticses {
		hidden := map[ring.Semantics]string{ring.MLXLM: "0", ring.Exact: "1"}[s]
		c := batch(t, s, 8, 4)
		feed(t, c, []int{pad, pad, pad, pad, 1, 2, 3, 4})
		feed(t, c, []int{5})
		same(t, "mask", masked(c.Mask(2, nil)), [][]string{{"00" + hidden + "111110", "00" + hidden + "111111"}})
		same(t, "columns", feed(t, c, []int{6, 7}), [][]int{{pad, pad, 1, 2, 3, 4, 5, 6, 7}})

		c = merged(t, s, 8, nil, span(1, 12))
		feed(t, c, []int{21}, []int{13})
		first := masked(c.Mask(3, nil))[0][0]
		same(t, "the row's own first token", first, map[ring.Semantics]string{ring.MLXLM: "0000000100", ring.Exact: "0000001100"}[s])
	}
}

// TestOneTokenWhilePending is D-1, D-2, D-6 and Q02.
func TestOneTokenWhilePending(t *testing.T) {
	up := batch(t, ring.MLXLM, 4, 0, 0)
	feed(t, up, []int{1, 2}, []int{11, 12})
	ok(t, up.Prepare(right([]int{1, 0}, []int{0, 1})))
	refuses(t, "D-1", "pending_padding", feeding(up, []int{3}, []int{pad}), up)

	c := batch(t, ring.Exact, 4, 0, 0)
	feed(t, c, []int{1, 2}, []int{11, 12})
	ok(t, c.Prepare(right([]int{1, 0}, []int{0, 1})))
	refuses(t, "append decode", "pending_padding", func() error { return one(c.AppendDecode(tokens([]int{3}, []int{pad}))) }, c)
	same(t, "D-1", feed(t, c, []int{3}, []int{pad}), [][]int{{1, 2, 3}, {11, 12, pad}})
	ok(t, c.Finalize())
	same(t, "left padding", c.Position().LeftPadding, []int{0, 1})
	same(t, "rows", [][]int{extracted(t, c, 0), extracted(t, c, 1)}, [][]int{{1, 2, 3}, {11, 12}})

	// D-2: upstream's mask is a decode's.
	for _, s := range semanticses {
		c := batch(t, s, 4, 0)
		for i := range 5 {
			feed(t, c, []int{i + 1})
		}
		ok(t, c.Prepare(right([]int{1}, []int{1})))
		same(t, "D-2", masked(c.Mask(1, in(2))), [][]string{{map[ring.Semantics]string{ring.MLXLM: "1100", ring.Exact: "0011"}[s]}})
	}

	// D-6: the flag alone makes a single token a block.
	yes := true
	c = batch(t, ring.Exact, 4, 0)
	feed(t, c, span(1, 4))
	ok(t, c.Prepare(reference.Padding{Lengths: []int{3}, RightPadded: &yes}))
	same(t, "D-6", feed(t, c, []int{5}), [][]int{{2, 3, 4, 5}})
}

// TestAppends is D-3: what a serving engine writes with.
func TestAppends(t *testing.T) {
	for _, s := range semanticses {
		fill := func() *reference.BatchRotatingKVCache {
			c := batch(t, s, 4, 0)
			feed(t, c, span(1, 4))
			feed(t, c, []int{5})
			feed(t, c, []int{6})
			return c
		}
		c := fill()
		r := must(c.AppendDecode(tokens([]int{7})))
		same(t, "decode", ids(t, r.KV), [][]int{{5, 6, 7, 4}})
		same(t, "its mask", masked(r.Mask, nil), [][]string{{"1111"}})
		same(t, "idx, rotated", [2]any{c.Position().Idx, c.Position().Rotated}, [2]any{3, true})
		c = fill()
		r = must(c.AppendWindow(tokens([]int{7})))
		same(t, "window of one", ids(t, r.KV), [][]int{span(4, 7)})
		same(t, "its mask", masked(r.Mask, nil), [][]string{{"1111"}})
		same(t, "idx, rotated", [2]any{c.Position().Idx, c.Position().Rotated}, [2]any{4, false})
		r = must(c.AppendWindow(tokens([]int{8, 9})))
		same(t, "window of two", ids(t, r.KV), [][]int{span(5, 9)})
		same(t, "its mask", masked(r.Mask, nil), [][]string{{"11110", "01111"}})

		c = fill()
		mine := &ring.Mask{B: 1, N: 1, S: 4, Data: []bool{false, true, true, true}}
		r = must(c.AppendWindowUnder(must2(tokens([]int{7}))(mine, true)))
		same(t, "under a mask", masked(r.Mask, nil), [][]string{{"0111"}})
		same(t, "the columns", ids(t, r.KV), [][]int{span(4, 7)})
		r.Mask.Data[1] = false
		same(t, "my mask", mine.Data, []bool{false, true, true, true})
		mine.Data[2] = false
		same(t, "its mask", r.Mask.Data, []bool{false, false, true, true})

		keys, values := tokens([]int{8, 9})
		narrow := values
		narrow.Shape[2], narrow.Data = 1, narrow.Data[:len(narrow.Data)/2]
		for name, test := range map[string]struct {
			mask *ring.Mask
			code string
		}{
			"no mask":           {nil, "shape"},
			"of another width":  {&ring.Mask{B: 1, N: 2, S: 4, Data: make([]bool, 8)}, "shape"},
			"of one query":      {&ring.Mask{B: 1, N: 1, S: 5, Data: make([]bool, 5)}, "shape"},
			"of two rows":       {&ring.Mask{B: 2, N: 2, S: 5, Data: make([]bool, 20)}, "shape"},
			"without its truth": {&ring.Mask{B: 1, N: 2, S: 5, Data: make([]bool, 9)}, "shape"},
		} {
			refuses(t, "under a mask "+name, test.code, func() error { return one(c.AppendWindowUnder(keys, values, test.mask, false)) }, c)
		}
		refuses(t, "a decode of two", "shape", func() error { return one(c.AppendDecode(keys, values)) }, c)
		refuses(t, "a decode that does not fit", "shape", func() error { return one(c.AppendDecode(keys, narrow)) }, c)
		refuses(t, "a window that does not fit", "shape", func() error { return one(c.AppendWindow(keys, narrow)) }, c)
		refuses(t, "a window under a mask that does not fit", "shape", func() error { return one(c.AppendWindowUnder(keys, narrow, mine, false)) }, c)
	}
	c := batch(t, ring.Exact, 4, 0)
	keys, values := tokens([]int{})
	refuses(t, "a window of nothing", "no_tokens", func() error { return one(c.AppendWindow(keys, values)) }, c)

	// While padding is pending, a window goes behind it.
	ok(t, c.Prepare(right([]int{1}, []int{1})))
	must(c.AppendWindow(tokens([]int{1})))
	must(c.AppendWindow(tokens([]int{pad})))
	ok(t, c.Finalize())
	same(t, "finalized", held(t, c), [][]int{{pad, 1}})
}

// must2 hands a pair on together with more arguments.
func must2(keys, values ring.Array) func(*ring.Mask, bool) (ring.Array, ring.Array, *ring.Mask, bool) {
	return func(m *ring.Mask, causal bool) (ring.Array, ring.Array, *ring.Mask, bool) {
		return keys, values, m, causal
	}
}

// TestFilterWhilePending is D-4, M28.
func TestFilterWhilePending(t *testing.T) {
	for _, s := range semanticses {
		c := batch(t, s, 8, 0, 0)
		ok(t, c.Prepare(right([]int{4, 2}, []int{0, 2})))
		feed(t, c, span(1, 4), []int{11, 12, pad, pad})
		ok(t, c.Filter([]int{1}))
		if s == ring.Exact {
			ok(t, c.Finalize())
			same(t, "buffer", held(t, c), [][]int{{pad, pad, 11, 12}})
			same(t, "position", c.Position(), ring.Position{MaxSize: 8, Offset: []int{2}, LeftPadding: []int{2}, Idx: 4, Total: 4})
			continue
		}
		// One row becomes two, one for each length that is pending.
		ok(t, c.Finalize())
		same(t, "buffer", held(t, c), [][]int{{11, 12, pad, pad}, {pad, pad, 11, 12}})
		same(t, "position", c.Position(), ring.Position{MaxSize: 8, Offset: []int{4, 2}, LeftPadding: []int{0, 2}, Idx: 4, Total: 4})

		c = batch(t, s, 8, 0, 0, 0)
		ok(t, c.Prepare(right([]int{4, 2, 3}, []int{0, 2, 1})))
		feed(t, c, span(1, 4), span(11, 14), span(21, 24))
		ok(t, c.Filter([]int{1, 2}))
		refuses(t, "finalize", "raises", c.Finalize, c)
		refuses(t, "block", "raises", feeding(c, []int{5, 6}, []int{7, 8}), c)
		refuses(t, "decode", "pending_padding", feeding(c, []int{5}, []int{7}), c)
	}
}

func TestFilter(t *testing.T) {
	for _, s := range semanticses {
		c := batch(t, s, 8, 0, 3)
		feed(t, c, span(1, 4), []int{pad, pad, pad, 11})
		ok(t, c.Filter([]int{1, 0, 1}))
		same(t, "buffer", held(t, c), [][]int{{pad, pad, pad, 11}, span(1, 4), {pad, pad, pad, 11}})
		same(t, "Q18, D-29", c.Position(), ring.Position{MaxSize: 8, Offset: []int{1, 4, 1}, LeftPadding: []int{3, 0, 3}, Idx: 4, Total: 4})
		refuses(t, "a row that is none", "range", func() error { return c.Filter([]int{0, 3}) }, c)
		refuses(t, "a negative row", "range", func() error { return c.Filter([]int{-1}) }, c)
		if s == ring.MLXLM {
			refuses(t, "no rows", "raises", func() error { return c.Filter(nil) }, c)
			continue
		}
		ok(t, c.Filter(nil))
		same(t, "position", c.Position(), ring.Position{MaxSize: 8, Offset: []int{}, LeftPadding: []int{}, Idx: 4, Total: 4})
		same(t, "row positions", c.RowPositions(), []int{})
		same(t, "buffer", c.Columns().Keys[0].Shape, [4]int{0, heads, 4, keyDim})
		same(t, "bytes a row", must(c.ProjectedBytes(4)), 0)
		ok(t, c.Filter([]int{}))
	}
}

// TestPrepare is D-5, D-7, D-8.
func TestPrepare(t *testing.T) {
	up := batch(t, ring.MLXLM, 4, 0, 0)
	ok(t, up.Prepare(right([]int{2, 0}, []int{0, 2})))
	ok(t, up.Prepare(reference.Padding{Lengths: []int{1, 1}}))
	feed(t, up, []int{1, 2}, []int{11, 12})
	refuses(t, "D-5", "pending_padding", feeding(up, []int{3}, []int{13}), up)

	c := batch(t, ring.Exact, 4)
	ok(t, c.Prepare(reference.Padding{Lengths: []int{2, 3}}))
	same(t, "D-7", c.Position(), ring.Position{MaxSize: 4, Offset: []int{0, 0}, LeftPadding: []int{0, 0}})
	same(t, "D-7", c.RowPositions(), []int{0, 0})
	up = batch(t, ring.MLXLM, 4)
	ok(t, up.Prepare(reference.Padding{Lengths: []int{2, 3}}))
	same(t, "D-7 upstream", up.Position().Offset, []int{})

	for _, s := range semanticses {
		c := batch(t, s, 4, 0, 0)
		ok(t, c.Prepare(reference.Padding{LeftPadding: []int{0, 1}}))
		same(t, "row positions", c.RowPositions(), []int{0, -1})
		feed(t, c, []int{1, 2}, []int{pad, 11})
		left := func(n ...int) func() error {
			return func() error { return c.Prepare(reference.Padding{LeftPadding: n}) }
		}
		refuses(t, "D-8", "left_padding_on_non_empty", left(0, 1), c)
		refuses(t, "D-8, of three rows", map[ring.Semantics]string{ring.MLXLM: "left_padding_on_non_empty", ring.Exact: "rows"}[s], left(0, 1, 2), c)
		refuses(t, "two rows, three lengths", map[ring.Semantics]string{ring.MLXLM: "raises", ring.Exact: "rows"}[s], func() error { return c.Prepare(right([]int{1, 2, 3}, []int{2, 1, 0})) }, c)
	}
}

// TestFinalizeOfNothing is D-9.
func TestFinalizeOfNothing(t *testing.T) {
	for _, s := range semanticses {
		c := batch(t, s, 4, 0, 0)
		ok(t, c.Finalize())
		ok(t, c.Prepare(right([]int{0, 1}, []int{1, 0})))
		if s == ring.MLXLM {
			refuses(t, "D-9", "raises", c.Finalize, c)
			feed(t, c, []int{}, []int{})
			ok(t, c.Finalize())
			same(t, "a buffer of no columns", held(t, c), [][]int{{}, {}})
			continue
		}
		ok(t, c.Finalize())
		same(t, "position", c.Position(), ring.Position{MaxSize: 4, Offset: []int{0, 0}, LeftPadding: []int{0, 0}})
	}
}

// TestExtract is D-11, D-12, M06, M11, M29, Q27.
func TestExtract(t *testing.T) {
	for _, s := range semanticses {
		exact := s == ring.Exact
		c := batch(t, s, 4, 0, 0)
		if exact {
			empty := must(c.Extract(0))
			same(t, "E7", []any{empty.Empty(), empty.Offset(), empty.Size(), empty.Step}, []any{true, 0, 0, 3})
			same(t, "E7, and used", feed(t, empty, []int{1}), [][]int{{1}})
		} else {
			refuses(t, "D-12", "raises", func() error { return one(c.Extract(0)) }, c)
		}
		feed(t, c, span(1, 6), span(11, 16))
		same(t, "D-11", limited(t, c, 0, 4), span(3, 6))
		same(t, "Q27", extracted(t, c, 1), span(11, 16))
		row := must(c.Extract(1))
		same(t, "position", row.Position(), ring.Position{MaxSize: 4, Offset: []int{6}, LeftPadding: []int{0}, Idx: 6, Total: 6})
		same(t, "semantics and step", [2]any{row.Semantics(), row.Step}, [2]any{s, 3})
		code := map[bool]string{true: "range", false: "raises"}[exact]
		refuses(t, "a row that is none", code, func() error { return one(c.Extract(2)) }, c)
		refuses(t, "a negative row", code, func() error { return one(c.Extract(-1)) }, c)
		refuses(t, "a limit of 0", "range", func() error { return one(c.ExtractLimit(0, 0)) }, c)
		same(t, "a limit over what is held", limited(t, c, 0, 99), span(1, 6))

		c = batch(t, s, 8, 0)
		for i := range 12 {
			feed(t, c, []int{i + 1})
		}
		row = must(c.Extract(0))
		same(t, "M11", columnsOf(t, row), span(5, 12))
		same(t, "M11", row.Offset(), 12)

		c = batch(t, s, 8, 0)
		feed(t, c, []int{1, 2, 3})
		feed(t, c, []int{4})
		same(t, "M06", extracted(t, c, 0), span(1, 4))

		c = batch(t, s, 8, 0, 0)
		ok(t, c.Prepare(right([]int{4, 2}, []int{0, 2})))
		feed(t, c, span(1, 4), []int{11, 12, pad, pad})
		if exact {
			refuses(t, "M29", "pending_padding", func() error { return one(c.Extract(1)) }, c)
			refuses(t, "M29", "pending_padding", func() error { return one(c.ExtractLimit(1, 2)) }, c)
		} else {
			same(t, "M29", extracted(t, c, 1), []int{11, 12, pad, pad})
		}
	}
}

// TestTrim is D-14, D-23, O-5, Q04, Q12.
func TestTrim(t *testing.T) {
	up := batch(t, ring.MLXLM, 8, 0, 3)
	feed(t, up, span(1, 4), []int{pad, pad, pad, 14})
	same(t, "trimmed", must(up.Trim(2)), 2)
	same(t, "O-5", up.Position(), ring.Position{MaxSize: 8, Offset: []int{2, -1}, LeftPadding: []int{0, 3}, Idx: 2, Total: 2})
	same(t, "row positions", up.RowPositions(), []int{2, -1})
	same(t, "what is left", ids(t, up.KeysAndValues()), [][]int{{1, 2}, {pad, pad}})
	feed(t, up, []int{5}, []int{15})
	same(t, "O-5", extracted(t, up, 1), []int{})

	up = batch(t, ring.MLXLM, 8, 0)
	for i := range 10 {
		feed(t, up, []int{i + 1})
	}
	must(up.Trim(5))
	same(t, "Q12", up.Position(), ring.Position{MaxSize: 8, Offset: []int{5}, LeftPadding: []int{-2}, Idx: -3, Total: 5, Rotated: true})
	same(t, "Q12", feed(t, up, []int{99}), [][]int{{9, 10, 3, 4, 5, 99}})

	c := batch(t, ring.Exact, 8, 0, 3)
	feed(t, c, span(1, 4), []int{pad, pad, pad, 14})
	refuses(t, "more than the shortest row", "over_trim", func() error { return one(c.Trim(2)) }, c)
	refuses(t, "a negative trim", "range", func() error { return one(c.Trim(-1)) }, c)
	same(t, "trimmed", must(c.Trim(1)), 1)
	same(t, "rows", [][]int{extracted(t, c, 0), extracted(t, c, 1)}, [][]int{{1, 2, 3}, {}})
	same(t, "D-14", c.Trimmable(), true)
	ok(t, c.Prepare(right([]int{2, 1}, []int{0, 1})))
	same(t, "E7", c.Trimmable(), false)
	refuses(t, "pending", "pending_padding", func() error { return one(c.Trim(0)) }, c)
	feed(t, c, []int{5, 6}, []int{15, pad})
	ok(t, c.Finalize())
	feed(t, c, []int{7, 8, 9}, []int{17, 18, 19})
	same(t, "trimmable", c.Trimmable(), false)
	refuses(t, "a full window", "not_trimmable", func() error { return one(c.Trim(0)) }, c)
}

// TestExtend is D-15, M09, Q16.
func TestExtend(t *testing.T) {
	for _, s := range semanticses {
		exact := s == ring.Exact
		a, b := batch(t, s, 8, 0), batch(t, s, 8, 1, 0)
		ok(t, a.Extend(b))
		same(t, "both empty", a.Position(), ring.Position{MaxSize: 8, Offset: []int{0, -1, 0}, LeftPadding: []int{0, 1, 0}})
		same(t, "row positions", a.RowPositions(), []int{0, -1, 0})
		ok(t, a.Prepare(right([]int{3, 2, 1}, []int{0, 1, 2})))
		feed(t, a, []int{1, 2, 3}, []int{pad, 11, pad}, []int{21, pad, pad})
		ok(t, a.Finalize())
		same(t, "M09", held(t, a), [][]int{{1, 2, 3}, {pad, pad, 11}, {pad, pad, 21}})

		a, b = batch(t, s, 8, 0, 0), batch(t, s, 8, 0, 0, 0)
		feed(t, a, []int{1, 2}, []int{11, 12})
		ok(t, a.Extend(b))
		same(t, "an empty side", held(t, a), [][]int{{1, 2}, {11, 12}, {0, 0}, {0, 0}, {0, 0}})
		same(t, "an empty side", a.Position(), ring.Position{MaxSize: 8, Offset: []int{2, 2, 0, 0, 0}, LeftPadding: []int{0, 0, 2, 2, 2}, Idx: 2, Total: 2})
		b = batch(t, s, 8, 0)
		ok(t, b.Extend(a))
		same(t, "an empty side in front", held(t, b)[:2], [][]int{{0, 0}, {1, 2}})

		// Rotation and position agree: the rings stay as they are.
		a, b = batch(t, s, 2, 0), batch(t, s, 2, 0)
		for i := range 3 {
			feed(t, a, []int{i + 1})
			feed(t, b, []int{i + 11})
		}
		ok(t, a.Extend(b))
		same(t, "as they are", held(t, a), [][]int{{3, 2}, {13, 12}})
		same(t, "rotated", a.Position().Rotated, true)
		// They do not: both come into order, and other stays what it is.
		b = batch(t, s, 2, 0)
		for i := range 4 {
			feed(t, b, []int{i + 21})
		}
		before := look(b)
		ok(t, a.Extend(b))
		same(t, "in order", held(t, a), [][]int{{2, 3}, {12, 13}, {23, 24}})
		same(t, "other", look(b), before)

		// The spare columns of one side are cut, or zeros are added.
		a, b = batch(t, s, 8, 0), batch(t, s, 8, 0)
		feed(t, a, []int{1})
		feed(t, b, span(11, 14))
		ok(t, a.Extend(b))
		same(t, "one and four", held(t, a), [][]int{{0, 0, 0, 1}, span(11, 14)})
		same(t, "total", a.Position().Total, 4)

		other := batch(t, s, 9, 0)
		feed(t, other, []int{31, 32})
		if exact {
			refuses(t, "Q16", "max_size", func() error { return a.Extend(other) }, a, other)
		} else {
			c := batch(t, s, 8, 0)
			feed(t, c, []int{1})
			ok(t, c.Extend(other))
			same(t, "Q16", held(t, c), [][]int{{0, 1, 0}, {31, 32, 0}})
		}
		wide := batch(t, s, 8, 0)
		keys, values := tokens([]int{1, 2, 3, 4})
		must(wide.Update(values, keys))
		refuses(t, "other widths", map[bool]string{true: "shape", false: "raises"}[exact], func() error { return a.Extend(wide) }, a, wide)
		half := batch(t, s, 8, 0)
		k, v := keys, values
		k.DType, v.DType, k.Data, v.Data = ring.Float16, ring.Float16, k.Data[:len(k.Data)/2], v.Data[:len(v.Data)/2]
		must(half.Update(k, v))
		refuses(t, "another type", map[bool]string{true: "dtype", false: "raises"}[exact], func() error { return a.Extend(half) }, a, half)
		f := reference.Format{GroupSize: 32, Bits: 4}
		quantized := must(reference.NewBatchRotatingQuantizedKVCache(s, 8, []int{0}, f))
		refuses(t, "another format", "quant", func() error { return a.Extend(quantized) }, a, quantized)
		must(quantized.Update(columns(1, ring.BFloat16, 1, 2, 64)))
		refuses(t, "another format", map[bool]string{true: "shape", false: "quant"}[exact], func() error { return a.Extend(quantized) }, a, quantized)

		ok(t, other.Prepare(right([]int{0}, []int{1})))
		if exact {
			refuses(t, "E5", "pending_padding", func() error { return a.Extend(other) }, a, other)
			refuses(t, "E5", "pending_padding", func() error { return other.Extend(a) }, a, other)
			continue
		}
		ok(t, a.Extend(other))
		same(t, "pending of other is dropped", a.Position().Ends, nil)
		c := batch(t, s, 8, 0, 0)
		ok(t, c.Prepare(right([]int{2, 1}, []int{0, 1})))
		feed(t, c, []int{1, 2}, []int{11, pad})
		ok(t, c.Extend(batch(t, s, 8, 0)))
		same(t, "pending of this one is kept", c.Position().Ends, []int{2, 1})
		refuses(t, "and does not fit", "raises", c.Finalize, c)
	}
}

// TestMerge is D-16, D-20, D-21, D-30, M06, M07, M08.
func TestMerge(t *testing.T) {
	for _, s := range semanticses {
		exact := s == ring.Exact
		c := merged(t, s, 8, nil, span(1, 4))
		same(t, "M08, D-16", c.Position(), ring.Position{MaxSize: 8, Offset: []int{0, 4}, LeftPadding: []int{4, 0}, Idx: 4, Total: 4})
		same(t, "M08", held(t, c), [][]int{{0, 0, 0, 0}, span(1, 4)})
		c = merged(t, s, 8, nil, nil)
		same(t, "all empty", c.Position(), ring.Position{MaxSize: 8, Offset: []int{0, 0}, LeftPadding: []int{0, 0}})
		same(t, "all empty", c.Empty(), true)
		same(t, "step", c.Step, 3)

		long, short := serial(t, s, 8, 0), serial(t, s, 8, 0)
		script(t, long, decodes(1, 20)...)
		script(t, short, decodes(31, 33)...)
		c = must(reference.MergeRotating([]*reference.RotatingKVCache{long, short}))
		same(t, "M07", held(t, c), [][]int{span(13, 20), {0, 0, 0, 0, 0, 31, 32, 33}})
		same(t, "M07", c.Position(), ring.Position{MaxSize: 8, Offset: []int{20, 3}, LeftPadding: []int{0, 5}, Idx: 8, Total: 8})
		same(t, "M07, an overshoot", held(t, merged(t, s, 8, span(1, 12), span(31, 33)))[0], span(5, 12))

		refuses(t, "none", "rows", func() error { return one(reference.MergeRotating(nil)) }, c)
		other := serial(t, s, 4, 0)
		refuses(t, "D-20", "max_size", func() error { return one(reference.MergeRotating([]*reference.RotatingKVCache{long, other})) }, long, other)
		f := reference.Format{GroupSize: 32, Bits: 4}
		quantized := must(reference.NewRotatingQuantizedKVCache(s, 8, f))
		refuses(t, "a window behind a format", "max_size", func() error {
			return one(reference.MergeRotating([]*reference.RotatingKVCache{long, quantized, other}))
		}, long, quantized, other)
		refuses(t, "another format", "quant", func() error { return one(reference.MergeRotating([]*reference.RotatingKVCache{long, quantized})) }, long, quantized)

		keys, values := tokens([]int{7})
		single, singleValues := ring.Array{DType: ring.Float32, Shape: [4]int{1, 1, 1, keyDim}, Data: keys.Data[:4*keyDim]}, ring.Array{DType: ring.Float32, Shape: [4]int{1, 1, 1, valueDim}, Data: values.Data[:4*valueDim]}
		oneHead := serial(t, s, 8, 0)
		must(oneHead.Update(single, singleValues))
		if exact {
			refuses(t, "D-21", "shape", func() error { return one(reference.MergeRotating([]*reference.RotatingKVCache{oneHead, short})) }, oneHead, short)
		} else {
			// The larger number of heads, the one head repeated.
			for _, order := range [][]*reference.RotatingKVCache{{oneHead, short}, {short, oneHead}} {
				c := must(reference.MergeRotating(order))
				got := c.Columns().Keys[0]
				same(t, "D-21", got.Shape, [4]int{2, heads, 3, keyDim})
				row := slices.Index(order, oneHead)
				for h := range heads {
					at := ((row*heads+h)*3 + 2) * 4 * keyDim
					same(t, "D-21: the head", got.Data[at:at+4*keyDim], single.Data)
				}
			}
		}
		half := serial(t, s, 8, 0)
		k, v := keys, values
		k.DType, v.DType, k.Data, v.Data = ring.Float16, ring.Float16, k.Data[:len(k.Data)/2], v.Data[:len(v.Data)/2]
		must(half.Update(k, v))
		refuses(t, "another type", "dtype", func() error { return one(reference.MergeRotating([]*reference.RotatingKVCache{short, half})) }, half, short)
		wide := serial(t, s, 8, 0)
		must(wide.Update(values, keys))
		refuses(t, "other widths", map[bool]string{true: "shape", false: "raises"}[exact], func() error { return one(reference.MergeRotating([]*reference.RotatingKVCache{short, wide})) }, wide, short)
	}

	sinks := serial(t, ring.MLXLM, 8, 4)
	script(t, sinks, span(1, 12), []int{13}, []int{14})
	c := must(reference.MergeRotating([]*reference.RotatingKVCache{sinks}))
	same(t, "M35, D-30", feed(t, c, []int{15}), [][]int{{15, 2, 3, 4, 11, 12, 13, 14}})
	same(t, "M35, D-30", must(c.Extract(0)).Keep(), 0)

	// Upstream takes a trimmed ring's last columns for all of them.
	trimmed := serial(t, ring.MLXLM, 8, 0)
	script(t, trimmed, []int{1, 2})
	must(trimmed.Trim(2))
	full := serial(t, ring.MLXLM, 8, 0)
	script(t, full, []int{11, 12})
	same(t, "a ring trimmed to nothing", held(t, must(reference.MergeRotating([]*reference.RotatingKVCache{trimmed, full}))), [][]int{{0, 0}, {11, 12}})
}

// TestMergeRows is D-15 and S-1: rows of batches and serial rings, mixed.
func TestMergeRows(t *testing.T) {
	b := batch(t, ring.Exact, 4, 0, 3)
	feed(t, b, span(1, 6), []int{pad, pad, pad, 11, 12, 13})
	s := serial(t, ring.Exact, 4, 0)
	script(t, s, []int{21, 22})
	empty := serial(t, ring.Exact, 4, 0)
	before := look(b) + look(s)
	c := must(reference.MergeRows([]reference.Cache{empty, b, s, b}))
	same(t, "S-1", held(t, c), [][]int{{0, 0, 0, 0}, span(3, 6), {0, 11, 12, 13}, {0, 0, 21, 22}, span(3, 6), {0, 11, 12, 13}})
	same(t, "position", c.Position(), ring.Position{MaxSize: 4, Offset: []int{0, 6, 3, 2, 6, 3}, LeftPadding: []int{4, 0, 1, 2, 0, 1}, Idx: 4, Total: 4})
	same(t, "the sources", look(b)+look(s), before)

	refuses(t, "none", "rows", func() error { return one(reference.MergeRows(nil)) }, c)
	four, five := batch(t, ring.Exact, 4, 0), batch(t, ring.Exact, 5, 0)
	f := reference.Format{GroupSize: 32, Bits: 4}
	quantized := must(reference.NewRotatingQuantizedKVCache(ring.Exact, 4, f))
	rowless := must(reference.NewBatchRotatingQuantizedKVCache(ring.Exact, 4, nil, f))
	for name, sources := range map[string][]reference.Cache{
		"a window behind a format":            {serial(t, ring.Exact, 4, 0), quantized, serial(t, ring.Exact, 5, 0)},
		"a window before a format of no rows": {four, five, rowless},
		"a window behind a format of no rows": {rowless, four, five},
		"no rows, both differ":                {batch(t, ring.Exact, 4), rowless, batch(t, ring.Exact, 5)},
	} {
		refuses(t, name, "max_size", func() error { return one(reference.MergeRows(sources)) }, sources[0], sources[1], sources[2])
	}
	refuses(t, "a format of no rows", "quant", func() error { return one(reference.MergeRows([]reference.Cache{four, rowless})) }, four, rowless)
	refuses(t, "what is no ring", "not_supported", func() error { return one(reference.MergeRows([]reference.Cache{s, reference.NewKVCache()})) }, s)
	ok(t, b.Prepare(right([]int{2, 1}, []int{0, 1})))
	refuses(t, "pending", "pending_padding", func() error { return one(reference.MergeRows([]reference.Cache{s, b})) }, s, b)
	up := batch(t, ring.MLXLM, 4, 0)
	refuses(t, "upstream's empty batch", "raises", func() error { return one(reference.MergeRows([]reference.Cache{up})) }, up)
}

// TestSemanticsDoNotMix: two rings of different semantics cannot become one.
func TestSemanticsDoNotMix(t *testing.T) {
	up, exact := batch(t, ring.MLXLM, 4, 0), batch(t, ring.Exact, 4, 0)
	a, b := serial(t, ring.MLXLM, 4, 0), serial(t, ring.Exact, 4, 0)
	for _, pair := range [][2]*reference.BatchRotatingKVCache{{up, exact}, {exact, up}} {
		refuses(t, "extend", "not_supported", func() error { return pair[0].Extend(pair[1]) }, up, exact)
		refuses(t, "restore", "not_supported", func() error { return pair[0].Restore(pair[1].Snapshot()) }, up, exact)
	}
	for _, pair := range [][]*reference.RotatingKVCache{{a, b}, {b, a}} {
		refuses(t, "merge", "not_supported", func() error { return one(reference.MergeRotating(pair)) }, a, b)
		refuses(t, "restore", "not_supported", func() error { return pair[0].Restore(pair[1].Snapshot()) }, a, b)
	}
}

// TestPadThenDecode is M05: padding goes before any token does.
func TestPadThenDecode(t *testing.T) {
	for _, s := range semanticses {
		c := batch(t, s, 4, 0, 2)
		feed(t, c, span(1, 4), []int{pad, pad, 11, 12})
		for i := range 5 {
			m := masked(c.Mask(1, nil))
			columns := feed(t, c, []int{5 + i}, []int{13 + i})
			for row, first := range []int{1, 11} {
				last := []int{5 + i, 13 + i}[row]
				var seen []int
				for j, on := range m[row][0] {
					if on == '1' {
						seen = append(seen, columns[row][j])
					}
				}
				slices.Sort(seen)
				same(t, "what the decode sees", seen, span(max(first, last-3), last))
			}
		}
	}
}

func TestUpdateExactRefuses(t *testing.T) {
	c := batch(t, ring.Exact, 4, 0, 0)
	refuses(t, "no tokens", "no_tokens", feeding(c, []int{}, []int{}), c)
	refuses(t, "one row", "rows", feeding(c, []int{1}), c)
	feed(t, c, []int{1, 2}, []int{11, 12})
	keys, values := tokens([]int{3}, []int{13})
	refuses(t, "widths exchanged", "shape", func() error { return one(c.Update(values, keys)) }, c)
	refuses(t, "a window of 0", "window", func() error { return one(c.Mask(1, in(0))) }, c)
	refuses(t, "a negative window", "window", func() error { return one(c.Mask(2, in(-1))) }, c)
	refuses(t, "a mask of no query", "range", func() error { return one(c.Mask(0, nil)) }, c)
	up := batch(t, ring.MLXLM, 4, 0)
	feed(t, up, []int{1, 2})
	same(t, "D-18: a window of 0 upstream", masked(up.Mask(1, in(0))), [][]string{{"111"}})
	same(t, "a window over the ring's upstream", masked(up.Mask(3, in(9))), [][]string{{"11100", "11110", "11111"}})
	same(t, "and in exact semantics", masked(c.Mask(3, in(9)))[0], []string{"11100", "11110", "01111"})
}

func TestRowPositionsStayUntilRelease(t *testing.T) {
	for _, s := range semanticses {
		c := batch(t, s, 4, 0, 1)
		feed(t, c, []int{1, 2}, []int{pad, 11})
		same(t, "after a block", c.RowPositions(), []int{0, -1})
		feed(t, c, []int{3}, []int{12})
		same(t, "after a decode", c.RowPositions(), []int{0, -1})
		same(t, "the offsets", c.Position().Offset, []int{3, 2})
		c.RowPositions()[0] = 9
		c.Release()
		same(t, "after release", c.RowPositions(), []int{3, 2})
		must(c.AppendDecode(tokens([]int{4}, []int{13})))
		must(c.AppendWindow(tokens([]int{5}, []int{14})))
		same(t, "after appends", c.RowPositions(), []int{3, 2})
		for name, f := range map[string]func(){
			"prepare":  func() { ok(t, c.Prepare(right([]int{2, 1}, []int{0, 1}))) },
			"filter":   func() { ok(t, c.Filter([]int{1, 0})) },
			"finalize": func() { ok(t, c.Finalize()) },
			"extend":   func() { ok(t, c.Extend(batch(t, s, 4))) },
			"restore":  func() { ok(t, c.Restore(c.Snapshot())) },
			"rollback": func() { ok(t, c.Rollback(c.Position().Offset, []int{0, 0}, false)) },
		} {
			d := must(reference.AdoptBatchRotating(c.Snapshot()))
			same(t, "adopted", d.RowPositions(), d.Position().Offset)
			if name == "finalize" {
				ok(t, c.Prepare(right([]int{2, 1}, []int{0, 1})))
			}
			feed(t, c, []int{6, 7}, []int{15, 16})
			if slices.Equal(c.RowPositions(), c.Position().Offset) {
				t.Errorf("%s: the positions moved with an update", name)
			}
			f()
			same(t, "positions after "+name, c.RowPositions(), c.Position().Offset)
			if name == "prepare" {
				ok(t, c.Finalize())
			}
		}
	}
}

func TestValidOffset(t *testing.T) {
	for _, s := range semanticses {
		c := batch(t, s, 4, 0, 0)
		ok(t, c.Prepare(right([]int{3, 1}, []int{0, 2})))
		feed(t, c, []int{1, 2, 3}, []int{11, pad, pad})
		same(t, "valid offsets", []int{must(c.ValidOffset(0)), must(c.ValidOffset(1))}, []int{3, 1})
		refuses(t, "a row that is none", "range", func() error { return one(c.ValidOffset(2)) }, c)
		refuses(t, "a negative row", "range", func() error { return one(c.ValidOffset(-1)) }, c)
	}
}

// TestProjectedBytes is item 70: the spare columns count on both sides of the
// division.
func TestProjectedBytes(t *testing.T) {
	const column = 4 * heads * (keyDim + valueDim)
	c := batch(t, ring.Exact, 8, 0, 0)
	same(t, "of nothing", must(c.ProjectedBytes(5)), 0)
	feed(t, c, []int{1}, []int{11}) // three columns, two of them spare
	same(t, "bytes", must(c.NBytes()), 2*3*column)
	same(t, "of five tokens", must(c.ProjectedBytes(5)), 5*column)
	same(t, "of more than the window", must(c.ProjectedBytes(50)), 8*column)
	q := must(reference.NewBatchRotatingQuantizedKVCache(ring.Exact, 8, []int{0}, reference.Format{GroupSize: 32, Bits: 4}))
	must(q.Update(columns(1, ring.BFloat16, 1, 3, 64)))
	same(t, "of quantized columns", must(q.ProjectedBytes(2)), 2*2*(64/2+2*2*64/32))
	refuses(t, "of less than none", "range", func() error { return one(c.ProjectedBytes(-1)) }, c)
}

func TestTemporalViewAndAttendOfNothing(t *testing.T) {
	for _, s := range semanticses {
		c := batch(t, s, 4, 0)
		refuses(t, "temporal view", "empty", func() error { return one(c.TemporalView()) }, c)
		refuses(t, "attend", "empty", func() error { return one(c.Attend(ring.Array{}, 1)) }, c)
		feed(t, c, []int{1, 2})
		keys, _ := tokens([]int{1, 2, 3})
		refuses(t, "three queries over two columns", "range", func() error { return one(c.Attend(keys, 1)) }, c)
		must(c.Trim(2))
		refuses(t, "temporal view", "empty", func() error { return one(c.TemporalView()) }, c)
	}
}

// TestSnapshots: restore and adopt give back what was there, and refuse what
// does not fit.
func TestSnapshots(t *testing.T) {
	f := reference.Format{GroupSize: 32, Bits: 4}
	for _, s := range semanticses {
		c := batch(t, s, 4, 0, 1)
		feed(t, c, []int{1, 2, 3}, []int{pad, 11, 12})
		ok(t, c.Prepare(right([]int{2, 1}, []int{0, 1})))
		snapshot := c.Snapshot()
		same(t, "serial", snapshot.Serial(), false)
		before := look(c)
		feed(t, c, []int{4, 5}, []int{13, pad})
		ok(t, c.Finalize())
		feed(t, c, []int{6}, []int{14})
		ok(t, c.Restore(snapshot))
		same(t, "restored", look(c), before)
		same(t, "adopted", look(must(reference.AdoptBatchRotating(snapshot))), before)

		alone := serial(t, s, 4, 0)
		script(t, alone, span(1, 4), []int{5})
		single := alone.Snapshot()
		same(t, "serial", single.Serial(), true)
		before = look(alone)
		script(t, alone, []int{6, 7, 8})
		ok(t, alone.Restore(single))
		same(t, "restored", look(alone), before)
		same(t, "adopted", look(must(reference.AdoptRotating(single))), before)

		refuses(t, "a serial one in a batch", "not_supported", func() error { return c.Restore(single) }, c)
		refuses(t, "a batch in a serial one", "not_supported", func() error { return alone.Restore(snapshot) }, alone)
		refuses(t, "adopt a serial one as a batch", "not_supported", func() error { return one(reference.AdoptBatchRotating(single)) }, c)
		refuses(t, "adopt a batch as a serial one", "not_supported", func() error { return one(reference.AdoptRotating(snapshot)) }, c)
		refuses(t, "of other rows", "rows", func() error { return c.Restore(batch(t, s, 4, 0).Snapshot()) }, c)
		refuses(t, "of another window", "max_size", func() error { return c.Restore(batch(t, s, 5, 0, 0).Snapshot()) }, c)
		refuses(t, "of another window", "max_size", func() error { return alone.Restore(serial(t, s, 5, 0).Snapshot()) }, alone)
		q := must(reference.NewBatchRotatingQuantizedKVCache(s, 4, []int{0, 0}, f))
		refuses(t, "of another format", "quant", func() error { return c.Restore(q.Snapshot()) }, c)
	}
	keep := serial(t, ring.MLXLM, 4, 2)
	script(t, keep, span(1, 6))
	same(t, "sinks", must(reference.AdoptRotating(keep.Snapshot())).Keep(), 2)
}

// TestLoadedBatch is Q03: a batch that comes from a file lacks what is pending,
// upstream, and raises when it is asked for it, until a prepare gives it some.
func TestLoadedBatch(t *testing.T) {
	c := batch(t, ring.MLXLM, 4, 0, 1)
	feed(t, c, []int{1, 2, 3}, []int{pad, 11, 12})
	load := func() *reference.BatchRotatingKVCache {
		return must(reference.FromState(reference.State(c))).(*reference.BatchRotatingKVCache)
	}
	d := load()
	same(t, "position", d.Position(), c.Position())
	same(t, "row positions", d.RowPositions(), c.Position().Offset)
	refuses(t, "decode", "raises", feeding(d, []int{4}, []int{13}), d)
	refuses(t, "block", "raises", feeding(d, []int{4, 5}, []int{13, 14}), d)
	refuses(t, "finalize", "raises", d.Finalize, d)
	same(t, "mask", masked(d.Mask(1, nil)), masked(c.Mask(1, nil)))
	same(t, "extract", extracted(t, d, 1), []int{11, 12})
	ok(t, d.Prepare(reference.Padding{Lengths: []int{2, 2}}))
	refuses(t, "after a prepare without padding", "raises", feeding(d, []int{4}, []int{13}), d)
	ok(t, d.Prepare(right([]int{2, 1}, []int{0, 1})))
	feed(t, d, []int{4, 5}, []int{13, pad})
	ok(t, d.Finalize())
	same(t, "after one with padding", extracted(t, d, 1), []int{11, 12, 13})
	feed(t, d, []int{6}, []int{14})

	d = load()
	ok(t, d.Restore(c.Snapshot()))
	feed(t, d, []int{4}, []int{13})

	empty := must(reference.FromState(reference.State(batch(t, ring.MLXLM, 4, 0)))).(*reference.BatchRotatingKVCache)
	same(t, "the first block of an empty one", feed(t, empty, []int{1, 2}), [][]int{{1, 2}})
	refuses(t, "and the second", "raises", feeding(empty, []int{3, 4}), empty)
}
