package models

import (
	"slices"

	"example.com/ringcheck/corpus"
)

// slots is recurrent state: each slot holds one token a row, or nothing. There
// is no history and no window; padding only masks what may update the state.
type slots struct {
	ids     [][]int // per slot, one id a row (0: zeros); nil where absent
	offsets []int   // of batch_recurrent: the position of each row
	left    []int   // columns of left padding still to come, may fall below 0; nil: none
	lengths []int   // columns before trailing padding, may fall below 0; nil: none
}

func (s *slots) clone() *slots {
	n := &slots{ids: make([][]int, len(s.ids)), offsets: slices.Clone(s.offsets),
		left: slices.Clone(s.left), lengths: slices.Clone(s.lengths)}
	for i, ids := range s.ids {
		n.ids[i] = slices.Clone(ids)
	}
	return n
}

// rows is the number of rows; an arrays cache that knows of none has one.
func (s *slots) rows(kind corpus.Kind) int {
	if kind == corpus.BatchRecurrent {
		return len(s.offsets)
	}
	for _, ids := range s.ids {
		if ids != nil {
			return len(ids)
		}
	}
	switch {
	case s.left != nil:
		return len(s.left)
	case s.lengths != nil:
		return len(s.lengths)
	}
	return 1
}

// rowless reports whether the next write says how many rows there are.
func (s *slots) rowless(kind corpus.Kind) bool {
	if kind == corpus.BatchRecurrent {
		return len(s.offsets) == 0
	}
	return s.absent() && s.left == nil && s.lengths == nil
}

// write sets a slot. Rows that come with it have no other slots yet, and no
// padding.
func (s *slots) write(kind corpus.Kind, slot int, ids []int) {
	if kind == corpus.BatchRecurrent && s.rowless(kind) {
		s.offsets, s.left, s.lengths = make([]int, len(ids)), nil, nil
		clear(s.ids)
	}
	s.ids[slot] = ids
}

// absent reports whether no slot holds anything.
func (s *slots) absent() bool {
	return !slices.ContainsFunc(s.ids, func(ids []int) bool { return ids != nil })
}

// mask says which of the next n columns of each row are tokens; nil where
// nothing is padded.
func (s *slots) mask(n int) [][]bool {
	if s.left == nil && s.lengths == nil {
		return nil
	}
	out := make([][]bool, max(len(s.left), len(s.lengths)))
	for i := range out {
		out[i] = make([]bool, n)
		for t := range n {
			out[i][t] = (s.left == nil || t >= s.left[i]) && (s.lengths == nil || t < s.lengths[i])
		}
	}
	return out
}

// advance moves past n columns; a row's offset moves by its real tokens.
func (s *slots) advance(n int) {
	for i := range s.offsets {
		real := n
		if s.lengths != nil {
			real = max(0, min(n, s.lengths[i])-min(max(0, s.left[i]), n))
		}
		s.offsets[i] += real
	}
	for i := range s.left {
		s.left[i] -= n
	}
	for i := range s.lengths {
		s.lengths[i] -= n
	}
}

func (s *slots) filter(keep []int) {
	for e := range s.ids {
		s.ids[e] = gather(s.ids[e], keep)
	}
	s.offsets = gather(s.offsets, keep)
	s.left = gather(s.left, keep)
	s.lengths = gather(s.lengths, keep)
}

// gather is v[keep]; nil stays nil.
func gather(v, keep []int) []int {
	if v == nil {
		return nil
	}
	out := make([]int, len(keep))
	for j, i := range keep {
		out[j] = v[i]
	}
	return out
}

// join appends b's rows to a's, zeros for the side that is absent.
func join(a, b []int, rowsA, rowsB int) []int {
	if a == nil && b == nil {
		return nil
	}
	out := make([]int, rowsA+rowsB)
	copy(out, a)
	copy(out[rowsA:], b)
	return out
}

// append adds o's rows and what padding is announced for them.
func (s *slots) append(o *slots, rows, added int) {
	for e := range s.ids {
		s.ids[e] = join(s.ids[e], o.ids[e], rows, added)
	}
	s.offsets = append(s.offsets, o.offsets...)
	s.left = join(s.left, o.left, rows, added)
	s.lengths = join(s.lengths, o.lengths, rows, added)
}

// mergedSlots joins the sources' rows; announced padding does not move along.
func mergedSlots(sources []*cache) *slots {
	out := &slots{ids: make([][]int, len(sources[0].slots.ids))}
	rows := 0
	for _, c := range sources {
		s := c.slots.clone()
		s.left, s.lengths = nil, nil
		n := c.slots.rows(c.kind)
		out.append(s, rows, n)
		rows += n
	}
	if sources[0].kind == corpus.Arrays && out.absent() {
		out.left = make([]int, rows) // so that mlx-lm's batch knows its rows
	}
	return out
}

// prepare announces padding. mlx-lm's arrays know lengths only.
func (s *slots) prepare(kind corpus.Kind, op *corpus.Op) {
	if kind == corpus.Arrays {
		s.lengths = slices.Clone(op.Lengths)
		return
	}
	if len(s.offsets) == 0 { // the rows are new, and so is all that they hold
		s.offsets = make([]int, len(op.Lengths))
		clear(s.ids)
	}
	s.left, s.lengths = nil, nil
	positive := func(n int) bool { return n > 0 }
	if slices.ContainsFunc(op.LeftPadding, positive) || slices.ContainsFunc(op.RightPadding, positive) {
		s.left, s.lengths = make([]int, len(s.offsets)), slices.Clone(op.Lengths)
		copy(s.left, op.LeftPadding)
	}
}

// extract is row i alone, without padding.
func (s *slots) extract(i int) *slots {
	one := s.clone()
	one.left, one.lengths = nil, nil
	one.filter([]int{i})
	return one
}
