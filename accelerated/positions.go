package accelerated

import (
	"math"

	"example.com/ringcheck/reference/ring"
)

// rules are what never changes in a ring's life.
type rules struct {
	semantics ring.Semantics
	serial    bool // one row without left padding, which remembers its offset alone
	maxSize   int
	keep      int // sinks: serial and mlxlm only
	step      int
}

// position is the bookkeeping of a ring: every difference between the two
// semantics is in its methods. They know logical columns, mlx-lm's, and never
// where those lie: a method that changes columns returns an edit, and plan.go
// turns that into moves.
//
// Methods change the position and are called on a copy, so that what fails
// later leaves the ring as it was. All lists have one element a row; ends
// counts only while pending.
type position struct {
	rules
	idx     int // column of the next write
	total   int // columns ever written, less those trimmed
	length  int // columns of mlx-lm's buffer, spare ones included
	rotated bool
	pending bool

	offset []int
	left   []int
	ends   []int
	roll   []int // of the edit that the last call returned
}

// edit says what becomes of a ring's columns. The new buffer is, for row i:
// left columns of zeros; the sinks, old columns 0 to sinks-1; kept-sinks
// columns of the cycle that begins at old column sinks, column skip-roll[i]
// (modulo cycle) first; right columns of zeros. Then n new tokens are written
// to columns at to at+n-1, which may lie behind all that. length is what the
// buffer measures in the end.
type edit struct {
	left, sinks, kept, right int
	cycle, skip              int
	roll                     []int // nil: none
	at, n                    int
	length                   int
}

func newPosition(r rules, leftPadding []int) position {
	p := position{rules: r}
	p.setRows(len(leftPadding))
	for i, l := range leftPadding {
		p.left[i], p.offset[i] = l, -l
	}
	return p
}

// setRows makes room for n rows, at offset 0 and without padding.
func (p *position) setRows(n int) {
	all := make([]int, 4*n)
	p.offset, p.left, p.ends, p.roll = all[:n:n], all[n:2*n:2*n], all[2*n:3*n:3*n], all[3*n:]
}

// copyFrom makes p equal to q without sharing memory, and without allocating
// where the number of rows is the same.
func (p *position) copyFrom(q *position) {
	offset, left, ends, roll := p.offset, p.left, p.ends, p.roll
	if len(left) != len(q.left) {
		p.setRows(len(q.left))
		offset, left, ends, roll = p.offset, p.left, p.ends, p.roll
	}
	*p = *q
	p.offset, p.left, p.ends, p.roll = offset, left, ends, roll
	copy(offset, q.offset)
	copy(left, q.left)
	copy(ends, q.ends)
}

func (p *position) rows() int { return len(p.left) }

// active is A: the columns that hold tokens or padding, over W right after a
// block.
func (p *position) active() int {
	if p.rotated {
		return p.maxSize
	}
	return p.idx
}

// held is how many tokens row i holds, where nothing is pending.
func (p *position) held(i int) int { return max(0, p.active()-max(0, p.left[i])) }

// leastHeld is held of the row that holds the least.
func (p *position) leastHeld() int {
	n := p.active()
	for i := range p.left {
		n = min(n, p.held(i))
	}
	return n
}

// short reports, in exact semantics, a serial ring that holds fewer tokens than
// its window and offset call for: it was extracted short, or with a limit (E10).
func (p *position) short() bool {
	return p.serial && p.semantics == ring.Exact && p.active() < min(p.total, p.maxSize)
}

// blocks reports whether an update of n columns appends a block.
func (p *position) blocks(n int) bool {
	return n > 1 || p.short() || p.pending && p.semantics == ring.Exact
}

func (p *position) trimmable() bool {
	return p.total < p.maxSize && !(p.pending && p.semantics == ring.Exact)
}

func (p *position) validOffset(i int) int {
	if p.pending {
		return min(p.offset[i], p.ends[i])
	}
	return p.offset[i]
}

