package reference

import (
	"errors"
	"slices"

	"example.com/ringcheck/reference/ring"
)

// BatchRecurrent is recurrent state in a batch as a serving engine needs it,
// which mlx-lm's [ArraysCache] is not: rows have offsets of their own that
// count their real tokens, left padding and lengths hold together (D-26), and
// merges accept caches that lack slots. It has no columns: it cannot be
// trimmed, only snapshotted by extracting its rows.
type BatchRecurrent struct {
	slots       []ring.Tensor
	offset      []int
	leftPadding []int // nil unless padding is pending
	lengths     []int // nil unless padding is pending
}

// NewBatchRecurrent returns a batch of no rows; the first Prepare, Write or
// merge gives it rows.
func NewBatchRecurrent(slots int) *BatchRecurrent {
	return &BatchRecurrent{slots: make([]ring.Tensor, max(0, slots)), offset: []int{}}
}

// AdoptBatchRecurrent returns a batch of given slots, of each row's offset, and
// of what is left of the padding, both nil where none is pending. It copies
// what it is given. Slots with other numbers of rows than there are offsets are
// refused ([ring.RowsError]), as is such padding.
func AdoptBatchRecurrent(slots []ring.Tensor, offset, leftPadding, lengths []int) (*BatchRecurrent, error) {
	const op = "adopt"
	rows := func(what string, got int) error {
		if got != len(offset) {
			return &ring.RowsError{Op: op, What: what, Got: got, Want: len(offset)}
		}
		return nil
	}
	for _, t := range slots {
		if t.IsZero() {
			continue
		}
		if err := checkTensor(op, t); err != nil {
			return nil, err
		}
		if err := rows("a slot", t.Rows()); err != nil {
			return nil, err
		}
	}
	if leftPadding != nil || lengths != nil {
		if err := errors.Join(rows("left padding", len(leftPadding)), rows("lengths", len(lengths))); err != nil {
			return nil, err
		}
	}
	return &BatchRecurrent{
		slots: cloneTensors(slots), offset: append([]int{}, offset...),
		leftPadding: slices.Clone(leftPadding), lengths: slices.Clone(lengths),
	}, nil
}

// BatchSize is the number of rows.
func (c *BatchRecurrent) BatchSize() int { return len(c.offset) }

// Prepare announces padding on both sides of the next tokens. Lengths count
// each row's tokens before its trailing padding, left padding included. It
// replaces what an earlier Prepare announced.
func (c *BatchRecurrent) Prepare(pad Padding) error {
	const op = "prepare"
	state := RowState{semantics: ring.Exact, p: ring.Position{LeftPadding: c.offset}}
	if err := state.checkPadding(op, pad); err != nil {
		return err
	}
	rows, padded := max(len(pad.LeftPadding), len(pad.Lengths)), anyPositive(pad.LeftPadding) || anyPositive(pad.RightPadding)
	if padded && pad.Lengths == nil {
		return &ring.RowsError{Op: op, What: "lengths", Got: 0, Want: rows}
	}
	if len(c.offset) == 0 && rows > 0 { // the rows are new, and so is all that they hold
		c.offset, c.slots = make([]int, rows), make([]ring.Tensor, len(c.slots))
	}
	c.leftPadding, c.lengths = nil, nil
	if !padded {
		return nil
	}
	c.lengths = append([]int{}, pad.Lengths...)
	c.leftPadding = make([]int, len(c.lengths))
	copy(c.leftPadding, pad.LeftPadding)
	return nil
}

// Finalize forgets the padding. Nothing is rolled: masked tokens must not have
// touched the state.
func (c *BatchRecurrent) Finalize() error {
	c.leftPadding, c.lengths = nil, nil
	return nil
}

// Write sets slot i to a copy of an array [b, ...]. It gives an empty batch its
// rows.
func (c *BatchRecurrent) Write(slot int, t ring.Tensor) error {
	const op = "write"
	if rows := t.Rows(); rows != len(c.offset) && len(c.offset) > 0 {
		return &ring.RowsError{Op: op, What: "the array", Got: rows, Want: len(c.offset)}
	}
	if err := checkTensor(op, t); err != nil {
		return err
	}
	if err := checkSlot(op, slot, len(c.slots)); err != nil {
		return err
	}
	if len(c.offset) == 0 {
		*c = BatchRecurrent{slots: make([]ring.Tensor, len(c.slots)), offset: make([]int, t.Rows())}
	}
	c.slots[slot] = cloneTensor(t)
	return nil
}

// Slots returns copies of all slots; the zero Tensor where one was never
// written.
func (c *BatchRecurrent) Slots() []ring.Tensor { return cloneTensors(c.slots) }

// Mask says which of the next n tokens of each row are real, one query a row:
// [B, 1, 1, n]; nil while no padding is pending.
func (c *BatchRecurrent) Mask(n int, _ *int) (*ring.Mask, error) {
	if n < 1 {
		return nil, &ring.RangeError{Op: "mask", What: "n", Got: n, Low: 1, High: maxInt}
	}
	return paddingMask(n, c.leftPadding, c.lengths)
}

