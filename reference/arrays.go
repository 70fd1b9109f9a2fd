package reference

import (
	"fmt"
	"slices"

	"example.com/ringcheck/reference/ring"
)

// ArraysCache is mlx-lm's ArraysCache: recurrent state in numbered slots, one
// array [b, ...] each, without a token axis. A slot that was never written
// holds the zero Tensor.
type ArraysCache struct {
	slots       []ring.Tensor
	leftPadding []int // nil: none
	lengths     []int // nil: none
}

// NewArraysCache is __init__: size empty slots; an empty leftPadding counts as
// none.
func NewArraysCache(size int, leftPadding []int) *ArraysCache {
	c := &ArraysCache{slots: make([]ring.Tensor, max(0, size))}
	if len(leftPadding) > 0 {
		c.leftPadding = append([]int{}, leftPadding...)
	}
	return c
}

// BatchSize is batch_size: the rows of the first slot that is written, else
// those of the padding or the lengths, else 1.
func (c *ArraysCache) BatchSize() int {
	for _, a := range c.slots {
		if !a.IsZero() {
			return a.Rows()
		}
	}
	switch {
	case c.leftPadding != nil:
		return len(c.leftPadding)
	case c.lengths != nil:
		return len(c.lengths)
	}
	return 1
}

// Write is __setitem__: slot i holds a copy of the array.
func (c *ArraysCache) Write(slot int, t ring.Tensor) error {
	const op = "write"
	if err := checkSlot(op, slot, len(c.slots)); err != nil {
		return err
	}
	if err := checkTensor(op, t); err != nil {
		return err
	}
	c.slots[slot] = cloneTensor(t)
	return nil
}

func checkSlot(op string, slot, n int) error {
	if slot < 0 || slot >= n {
		return &ring.RangeError{Op: op, What: "slot", Got: slot, Low: 0, High: n - 1}
	}
	return nil
}

// Slots is __getitem__ for every slot: copies.
func (c *ArraysCache) Slots() []ring.Tensor { return cloneTensors(c.slots) }

// Filter is filter: it keeps the given rows, in that order, of slots, padding
// and lengths. A row that one of them does not have is refused here; upstream
// reads memory that is not its own.
func (c *ArraysCache) Filter(rows []int) error {
	const op = "filter"
	if len(rows) == 0 {
		return &ring.RaisesError{Op: op, Why: "no rows are left"}
	}
	var have []int
	for _, t := range c.slots {
		if !t.IsZero() {
			have = append(have, t.Rows())
		}
	}
	for _, list := range [2][]int{c.leftPadding, c.lengths} {
		if list != nil {
			have = append(have, len(list))
		}
	}
	for _, n := range have {
		if err := checkRows(op, rows, n); err != nil {
			return err
		}
	}
	c.slots = takeTensors(c.slots, rows)
	if c.leftPadding != nil {
		c.leftPadding = pick(c.leftPadding, rows)
	}
	if c.lengths != nil {
		c.lengths = pick(c.lengths, rows)
	}
	return nil
}

// Extend is extend: the rows of other join this cache's; a side that lacks a
// slot, padding or lengths gets zeros (M10). Other is not changed.
func (c *ArraysCache) Extend(other *ArraysCache) error {
	const op = "extend"
	rows := [2]int{c.BatchSize(), other.BatchSize()}
	slots := make([]ring.Tensor, min(len(c.slots), len(other.slots)))
	for i := range slots {
		a, b := c.slots[i], other.slots[i]
		if a.IsZero() && b.IsZero() {
			continue
		}
		if a.IsZero() {
			a = zeroRows(b, rows[0])
		}
		if b.IsZero() {
			b = zeroRows(a, rows[1])
		}
		var err error
		if slots[i], err = appendRows(op, a, b); err != nil {
			return &ring.RaisesError{Op: op, Why: err.Error()}
		}
	}
	join := func(a, b []int) []int {
		if a == nil && b == nil {
			return nil
		}
		if a == nil {
			a = make([]int, rows[0])
		}
		if b == nil {
			b = make([]int, rows[1])
		}
		return append(append([]int{}, a...), b...)
	}
	c.slots = slots
	c.leftPadding, c.lengths = join(c.leftPadding, other.leftPadding), join(c.lengths, other.lengths)
	return nil
}

// Extract is extract: row i of every slot, or no row where there is none.
// Upstream raises where a slot was never written.
func (c *ArraysCache) Extract(row int) (*ArraysCache, error) {
	const op = "extract"
	if row < 0 {
		return nil, &ring.RangeError{Op: op, What: "row", Got: row, Low: 0, High: c.BatchSize() - 1}
	}
	out := &ArraysCache{slots: make([]ring.Tensor, len(c.slots))}
	for i, t := range c.slots {
		if t.IsZero() {
			return nil, &ring.RaisesError{Op: op, Why: fmt.Sprintf("slot %d is empty", i)}
		}
		if row < t.Rows() {
			out.slots[i] = takeTensors([]ring.Tensor{t}, []int{row})[0]
		} else {
			out.slots[i] = zeroRows(t, 0)
		}
	}
	return out, nil
}

