package reference

import (
	"fmt"
	"slices"

	"example.com/ringcheck/reference/ring"
)

// Cache is what all classes of this package have in common. Which further
// methods a class has is the class's own business, as upstream; the functions
// of this file find them, and answer [ring.NotSupportedError] where one is
// missing.
type Cache interface {
	// Size is size: the columns that the next token may see, or 0 for the
	// classes that do not say.
	Size() int
	// Trimmable is is_trimmable.
	Trimmable() bool
	// Empty is empty: whether nothing was ever written.
	Empty() bool
	// NBytes is nbytes: the bytes of all that is held.
	NBytes() (int, error)

	// saved returns a function that undoes whatever follows, writes in place
	// apart.
	saved() func()
	className() string
	state() Value
}

func (c *KVCache) saved() func()              { old := *c; return func() { *c = old } }
func (c *RotatingKVCache) saved() func()      { old := *c; return func() { *c = old } }
func (c *BatchKVCache) saved() func()         { old := *c; return func() { *c = old } }
func (c *BatchRotatingKVCache) saved() func() { old := *c; return func() { *c = old } }
func (c *QuantizedKVCache) saved() func()     { old := *c; return func() { *c = old } }
func (c *ArraysCache) saved() func()          { old := *c; return func() { *c = old } }
func (c *ChunkedKVCache) saved() func()       { old := *c; return func() { *c = old } }
func (c *ConcatenateKVCache) saved() func()   { old := *c; return func() { *c = old } }
func (c *BatchRecurrent) saved() func()       { old := *c; return func() { *c = old } }

// kindOf names a cache's class for an error.
func kindOf(c Cache) string { return fmt.Sprintf("%T", c)[len("*reference."):] }

// Trim trims any cache that can be: see each class's Trim.
func Trim(c Cache, n int) (int, error) {
	t, ok := c.(interface{ Trim(int) (int, error) })
	if !ok {
		return 0, &ring.NotSupportedError{Op: "trim", Kind: kindOf(c)}
	}
	return t.Trim(n)
}

// Filter keeps the given rows of any batched cache, in that order.
func Filter(c Cache, rows []int) error {
	f, ok := c.(interface{ Filter([]int) error })
	if !ok {
		return &ring.NotSupportedError{Op: "filter", Kind: kindOf(c)}
	}
	return f.Filter(rows)
}

// Prepare announces padding to any cache that takes it.
func Prepare(c Cache, pad Padding) error {
	p, ok := c.(interface{ Prepare(Padding) error })
	if !ok {
		return &ring.NotSupportedError{Op: "prepare", Kind: kindOf(c)}
	}
	return p.Prepare(pad)
}

// Finalize ends what Prepare announced.
func Finalize(c Cache) error {
	f, ok := c.(interface{ Finalize() error })
	if !ok {
		return &ring.NotSupportedError{Op: "finalize", Kind: kindOf(c)}
	}
	return f.Finalize()
}

// Extend joins the rows of other, which must be of the same class, to c.
func Extend(c, other Cache) error {
	const op = "extend"
	switch c := c.(type) {
	case *BatchKVCache:
		if o, ok := other.(*BatchKVCache); ok {
			return c.Extend(o)
		}
	case *BatchRotatingKVCache:
		if o, ok := other.(*BatchRotatingKVCache); ok {
			return c.Extend(o)
		}
	case *ArraysCache:
		if o, ok := other.(*ArraysCache); ok {
			return c.Extend(o)
		}
	case *CacheList:
		if o, ok := other.(*CacheList); ok {
			return c.Extend(o)
		}
	default:
		return &ring.NotSupportedError{Op: op, Kind: kindOf(c)}
	}
	return &ring.RaisesError{Op: op, Why: fmt.Sprintf("a %s cannot take the rows of a %s", kindOf(c), kindOf(other))}
}

// Extract takes one row out of a batched cache.
func Extract(c Cache, row int) (Cache, error) {
	switch c := c.(type) {
	case *BatchKVCache:
		return result(c.Extract(row))
	case *BatchRotatingKVCache:
		return result(c.Extract(row))
	case *ArraysCache:
		return result(c.Extract(row))
	case *CacheList:
		return result(c.Extract(row))
	case *BatchRecurrent:
		return result(c.Extract(row))
	}
	return nil, &ring.NotSupportedError{Op: "extract", Kind: kindOf(c)}
}

// Merge makes one batch of its sources, which stay. All must be of the class
// of the first; rings in exact semantics may be serial and batched, mixed.
func Merge(sources []Cache) (Cache, error) {
	const op = "merge"
	if err := checkSources(len(sources)); err != nil {
		return nil, err
	}
	switch first := sources[0].(type) {
	case *KVCache:
		return mergeAs(sources, MergeKV)
	case *RotatingKVCache:
		if first.semantics == ring.Exact {
			return result(MergeRows(sources))
		}
		return mergeAs(sources, MergeRotating)
	case *BatchRotatingKVCache:
		if first.semantics == ring.Exact {
			return result(MergeRows(sources))
		}
		return nil, &ring.RaisesError{Op: op, Why: "a batch cannot be merged"}
	case *ArraysCache:
		return mergeAs(sources, MergeArrays)
	case *CacheList:
		return mergeAs(sources, MergeLists)
	case *BatchRecurrent:
		return mergeAs(sources, MergeRecurrent)
	}
	return nil, &ring.NotSupportedError{Op: op, Kind: kindOf(sources[0])}
}

// checkSources refuses to merge nothing.
func checkSources(n int) error {
	if n == 0 {
		return &ring.RowsError{Op: "merge", What: "the list of caches", Got: 0, Want: 1}
	}
	return nil
}

func mergeAs[C, B Cache](sources []Cache, merge func([]C) (B, error)) (Cache, error) {
	typed := make([]C, len(sources))
	for i, s := range sources {
		c, ok := s.(C)
		if !ok {
			return nil, &ring.RaisesError{Op: "merge", Why: fmt.Sprintf("source %d is a %s, the first a %s", i, kindOf(s), kindOf(sources[0]))}
		}
		typed[i] = c
	}
	return result(merge(typed))
}

// result keeps a nil pointer from becoming a Cache that is not nil.
func result[C Cache](c C, err error) (Cache, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

// CanTrimPromptCache is can_trim_prompt_cache: whether all caches are
// trimmable.
func CanTrimPromptCache(caches []Cache) bool {
	for _, c := range caches {
		if !c.Trimmable() {
			return false
		}
	}
	return true
}

// TrimPromptCache is trim_prompt_cache: it trims all caches, if all can be, and
// returns what the first one trimmed; others may have trimmed less (M30).
func TrimPromptCache(caches []Cache, n int) (int, error) {
	if len(caches) == 0 || !CanTrimPromptCache(caches) {
		return 0, nil
	}
	trimmed, err := trimAll(caches, n)
	if err != nil {
		return 0, err
	}
	return trimmed[0], nil
}

// trimAll trims all caches or none.
func trimAll(caches []Cache, n int) ([]int, error) {
	trimmed := make([]int, len(caches))
	err := all(caches, func(i int, c Cache) (err error) {
		trimmed[i], err = Trim(c, n)
		return err
	})
	return trimmed, err
}

// all applies f to every cache, and undoes it everywhere when it fails.
func all(caches []Cache, f func(i int, c Cache) error) error {
	undo := make([]func(), 0, len(caches))
	for i, c := range caches {
		undo = append(undo, c.saved())
		if err := f(i, c); err != nil {
			for _, u := range slices.Backward(undo) { // a cache may stand in a list twice
				u()
			}
			return err
		}
	}
	return nil
}
