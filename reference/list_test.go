package reference_test

import (
	"testing"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

func TestCacheList(t *testing.T) {
	kv, ring1 := newKV(3), serial(t, ring.MLXLM, 4, 0)
	c := reference.NewCacheList(kv, ring1)
	same(t, "children", []any{c.Len(), c.At(0) == reference.Cache(kv), c.At(1) == reference.Cache(ring1)}, []any{2, true, true})
	same(t, "empty, size, trimmable, bytes", []any{c.Empty(), c.Size(), c.Trimmable(), must(c.NBytes())}, []any{true, 0, true, 0})
	feed(t, kv, span(1, 5))
	feed(t, ring1, span(1, 3))
	same(t, "empty, size, trimmable", []any{c.Empty(), c.Size(), c.Trimmable()}, []any{false, 5, true})
	same(t, "bytes", must(c.NBytes()), (6+3)*4*heads*(keyDim+valueDim))
	same(t, "M30: what the last one trimmed", must(c.Trim(4)), 3)
	same(t, "M30: offsets", []int{kv.Offset(), ring1.Offset()}, []int{1, 0})

	none := reference.NewCacheList()
	same(t, "none: empty, size, trimmable, bytes", []any{none.Empty(), none.Size(), none.Trimmable(), must(none.NBytes())}, []any{true, 0, true, 0})
	refuses(t, "none: trim", "raises", func() error { return one(none.Trim(1)) }, none)
	quantized := reference.NewCacheList(kv, must(reference.NewQuantizedKVCache(reference.Format{GroupSize: 32, Bits: 4})))
	refuses(t, "bytes of an empty quantized cache", "raises", func() error { return one(quantized.NBytes()) }, quantized)
}

// TestListsDoAllOrNothing: where one child refuses, none has changed.
func TestListsDoAllOrNothing(t *testing.T) {
	b := newBatchKV(3, 0, 0)
	feed(t, b, []int{1, 2}, []int{11, 12})
	second := newBatchKV(3, 0)
	list := reference.NewCacheList(b, reference.NewCacheList(second))
	refuses(t, "filter", "raises", func() error { return list.Filter([]int{1}) }, list)
	refuses(t, "prepare", "raises", func() error { return list.Prepare(reference.Padding{LeftPadding: []int{1, 1}}) }, list)
	refuses(t, "extract", "raises", func() error { return one(list.Extract(0)) }, list)
	ok(t, list.Prepare(right([]int{2, 1}, []int{0, 1})))
	refuses(t, "finalize", "raises", list.Finalize, list) // the second is empty
	refuses(t, "extend", "raises", func() error { return list.Extend(reference.NewCacheList(newBatchKV(3, 0), reference.NewKVCache())) }, list)
	refuses(t, "trim", "raises", func() error { return one(reference.NewCacheList(b, reference.NewArraysCache(1, nil)).Trim(1)) }, list)

	// One child that stands twice in a list: it is brought back to the first of
	// its states.
	k := newKV(3)
	feed(t, k, span(1, 5))
	refuses(t, "trim twice", "raises", func() error { return one(reference.NewCacheList(k, k, reference.NewArraysCache(1, nil)).Trim(1)) }, k)
}

func TestListsOfBatches(t *testing.T) {
	a, b := newKV(3), newKV(3)
	feed(t, a, span(1, 3))
	feed(t, b, []int{11})
	r, s := serial(t, ring.MLXLM, 4, 0), serial(t, ring.MLXLM, 4, 0)
	feed(t, r, span(1, 3))
	feed(t, s, []int{11})
	lists := []*reference.CacheList{reference.NewCacheList(a, r), reference.NewCacheList(b, s)}
	c := must(reference.MergeLists(lists)) // M19
	ok(t, c.Prepare(right([]int{2, 1}, []int{0, 1})))
	for i := range 2 {
		feed(t, c.At(i).(updater), []int{4, 5}, []int{12, pad})
	}
	ok(t, c.Finalize())
	same(t, "left padding", c.At(0).(*reference.BatchKVCache).LeftPadding(), []int{0, 3})
	alone := must(c.Extract(1))
	same(t, "extracted", held(t, alone.At(0).(*reference.KVCache)), [][]int{{11, 12}})
	same(t, "extracted", held(t, alone.At(1).(*reference.RotatingKVCache)), [][]int{{11, 12}})
	refuses(t, "P19: extracted once more", "raises", func() error { return one(alone.Extract(0)) }, alone)
	ok(t, c.Filter([]int{1}))
	same(t, "filtered", held(t, c.At(0).(*reference.BatchKVCache)), [][]int{{11, 12, pad}})
	other := must(reference.MergeLists(lists[:1]))
	before := look(other)
	ok(t, c.Extend(other))
	same(t, "extended", c.At(1).(*reference.BatchRotatingKVCache).Position().Offset, []int{2, 3})
	same(t, "other", look(other), before)
	ok(t, c.Extend(reference.NewCacheList()))

	refuses(t, "none", "rows", func() error { return one(reference.MergeLists(nil)) }, c)
	refuses(t, "lists of other lengths", "raises", func() error {
		return one(reference.MergeLists([]*reference.CacheList{lists[0], reference.NewCacheList(b)}))
	}, lists[0])
	refuses(t, "children of other classes", "raises", func() error {
		return one(reference.MergeLists([]*reference.CacheList{lists[0], reference.NewCacheList(s, b)}))
	}, lists[0])
	refuses(t, "children that do not merge", "raises", func() error {
		return one(reference.MergeLists([]*reference.CacheList{reference.NewCacheList(reference.NewConcatenateKVCache())}))
	}, lists[0])
}
