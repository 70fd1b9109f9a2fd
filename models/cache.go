package models

import (
	"math"
	"slices"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// unbounded is the window of a kind that has none.
const unbounded = math.MaxInt / 2

// cache is what the model knows of one cache. A cache without a window is a
// ring whose window is unbounded; a serial cache is a batch of one row.
type cache struct {
	kind  corpus.Kind
	exact bool
	lost  bool // nothing is known of it any more

	w, keep  int
	chunk    int // of chunked
	a        int // columns in use
	idx, tot int
	rot      bool
	buffer   bool // a column has been written or merged
	rows     []row

	pending bool
	due     int // columns of the announced prefill still to be fed

	round       int  // columns of the last write, 0 where none can be taken back
	roundPadded bool // some of them are padding

	slots *slots   // of arrays and batch_recurrent
	kids  []*cache // of list
}

func isBatch(k corpus.Kind) bool {
	return k == corpus.BatchKV || isBatchRing(k)
}

func isBatchRing(k corpus.Kind) bool {
	return k == corpus.BatchRotating || k == corpus.BatchRotatingQuantized
}

func isSerialRing(k corpus.Kind) bool {
	return k == corpus.Rotating || k == corpus.RotatingQuantized
}

func isRing(k corpus.Kind) bool { return isBatchRing(k) || isSerialRing(k) }

func isSlots(k corpus.Kind) bool { return k == corpus.Arrays || k == corpus.BatchRecurrent }

func isQuantized(k corpus.Kind) bool {
	return k == corpus.Quantized || k == corpus.RotatingQuantized || k == corpus.BatchRotatingQuantized
}

// batchOf and serialOf name the kind that a merge or an extract makes.
var batchOf = map[corpus.Kind]corpus.Kind{
	corpus.KV: corpus.BatchKV, corpus.BatchKV: corpus.BatchKV,
	corpus.Rotating: corpus.BatchRotating, corpus.BatchRotating: corpus.BatchRotating,
	corpus.RotatingQuantized: corpus.BatchRotatingQuantized, corpus.BatchRotatingQuantized: corpus.BatchRotatingQuantized,
	corpus.Arrays: corpus.Arrays, corpus.BatchRecurrent: corpus.BatchRecurrent, corpus.List: corpus.List,
}

var serialOf = map[corpus.Kind]corpus.Kind{
	corpus.BatchKV: corpus.KV, corpus.BatchRotating: corpus.Rotating,
	corpus.BatchRotatingQuantized: corpus.RotatingQuantized,
	corpus.Arrays:                 corpus.Arrays, corpus.BatchRecurrent: corpus.BatchRecurrent, corpus.List: corpus.List,
}

func (c *cache) semantics() ring.Semantics {
	if c.exact {
		return ring.Exact
	}
	return ring.MLXLM
}

func (c *cache) clone() *cache {
	n := *c
	n.rows = make([]row, len(c.rows))
	for i := range c.rows {
		n.rows[i] = c.rows[i].clone()
	}
	if c.slots != nil {
		n.slots = c.slots.clone()
	}
	n.kids = make([]*cache, len(c.kids))
	for i, k := range c.kids {
		n.kids[i] = k.clone()
	}
	n.round = 0
	return &n
}

// anyLost reports whether the cache or one inside it is lost.
func (c *cache) anyLost() bool {
	return c.lost || slices.ContainsFunc(c.kids, (*cache).anyLost)
}

// endRound makes the last write one that cannot be rolled back.
func (c *cache) endRound() {
	c.round = 0
	for _, k := range c.kids {
		k.endRound()
	}
}

func (c *cache) lose() {
	c.lost = true
	for _, k := range c.kids {
		k.lose()
	}
}

// leftPadding is derived, never stored. In mlx-lm, left padding + offset −
// columns is constant until a merge, and so may fall below zero; in exact, what
// is neither held nor trailing padding is left padding.
func (c *cache) leftPadding(i int) int {
	r := &c.rows[i]
	if c.exact {
		return c.a - len(r.tail) - r.pad
	}
	return r.d + c.a - r.offset()
}

// garbage counts the columns that an extract of the row would hold in front of
// its tokens (O-2); trailing padding is not counted.
func (c *cache) garbage(i int) int {
	r := &c.rows[i]
	return c.a - max(0, c.leftPadding(i)) - len(r.tail) - max(0, r.pad)
}

// past is how many held tokens of the row a write leaves before the new ones.
func (c *cache) past(i int) int { return min(len(c.rows[i].tail), c.w-1) }

// width is the number of columns that a write of n returns.
func (c *cache) width(n int) int { return min(c.a, c.w-1) + n }

// isBlock says whether a write of n columns appends; otherwise it is a decode,
// which mlx-lm refuses while padding is pending.
func (c *cache) isBlock(n int) bool { return n > 1 || c.exact && c.pending }

// hides reports O-1: mlx-lm builds a block's mask from the write index of a
// rotated ring, and so hides the row's oldest visible token.
func (c *cache) hides(i int, block bool) bool {
	return !c.exact && block && c.rot && c.idx < c.w && c.leftPadding(i) >= 1
}

// write feeds n columns to every row.
func (c *cache) write(tokens [][]int, n int, block bool) {
	c.roundPadded = false
	for i := range c.rows {
		r := &c.rows[i]
		lead, real := r.split(n, c.pending)
		r.drop(len(r.tail)-c.past(i), c.keep)
		r.tail = append(r.tail, tokens[i][lead:lead+real]...)
		r.n += real
		if c.w < unbounded {
			r.pad = min(r.pad, 0) // a ring rolls earlier trailing pads to the front
		}
		r.pad += n - real
		c.roundPadded = c.roundPadded || real < n
	}
	switch {
	case block:
		c.a = c.width(n)
		c.idx, c.rot = c.a, false
	case c.rot || c.idx >= c.w:
		if c.idx >= c.w {
			c.idx = c.keep
		}
		c.idx++
		c.rot, c.a = true, c.w
	default:
		c.idx++
		c.a = c.idx
	}
	c.tot += n
	c.due = max(0, c.due-n)
	c.buffer = true
	c.round = n
}

// announced says whether prepare leaves right padding pending.
func announced(op *corpus.Op) bool {
	if op.RightPadded != nil {
		return *op.RightPadded
	}
	return slices.ContainsFunc(op.RightPadding, func(n int) bool { return n > 0 })
}

func (c *cache) prepare(op *corpus.Op) {
	switch {
	case c.kind == corpus.List:
		for _, k := range c.kids {
			k.prepare(op)
		}
		return
	case c.slots != nil:
		c.slots.prepare(c.kind, op)
		return
	}
	if len(c.rows) == 0 {
		c.rows = make([]row, max(len(op.LeftPadding), len(op.Lengths)))
	}
	for i, l := range op.LeftPadding {
		c.rows[i].pad -= l
	}
	if !announced(op) {
		return // a prepare while padding is pending is refused or says nothing
	}
	c.pending, c.due = true, 0
	for i := range c.rows {
		r := &c.rows[i]
		r.end, r.owed = r.offset()+op.Lengths[i], 0
		if op.RightPadding != nil {
			r.owed = op.RightPadding[i]
		}
		c.due = max(c.due, op.Lengths[i]+r.owed)
	}
}

func (c *cache) finalize() {
	for _, k := range c.kids {
		k.finalize()
	}
	if c.slots != nil {
		c.slots.left, c.slots.lengths = nil, nil
	}
	for i := range c.rows {
		c.rows[i].pad = min(c.rows[i].pad, 0)
	}
	c.pending, c.due = false, 0
}

func (c *cache) filter(keep []int) {
	switch {
	case c.kind == corpus.List:
		for _, k := range c.kids {
			k.filter(keep)
		}
		return
	case c.slots != nil:
		c.slots.filter(keep)
		return
	}
	rows := make([]row, len(keep))
	for j, i := range keep {
		rows[j] = c.rows[i].clone()
	}
	c.rows = rows
	if c.kind == corpus.BatchKV {
		// mlx-lm cuts the padding that all rows share off the front.
		cut := c.minLeftPadding()
		c.a -= cut
		c.idx -= cut
		c.tot -= cut
	}
}

// minLeftPadding is the padding that all rows share; 0 without rows.
func (c *cache) minLeftPadding() int {
	least := unbounded
	for i := range c.rows {
		least = min(least, c.leftPadding(i))
	}
	if len(c.rows) == 0 {
		return 0
	}
	return max(0, least)
}

func (c *cache) extend(o *cache) {
	switch {
	case c.kind == corpus.List:
		for i, k := range c.kids {
			k.extend(o.kids[i])
		}
		return
	case c.slots != nil:
		c.slots.append(o.slots, c.slots.rows(c.kind), o.slots.rows(o.kind))
		return
	}
	if c.buffer || o.buffer {
		if c.rot != o.rot || c.idx != o.idx {
			// Both come into temporal order; o may live on inside a list.
			o.rot, o.idx = false, o.a
			c.a = max(c.a, o.a)
			c.rot, c.idx = false, c.a
		}
		c.tot = max(c.tot, o.tot)
		c.buffer = true
	}
	for i := range o.rows {
		c.rows = append(c.rows, o.rows[i].clone())
	}
}

// merged makes a batch of the newest tokens of every source's rows.
func merged(sources []*cache) *cache {
	first := sources[0]
	c := &cache{kind: batchOf[first.kind], exact: first.exact, w: first.w}
	for i := range first.kids {
		parts := make([]*cache, len(sources))
		for j, s := range sources {
			parts[j] = s.kids[i]
		}
		c.kids = append(c.kids, merged(parts))
	}
	if first.slots != nil {
		c.slots = mergedSlots(sources)
		return c
	}
	for _, s := range sources {
		for i := range s.rows {
			r := s.rows[i]
			r.tail = slices.Clone(last(r.tail, c.w))
			r.d, r.pad, r.end, r.owed = r.n-len(r.tail), 0, 0, 0
			c.rows = append(c.rows, r)
			c.a = max(c.a, len(r.tail))
		}
	}
	c.idx, c.tot = c.a, c.a
	c.buffer = c.a > 0
	return c
}

// extract makes row i a serial cache of its own: any garbage columns, then the
// last limit tokens held.
func (c *cache) extract(i, limit int) *cache {
	made := &cache{kind: serialOf[c.kind], exact: c.exact, w: c.w, buffer: c.buffer}
	for _, k := range c.kids {
		made.kids = append(made.kids, k.extract(i, limit))
	}
	if c.kind == corpus.List {
		return made
	}
	if c.slots != nil {
		made.slots = c.slots.extract(i)
		return made
	}
	r := c.rows[i]
	made.a = max(0, c.garbage(i))
	r.tail = slices.Clone(last(r.tail, limit))
	made.a += len(r.tail)
	r.d, r.pad, r.end, r.owed = 0, 0, 0, 0
	made.rows = []row{r}
	made.idx, made.tot = made.a, r.n
	return made
}

// contents describes a cache just extracted.
func (c *cache) contents(e *Expect) {
	for i := range c.rows {
		t := c.rows[i].tail
		e.Contents = append(e.Contents, Content{Front: c.a - len(t), Tail: t})
	}
}

// view describes a temporal view: the newest columns, a window at most.
func (c *cache) view(e *Expect) {
	width := min(c.a, c.w)
	for i := range c.rows {
		back := min(width, max(0, c.rows[i].pad))
		t := last(c.rows[i].tail, width-back)
		e.Contents = append(e.Contents, Content{Front: width - back - len(t), Tail: t, Back: back})
	}
}

// trim takes the last n tokens of every row back, and says how many it took; a
// list answers for its last child.
func (c *cache) trim(n int) (taken int) {
	if c.kind == corpus.List {
		for _, k := range c.kids {
			taken = k.trim(n)
		}
		return taken
	}
	taken = min(n, c.tot)
	for i := range c.rows {
		c.rows[i].undo(taken)
	}
	c.a -= taken
	c.idx -= taken
	c.tot -= taken
	return taken
}

// rollback keeps the first keep[i] tokens of the last write in row i.
func (c *cache) rollback(keep func(i int) int, preserve bool) {
	taken := 0
	for i := range c.rows {
		taken = c.round - keep(i)
		c.rows[i].undo(taken)
	}
	// A single row that has not filled its window is simply trimmed; otherwise
	// the columns taken back stay, as padding.
	if !preserve && len(c.rows) == 1 && c.tot < c.w {
		c.a -= taken
		c.idx -= taken
		c.tot -= taken
	}
}

// trimFront drops what lies before the last chunk.
func (c *cache) trimFront() {
	for i := range c.rows {
		r := &c.rows[i]
		r.drop(len(r.tail)-c.chunk, 0)
		c.a = len(r.tail)
		c.idx = c.a
	}
}

// minHeld is the number of tokens that the shortest row holds.
func (c *cache) minHeld() int {
	least := unbounded
	for i := range c.rows {
		least = min(least, len(c.rows[i].tail))
	}
	return least
}

func (c *cache) size() int {
	switch {
	case c.kind == corpus.KV:
		return c.tot
	case c.kind == corpus.BatchKV:
		return c.idx
	case isRing(c.kind):
		return min(c.tot, c.w)
	}
	size := 0 // the other kinds do not say
	for _, k := range c.kids {
		size = max(size, k.size())
	}
	return size
}

func (c *cache) trimmable() bool {
	switch {
	case isSlots(c.kind):
		return false
	case c.kind == corpus.List:
		return !slices.ContainsFunc(c.kids, func(k *cache) bool { return !k.trimmable() })
	}
	return c.tot < c.w && !(c.exact && c.pending)
}

// describe says how a write of n columns will look, before it happens.
func (c *cache) describe(n int, block bool, e *Expect) {
	e.Width, e.Block = c.width(n), block
	for i := range c.rows {
		r := &c.rows[i]
		lead, real := r.split(n, c.pending)
		e.Rows = append(e.Rows, Row{Tail: r.tail, Past: c.past(i), Lead: lead, Real: real, Hides: c.hides(i, block)})
	}
}

// mask describes the mask of a write of op.N columns.
func (c *cache) mask(op *corpus.Op, e *Expect) {
	if c.slots != nil {
		p := c.slots.mask(op.N)
		e.Width = op.N
		e.Mask = MaskForm{Null: p == nil, B: len(p), N: 1, Padding: p}
		return
	}
	c.describe(op.N, c.isBlock(op.N), e)
	f := MaskForm{B: len(c.rows), N: op.N, Window: c.w}
	switch {
	case op.Window == nil:
		f.Null = !c.exact && !isBatch(c.kind) && op.N == 1
	case c.exact:
		f.Window = min(*op.Window, c.w)
	case isSerialRing(c.kind) && op.N == 1:
		// mlx-lm makes one only where the window is narrower than the ring and
		// already full. It rolls the mask over the sinks too: not predicted.
		w := *op.Window
		f.Null = c.tot < w || c.w <= w
		f.Window = max(0, w)
		if c.keep > 0 && !f.Null && c.tot >= c.w {
			f.Window = -1
		}
	case isRing(c.kind) && *op.Window == 0: // 0 counts as none
	default:
		f.Window = max(0, *op.Window)
	}
	if f.Null {
		f.Window = unbounded
	}
	e.Mask = f
}

// positions writes down what the cache says of itself.
func (c *cache) positions(p *Positions) {
	p.Kind = c.kind
	p.Idx, p.Total, p.Rotated = c.idx, c.tot, c.rot
	p.Size, p.Trimmable = c.size(), c.trimmable()
	if c.pending {
		p.Ends, p.RightPadding = make([]int, len(c.rows)), make([]int, len(c.rows))
	}
	for i := range c.rows {
		r := &c.rows[i]
		p.Offset = append(p.Offset, r.offset())
		if isBatch(c.kind) {
			p.LeftPadding = append(p.LeftPadding, c.leftPadding(i))
		}
		if c.pending {
			p.Ends[i], p.RightPadding[i] = r.end, r.owed
		}
		if c.kind == corpus.Chunked {
			p.Start = r.n - len(r.tail)
		}
	}
	if c.slots != nil {
		p.Offset = append(p.Offset, c.slots.offsets...)
		p.LeftPadding, p.Lengths = slices.Clone(c.slots.left), slices.Clone(c.slots.lengths)
	}
	for _, k := range c.kids {
		p.Kids = append(p.Kids, Positions{})
		k.positions(&p.Kids[len(p.Kids)-1])
	}
}
