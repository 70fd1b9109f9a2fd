package reference_test

import (
	"testing"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

func newKV(step int) *reference.KVCache {
	c := reference.NewKVCache()
	c.Step = step
	return c
}

func newBatchKV(step int, left ...int) *reference.BatchKVCache {
	c := reference.NewBatchKVCache(left)
	c.Step = step
	return c
}

func TestKVCache(t *testing.T) {
	same(t, "step", reference.NewKVCache().Step, 256)
	c := newKV(3)
	same(t, "empty, size, bytes, offset, buffer", []any{c.Empty(), c.Size(), must(c.NBytes()), c.Offset(), c.BufferColumns()}, []any{true, 0, 0, 0, 0})
	same(t, "held", ids(t, c.KeysAndValues()), nil)
	same(t, "update", feed(t, c, []int{1, 2}), [][]int{{1, 2}})
	same(t, "buffer", held(t, c), [][]int{{1, 2, 0}})
	same(t, "update", feed(t, c, []int{3}), [][]int{{1, 2, 3}})
	same(t, "a whole step more", feed(t, c, []int{4, 5, 6, 7}), [][]int{span(1, 7)})
	same(t, "buffer", held(t, c), [][]int{{1, 2, 3, 4, 5, 6, 7, 0, 0}})
	same(t, "trim", must(c.Trim(5)), 5)
	same(t, "held", ids(t, c.KeysAndValues()), [][]int{{1, 2}})
	same(t, "stale columns", held(t, c), [][]int{{1, 2, 3, 4, 5, 6, 7, 0, 0}})
	same(t, "update over them", feed(t, c, []int{8, 9}), [][]int{{1, 2, 8, 9}})
	same(t, "the buffer is cut before it grows", feed(t, c, []int{11, 12, 13, 14, 15, 16}), [][]int{{1, 2, 8, 9, 11, 12, 13, 14, 15, 16}})
	same(t, "buffer", held(t, c), [][]int{{1, 2, 8, 9, 11, 12, 13, 14, 15, 16}})
	same(t, "empty, size, bytes, offset, buffer", []any{c.Empty(), c.Size(), must(c.NBytes()), c.Offset(), c.BufferColumns()}, []any{false, 10, 10 * 4 * heads * (keyDim + valueDim), 10, 10})
	same(t, "trimmable", c.Trimmable(), true)
	same(t, "trim of too much", must(c.Trim(99)), 10)
	same(t, "M33: a negative trim", must(c.Trim(-2)), -2)
	same(t, "M33", feed(t, c, []int{21}), [][]int{{1, 2, 21}})
	same(t, "an update of nothing", feed(t, c, []int{}), [][]int{{1, 2, 21}})

	two := newKV(3)
	feed(t, two, []int{1}, []int{2})
	same(t, "two rows", held(t, two), [][]int{{1, 0, 0}, {2, 0, 0}})
	refuses(t, "three rows", "raises", feeding(two, []int{1}, []int{2}, []int{3}), two)
	refuses(t, "three rows and growth", "raises", feeding(two, []int{1, 1, 1}, []int{2, 2, 2}, []int{3, 3, 3}), two)
	same(t, "one row is repeated", feed(t, two, []int{5}), [][]int{{1, 5}, {2, 5}})
	keys, values := tokens([]int{5, 5}, []int{6, 6})
	refuses(t, "other widths", "raises", func() error { return one(two.Update(values, keys)) }, two)
	must(two.Update(plane([][]int{{7}, {8}}, 1, 1), plane([][]int{{7}, {8}}, 1, -1)))
	lane := two.Columns().Keys[0].Data[2*4*keyDim:][:4*keyDim]
	for e := range keyDim {
		same(t, "a width of one is repeated", lane[4*e:4*e+4], lane[:4])
	}
	for _, step := range []int{0, -1} {
		c := newKV(step)
		refuses(t, "a step that is none", "raises", feeding(c, []int{1}), c)
	}
}

// TestAttentionMasks is M17 and Q24.
func TestAttentionMasks(t *testing.T) {
	quantized := must(reference.NewQuantizedKVCache(reference.Format{GroupSize: 32, Bits: 4}))
	quantized.Step = 3
	must(quantized.Update(columns(1, ring.Float32, 1, 3, 32)))
	kv, joined := newKV(3), reference.NewConcatenateKVCache()
	feed(t, kv, span(1, 3))
	feed(t, joined, span(1, 3))
	for _, c := range []interface {
		Mask(int, *int) (*ring.Mask, error)
	}{kv, joined, quantized} {
		same(t, "one query", masked(c.Mask(1, nil)), nil)
		same(t, "M17", masked(c.Mask(1, in(2))), [][]string{{"0011"}})
		same(t, "two queries", masked(c.Mask(2, nil)), [][]string{{"11110", "11111"}})
		same(t, "two in a window", masked(c.Mask(2, in(2))), [][]string{{"00110", "00011"}})
		same(t, "a window of 0", masked(c.Mask(2, in(0))), [][]string{{"00000", "00000"}})
	}
}

func TestToQuantized(t *testing.T) {
	f := reference.Format{GroupSize: 32, Bits: 4}
	c := newKV(3)
	q := must(c.ToQuantized(f))
	same(t, "empty", []any{q.Empty(), q.Offset(), q.Format(), q.Step}, []any{true, 0, f, 3})
	keys, values := columns(1, ring.BFloat16, 1, 2, 64)
	must(c.Update(keys, values))
	q = must(c.ToQuantized(f))
	same(t, "offset", q.Offset(), 2)
	buffer := c.Columns()
	same(t, "the whole buffer", q.Columns(), ring.KV{Keys: must(reference.Quantize(buffer.Keys[0], 32, 4)), Values: must(reference.Quantize(buffer.Values[0], 32, 4))})
	refuses(t, "a format that is none", "quant", func() error { return one(c.ToQuantized(reference.Format{GroupSize: 32, Bits: 7})) }, c)
	refuses(t, "a width that does not fit", "quant", func() error { return one(c.ToQuantized(reference.Format{GroupSize: 128, Bits: 4})) }, c)

	// In exact semantics a ring becomes the quantized ring of the same updates.
	for _, updates := range [][]int{{2}, {1, 1}, {3, 1, 1, 1}, {6}, {6, 1, 1}, {2, 3, 1}} {
		plain := serial(t, ring.Exact, 4, 0)
		want := must(reference.NewRotatingQuantizedKVCache(ring.Exact, 4, f))
		want.Step = 3
		for i, n := range updates {
			keys, values := columns(i, ring.BFloat16, 1, n, 32)
			must(plain.Update(keys, values))
			must(want.Update(keys, values))
		}
		got := must(plain.ToQuantized(f))
		same(t, "the ring", look(got), look(want))
		refuses(t, "again", "not_supported", func() error { return one(got.ToQuantized(f)) }, got)
		refuses(t, "a format that is none", "quant", func() error { return one(plain.ToQuantized(reference.Format{})) }, plain)
		refuses(t, "a width that does not fit", "quant", func() error { return one(plain.ToQuantized(reference.Format{GroupSize: 64, Bits: 4})) }, plain)
	}
	same(t, "an empty ring", must(serial(t, ring.Exact, 4, 0).ToQuantized(f)).Empty(), true)
}

func TestBatchKVCache(t *testing.T) {
	left := []int{1, 0}
	c := reference.NewBatchKVCache(left)
	left[0] = 9
	c.Step = 3
	type position struct {
		offset, left []int
		idx          int
		right        []int
	}
	at := func(c *reference.BatchKVCache) position {
		return position{c.Offsets(), c.LeftPadding(), c.Idx(), c.RightPadding()}
	}
	same(t, "empty", at(c), position{[]int{-1, 0}, []int{1, 0}, 0, nil})
	same(t, "empty, size, bytes, buffer", []any{c.Empty(), c.Size(), must(c.NBytes()), c.BufferColumns()}, []any{true, 0, 0, 0})
	ok(t, c.Prepare(reference.Padding{LeftPadding: []int{0, 1}}))
	same(t, "prepared", at(c), position{[]int{-1, -1}, []int{1, 1}, 0, nil})
	same(t, "mask", masked(c.Mask(2, nil)), [][]string{{"00", "01"}, {"00", "01"}})
	same(t, "update", feed(t, c, []int{pad, 1}, []int{pad, 11}), [][]int{{pad, 1}, {pad, 11}})
	same(t, "buffer", held(t, c), [][]int{{pad, 1, 0}, {pad, 11, 0}})
	same(t, "mask of one", masked(c.Mask(1, in(2))), [][]string{{"011"}, {"011"}})
	refuses(t, "left padding", "left_padding_on_non_empty", func() error { return c.Prepare(reference.Padding{LeftPadding: []int{1, 1}}) }, c)
	refuses(t, "one row", "rows", feeding(c, []int{1}), c)

	ok(t, c.Prepare(right([]int{2, 1}, []int{0, 1})))
	same(t, "pending", at(c), position{[]int{1, 1}, []int{1, 1}, 2, []int{0, 1}})
	feed(t, c, []int{2, 3}, []int{12, pad})
	same(t, "M29: pending is not heeded", must(c.Extract(1)).Offset(), 3)
	ok(t, c.Finalize())
	same(t, "finalized", at(c), position{[]int{3, 2}, []int{1, 2}, 4, nil})
	same(t, "Q20: the whole buffer is rolled", held(t, c), [][]int{{pad, 1, 2, 3, 0}, {0, pad, 11, 12, pad}})
	ok(t, c.Finalize())
	row := must(c.Extract(0))
	same(t, "extract", [2]any{held(t, row), row.Step}, [2]any{[][]int{{1, 2, 3}}, 3})
	same(t, "trim", must(c.Trim(1)), 1)
	same(t, "trimmed", at(c), position{[]int{2, 1}, []int{1, 2}, 3, nil})
	same(t, "held", ids(t, c.KeysAndValues()), [][]int{{pad, 1, 2}, {0, pad, 11}})
	same(t, "size, trimmable", []any{c.Size(), c.Trimmable()}, []any{3, true})
	same(t, "bytes", must(c.NBytes()), 2*5*4*heads*(keyDim+valueDim))

	ok(t, c.Filter([]int{1, 1, 0}))
	same(t, "filtered, the shared padding cut off (Q18)", at(c), position{[]int{1, 1, 2}, []int{1, 1, 0}, 2, nil})
	same(t, "buffer", held(t, c), [][]int{{pad, 11, 12, pad}, {pad, 11, 12, pad}, {1, 2, 3, 0}})
	refuses(t, "no rows", "raises", func() error { return c.Filter(nil) }, c)
	refuses(t, "a row that is none", "range", func() error { return c.Filter([]int{3}) }, c)
	refuses(t, "a row that is none", "raises", func() error { return one(c.Extract(3)) }, c)

	empty := newBatchKV(3, 2, 3)
	refuses(t, "extract", "raises", func() error { return one(empty.Extract(0)) }, empty)
	ok(t, empty.Filter([]int{0, 1}))
	same(t, "M27", at(empty), position{[]int{-2, -3}, []int{0, 1}, -2, nil})
	ok(t, empty.Prepare(right([]int{1, 0}, []int{0, 1})))
	refuses(t, "finalize", "raises", empty.Finalize, empty)
	refuses(t, "left padding of three", "raises", func() error { return empty.Prepare(reference.Padding{LeftPadding: []int{1, 2, 3}}) }, empty)

	// Q04: a short row is trimmed past its start.
	short := newBatchKV(3, 0, 3)
	feed(t, short, span(1, 4), []int{pad, pad, pad, 14})
	must(short.Trim(2))
	feed(t, short, []int{5}, []int{15})
	same(t, "Q04", at(short), position{[]int{3, 0}, []int{0, 3}, 3, nil})

	// M28: what is pending is not filtered.
	pending := newBatchKV(3, 0, 0)
	ok(t, pending.Prepare(right([]int{4, 2}, []int{0, 2})))
	feed(t, pending, span(1, 4), []int{11, 12, pad, pad})
	ok(t, pending.Filter([]int{1}))
	ok(t, pending.Finalize())
	same(t, "M28", at(pending), position{[]int{4, 2}, []int{0, 2}, 4, nil})
	pending = newBatchKV(3, 0, 0, 0)
	ok(t, pending.Prepare(right([]int{4, 2, 3}, []int{0, 2, 1})))
	feed(t, pending, span(1, 4), span(11, 14), span(21, 24))
	ok(t, pending.Filter([]int{1, 2}))
	refuses(t, "M28", "raises", pending.Finalize, pending)

	// Q03: a loaded batch lacks what is pending.
	loaded := must(reference.FromState(reference.State(short))).(*reference.BatchKVCache)
	refuses(t, "Q03", "raises", loaded.Finalize, loaded)
	ok(t, loaded.Prepare(right([]int{1, 1}, []int{1, 0})))
	ok(t, loaded.Finalize())
}

func TestBatchKVExtend(t *testing.T) {
	a, b := newBatchKV(3, 0), newBatchKV(3, 1, 0)
	ok(t, a.Extend(b))
	same(t, "both empty", [2]any{a.LeftPadding(), a.Offsets()}, [2]any{[]int{0, 1, 0}, []int{0, -1, 0}})
	feed(t, a, []int{1, 2}, []int{11, 12}, []int{21, 22})
	b = newBatchKV(3, 0)
	feed(t, b, span(31, 37))
	before := look(b)
	ok(t, a.Extend(b))
	same(t, "other", look(b), before)
	same(t, "left padding", a.LeftPadding(), []int{5, 6, 5, 0})
	same(t, "offsets", a.Offsets(), []int{2, 1, 2, 7})
	same(t, "idx", a.Idx(), 7)
	same(t, "buffer", held(t, a)[2:], [][]int{{0, 0, 0, 0, 0, 21, 22, 0, 0}, {31, 32, 33, 34, 35, 36, 37, 0, 0}})
	c := newBatchKV(3, 0)
	ok(t, c.Extend(b))
	same(t, "an empty side", held(t, c), [][]int{{0, 0, 0, 0, 0, 0, 0, 0, 0}, {31, 32, 33, 34, 35, 36, 37, 0, 0}})
	same(t, "its padding", c.LeftPadding(), []int{7, 0})
	wide := newBatchKV(3, 0)
	keys, values := tokens([]int{1})
	must(wide.Update(values, keys))
	refuses(t, "other widths", "raises", func() error { return a.Extend(wide) }, a, wide)
}

func TestMergeKV(t *testing.T) {
	a, b, empty := newKV(3), newKV(4), newKV(3)
	feed(t, a, span(1, 4))
	must(a.Trim(1))
	feed(t, b, []int{11})
	before := look(a) + look(b)
	c := must(reference.MergeKV([]*reference.KVCache{a, empty, b}))
	same(t, "buffer", held(t, c), [][]int{{1, 2, 3}, {0, 0, 0}, {0, 0, 11}})
	same(t, "padding, offsets, idx, step", []any{c.LeftPadding(), c.Offsets(), c.Idx(), c.Step}, []any{[]int{0, 3, 2}, []int{3, 0, 1}, 3, 3})
	same(t, "the sources", look(a)+look(b), before)
	same(t, "all empty", must(reference.MergeKV([]*reference.KVCache{empty, empty})).LeftPadding(), []int{0, 0})
	two := newKV(3)
	feed(t, two, []int{1}, []int{2})
	refuses(t, "a source of two rows", "raises", func() error { return one(reference.MergeKV([]*reference.KVCache{a, two})) }, a, two)
	refuses(t, "none", "rows", func() error { return one(reference.MergeKV(nil)) }, a)
	ghost := newKV(3)
	must(ghost.Trim(-2))
	refuses(t, "an empty source that claims tokens", "raises", func() error { return one(reference.MergeKV([]*reference.KVCache{ghost})) }, ghost)
}

func TestQuantizedKVCache(t *testing.T) {
	f := reference.Format{GroupSize: 32, Bits: 4}
	same(t, "a format that is none", ring.CodeOf(one(reference.NewQuantizedKVCache(reference.Format{GroupSize: 32, Bits: 1}))), "quant")
	c := must(reference.NewQuantizedKVCache(f))
	same(t, "step, format", []any{c.Step, c.Format()}, []any{256, f})
	c.Step = 3
	refuses(t, "Q13", "raises", func() error { return one(c.NBytes()) }, c)
	same(t, "empty, size, trimmable, buffer", []any{c.Empty(), c.Size(), c.Trimmable(), c.BufferColumns()}, []any{true, 0, true, 0})
	same(t, "held", len(c.KeysAndValues().Keys), 0)

	var want []ring.KV // column by column
	feedOne := func(seed, n int) ring.KV {
		keys, values := columns(seed, ring.BFloat16, 1, n, 64)
		for i := range n {
			pick := func(a ring.Array) ring.Planes {
				a.Data = a.Data[i*128 : (i+1)*128]
				a.Shape[2] = 1
				return must(reference.Quantize(a, 32, 4))
			}
			want = append(want, ring.KV{Keys: pick(keys), Values: pick(values)})
		}
		return must(c.Update(keys, values))
	}
	check := func(got ring.KV) {
		t.Helper()
		for side, p := range [2]ring.Planes{got.Keys, got.Values} {
			for i, a := range p {
				same(t, "columns", a.Columns(), len(want))
				var data []byte
				for _, w := range want {
					data = append(data, [2]ring.Planes{w.Keys, w.Values}[side][i].Data...)
				}
				same(t, "bytes", a.Data, data)
			}
		}
	}
	check(feedOne(1, 2))
	check(feedOne(2, 1))
	check(feedOne(3, 5))
	same(t, "offset, buffer, size", []any{c.Offset(), c.BufferColumns(), c.Size()}, []any{8, 9, 0})
	same(t, "trim", must(c.Trim(3)), 3)
	want = want[:5]
	check(c.KeysAndValues())
	check(feedOne(4, 1))
	check(feedOne(5, 4))
	same(t, "bytes", must(c.NBytes()), c.BufferColumns()*2*(64/2+2*2*64/32))
	refuses(t, "a width that does not fit", "quant", func() error { return one(c.Update(columns(1, ring.BFloat16, 1, 1, 48))) }, c)
	refuses(t, "another width", "raises", func() error { return one(c.Update(columns(1, ring.BFloat16, 1, 1, 32))) }, c)
	refuses(t, "another type", "dtype", func() error { return one(c.Update(columns(1, ring.Float16, 1, 1, 64))) }, c)
	keys, _ := columns(1, ring.BFloat16, 1, 1, 64)
	_, narrow := columns(1, ring.BFloat16, 1, 1, 48)
	refuses(t, "values that do not fit", "quant", func() error { return one(c.Update(keys, narrow)) }, c)

	// Q31: upstream allocates too few words for a packed column.
	for _, test := range []struct {
		bits, width int
		works       bool
	}{{5, 96, false}, {6, 128, false}, {3, 256, false}, {5, 32, true}, {3, 32, true}, {2, 96, true}, {8, 96, true}} {
		c := must(reference.NewQuantizedKVCache(reference.Format{GroupSize: 32, Bits: test.bits}))
		if _, err := c.Update(columns(1, ring.BFloat16, 1, 1, test.width)); (err == nil) != test.works || err != nil && ring.CodeOf(err) != "raises" {
			t.Errorf("Q31: %+v: %v", test, err)
		}
	}
}

func TestChunkedKVCache(t *testing.T) {
	c := reference.NewChunkedKVCache(4)
	same(t, "step, chunk size", []int{c.Step, c.ChunkSize()}, []int{256, 4})
	c.Step = 3
	ok(t, c.TrimFront())
	same(t, "empty, size, trimmable, bytes, buffer", []any{c.Empty(), c.Size(), c.Trimmable(), must(c.NBytes()), c.BufferColumns()}, []any{true, 0, true, 0, 0})
	feed(t, c, span(1, 4))
	ok(t, c.TrimFront())
	same(t, "nothing to drop", held(t, c), [][]int{{1, 2, 3, 4, 0, 0}})
	feed(t, c, []int{5})
	ok(t, c.TrimFront())
	same(t, "M21", held(t, c), [][]int{span(2, 5)})
	same(t, "M21", []int{c.Offset(), c.StartPosition()}, []int{5, 1})
	same(t, "update", feed(t, c, []int{6}), [][]int{span(2, 6)})
	same(t, "trim", must(c.Trim(2)), 2)
	same(t, "held", ids(t, c.KeysAndValues()), [][]int{span(2, 4)})
	same(t, "all that is held", must(c.Trim(99)), 3)
	same(t, "offset", c.Offset(), 1)
	same(t, "bytes", must(c.NBytes()), c.BufferColumns()*4*heads*(keyDim+valueDim))
	same(t, "mask", ring.CodeOf(one(c.Update(ring.Array{}, ring.Array{}))), "dtype")
	two, _ := tokens([]int{1}, []int{2})
	_, twoValues := tokens([]int{1}, []int{2})
	refuses(t, "two rows", "raises", func() error { return one(c.Update(two, twoValues)) }, c)
}

func TestConcatenateKVCache(t *testing.T) {
	c := reference.NewConcatenateKVCache()
	same(t, "empty, size, trimmable, bytes, buffer", []any{c.Empty(), c.Size(), c.Trimmable(), must(c.NBytes()), c.BufferColumns()}, []any{true, 0, true, 0, 0})
	same(t, "held", ids(t, c.KeysAndValues()), nil)
	feed(t, c, span(1, 4))
	same(t, "trim", must(c.Trim(2)), 2)
	same(t, "offset", c.Offset(), 2)
	same(t, "M30", feed(t, c, []int{9}), [][]int{{1, 2, 3, 4, 9}})
	same(t, "offset, bytes, buffer", []int{c.Offset(), must(c.NBytes()), c.BufferColumns()}, []int{5, 5 * 4 * heads * (keyDim + valueDim), 5})
	same(t, "columns", held(t, c), [][]int{{1, 2, 3, 4, 9}})
	refuses(t, "two rows", "raises", feeding(c, []int{1}, []int{2}), c)
}
