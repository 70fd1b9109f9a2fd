package draw

import (
	"fmt"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
)

// region is what a cache's state says of its columns.
type region struct {
	active int   // columns in use
	idx    int   // the column of the next write; -1 where that says nothing
	order  []int // by column: its age, 0 for the oldest; nil: from left to right
	left   []int // by row: columns of left padding
	right  []int // by row: columns of right padding that are not yet turned to the left
}

// age returns how old a column is, 0 for the oldest; -1 for one not in use.
func (r *region) age(col int) int {
	switch {
	case col >= r.active:
		return -1
	case r.order != nil:
		return r.order[col]
	}
	return col
}

// next says where the next token goes.
func (r *region) next(maxSize, columns int) string {
	switch {
	case r.idx < columns:
		return "next"
	case maxSize == 0 || columns < maxSize:
		return "next: the buffer grows"
	case columns > maxSize:
		return fmt.Sprintf("%d more than the window, dropped by the next write", columns-maxSize)
	}
	return "full; a decode begins again in front"
}

// regionOf reads a state. keep is the number of sinks.
func regionOf(state corpus.State, columns, keep int) region {
	r := region{active: columns, idx: -1}
	offset, _ := state.Get(corpus.FOffset)
	idx, hasIdx := state.Get(corpus.FIdx)
	rotated, hasRotated := state.Get(corpus.FRotated)
	start, _ := state.Get(corpus.FStartPosition)
	if _, hasBuffer := state.Get(corpus.FBuffer); !hasIdx && hasBuffer && offset.Kind == corpus.Int {
		idx, hasIdx = corpus.IntField(corpus.FIdx, offset.Int-start.Int), true
	}
	if hasIdx && 0 <= idx.Int && idx.Int <= columns {
		r.idx = idx.Int
		wrapped := rotated.Int != 0
		if !hasRotated && offset.Kind == corpus.Int { // a serial ring
			wrapped = start.Int == 0 && idx.Int < offset.Int
		}
		switch {
		case !wrapped:
			r.active = idx.Int
		case idx.Int < columns:
			r.order = wrapOrder(columns, idx.Int, min(keep, idx.Int))
		}
	}
	if f, ok := state.Get(corpus.FLeftPadding); ok {
		r.left = f.Ints
	}
	if f, ok := state.Get(corpus.FEnds); ok && len(f.Ints) == len(offset.Ints) {
		for i, end := range f.Ints {
			r.right = append(r.right, max(0, offset.Ints[i]-end))
		}
	}
	return r
}

// wrapOrder is the age of each column of a ring that wrapped and writes next at
// idx, its keep sinks being the oldest.
func wrapOrder(columns, idx, keep int) []int {
	order := make([]int, columns)
	age := 0
	for _, part := range [][2]int{{0, keep}, {idx, columns}, {keep, idx}} {
		for s := part[0]; s < part[1]; s++ {
			order[s] = age
			age++
		}
	}
	return order
}

// cell classifies a column. held are the row's tokens; nil if nobody knows.
func (r *region) cell(id, col int, held map[int]bool) Cell {
	c := Cell{ID: int32(id)}
	inUse := r.age(col) >= 0
	switch {
	case id == props.Unknown:
		c = Cell{Class: Unknown}
	case id == 0 && inUse:
		c.Class = Zeros
	case id == 0:
		c.Class = Spare
	case id < 0:
		c.Class = Padding
	case !inUse || held != nil && !held[id]:
		c.Class = Stale
	default:
		c.Class = Token
	}
	return c
}