// visible is how many columns, from the first on, the last write returned, or
// a trim has left of them.
func (p *position) visible() int {
	if p.serial && p.semantics == ring.Exact {
		return p.active()
	}
	return min(p.total, p.length)
}

// lower takes n columns off every row's left padding, which in exact semantics
// never falls below zero (E1).
func (p *position) lower(n int) {
	if p.serial {
		return
	}
	for i := range p.left {
		p.left[i] -= n
		if p.semantics == ring.Exact {
			p.left[i] = max(0, p.left[i])
		}
	}
}

// advance counts n columns written, or taken back where n is negative.
func (p *position) advance(n int) {
	p.total += n
	p.idx += n
	for i := range p.offset {
		p.offset[i] += n
	}
}

// unchanged is the edit that keeps the whole buffer.
func (p *position) unchanged() edit {
	return edit{kept: p.length, cycle: p.length, length: p.length}
}

// decode writes one column a row in place. The buffer grows by a step of zeros
// before that where it is full, and an overshoot is dropped.
func (p *position) decode() edit {
	e := p.unchanged()
	if p.total >= p.length && p.length < p.maxSize {
		e.right = min(p.step, p.maxSize-p.total)
		p.idx = p.total
	} else if over := p.length - p.maxSize; over > 0 {
		e.sinks, e.skip, e.cycle, e.kept = p.keep, over, p.length-p.keep, p.maxSize
		p.idx, p.rotated = p.maxSize, false
		p.lower(over)
	}
	p.length = e.kept + e.right
	if p.idx == p.maxSize {
		p.idx, p.rotated = p.keep, true
	}
	if p.rotated {
		p.lower(1)
	}
	e.at, e.n, e.length = p.idx, 1, p.length
	p.advance(1)
	return e
}

// block appends n columns behind at most W-1 older ones, in temporal order.
// Trailing padding of earlier blocks is rolled to the front before that, so
// that it is evicted before any token.
func (p *position) block(n int) edit {
	a := p.active()
	evicted := max(0, a-p.maxSize+1)
	e := edit{kept: a - evicted, cycle: a, skip: evicted, at: a - evicted, n: n}
	if p.keep > 0 && (evicted > 0 || p.rotated) {
		e.sinks, e.cycle = p.keep, a-p.keep
	}
	if p.rotated {
		e.skip += p.idx - e.sinks
	}
	if a > 0 {
		e.roll = p.rollPending()
	}
	p.lower(evicted)
	p.rotated, p.idx = false, a-evicted
	p.advance(n)
	p.length = p.idx
	e.length = p.length
	return e
}

// rollPending makes padding that was trailing left padding, and returns how
// far each row rolls; nil if none does. What is pending stays so.
func (p *position) rollPending() []int {
	if !p.pending {
		return nil
	}
	any := false
	for i := range p.left {
		r := max(0, p.offset[i]-p.ends[i])
		p.roll[i] = r
		p.left[i] += r
		p.offset[i] -= r
		any = any || r > 0
	}
	if !any {
		return nil
	}
	return p.roll
}

// finalize rolls what is pending over the whole buffer; nothing is pending
// after that.
func (p *position) finalize() edit {
	e := p.unchanged()
	e.roll = p.rollPending()
	p.pending = false
	return e
}

// prepare announces what the columns of the next blocks are; its arguments
// have been checked. It creates rows where there are none.
func (p *position) prepare(pad Padding) {
	if p.rows() == 0 {
		p.setRows(max(len(pad.LeftPadding), len(pad.Lengths)))
	}
	for i, l := range pad.LeftPadding {
		p.left[i] += l
		p.offset[i] -= l
	}
	right := false
	for _, n := range pad.RightPadding {
		right = right || n > 0
	}
	if pad.RightPadded != nil && p.semantics == ring.Exact {
		right = *pad.RightPadded
	}
	if right {
		p.pending = true
		for i, n := range pad.Lengths {
			p.ends[i] = n + p.offset[i]
		}
	}
}

