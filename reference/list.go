package reference

import "example.com/ringcheck/reference/ring"

// CacheList is mlx-lm's CacheList: the caches of one layer that has several.
// Each operation goes to all of them, or, when one refuses, to none.
type CacheList struct{ caches []Cache }

// NewCacheList is __init__. The list holds the caches themselves: they are
// updated under their own names.
func NewCacheList(caches ...Cache) *CacheList {
	return &CacheList{append([]Cache{}, caches...)}
}

// At is __getitem__: child i itself.
func (c *CacheList) At(i int) Cache { return c.caches[i] }

// Len is the number of children.
func (c *CacheList) Len() int { return len(c.caches) }

// Trimmable is is_trimmable: whether all children are.
func (c *CacheList) Trimmable() bool { return CanTrimPromptCache(c.caches) }

// Trim is trim: it trims every child and returns what the last one trimmed;
// others may have trimmed more (M30).
func (c *CacheList) Trim(n int) (int, error) {
	if len(c.caches) == 0 {
		return 0, &ring.RaisesError{Op: "trim", Why: "the list is empty"}
	}
	trimmed, err := trimAll(c.caches, n)
	if err != nil {
		return 0, childError("trim", err)
	}
	return trimmed[len(trimmed)-1], nil
}

// childError is what a list raises when a child refuses an operation, or does
// not have it: upstream finds out when it is half done.
func childError(op string, err error) error {
	if err == nil {
		return nil
	}
	return &ring.RaisesError{Op: op, Why: err.Error()}
}

// Filter is filter: it keeps the given rows of every child.
func (c *CacheList) Filter(rows []int) error {
	return childError("filter", all(c.caches, func(_ int, child Cache) error { return Filter(child, rows) }))
}

// Extend is extend: the rows of other's children join this list's, pair by
// pair, as many as both have.
func (c *CacheList) Extend(other *CacheList) error {
	n := min(len(c.caches), len(other.caches))
	return childError("extend", all(c.caches[:n], func(i int, child Cache) error { return Extend(child, other.caches[i]) }))
}

// MergeLists is merge: a list of the merged children, as many as the first
// list has.
func MergeLists(lists []*CacheList) (*CacheList, error) {
	const op = "merge"
	if err := checkSources(len(lists)); err != nil {
		return nil, err
	}
	out := &CacheList{}
	for i := range lists[0].caches {
		var column []Cache
		for _, l := range lists {
			if i >= len(l.caches) {
				return nil, &ring.RaisesError{Op: op, Why: "the lists differ in length"}
			}
			column = append(column, l.caches[i])
		}
		merged, err := Merge(column)
		if err != nil {
			return nil, childError(op, err)
		}
		out.caches = append(out.caches, merged)
	}
	return out, nil
}

// Extract is extract: a list of row i of every child.
func (c *CacheList) Extract(row int) (*CacheList, error) {
	out := &CacheList{}
	for _, child := range c.caches {
		one, err := Extract(child, row)
		if err != nil {
			return nil, childError("extract", err)
		}
		out.caches = append(out.caches, one)
	}
	return out, nil
}

// Prepare is prepare: see each child's.
func (c *CacheList) Prepare(pad Padding) error {
	return childError("prepare", all(c.caches, func(_ int, child Cache) error { return Prepare(child, pad) }))
}

// Finalize is finalize: see each child's.
func (c *CacheList) Finalize() error {
	return childError("finalize", all(c.caches, func(_ int, child Cache) error { return Finalize(child) }))
}

// Size is size: the largest child's.
func (c *CacheList) Size() int {
	n := 0
	for i, child := range c.caches {
		if i == 0 {
			n = child.Size()
		}
		n = max(n, child.Size())
	}
	return n
}

// Empty is empty: the first child's. Upstream raises for a list of no caches;
// here such a list is empty.
func (c *CacheList) Empty() bool { return len(c.caches) == 0 || c.caches[0].Empty() }

// NBytes is nbytes: the sum of all children's.
func (c *CacheList) NBytes() (int, error) {
	sum := 0
	for _, child := range c.caches {
		n, err := child.NBytes()
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func (c *CacheList) saved() func() {
	old := *c
	undo := make([]func(), len(c.caches))
	for i, child := range c.caches {
		undo[i] = child.saved()
	}
	return func() {
		*c = old
		for _, u := range undo {
			u()
		}
	}
}