// Prepare is prepare: it takes over the lengths, which upstream demands, and
// nothing else.
func (c *ArraysCache) Prepare(pad Padding) error {
	if pad.Lengths == nil {
		return &ring.RaisesError{Op: "prepare", Why: "lengths are missing"}
	}
	c.lengths = append([]int{}, pad.Lengths...)
	return nil
}

// Finalize is finalize: padding and lengths are forgotten; no row is rolled.
func (c *ArraysCache) Finalize() error {
	c.lengths, c.leftPadding = nil, nil
	return nil
}

// Advance is advance: padding and lengths fall by n, also below zero (M13).
func (c *ArraysCache) Advance(n int) error {
	if c.lengths != nil {
		c.lengths = each(c.lengths, n, subtract)
	}
	if c.leftPadding != nil {
		c.leftPadding = each(c.leftPadding, n, subtract)
	}
	return nil
}

// Mask is make_mask: which of the next n tokens of each row are real, one
// query a row: [B, 1, 1, n]. It is nil where neither padding nor lengths are
// known. Upstream's takes no window.
func (c *ArraysCache) Mask(n int, window *int) (*ring.Mask, error) {
	if window != nil {
		return nil, &ring.RaisesError{Op: "mask", Why: "recurrent state has no window"}
	}
	return paddingMask(n, c.leftPadding, c.lengths)
}

// paddingMask is true where leftPadding[b] <= t < lengths[b]; nil stands for
// no bound.
func paddingMask(n int, leftPadding, lengths []int) (*ring.Mask, error) {
	if leftPadding == nil && lengths == nil {
		return nil, nil
	}
	n = max(0, n) // of no tokens and fewer, as an arange
	low, high := leftPadding, lengths
	if low == nil {
		low = make([]int, len(high))
	}
	if high == nil {
		high = each(low, n, func(_, n int) int { return n })
	}
	rows, err := broadcast("mask", low, high, func(a, b int) int { return 0 })
	if err != nil {
		return nil, err
	}
	m := newMask(len(rows), 1, n)
	for b := range rows {
		for t := range n {
			m.Data[b*n+t] = t >= low[b%len(low)] && t < high[b%len(high)]
		}
	}
	return m, nil
}

// MergeArrays is merge: a batch with one row for each cache, zeros where one
// lacks a slot. Where all caches are empty the batch has left padding of zero,
// which is how it knows its size (D-28). Padding and lengths are not merged.
func MergeArrays(caches []*ArraysCache) (*ArraysCache, error) {
	const op = "merge"
	if err := checkSources(len(caches)); err != nil {
		return nil, err
	}
	out := NewArraysCache(len(caches[0].slots), nil)
	empty := true
	for _, c := range caches {
		empty = empty && c.Empty()
	}
	if empty {
		out.leftPadding = make([]int, len(caches))
		return out, nil
	}
	for i := range out.slots {
		for _, c := range caches {
			if i >= len(c.slots) {
				return nil, &ring.RaisesError{Op: op, Why: "the caches differ in their number of slots"}
			}
		}
		like := firstTensor(caches, func(c *ArraysCache) []ring.Tensor { return c.slots }, i)
		if like.IsZero() {
			return nil, &ring.RaisesError{Op: op, Why: fmt.Sprintf("slot %d is empty in all caches", i)}
		}
		merged := zeroRows(like, len(caches))
		for row, c := range caches {
			t := c.slots[i]
			if t.IsZero() {
				continue
			}
			if t.Rows() != 1 || !slices.Equal(t.Shape[1:], like.Shape[1:]) {
				return nil, &ring.RaisesError{Op: op, Why: fmt.Sprintf("cannot assign shape %v to one row of %v", t.Shape, like.Shape)}
			}
			if t.DType != like.DType {
				return nil, &ring.DTypeError{Op: op, Got: t.DType, Want: like.DType}
			}
			copy(merged.Data[row*rowBytes(like):], t.Data)
		}
		out.slots[i] = merged
	}
	return out, nil
}

// Empty is empty: whether slot 0 was never written. Upstream raises where
// there is no slot 0; here such a cache is empty.
func (c *ArraysCache) Empty() bool { return len(c.slots) == 0 || c.slots[0].IsZero() }

// NBytes is nbytes: the bytes of all slots.
func (c *ArraysCache) NBytes() (int, error) { return tensorBytes(c.slots), nil }

// Size is size: always 0.
func (c *ArraysCache) Size() int { return 0 }

// Trimmable is is_trimmable: always false.
func (c *ArraysCache) Trimmable() bool { return false }
