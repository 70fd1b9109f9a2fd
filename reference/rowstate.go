package reference

import (
	"fmt"

	"example.com/ringcheck/reference/ring"
)

// RowState is the bookkeeping of a batched ring: integers for each row and for
// the ring, and no columns. BatchRotatingKVCache moves its columns by what a
// RowState says; an implementation of another kind can do the same.
//
// In exact semantics left padding never falls below zero (E1). In mlx-lm's it
// does, once a ring has wrapped, and later padding vanishes in the negative
// numbers (O-2).
type RowState struct {
	semantics ring.Semantics
	p         ring.Position
}

// NewRowState returns the state of an empty ring of maxSize columns, with one
// row for each element of leftPadding. Offsets start at minus the padding.
func NewRowState(semantics ring.Semantics, maxSize int, leftPadding []int) RowState {
	s := RowState{semantics, ring.Position{MaxSize: maxSize, LeftPadding: append([]int{}, leftPadding...)}}
	s.p.Offset = make([]int, len(leftPadding))
	for i, left := range leftPadding {
		s.p.Offset[i] = -left
	}
	return s
}

// Position returns a deep copy of the state, pending padding included.
func (s *RowState) Position() ring.Position { return s.p.Clone() }

// Restore takes the state over from a position: a deep copy, the pending
// padding included. The window must be the same; the rows may differ.
func (s *RowState) Restore(p ring.Position) error {
	if p.MaxSize != s.p.MaxSize {
		return &ring.MaxSizeError{Op: "restore", Got: p.MaxSize, Want: s.p.MaxSize}
	}
	s.p = p.Clone()
	return nil
}

// BatchSize is the number of rows.
func (s *RowState) BatchSize() int { return len(s.p.LeftPadding) }

// ValidLength is min(total, W): the columns that the next decode may see.
func (s *RowState) ValidLength() int { return min(s.p.Total, s.p.MaxSize) }

// ActiveLength is A: the columns in use, over W right after a block.
func (s *RowState) ActiveLength() int { return activeLength(s.p) }

// Pending reports whether right padding was announced and not yet finalized.
func (s *RowState) Pending() bool { return s.p.Ends != nil }

// Trimmable reports total < W, and in exact semantics that nothing is pending.
func (s *RowState) Trimmable() bool {
	return s.p.Total < s.p.MaxSize && !(s.semantics == ring.Exact && s.Pending())
}

// ValidOffset is the position after row i's last real token, also while
// padding at its end has been counted.
func (s *RowState) ValidOffset(i int) int {
	if s.p.Ends == nil {
		return s.p.Offset[i]
	}
	return min(s.p.Offset[i], s.p.Ends[i])
}

// Held is the number of tokens that row i holds, in exact semantics: its
// columns less its left padding, of which some may still be to come.
func (s *RowState) Held(i int) int { return max(0, s.ActiveLength()-s.p.LeftPadding[i]) }

// Padding announces what the columns of the next blocks are. LeftPadding is
// nil or one number a row. Lengths is nil or the number of columns of each row
// before its trailing padding, left padding included. RightPadding is nil or
// each row's trailing padding. RightPadded overrides, in exact semantics,
// whether the ring waits for Finalize; without it the ring does where any
// right padding is over zero.
type Padding struct {
	LeftPadding, Lengths, RightPadding []int
	RightPadded                        *bool
}

// Prepare is prepare: it adds left padding (the caller has made sure that the
// ring holds no column) and makes right padding pending.
//
// In exact semantics it creates rows on an empty batch, checks its arguments,
// and refuses to announce a second time. mlx-lm keeps an older announcement
// where no right padding is given (D-5).
func (s *RowState) Prepare(pad Padding) error {
	const op = "prepare"
	next := s.p
	if s.semantics == ring.Exact {
		if err := s.checkPadding(op, pad); err != nil {
			return err
		}
		if rows := max(len(pad.LeftPadding), len(pad.Lengths)); s.BatchSize() == 0 && rows > 0 {
			next.Offset, next.LeftPadding = make([]int, rows), make([]int, rows)
		}
	}
	var err error
	if pad.LeftPadding != nil {
		if next.LeftPadding, err = broadcast(op, next.LeftPadding, pad.LeftPadding, add); err != nil {
			return err
		}
		if next.Offset, err = broadcast(op, next.Offset, pad.LeftPadding, subtract); err != nil {
			return err
		}
	}
	right := false
	for _, n := range pad.RightPadding {
		right = right || n > 0
	}
	if s.semantics == ring.Exact && pad.RightPadded != nil {
		right = *pad.RightPadded
	}
	if right {
		if pad.Lengths == nil {
			return &ring.RaisesError{Op: op, Why: "lengths are missing"}
		}
		if next.Ends, err = broadcast(op, pad.Lengths, next.Offset, add); err != nil {
			return err
		}
	}
	s.p = next
	return nil
}

