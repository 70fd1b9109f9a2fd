package reference_test

import (
	"testing"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

func TestRotatingConstructor(t *testing.T) {
	for _, test := range []struct {
		semantics     ring.Semantics
		maxSize, keep int
		code          string
	}{
		{ring.Exact, 0, 0, "max_size"}, {ring.Exact, -1, 0, "max_size"}, {ring.Exact, 4, 1, "keep"}, {ring.Exact, 4, -1, "keep"},
		{ring.MLXLM, 0, 0, ""}, {ring.MLXLM, 4, 4, ""}, {ring.Exact, 1, 0, ""},
	} {
		c, err := reference.NewRotatingKVCache(test.semantics, test.maxSize, test.keep)
		if ring.CodeOf(err) != test.code || (c == nil) != (err != nil) {
			t.Errorf("%+v: %v, %v", test, c, err)
			continue
		}
		if err == nil && (c.Step != 256 || c.Semantics() != test.semantics || c.Keep() != test.keep || c.Format() != (reference.Format{}) || !c.Empty()) {
			t.Errorf("%+v: %s", test, look(c))
		}
	}
}

// script feeds one token list an entry: a list of one is a decode.
func script(t *testing.T, c *reference.RotatingKVCache, lists ...[]int) (last []int) {
	t.Helper()
	for _, list := range lists {
		last = feed(t, c, list)[0]
	}
	return last
}

// decodes is one list a token.
func decodes(from, to int) (out [][]int) {
	for _, id := range span(from, to) {
		out = append(out, []int{id})
	}
	return out
}

func serialAt(c *reference.RotatingKVCache) [3]int {
	p := c.Position()
	return [3]int{p.Offset[0], p.Idx, c.BufferColumns()}
}

// TestRotatingInBothSemantics is what the two share: the ring without sinks.
func TestRotatingInBothSemantics(t *testing.T) {
	for _, s := range semanticses {
		// Growth by steps of 3, up to the window.
		c := serial(t, s, 8, 0)
		same(t, "one", script(t, c, []int{1}), []int{1})
		same(t, "offset, idx, buffer", serialAt(c), [3]int{1, 1, 3})
		same(t, "buffer", columnsOf(t, c), []int{1, 0, 0})
		script(t, c, decodes(2, 7)...)
		same(t, "seven", script(t, c, []int{7})[:7], []int{1, 2, 3, 4, 5, 6, 7})
		same(t, "offset, idx, buffer", serialAt(c), [3]int{8, 8, 8})

		// P29: the first eviction is that of the ninth token.
		c = serial(t, s, 8, 0)
		same(t, "six, seven, eight", script(t, c, span(1, 6), []int{7}, []int{8}), span(1, 8))
		same(t, "nine", script(t, c, []int{9}), []int{9, 2, 3, 4, 5, 6, 7, 8})

		// M01, M04: a block on a ring that has wrapped comes after it in order.
		c = serial(t, s, 8, 0)
		script(t, c, span(1, 4))
		script(t, c, decodes(5, 12)...)
		same(t, "block on a wrapped ring", script(t, c, []int{13, 14, 15}), span(6, 15))
		same(t, "offset, idx, buffer", serialAt(c), [3]int{15, 10, 10})
		same(t, "size", c.Size(), 8)
		c = serial(t, s, 8, 0)
		script(t, c, decodes(1, 10)...)
		same(t, "the same after ten", script(t, c, []int{11, 12, 13}), span(4, 13))

		// M02: W columns after a decode, W-1+n after a block.
		c = serial(t, s, 8, 0)
		same(t, "an overshoot is returned whole", script(t, c, span(1, 12)), span(1, 12))
		same(t, "and cut by the next decode", script(t, c, []int{13}), []int{13, 6, 7, 8, 9, 10, 11, 12})
		c = serial(t, s, 8, 0)
		script(t, c, span(1, 12))
		same(t, "or block", script(t, c, []int{13, 14}), span(6, 14))

		// Trim while nothing was evicted.
		c = serial(t, s, 8, 0)
		script(t, c, span(1, 5))
		same(t, "trimmed", must(c.Trim(2)), 2)
		same(t, "held", ids(t, c.KeysAndValues()), [][]int{{1, 2, 3}})
		same(t, "offset, idx, buffer", serialAt(c), [3]int{3, 3, 5})
		same(t, "decode after it", script(t, c, []int{9}), []int{1, 2, 3, 9})
		same(t, "block after that", script(t, c, []int{10, 11}), []int{1, 2, 3, 9, 10, 11})

		// Trimmable says no as soon as the window is full (M37).
		c = serial(t, s, 4, 0)
		for i, want := range []bool{true, true, true, true, false, false} {
			same(t, "trimmable", c.Trimmable(), want)
			script(t, c, []int{i + 1})
		}
		// A window of one.
		c = serial(t, s, 1, 0)
		same(t, "block", script(t, c, []int{1, 2, 3}), []int{1, 2, 3})
		same(t, "decode", script(t, c, []int{4}), []int{4})
		same(t, "decode", script(t, c, []int{5}), []int{5})
		same(t, "block", script(t, c, []int{6, 7}), []int{6, 7})
	}
}

// TestRotatingUpstream is what mlx-lm does and exact semantics refuse, or do
// otherwise.
func TestRotatingUpstream(t *testing.T) {
	c := serial(t, ring.MLXLM, 8, 0)
	script(t, c, decodes(1, 20)...)
	same(t, "M31: trim after a wrap", must(c.Trim(5)), 5)
	same(t, "M31: idx", c.Idx(), -1)
	c2 := serial(t, ring.MLXLM, 8, 0)
	script(t, c2, decodes(1, 20)...)
	must(c2.Trim(2))
	same(t, "P04: and a decode", script(t, c2, []int{99}), []int{17, 18, 99, 20, 13, 14, 15, 16})
	must(c2.Trim(100))
	same(t, "everything trimmed", c2.Offset(), 0)

	c = serial(t, ring.MLXLM, 8, 0)
	script(t, c, []int{1, 2, 3})
	same(t, "M33: a negative trim", must(c.Trim(-2)), -2)
	same(t, "M33: and a decode", script(t, c, []int{4}), []int{1, 2, 3, 0, 0, 4})

	c = serial(t, ring.MLXLM, 8, 0)
	script(t, c, span(1, 12))
	must(c.Trim(5))
	same(t, "Q09: trim of an overshoot, then a decode", script(t, c, []int{13}), append([]int{13}, span(6, 12)...))
	c = serial(t, ring.MLXLM, 8, 0)
	script(t, c, span(1, 12))
	must(c.Trim(2))
	same(t, "Q09: then a block", script(t, c, []int{13, 14}), append(span(4, 10), 13, 14))

	c = serial(t, ring.MLXLM, 8, 0)
	script(t, c, decodes(1, 20)...)
	script(t, c, span(21, 24))
	must(c.Trim(2))
	same(t, "Q10: verify, trim, then a decode", script(t, c, []int{99}), append([]int{99}, span(18, 24)...))
	c = serial(t, ring.MLXLM, 8, 0)
	script(t, c, decodes(1, 20)...)
	script(t, c, span(21, 24))
	must(c.Trim(2))
	same(t, "Q10: then a block", script(t, c, []int{99, 98}), append(span(16, 22), 99, 98))

	c = serial(t, ring.MLXLM, 8, 0)
	script(t, c, decodes(1, 20)...)
	must(c.Trim(14))
	same(t, "Q11: idx and trimmable", [2]any{c.Idx(), c.Trimmable()}, [2]any{-10, true})
	same(t, "Q11: block", script(t, c, []int{99, 98}), []int{18, 19, 20, 13, 14, 15, 16, 99, 98})

	c = serial(t, ring.MLXLM, 8, 0)
	script(t, c, decodes(1, 10)...)
	same(t, "M34: an update of nothing drops a column", script(t, c, []int{}), span(4, 10))
	refuses(t, "M34: and a decode", "raises", feeding(c, []int{11}), c)
	c = serial(t, ring.MLXLM, 8, 0)
	script(t, c, decodes(1, 8)...)
	script(t, c, []int{})
	same(t, "M34: at exactly the window a token is lost", script(t, c, []int{11}), []int{11, 3, 4, 5, 6, 7, 8})

	c = serial(t, ring.MLXLM, 4, 4)
	for id := range 7 {
		same(t, "Q07: keep as large as the window", script(t, c, []int{id + 1})[:min(4, id+1)], span(1, min(4, id+1)))
	}
	same(t, "Q07: offset and idx", [2]int{c.Offset(), c.Idx()}, [2]int{7, 7})

	for _, s := range semanticses {
		c := serial(t, s, 8, 0)
		script(t, c, []int{1, 2, 3})
		_, err := c.ToQuantized(reference.Format{GroupSize: 32, Bits: 4})
		code := map[ring.Semantics]string{ring.MLXLM: "not_supported", ring.Exact: "quant"}[s] // the width is not one of groups
		same(t, "to quantized", ring.CodeOf(err), code)
	}
}

func TestRotatingSinks(t *testing.T) {
	c := serial(t, ring.MLXLM, 8, 4)
	script(t, c, span(1, 12))
	same(t, "M35", script(t, c, []int{13}), []int{1, 2, 3, 4, 13, 10, 11, 12}) // as if 13 had wrapped
	same(t, "M35", script(t, c, []int{14}), []int{1, 2, 3, 4, 13, 14, 11, 12})
	c = serial(t, ring.MLXLM, 8, 2)
	script(t, c, decodes(1, 9)...)
	same(t, "P21", script(t, c, []int{10}), []int{1, 2, 9, 10, 5, 6, 7, 8})
	same(t, "a block keeps them", script(t, c, []int{11, 12}), []int{1, 2, 6, 7, 8, 9, 10, 11, 12})
	same(t, "Q05: the mask does not know them", masked(c.Mask(1, nil)), nil)
	same(t, "Q05", masked(c.Mask(2, nil)), [][]string{{"111111110", "011111111"}})
}

func TestRotatingExactRefuses(t *testing.T) {
	c := serial(t, ring.Exact, 4, 0)
	refuses(t, "no tokens", "no_tokens", feeding(c, []int{}), c)
	refuses(t, "two rows", "rows", feeding(c, []int{1}, []int{2}), c)
	script(t, c, []int{1, 2, 3})
	keys, values := tokens([]int{4})
	narrow := ring.Array{DType: ring.Float32, Shape: [4]int{1, heads, 1, 1}, Data: make([]byte, 4*heads)}
	half := ring.Array{DType: ring.Float16, Shape: keys.Shape, Data: make([]byte, len(keys.Data)/2)}
	single := ring.Array{DType: ring.Float32, Shape: [4]int{1, 1, 1, keyDim}, Data: make([]byte, 4*keyDim)}
	for name, test := range map[string]struct {
		keys, values ring.Array
		code         string
	}{
		"keys of another width":    {narrow, values, "shape"},
		"values of another width":  {keys, narrow, "shape"},
		"other heads":              {single, single, "shape"},
		"keys of another type":     {half, half, "shape"}, // its values' width is the keys'
		"sides of different types": {half, values, "dtype"},
	} {
		refuses(t, name, test.code, func() error { return one(c.Update(test.keys, test.values)) }, c)
	}
	halfValues := ring.Array{DType: ring.Float16, Shape: values.Shape, Data: make([]byte, len(values.Data)/2)}
	refuses(t, "another type", "dtype", func() error { return one(c.Update(half, halfValues)) }, c)
	refuses(t, "a negative trim", "range", func() error { return one(c.Trim(-1)) }, c)
	refuses(t, "too much", "over_trim", func() error { return one(c.Trim(4)) }, c)
	script(t, c, []int{4})
	refuses(t, "a full window", "not_trimmable", func() error { return one(c.Trim(1)) }, c)
	refuses(t, "a window of 0", "window", func() error { return one(c.Mask(1, in(0))) }, c)
	refuses(t, "a mask of nothing", "range", func() error { return one(c.Mask(0, nil)) }, c)
}

// TestBadArrays: arrays that no cache can take, in any semantics, are refused by
// all.
func TestBadArrays(t *testing.T) {
	keys, values := tokens([]int{1, 2})
	with := func(a ring.Array, f func(*ring.Array)) ring.Array {
		a.Data = append([]byte(nil), a.Data...)
		f(&a)
		return a
	}
	for _, semantics := range semanticses {
		for _, c := range append(stepped(), serial(t, semantics, 4, 0), batch(t, semantics, 4, 0)) {
			for name, test := range map[string]struct {
				keys, values ring.Array
				code         string
			}{
				"no arrays":               {ring.Array{}, ring.Array{}, "dtype"},
				"packed words":            {with(keys, func(a *ring.Array) { a.DType = ring.Uint32 }), with(values, func(a *ring.Array) { a.DType = ring.Uint32 }), "dtype"},
				"rows that differ":        {keys, plane([][]int{{1, 2}, {3, 4}}, valueDim, -1), "shape"},
				"columns that differ":     {keys, plane([][]int{{1, 2, 3}}, valueDim, -1), "shape"},
				"keys cut short":          {with(keys, func(a *ring.Array) { a.Data = a.Data[1:] }), values, "shape"},
				"values cut short":        {keys, with(values, func(a *ring.Array) { a.Data = a.Data[1:] }), "shape"},
				"a negative extent":       {with(keys, func(a *ring.Array) { a.Shape[3] = -a.Shape[3] }), values, "shape"},
				"extents that overflow":   {with(keys, func(a *ring.Array) { a.Shape[3] = 1 << 62 }), values, "shape"},
				"values of another type":  {keys, with(values, func(a *ring.Array) { a.DType = ring.BFloat16; a.Data = a.Data[:len(a.Data)/2] }), "dtype"},
				"values of no type":       {keys, with(values, func(a *ring.Array) { a.DType = 0 }), "dtype"},
				"values of unknown types": {keys, with(values, func(a *ring.Array) { a.DType = 99 }), "dtype"},
			} {
				refuses(t, name, test.code, func() error { return one(c.Update(test.keys, test.values)) }, c)
			}
		}
	}
}

// TestAnotherType: mlx-lm converts what it stores; this package only moves
// bytes, and refuses.
func TestAnotherType(t *testing.T) {
	keys, values := tokens([]int{1, 2})
	k, v := keys, values
	k.DType, v.DType = ring.BFloat16, ring.BFloat16
	k.Data, v.Data = k.Data[:len(k.Data)/2], v.Data[:len(v.Data)/2]
	for _, c := range append(stepped(), serial(t, ring.MLXLM, 4, 0), serial(t, ring.Exact, 4, 0), batch(t, ring.MLXLM, 4, 0), batch(t, ring.Exact, 4, 0)) {
		must(c.Update(keys, values))
		refuses(t, "two columns of another type", "dtype", func() error { return one(c.Update(k, v)) }, c)
		k, v := k, v
		k.Shape[2], v.Shape[2] = 1, 1
		k.Data, v.Data = k.Data[:len(k.Data)/2], v.Data[:len(v.Data)/2]
		refuses(t, "one column of another type", "dtype", func() error { return one(c.Update(k, v)) }, c)
	}
}

func TestSerialMasks(t *testing.T) {
	up := serial(t, ring.MLXLM, 8, 0)
	same(t, "one query", masked(up.Mask(1, nil)), nil)
	same(t, "a block", masked(up.Mask(2, nil)), [][]string{{"10", "11"}})
	same(t, "a block with a window", masked(up.Mask(3, in(2))), [][]string{{"100", "110", "011"}})
	same(t, "Q24: a window of 0 for a block", masked(up.Mask(2, in(0))), [][]string{{"10", "11"}})
	script(t, up, span(1, 8))
	script(t, up, []int{9}, []int{10})
	same(t, "D-17: a window within a full ring", masked(up.Mask(1, in(5))), [][]string{{"11100011"}}) // the ring stands at 2
	same(t, "a window as large as the ring", masked(up.Mask(1, in(8))), nil)
	same(t, "Q24: a window of 0 for one query", masked(up.Mask(1, in(0))), [][]string{{"00000000"}})
	same(t, "a block after the ring", masked(up.Mask(2, nil)), [][]string{{"111111110", "011111111"}})
	same(t, "a window over the ring's", masked(up.Mask(2, in(9))), [][]string{{"111111110", "111111111"}})
	few := serial(t, ring.MLXLM, 8, 0)
	script(t, few, span(1, 4))
	same(t, "a window of what is held", masked(few.Mask(1, in(4))), [][]string{{"01111"}})
	same(t, "a window over what is held", masked(few.Mask(1, in(5))), nil)
	script(t, up, []int{11}, []int{12}, []int{13}, []int{14}, []int{15}, []int{16})
	same(t, "at the end of the ring", masked(up.Mask(1, in(3))), [][]string{{"10000011"}})

	exact := serial(t, ring.Exact, 4, 0)
	same(t, "exact, empty", masked(exact.Mask(1, nil)), [][]string{{"1"}})
	script(t, exact, []int{1, 2, 3, 4}, []int{5})
	same(t, "exact, wrapped", masked(exact.Mask(1, nil)), [][]string{{"1111"}})
	same(t, "exact, its window is the smaller", masked(exact.Mask(1, in(2))), [][]string{{"1100"}})
	same(t, "exact, a block", masked(exact.Mask(2, in(9))), [][]string{{"11110", "01111"}})
}

// TestShortRings: a ring that was extracted short, or with a limit, takes a
// single token as a block until it holds what its offset calls for (E10).
func TestShortRings(t *testing.T) {
	b := batch(t, ring.Exact, 4, 0)
	feed(t, b, span(1, 6))
	short := must(b.ExtractLimit(0, 2))
	same(t, "held", columnsOf(t, short), []int{5, 6})
	same(t, "offset, idx, buffer", serialAt(short), [3]int{6, 2, 2})
	same(t, "mask", masked(short.Mask(1, nil)), [][]string{{"111"}})
	same(t, "update", script(t, short, []int{7}), []int{5, 6, 7})
	same(t, "block", masked(short.Mask(2, in(2))), [][]string{{"00110", "00011"}})
	same(t, "update", script(t, short, []int{8}), []int{5, 6, 7, 8})
	same(t, "mask", masked(short.Mask(1, nil)), [][]string{{"1111"}})
	same(t, "and in place from then on", script(t, short, []int{9}), []int{9, 6, 7, 8})
	same(t, "in order", ids(t, must(short.TemporalView())), [][]int{{6, 7, 8, 9}})

	// mlx-lm takes what is held for a part of the ring, and its offset for the
	// truth (P12).
	up := must(reference.FromState("RotatingKVCache", rotatingState(t, []int{5, 6}, 6, 4, 2)))
	refuses(t, "P12", "raises", feeding(up.(updater), []int{7}), up)
}

// rotatingState is the state of a RotatingKVCache.
func rotatingState(t *testing.T, columns []int, offset, maxSize, idx int) reference.Value {
	t.Helper()
	keys, values := tokens(columns)
	number := func(n int) reference.Value { return reference.Value{Kind: reference.IntValue, Int: n} }
	return reference.Value{Kind: reference.ListValue, List: []reference.Value{
		{Kind: reference.TensorValue, Tensor: keys.Tensor()}, {Kind: reference.TensorValue, Tensor: values.Tensor()},
		number(offset), number(0), number(maxSize), number(idx),
	}}
}

func TestEmptySerialRing(t *testing.T) {
	for _, s := range semanticses {
		c := serial(t, s, 4, 0)
		same(t, "held", c.KeysAndValues(), ring.KV{})
		same(t, "columns", len(c.Columns().Keys), 0)
		same(t, "bytes", must(c.NBytes()), 0)
		refuses(t, "temporal view", "empty", func() error { return one(c.TemporalView()) }, c)
		refuses(t, "attend", "empty", func() error { return one(c.Attend(ring.Array{}, 1)) }, c)
		same(t, "trim", must(c.Trim(0)), 0)
		feed(t, c, []int{1})
		same(t, "empty", c.Empty(), false)
		same(t, "bytes", must(c.NBytes()), 4*3*heads*(keyDim+valueDim))
	}
}
