package reference_test

import (
	"fmt"
	"testing"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// TestUpstreamRaisesHalfway: where mlx-lm raises in the middle of an update,
// nothing has changed here, whichever side is at fault.
func TestUpstreamRaisesHalfway(t *testing.T) {
	keys, values := tokens([]int{7})
	two, twoValues := tokens([]int{7, 8})
	single := func(a ring.Array) ring.Array { // of another number of heads
		a.Shape[1] = 1
		a.Data = a.Data[:len(a.Data)/2]
		return a
	}
	three := ring.Array{DType: ring.Float32, Shape: [4]int{1, 3, 1, 2}, Data: make([]byte, 4*6)}
	for _, full := range []bool{false, true} {
		rings := []updater{serial(t, ring.MLXLM, 4, 0), batch(t, ring.MLXLM, 4, 0), newKV(3), newBatchKV(3, 0)}
		for _, c := range rings {
			feed(t, c, []int{1, 2})
			if full {
				feed(t, c, []int{3})
				feed(t, c, []int{4})
				feed(t, c, []int{5})
			}
			for name, f := range map[string]func() error{
				"a decode of other keys":   func() error { return one(c.Update(values, values)) },
				"a decode of other values": func() error { return one(c.Update(keys, keys)) },
				"a decode of other heads":  func() error { return one(c.Update(three, three)) },
				"a block of other keys":    func() error { return one(c.Update(twoValues, twoValues)) },
				"a block of other values":  func() error { return one(c.Update(two, two)) },
			} {
				refuses(t, fmt.Sprintf("%T (full: %t): %s", c, full, name), "raises", f, c)
			}
			switch c.(type) {
			case *reference.RotatingKVCache, *reference.BatchRotatingKVCache:
				refuses(t, "a block of one head", "raises", func() error { return one(c.Update(single(two), single(twoValues))) }, c)
			}
		}
	}

	// M34: a block of nothing leaves a batch short, too.
	c := batch(t, ring.MLXLM, 4, 0)
	for i := range 6 {
		feed(t, c, []int{i + 1})
	}
	feed(t, c, []int{})
	refuses(t, "M34", "raises", feeding(c, []int{7}), c)
}

// TestQuantizedRingsRefuse: a width that cannot be quantized.
func TestQuantizedRingsRefuse(t *testing.T) {
	f := reference.Format{GroupSize: 32, Bits: 4}
	for _, s := range semanticses {
		for _, c := range []updater{must(reference.NewRotatingQuantizedKVCache(s, 4, f)), must(reference.NewBatchRotatingQuantizedKVCache(s, 4, []int{0}, f))} {
			for _, n := range []int{1, 2} {
				keys, values := columns(1, ring.BFloat16, 1, n, 48)
				refuses(t, "the first update", "quant", func() error { return one(c.Update(keys, values)) }, c)
			}
			must(c.Update(columns(1, ring.BFloat16, 1, 2, 64)))
			wide, wideValues := columns(2, ring.BFloat16, 1, 1, 32)
			refuses(t, "another width", map[ring.Semantics]string{ring.MLXLM: "raises", ring.Exact: "shape"}[s], func() error { return one(c.Update(wide, wideValues)) }, c)
		}
	}
	list := reference.NewCacheList(must(reference.NewQuantizedKVCache(f)), reference.NewConcatenateKVCache(), reference.NewChunkedKVCache(2), reference.NewBatchRecurrent(1))
	refuses(t, "a list of what cannot be trimmed", "raises", func() error { return one(list.Trim(1)) }, list)
	refuses(t, "a list of what cannot be filtered", "raises", func() error { return list.Filter([]int{0}) }, list)
}

// TestNoRows: a batch of no rows goes through what others do.
func TestNoRows(t *testing.T) {
	c := batch(t, ring.Exact, 4, 0, 0)
	ok(t, c.Prepare(right([]int{2, 1}, []int{0, 1})))
	feed(t, c, []int{1, 2}, []int{11, pad})
	ok(t, c.Filter(nil))
	ok(t, c.Finalize())
	same(t, "position", c.Position(), ring.Position{MaxSize: 4, Offset: []int{}, LeftPadding: []int{}, Idx: 2, Total: 2})
	same(t, "mask", must(c.Mask(1, nil)).B, 0)
	none := func(dim int) ring.Array {
		return ring.Array{DType: ring.Float32, Shape: [4]int{0, heads, 1, dim}}
	}
	same(t, "a decode", must(c.Update(none(keyDim), none(valueDim))).Keys[0].Shape, [4]int{0, heads, 3, keyDim})
	ok(t, c.Extend(batch(t, ring.Exact, 4, 0)))
	same(t, "rows", c.RowPositions(), []int{0})
	same(t, "merged", must(reference.MergeRows([]reference.Cache{c})).RowPositions(), []int{0})
}