// ConvolutionLengths returns, for the next n tokens, how many of each row's
// come before its trailing padding; nil while no padding is pending.
func (c *BatchRecurrent) ConvolutionLengths(n int) []int {
	if c.lengths == nil {
		return nil
	}
	return each(c.lengths, n, clamp)
}

func clamp(v, high int) int { return max(0, min(v, high)) }

// Advance counts n tokens: each row's offset by its real ones, and what is
// left of the padding.
func (c *BatchRecurrent) Advance(n int) error {
	if n < 0 {
		return &ring.RangeError{Op: "advance", What: "n", Got: n, Low: 0, High: maxInt}
	}
	offset := each(c.offset, n, add)
	if c.lengths != nil {
		for i := range offset {
			offset[i] = c.offset[i] + max(0, min(n, c.lengths[i])-clamp(c.leftPadding[i], n))
		}
		c.leftPadding, c.lengths = each(c.leftPadding, n, subtract), each(c.lengths, n, subtract)
	}
	c.offset = offset
	return nil
}

// Filter keeps the given rows, in that order, of slots, offsets and padding.
func (c *BatchRecurrent) Filter(rows []int) error {
	if err := checkRows("filter", rows, len(c.offset)); err != nil {
		return err
	}
	c.slots = takeTensors(c.slots, rows)
	c.offset = pick(c.offset, rows)
	if c.lengths != nil {
		c.leftPadding, c.lengths = pick(c.leftPadding, rows), pick(c.lengths, rows)
	}
	return nil
}

// Extract returns row i alone, with its own offset and without padding.
func (c *BatchRecurrent) Extract(row int) (*BatchRecurrent, error) {
	const op = "extract"
	if err := checkRows(op, []int{row}, len(c.offset)); err != nil {
		return nil, err
	}
	empty := true
	for _, a := range c.slots {
		empty = empty && a.IsZero()
	}
	if empty {
		return nil, &ring.EmptyError{Op: op}
	}
	return &BatchRecurrent{slots: takeTensors(c.slots, []int{row}), offset: []int{c.offset[row]}}, nil
}

// MergeRecurrent makes a batch of all rows of its sources, in order. A source
// that lacks a slot which another one has brings zeros; a slot that none has
// stays empty. The sources stay; their padding is not merged.
func MergeRecurrent(sources []*BatchRecurrent) (*BatchRecurrent, error) {
	const op = "merge"
	if err := checkSources(len(sources)); err != nil {
		return nil, err
	}
	out := NewBatchRecurrent(len(sources[0].slots))
	for _, s := range sources {
		if len(s.slots) != len(out.slots) {
			return nil, &ring.ShapeError{Op: op, What: "slots", Got: []int{len(s.slots)}, Want: []int{len(out.slots)}}
		}
		out.offset = append(out.offset, s.offset...)
	}
	for i := range out.slots {
		like := firstTensor(sources, func(s *BatchRecurrent) []ring.Tensor { return s.slots }, i)
		if like.IsZero() {
			continue
		}
		merged := zeroRows(like, 0)
		for _, s := range sources {
			t := s.slots[i]
			if t.IsZero() {
				t = zeroRows(like, len(s.offset))
			}
			var err error
			if merged, err = appendRows(op, merged, t); err != nil {
				return nil, err
			}
		}
		out.slots[i] = merged
	}
	return out, nil
}

// ProjectedBytes is what one row takes, however many tokens it has; fewer than
// none are refused ([ring.RangeError]).
func (c *BatchRecurrent) ProjectedBytes(tokens int) (int, error) {
	if tokens < 0 {
		return 0, &ring.RangeError{Op: "projected_bytes", What: "tokens", Got: tokens, Low: 0, High: maxInt}
	}
	if len(c.offset) == 0 {
		return 0, nil
	}
	return tensorBytes(c.slots) / len(c.offset), nil
}

// Trim is refused: recurrent state has no token axis.
func (c *BatchRecurrent) Trim(int) (int, error) { return 0, &ring.NotTrimmableError{Op: "trim"} }

// Trimmable is always false.
func (c *BatchRecurrent) Trimmable() bool { return false }

// Size is always 0.
func (c *BatchRecurrent) Size() int { return 0 }

// Empty reports whether slot 0 was never written.
func (c *BatchRecurrent) Empty() bool { return len(c.slots) == 0 || c.slots[0].IsZero() }

// NBytes is the bytes of all slots.
func (c *BatchRecurrent) NBytes() (int, error) { return tensorBytes(c.slots), nil }

// Offsets returns a copy of each row's number of real tokens.
func (c *BatchRecurrent) Offsets() []int { return append([]int{}, c.offset...) }

// Padding returns copies of what is left of the padding: both nil while none
// is pending.
func (c *BatchRecurrent) Padding() (left, lengths []int) {
	if c.lengths == nil {
		return nil, nil
	}
	return append([]int{}, c.leftPadding...), append([]int{}, c.lengths...)
}
