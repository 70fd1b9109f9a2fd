package reference

import (
	"slices"

	"example.com/ringcheck/reference/ring"
)

// BatchKVCache is mlx-lm's BatchKVCache: the columns of several sequences,
// left-padded to a common end, without a window.
type BatchKVCache struct {
	Step int // growth quantum in columns

	store        storage
	offset       []int
	leftPadding  []int
	idx          int
	rightPadding []int // nil unless pending
	loaded       bool  // from a prompt-cache file: the pending field is missing (Q03)
}

// NewBatchKVCache is __init__: a row for each element of leftPadding, whose
// offset starts at minus its padding.
func NewBatchKVCache(leftPadding []int) *BatchKVCache {
	s := NewRowState(ring.MLXLM, 0, leftPadding)
	return &BatchKVCache{Step: defaultStep, offset: s.p.Offset, leftPadding: s.p.LeftPadding}
}

// Update is update_and_fetch: keys [b h s d] and values [b h s d'] are written
// behind the columns held; it returns all of them.
func (c *BatchKVCache) Update(keys, values ring.Array) (ring.KV, error) {
	const op = "update"
	if err := checkUpdate(op, ring.MLXLM, c.store, Format{}, len(c.offset), keys, values); err != nil {
		return ring.KV{}, err
	}
	columns, _ := Format{}.encode(keys, values)
	s, err := steppedUpdate(op, c.store, columns, columns, c.idx, c.Step)
	if err != nil {
		return ring.KV{}, err
	}
	c.store = s
	c.offset = each(c.offset, keys.Columns(), add)
	c.idx += keys.Columns()
	return c.KeysAndValues(), nil
}

// KeysAndValues is keys_and_values: the columns up to idx.
func (c *BatchKVCache) KeysAndValues() ring.KV { return c.store.cut(0, c.idx).KV }

// Prepare is prepare: left padding on an empty cache, and right padding that
// Finalize will roll to the front. Lengths are not used.
func (c *BatchKVCache) Prepare(pad Padding) error {
	const op = "prepare"
	left, offset := c.leftPadding, c.offset
	if pad.LeftPadding != nil {
		if !c.store.none() {
			return &ring.LeftPaddingError{Op: op}
		}
		var err error
		if left, err = broadcast(op, left, pad.LeftPadding, add); err != nil {
			return err
		}
		if offset, err = broadcast(op, offset, pad.LeftPadding, subtract); err != nil {
			return err
		}
	}
	c.leftPadding, c.offset = left, offset
	if anyPositive(pad.RightPadding) {
		c.rightPadding = append([]int{}, pad.RightPadding...)
		c.loaded = false
	}
	return nil
}

// Finalize is finalize: each row is rolled to the right by its right padding,
// over the whole buffer, its unused tail included (Q20).
func (c *BatchKVCache) Finalize() error {
	const op = "finalize"
	if c.loaded {
		return &ring.RaisesError{Op: op, Why: "a loaded cache has no right padding"}
	}
	if c.rightPadding == nil {
		return nil
	}
	if c.store.none() {
		return &ring.RaisesError{Op: op, Why: "the cache is empty"}
	}
	s, err := c.store.rollRows(op, c.rightPadding)
	if err != nil {
		return err
	}
	offset, err := broadcast(op, c.offset, c.rightPadding, subtract)
	if err != nil {
		return err
	}
	left, err := broadcast(op, c.leftPadding, c.rightPadding, add)
	if err != nil {
		return err
	}
	c.store, c.offset, c.leftPadding, c.rightPadding = s, offset, left, nil
	return nil
}

// Trimmable is is_trimmable: always true.
func (c *BatchKVCache) Trimmable() bool { return true }

// Trim is trim: it takes back the last min(idx, n) columns of every row, also
// where a short row has fewer (Q04).
func (c *BatchKVCache) Trim(n int) (int, error) {
	n = min(c.idx, n)
	c.idx -= n
	c.offset = each(c.offset, n, subtract)
	return n, nil
}

// Mask is make_mask: [B, 1, n, idx+n], never nil.
func (c *BatchKVCache) Mask(n int, window *int) (*ring.Mask, error) {
	return CausalMask(n, c.idx, window, c.leftPadding), nil
}

// Filter is filter: it keeps the given rows, in that order, and cuts off the
// left padding that all of them have, from the counters of an empty cache too
// (M27). What is pending is not filtered (M28).
func (c *BatchKVCache) Filter(rows []int) error {
	if err := checkRows("filter", rows, len(c.offset)); err != nil {
		return err
	}
	if len(rows) == 0 {
		return &ring.RaisesError{Op: "filter", Why: "no rows are left"}
	}
	if !c.store.none() {
		c.store = c.store.takeRows(rows)
	}
	c.offset = pick(c.offset, rows)
	c.leftPadding = pick(c.leftPadding, rows)
	shared := c.leftPadding[0]
	for _, l := range c.leftPadding {
		shared = min(shared, l)
	}
	if shared > 0 {
		c.store = c.store.cut(shared, c.store.columns())
		c.idx -= shared
		c.leftPadding = each(c.leftPadding, shared, subtract)
	}
	return nil
}

// Extend is extend: the rows of other join this cache's, both sides padded on
// the left to the longer one and brought to one buffer length. Other is not
// changed.
func (c *BatchKVCache) Extend(other *BatchKVCache) error {
	const op = "extend"
	s, idx := c.store, c.idx
	left := append(append([]int{}, c.leftPadding...), other.leftPadding...)
	if !s.none() || !other.store.none() {
		var lefts [2]int
		var err error
		if s, idx, lefts, err = extend(op, s, other.store, c.idx, other.idx, len(c.offset), len(other.offset)); err != nil {
			return err
		}
		left = append(each(c.leftPadding, lefts[0], add), each(other.leftPadding, lefts[1], add)...)
	}
	c.store, c.idx, c.leftPadding = s, idx, left
	c.offset = append(append([]int{}, c.offset...), other.offset...)
	return nil
}