// rollback takes back columns so that row i keeps keep[i] of those written
// since it stood at before[i]: by a trim, or by rolling the rejected columns to
// the front of each row, where they are left padding.
func (p *position) rollback(before, keep []int, preserveColumns bool) edit {
	e := p.unchanged()
	if !preserveColumns && p.rows() == 1 && p.total < p.maxSize {
		p.advance(-min(p.total, p.offset[0]-before[0]-keep[0]))
		return e
	}
	any := false
	for i := range p.left {
		r := p.offset[i] - before[i] - keep[i]
		p.roll[i] = r
		p.left[i] += r
		p.offset[i] -= r
		any = any || r > 0
	}
	if any {
		e.roll = p.roll
	}
	return e
}

// filter keeps the given rows of q, in that order.
func (p *position) filter(q *position, rows []int) {
	*p = *q
	p.setRows(len(rows))
	for i, r := range rows {
		p.offset[i], p.left[i], p.ends[i] = q.offset[r], q.left[r], q.ends[r]
	}
}

// chronological is the edit that leaves the columns in use, oldest first and
// the sinks before all others.
func (p *position) chronological() edit {
	a := p.active()
	e := edit{kept: a, cycle: a, length: a}
	if p.rotated {
		e.sinks, e.cycle = p.keep, a-p.keep
		e.skip = (p.idx - p.keep) % e.cycle
	}
	return e
}

// ordered is the edit that leaves the columns in use in the order of a ring
// without sinks.
func (p *position) ordered() edit {
	a := p.active()
	e := edit{kept: a, cycle: a, length: a}
	if p.rotated {
		e.skip = p.idx % a
	}
	return e
}

// newest cuts an edit of columns in temporal order to the newest n.
func (e edit) newest(n int) edit {
	if drop := e.kept - n; drop > 0 {
		e.skip += drop
		e.kept, e.length = n, n
	}
	return e
}

// extract returns row i as a serial ring: its last tokens, limit at most.
func (p *position) extract(row, limit int) (position, edit) {
	out := newPosition(p.rules, []int{0})
	out.serial = true
	if p.length == 0 {
		out.total = max(0, p.offset[row]) // left padding still to come is no token
		out.offset[0] = out.total
		return out, edit{}
	}
	a := p.active()
	e := p.ordered().newest(min(max(0, a-max(0, p.left[row])), limit))
	out.offset[0], out.total = p.offset[row], p.offset[row]
	out.idx, out.length = e.kept, e.kept
	return out, e
}

// joined is the position of a ring that [position.extend] or merge makes of
// several.
type joined struct {
	position
	edits []edit // one a source
}

// extend returns the position of a ring with the rows of p and then those of
// q, and what becomes of each side's columns: both in temporal order, unless
// they agree in rotation and write position, right-justified, and of one
// buffer length.
func (p *position) extend(q *position) joined {
	sides := [2]position{*p, *q}
	edits := [2]edit{p.unchanged(), q.unchanged()}
	length := max(p.length, q.length)
	if length > 0 && (p.rotated != q.rotated || p.idx != q.idx) {
		for i := range sides {
			if s := &sides[i]; s.rotated {
				edits[i].skip = s.idx % s.length
				s.idx, s.rotated = s.length, false
			}
		}
	}
	out := joined{position: *p, edits: edits[:]}
	out.setRows(p.rows() + q.rows())
	out.idx, out.rotated = max(sides[0].idx, sides[1].idx), sides[0].rotated
	out.total, out.length = max(p.total, q.total), length
	row := 0
	for i := range sides {
		s, e := &sides[i], &edits[i]
		e.left = out.idx - s.idx
		e.kept = min(e.kept, length-e.left)
		e.right = length - e.left - e.kept
		e.length = length
		for j := range s.left {
			out.offset[row], out.left[row] = s.offset[j], s.left[j]+e.left
			row++
		}
	}
	return out
}