// checkPadding is what exact semantics demand of Prepare's arguments.
func (s *RowState) checkPadding(op string, pad Padding) error {
	if s.Pending() {
		return &ring.PendingPaddingError{Op: op}
	}
	rows := s.BatchSize()
	if rows == 0 {
		rows = max(len(pad.LeftPadding), len(pad.Lengths))
	}
	lists := []struct {
		what string
		list []int
	}{{"left padding", pad.LeftPadding}, {"lengths", pad.Lengths}, {"right padding", pad.RightPadding}}
	for _, l := range lists {
		if l.list != nil && len(l.list) != rows {
			return &ring.RowsError{Op: op, What: l.what, Got: len(l.list), Want: rows}
		}
	}
	if pad.RightPadding != nil && pad.Lengths == nil {
		return &ring.RowsError{Op: op, What: "lengths", Got: 0, Want: rows}
	}
	for i, n := range pad.RightPadding {
		if got, want := pad.Lengths[i]+n, pad.Lengths[0]+pad.RightPadding[0]; got != want {
			return &ring.ShapeError{Op: op, What: "length and right padding of row " + fmt.Sprint(i), Got: []int{got}, Want: []int{want}}
		}
	}
	for _, l := range lists {
		for _, n := range l.list {
			if n < 0 {
				return &ring.RangeError{Op: op, What: l.what, Got: n, Low: 0, High: maxInt}
			}
		}
	}
	return nil
}

const maxInt = int(^uint(0) >> 1)

// PrefillRoll is how far each row must be rolled to the right so that its
// trailing padding comes to its front: nil where nothing is pending.
func (s *RowState) PrefillRoll() ([]int, error) {
	if s.p.Ends == nil {
		return nil, nil
	}
	return broadcast("roll", s.p.Offset, s.p.Ends, func(offset, end int) int { return max(0, offset-end) })
}

// rollPadding counts a roll that has happened: what was trailing padding is
// left padding now. What is pending stays so.
func (s *RowState) rollPadding(roll []int) error {
	left, err := broadcast("roll", s.p.LeftPadding, roll, add)
	if err != nil {
		return err
	}
	offset, err := broadcast("roll", s.p.Offset, roll, subtract)
	if err != nil {
		return err
	}
	s.p.LeftPadding, s.p.Offset = left, offset
	return nil
}

// Finalize is finalize: the rows have been rolled by PrefillRoll, and nothing
// is pending any more. It does nothing where nothing is.
func (s *RowState) Finalize() error {
	roll, err := s.PrefillRoll()
	if err != nil || roll == nil {
		return err
	}
	if err := s.rollPadding(roll); err != nil {
		return err
	}
	s.p.Ends = nil
	return nil
}

// lower takes n columns off every row's left padding.
func (s *RowState) lower(n int) {
	left := make([]int, len(s.p.LeftPadding))
	for i, l := range s.p.LeftPadding {
		left[i] = l - n
		if s.semantics == ring.Exact {
			left[i] = max(0, left[i])
		}
	}
	s.p.LeftPadding = left
}

// advance counts n columns written.
func (s *RowState) advance(n int) {
	offset := make([]int, len(s.p.Offset))
	for i, o := range s.p.Offset {
		offset[i] = o + n
	}
	s.p.Offset = offset
	s.p.Total += n
}

// MarkGrown counts the growth of the buffer before a write in place: the next
// column is the one after the prevTotal columns written so far.
func (s *RowState) MarkGrown(prevTotal int) { s.p.Idx = prevTotal }

// TrimOvershoot counts t columns cut from the front so that W remain, before a
// write in place. It does nothing where t is not positive.
func (s *RowState) TrimOvershoot(t int) {
	if t > 0 {
		s.p.Idx = s.p.MaxSize
		s.lower(t)
	}
}

// BeginWrite turns to the front at the end of the ring, and returns the column
// where n columns are to be written in place.
func (s *RowState) BeginWrite(n int) int {
	if s.p.Idx == s.p.MaxSize {
		s.p.Rotated = true
		s.p.Idx = 0
	}
	if s.p.Rotated {
		s.lower(n)
	}
	return s.p.Idx
}