// extend joins the rows of two buffers, right-justified at the larger idx and
// brought to the larger length. It returns the buffer, its idx, and the zero
// columns that each side got on its left. At least one side holds columns.
func extend(op string, a, b storage, aIdx, bIdx, aRows, bRows int) (storage, int, [2]int, error) {
	idx, length := max(aIdx, bIdx), max(a.columns(), b.columns())
	side := func(s, like storage, rows, at int) storage {
		if s.none() {
			s = like.each(func(p ring.Array) ring.Array {
				return zeros(p.DType, rows, p.Shape[1], 0, p.Shape[3])
			})
		}
		right := length - s.columns() - (idx - at)
		if right < 0 {
			s = s.cut(0, right)
			right = 0
		}
		return s.pad(idx-at, right)
	}
	out, err := side(a, b, aRows, aIdx).concatenateRows(op, side(b, a, bRows, bIdx))
	return out, idx, [2]int{idx - aIdx, idx - bIdx}, err
}

// Extract is extract: row i alone, without its left padding; its offset is its
// length. What is pending is not heeded (M29).
func (c *BatchKVCache) Extract(row int) (*KVCache, error) {
	const op = "extract"
	if err := checkRows(op, []int{row}, len(c.offset)); err != nil {
		return nil, &ring.RaisesError{Op: op, Why: err.Error()}
	}
	if c.store.none() {
		return nil, &ring.RaisesError{Op: op, Why: "the cache is empty"}
	}
	out := NewKVCache()
	out.Step = c.Step
	out.store = c.store.takeRows([]int{row}).cut(c.leftPadding[row], c.idx)
	out.offset = out.store.columns()
	return out, nil
}

// MergeKV is merge: a batch with one row for each cache, left-padded to the
// longest. It takes each cache's columns up to offset; the sources stay.
func MergeKV(caches []*KVCache) (*BatchKVCache, error) {
	const op = "merge"
	if err := checkSources(len(caches)); err != nil {
		return nil, err
	}
	stores, lengths := make([]storage, len(caches)), make([]int, len(caches))
	for i, c := range caches {
		stores[i], lengths[i] = c.store, c.Size()
		if !c.store.none() {
			stores[i] = c.store.cut(0, c.offset)
		}
	}
	s, padding, err := merge(op, stores, lengths)
	if err != nil {
		return nil, err
	}
	out := NewBatchKVCache(padding)
	out.Step = caches[0].Step
	out.store, out.idx = s, s.columns()
	out.offset = each(out.offset, s.columns(), add)
	return out, nil
}

// merge lays buffers of one row under each other, right-justified in columns
// of zero bytes, and returns each row's left padding. lengths[i] is how long
// row i claims to be; with all claims 0 there is no buffer.
func merge(op string, stores []storage, lengths []int) (storage, []int, error) {
	width, padding := slices.Max(lengths), make([]int, len(stores))
	if width == 0 {
		return storage{}, padding, nil
	}
	for i, n := range lengths {
		padding[i] = width - n
	}
	var like storage // no columns; the most heads and the largest widths (D-21)
	for _, s := range stores {
		switch {
		case s.none():
		case like.none():
			like = s.cut(0, 0)
		default:
			var err error
			if like, err = like.pairErr(s, func(a, b ring.Array) (ring.Array, error) {
				if b.DType != a.DType {
					return a, &ring.DTypeError{Op: op, Got: b.DType, Want: a.DType}
				}
				a.Shape[1], a.Shape[3] = max(a.Shape[1], b.Shape[1]), max(a.Shape[3], b.Shape[3])
				return a, nil
			}); err != nil {
				return storage{}, nil, err
			}
		}
	}
	if like.none() || width < 0 {
		return storage{}, nil, &ring.RaisesError{Op: op, Why: "no cache has the columns that it claims"}
	}
	out := like.each(func(p ring.Array) ring.Array {
		return zeros(p.DType, len(stores), p.Shape[1], width, p.Shape[3])
	})
	for i, s := range stores {
		if s.none() {
			continue
		}
		for _, pair := range [2][2]ring.Planes{{out.Keys, s.Keys}, {out.Values, s.Values}} {
			for p := range pair[0] {
				from, to := padding[i], padding[i]+lengths[i]
				if err := assignable(op, pair[0][p], i, 1, from, to, pair[1][p]); err != nil {
					return storage{}, nil, err
				}
				assign(pair[0][p], i, 1, from, to, pair[1][p])
			}
		}
	}
	return out, padding, nil
}

// Size is size: the columns held, left padding included.
func (c *BatchKVCache) Size() int { return c.idx }

// Empty is empty: whether no column was ever written.
func (c *BatchKVCache) Empty() bool { return c.store.none() }

// NBytes is nbytes: the bytes of the whole buffer.
func (c *BatchKVCache) NBytes() (int, error) { return c.store.nbytes(), nil }

// each applies f(element, n) to a list.
func each(list []int, n int, f func(a, b int) int) []int {
	out := make([]int, len(list))
	for i, v := range list {
		out[i] = f(v, n)
	}
	return out
}

func anyPositive(list []int) bool {
	for _, n := range list {
		if n > 0 {
			return true
		}
	}
	return false
}

// checkRows refuses a row index outside a batch of n rows.
func checkRows(op string, rows []int, n int) error {
	for _, r := range rows {
		if r < 0 || r >= n {
			return &ring.RangeError{Op: op, What: "row", Got: r, Low: 0, High: n - 1}
		}
	}
	return nil
}