// mergeRow is what one row brings to a merge: row of source, and the edit of
// its columns.
type mergeRow struct {
	source, row int
	offset      int
	edit        edit
}

// merge returns the position of a batched ring of the given rows,
// right-justified.
func merge(r rules, rows []mergeRow) joined {
	r.keep = 0
	out := joined{position: position{rules: r}, edits: make([]edit, len(rows))}
	out.setRows(len(rows))
	width := 0
	for _, row := range rows {
		width = max(width, row.edit.kept)
	}
	for i, row := range rows {
		e := row.edit
		e.left, e.length = width-e.kept, width
		out.edits[i] = e
		out.left[i] = e.left
		if width > 0 || r.semantics == ring.Exact {
			out.offset[i] = row.offset
		}
	}
	out.idx, out.total, out.length = width, width, width
	return out
}

// mask describes the mask of a write of n columns that has not happened yet,
// over the columns that it will return. block says that the write appends.
// It reports false where mlx-lm has no mask. first is where Mask.First goes.
//
// In mlx-lm's semantics a block on a ring that has wrapped hides the oldest
// token of every row that still has left padding: the padding to be evicted
// is counted from the write position, although the write first puts the ring
// in order (O-1).
func (p *position) mask(n int, window *int, block bool, first []int32) (Mask, bool) {
	w := p.maxSize
	if window != nil {
		w = *window
		if p.semantics == ring.Exact {
			w = min(w, p.maxSize)
		}
	}
	if p.serial && p.semantics == ring.MLXLM {
		return p.serialMask(n, w, window != nil, first)
	}
	idx, seen := p.idx, p.total
	if p.semantics == ring.Exact {
		seen = p.active()
		if block {
			idx = seen
		}
	}
	past := min(p.maxSize-1, seen)
	m := Mask{B: p.rows(), N: n, S: past + n, Past: past, Window: w, First: first}
	evicted := idx - p.maxSize
	if block {
		evicted++
	}
	evicted = max(0, evicted)
	if !block && (p.rotated || idx >= p.maxSize) {
		evicted++
		if idx >= p.maxSize {
			idx = 0
		}
		m.Shift = (idx + 1) % m.S
	}
	for i, l := range p.left {
		first[i] = clampInt32(l - evicted)
	}
	return m, true
}

// serialMask is mlx-lm's mask of a serial ring: none for one column, unless a
// window smaller than the ring has filled.
func (p *position) serialMask(n, window int, given bool, first []int32) (Mask, bool) {
	first[0] = 0
	if n > 1 {
		past := min(p.maxSize-1, p.total)
		return Mask{B: 1, N: n, S: past + n, Past: past, Window: window, First: first}, true
	}
	if !given || p.total < window || p.maxSize <= window {
		return Mask{}, false
	}
	s := min(p.total+1, p.maxSize)
	idx := p.idx
	if idx >= p.maxSize {
		idx = 0
	}
	return Mask{B: 1, N: 1, S: s, Past: s - 1, Window: window, Shift: (idx + 1) % s, First: first}, true
}

// presentMask describes what the last n columns may see of the ring as it
// stands, where its columns lie: each its own and the W-1 before it, less
// padding.
func (p *position) presentMask(n int, first []int32) Mask {
	a := p.active()
	m := Mask{B: p.rows(), N: n, S: a, Past: a - n, Window: p.maxSize, First: first}
	if p.rotated {
		m.Shift = p.idx % a
	}
	for i, l := range p.left {
		first[i] = clampInt32(l)
	}
	return m
}

func clampInt32(n int) int32 { return int32(max(math.MinInt32, min(n, math.MaxInt32))) }

// snapshot is the position as the vocabulary's value.
func (p *position) snapshot() ring.Position {
	out := ring.Position{MaxSize: p.maxSize, Offset: p.offset, LeftPadding: p.left, Idx: p.idx, Total: p.total, Rotated: p.rotated}
	if p.pending {
		out.Ends = append([]int{}, p.ends...) // not nil, also without rows
	}
	return out.Clone()
}