// CommitWrite counts n columns written in place.
func (s *RowState) CommitWrite(n int) {
	s.advance(n)
	s.p.Idx += n
}

// order counts that the ring was put in temporal order and is length long.
func (s *RowState) order(length int) {
	if s.p.Rotated {
		s.p.Idx = length
		s.p.Rotated = false
	}
}

// evictedByBlock is how many columns a block drops from the front of a ring in
// temporal order, so that W-1 remain before it.
func (s *RowState) evictedByBlock() int { return max(0, s.p.Idx-s.p.MaxSize+1) }

// CommitConcat counts a block of n columns appended to the kept ones; length
// is what the buffer now measures, and evicted what was dropped before it.
func (s *RowState) CommitConcat(n, evicted, length int) {
	if evicted > 0 {
		s.lower(evicted)
	}
	s.advance(n)
	s.p.Idx = length
}

// Filter keeps the given rows, in that order; repeats are allowed. mlx-lm does
// not filter what is pending (D-4, M28).
func (s *RowState) Filter(rows []int) {
	s.p.Offset = pick(s.p.Offset, rows)
	s.p.LeftPadding = pick(s.p.LeftPadding, rows)
	if s.semantics == ring.Exact && s.p.Ends != nil {
		s.p.Ends = pick(s.p.Ends, rows)
	}
}

// Trim un-writes the last min(total, n) columns and returns their number.
// Buffer, left padding and rotation stay, which is right only while the ring
// has not wrapped.
func (s *RowState) Trim(n int) int {
	n = min(s.p.Total, n)
	s.advance(-n)
	s.p.Idx -= n
	return n
}

// RestoreMerged sets what a merge made: width columns in temporal order. Left
// padding stays as it was constructed.
func (s *RowState) RestoreMerged(width int, offset []int) {
	s.p.Offset = append([]int{}, offset...)
	s.p.Idx, s.p.Total = width, width
	s.p.Rotated, s.p.Ends = false, nil
}

// TemporalRanges returns the one or two runs of columns [from, to) that put a
// buffer of length columns into temporal order.
func (s *RowState) TemporalRanges(length int) [][2]int {
	if s.p.Rotated && s.p.Idx != length {
		return [][2]int{{s.p.Idx, length}, {0, s.p.Idx}}
	}
	return [][2]int{{0, s.p.Idx}}
}

// RollbackPlan says how to take back the last columns of a ring: either by
// trimming Trim columns (Shifts is nil), or by rolling row i to the right by
// Shifts[i] over its whole physical length, which makes the rejected columns
// left padding, and then standing at Position.
type RollbackPlan struct {
	Trim     int
	Shifts   []int
	Position ring.Position
}

// PlanRollback makes the plan for a ring at position p, where row i stood at
// before[i] when the round began and keeps keep[i] of what was written since.
// The cheap trim serves one row whose ring has never filled, unless
// preserveColumns asks for the shift. It changes nothing.
func PlanRollback(p ring.Position, before, keep []int, preserveColumns bool) RollbackPlan {
	if !preserveColumns && len(p.Offset) == 1 && p.Total < p.MaxSize {
		return RollbackPlan{Trim: p.Offset[0] - before[0] - keep[0]}
	}
	to := p.Clone()
	shifts := make([]int, len(p.Offset))
	for i := range shifts {
		to.Offset[i] = before[i] + keep[i]
		shifts[i] = p.Offset[i] - to.Offset[i]
		to.LeftPadding[i] += shifts[i]
	}
	return RollbackPlan{Shifts: shifts, Position: to}
}

func add(a, b int) int      { return a + b }
func subtract(a, b int) int { return a - b }

// broadcast combines two lists element by element; a list of one serves any
// length, as in an array library.
func broadcast(op string, a, b []int, f func(a, b int) int) ([]int, error) {
	if len(a) != len(b) && len(a) != 1 && len(b) != 1 {
		return nil, &ring.RaisesError{Op: op, Why: fmt.Sprintf("cannot broadcast lengths %d and %d", len(a), len(b))}
	}
	n := max(len(a), len(b))
	if len(a) == 0 || len(b) == 0 {
		n = 0
	}
	out := make([]int, n)
	for i := range out {
		out[i] = f(a[i%len(a)], b[i%len(b)])
	}
	return out, nil
}

func pick(list, rows []int) []int {
	out := make([]int, len(rows))
	for i, r := range rows {
		out[i] = list[r]
	}
	return out
}
