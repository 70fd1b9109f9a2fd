package models

import "slices"

// row is one sequence of a cache.
type row struct {
	tail []int // the tokens held, oldest first (sinks in front)
	n    int   // tokens of the row's history, less those taken back
	d    int   // tokens dropped before the last merge
	pad  int   // trailing pad columns; below 0: left pad columns still to come
	end  int   // while right padding is pending: n when the row is complete
	owed int   // right padding as announced
}

// offset is the position of the row's next column.
func (r *row) offset() int { return r.n + r.pad }

// split says how n columns fed to the row divide: lead pads, then real tokens,
// then trailing pads.
func (r *row) split(n int, pending bool) (lead, real int) {
	lead = min(n, max(0, -r.pad))
	real = n - lead
	if pending {
		real = min(real, max(0, r.end-r.n))
	}
	return lead, real
}

// drop forgets the n oldest tokens held, sinks aside.
func (r *row) drop(n, keep int) {
	if n <= 0 {
		return
	}
	keep = min(keep, len(r.tail)-n)
	copy(r.tail[n:n+keep], r.tail[:keep])
	r.tail = r.tail[n:]
}

// undo takes the last n tokens back.
func (r *row) undo(n int) {
	r.tail = r.tail[:len(r.tail)-n]
	r.n -= n
}

func (r *row) clone() row {
	c := *r
	c.tail = slices.Clone(r.tail)
	return c
}

// last returns the last n tokens held, or all of them.
func last(tail []int, n int) []int { return tail[max(0, len(tail)-n):] }
