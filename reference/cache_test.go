package reference_test

import (
	"fmt"
	"reflect"
	"testing"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// kinds are one cache of every class.
func kinds(t *testing.T) []reference.Cache {
	f := reference.Format{GroupSize: 32, Bits: 4}
	return []reference.Cache{
		newKV(3), serial(t, ring.MLXLM, 4, 0), serial(t, ring.Exact, 4, 0), newBatchKV(3, 0, 0), batch(t, ring.MLXLM, 4, 0, 0), batch(t, ring.Exact, 4, 0, 0),
		must(reference.NewQuantizedKVCache(f)), reference.NewArraysCache(1, []int{0, 0}), reference.NewCacheList(newBatchKV(3, 0, 0)),
		reference.NewChunkedKVCache(2), reference.NewConcatenateKVCache(), reference.NewBatchRecurrent(1),
	}
}

// TestOperationsByClass: which operation a class has, and that it is the class's
// own.
func TestOperationsByClass(t *testing.T) {
	const yes, no = "", "not_supported"
	type answers struct{ trim, filter, prepare, finalize, extend, extract, merge string }
	want := map[string]answers{
		"KVCache":              {yes, no, no, no, no, no, yes},
		"RotatingKVCache":      {yes, no, no, no, no, no, yes},
		"BatchKVCache":         {yes, yes, yes, "raises", yes, "raises", no},
		"BatchRotatingKVCache": {yes, yes, yes, "raises", yes, "raises", "raises"},
		"exact":                {"pending_padding", yes, yes, yes, yes, yes, yes},
		"QuantizedKVCache":     {yes, no, no, no, no, no, no},
		"ArraysCache":          {no, yes, yes, yes, yes, "raises", yes},
		"CacheList":            {yes, yes, yes, "raises", yes, "raises", "raises"},
		"ChunkedKVCache":       {yes, no, no, no, no, no, no},
		"ConcatenateKVCache":   {yes, no, no, no, no, no, no},
		"BatchRecurrent":       {"not_trimmable", "range", yes, yes, no, "empty", yes},
	}
	for _, c := range kinds(t) {
		name := reflect.TypeOf(c).Elem().Name()
		if b, ok := c.(*reference.BatchRotatingKVCache); ok && b.Semantics() == ring.Exact {
			name = "exact"
		}
		var got answers
		if name != "exact" {
			got.trim = ring.CodeOf(one(reference.Trim(c, 0)))
		}
		got.filter = ring.CodeOf(reference.Filter(c, []int{1, 0}))
		got.prepare = ring.CodeOf(reference.Prepare(c, right([]int{1, 0}, []int{0, 1})))
		if name == "exact" {
			got.trim = ring.CodeOf(one(reference.Trim(c, 0)))
		}
		got.finalize = ring.CodeOf(reference.Finalize(c))
		twin := c
		for _, k := range kinds(t) {
			if reflect.TypeOf(k) == reflect.TypeOf(c) && fmt.Sprint(reference.State(k)) != fmt.Sprint(reference.State(c)) {
				twin = k
			}
		}
		if b, ok := c.(*reference.BatchRotatingKVCache); ok {
			twin = batch(t, b.Semantics(), 4, 0)
		}
		got.extend = ring.CodeOf(reference.Extend(c, twin))
		got.extract = ring.CodeOf(one(reference.Extract(c, 0)))
		got.merge = ring.CodeOf(one(reference.Merge([]reference.Cache{c, c})))
		same(t, name, got, want[name])

		// A cache of another class does not fit.
		var other reference.Cache = reference.NewCacheList()
		if name == "CacheList" {
			other = newKV(3)
		}
		if want[name].extend == yes {
			refuses(t, name+" extended by another class", "raises", func() error { return reference.Extend(c, other) }, c)
		}
		if want[name].merge == yes {
			code := "raises"
			if s, ok := c.(interface{ Semantics() ring.Semantics }); ok && s.Semantics() == ring.Exact {
				code = no
			}
			refuses(t, name+" merged with another class", code, func() error { return one(reference.Merge([]reference.Cache{c, other})) }, c)
		}
	}
	same(t, "a merge of nothing", ring.CodeOf(one(reference.Merge(nil))), "rows")
}

// TestMergeByClass: a merge of caches is the class's.
func TestMergeByClass(t *testing.T) {
	arrays := reference.NewArraysCache(1, nil)
	recurrent := reference.NewBatchRecurrent(1)
	exact := serial(t, ring.Exact, 4, 0)
	for _, test := range []struct{ source, want reference.Cache }{
		{newKV(3), must(reference.MergeKV([]*reference.KVCache{newKV(3), newKV(3)}))},
		{serial(t, ring.MLXLM, 4, 0), must(reference.MergeRotating([]*reference.RotatingKVCache{serial(t, ring.MLXLM, 4, 0), serial(t, ring.MLXLM, 4, 0)}))},
		{exact, must(reference.MergeRows([]reference.Cache{exact, exact}))},
		{arrays, must(reference.MergeArrays([]*reference.ArraysCache{arrays, arrays}))},
		{recurrent, must(reference.MergeRecurrent([]*reference.BatchRecurrent{recurrent, recurrent}))},
		{reference.NewCacheList(newKV(3)), reference.NewCacheList(must(reference.MergeKV([]*reference.KVCache{newKV(3), newKV(3)})))},
	} {
		got := must(reference.Merge([]reference.Cache{test.source, test.source}))
		same(t, "merged", look(got), look(test.want))
	}
	b := batch(t, ring.Exact, 4, 0, 0)
	feed(t, b, []int{1, 2}, []int{11, 12})
	feed(t, exact, []int{21})
	same(t, "serial and batched", held(t, must(reference.Merge([]reference.Cache{exact, b})).(*reference.BatchRotatingKVCache)), [][]int{{0, 21}, {1, 2}, {11, 12}})
}

func TestTrimPromptCache(t *testing.T) {
	a, r := newKV(3), serial(t, ring.MLXLM, 4, 0)
	feed(t, a, span(1, 4))
	feed(t, r, span(1, 3))
	caches := []reference.Cache{r, a}
	same(t, "can be trimmed", reference.CanTrimPromptCache(caches), true)
	same(t, "M30: what the first one trimmed", must(reference.TrimPromptCache(caches, 4)), 3)
	same(t, "offsets", []int{r.Offset(), a.Offset()}, []int{0, 0})
	feed(t, r, span(1, 4))
	same(t, "M32: a full ring", []any{reference.CanTrimPromptCache(caches), must(reference.TrimPromptCache(caches, 1))}, []any{false, 0})
	same(t, "none", []any{reference.CanTrimPromptCache(nil), must(reference.TrimPromptCache(nil, 1))}, []any{true, 0})

	exact := serial(t, ring.Exact, 4, 0)
	feed(t, exact, []int{1})
	feed(t, a, span(1, 4))
	refuses(t, "all or nothing", "over_trim", func() error { return one(reference.TrimPromptCache([]reference.Cache{a, exact}, 3)) }, a, exact)
}
