package models

import (
	"slices"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// Model is the state of all caches of a case. It is not safe for concurrent
// use, and what Apply returns is valid until the next call of Apply.
type Model struct {
	exact bool
	shape corpus.Shape
	quant *corpus.Quant

	caches map[string]*cache
	names  []string // of caches, oldest first
	snaps  map[string]*cache
	files  map[string][]*cache

	out Expect
}

// New returns the model of a case before its first operation. quant is nil
// where no quantized kind occurs.
func New(sem ring.Semantics, shape corpus.Shape, quant *corpus.Quant) *Model {
	return &Model{
		exact: sem == ring.Exact, shape: shape, quant: quant,
		caches: map[string]*cache{}, snaps: map[string]*cache{}, files: map[string][]*cache{},
	}
}

// Expect is what must be observed of one operation. Slices in it belong to the
// model and are overwritten by the next operation.
type Expect struct {
	// Known is false where the case has left the domain of the model: it then
	// predicts nothing of this operation.
	Known bool
	// Error is the code of a refusal, "" where the operation succeeds.
	Error string
	// State is of the cache that an observed state describes; its Kind is ""
	// where there is none.
	State Positions

	// Width is the number of columns of what a write returns, or of a mask.
	Width int
	// Block: the write appends, or the mask is for a write that does.
	Block bool
	// Rows describe a write, or the write that a mask is for.
	Rows []Row
	// Mask is of a mask operation, or of the mask that an append makes itself.
	Mask MaskForm
	// Contents are an extracted cache's columns (one row), or a temporal view's.
	Contents []Content
	// Trimmed is how many tokens a trim took; Bytes what projected_bytes says.
	Trimmed, Bytes int
	// Offsets are what valid_offset says.
	Offsets []int
	// Slots are the ids of recurrent state afterwards, one list a slot, nil
	// where absent.
	Slots [][]int
}

// Positions is what a cache says of itself. LeftPadding, Idx, Total, Rotated,
// Ends and RightPadding follow from conservation and from the ring's few
// integers; they bind implementations that claim mlx-lm's bookkeeping.
type Positions struct {
	Kind         corpus.Kind
	Offset       []int
	LeftPadding  []int // nil for a kind without, or where there is none
	Ends         []int // of a batched ring while right padding is pending
	RightPadding []int // of batch_kv, the same
	Lengths      []int // of recurrent state
	Idx, Total   int
	Rotated      bool
	Start        int // tokens that chunked has dropped from the front
	Size         int
	Trimmable    bool
	Kids         []Positions // of a list
}

// Row is one row of a write of some columns: Lead pads, then Real tokens, then
// trailing pads.
type Row struct {
	// Tail are the tokens held after the write: Past older ones, then the real
	// new ones. Of a mask, those held before it.
	Tail       []int
	Past       int
	Lead, Real int
	// Hides is O-1: a query does not see the oldest of the tokens up to its own.
	Hides bool
}

// Sees returns how many tokens real query q (0 for the row's first real token)
// sees within window: the newest, ending with its own.
func (r *Row) Sees(q, window int) int {
	n := r.Past + q + 1
	if r.Hides {
		n--
	}
	return max(0, min(n, window))
}

// Visible returns those tokens, oldest first. It is meaningful after a write.
func (r *Row) Visible(q, window int) []int {
	upto := r.Past + q + 1
	return r.Tail[upto-r.Sees(q, window) : upto]
}

// MaskForm says what a mask looks like.
type MaskForm struct {
	// Null: there is no mask, and every column is seen.
	Null bool
	// B and N are the extents of the array, N being the queries.
	B, N int
	// Window is the number of columns that a query may look back, its own
	// included. Below 0: the model cannot say which columns are seen.
	Window int
	// Padding is the whole mask of recurrent state, [rows][columns].
	Padding [][]bool
}

// Content is a run of columns of one row: Front that nobody may rely on, then
// Tail, then Back pads.
type Content struct {
	Front int
	Tail  []int
	Back  int
}

// Columns returns the length of the run.
func (c *Content) Columns() int { return c.Front + len(c.Tail) + c.Back }

// Apply performs op and says what must be observed of it. A refused operation
// changes nothing. After an operation outside the model's domain the caches
// that it may have changed are lost.
func (m *Model) Apply(op *corpus.Op) *Expect {
	r := m.rule(op)
	e := &m.out
	*e = Expect{
		Known: r.known, Error: r.code, Rows: e.Rows[:0], Contents: e.Contents[:0], Offsets: e.Offsets[:0],
		State: Positions{Offset: e.State.Offset[:0], LeftPadding: e.State.LeftPadding[:0]},
	}
	c := m.caches[op.Cache]
	switch {
	case !r.known:
		m.lose(op)
		return e
	case r.code != "":
		if c != nil {
			c.positions(&e.State)
		}
		return e
	}
	if made := m.perform(op, c, e); made != nil {
		c = made
	}
	if c == nil || op.Verb == corpus.MaskOp {
		return e
	}
	if !readsOnly(op.Verb) && !isWrite(op.Verb) {
		c.endRound()
	}
	c.positions(&e.State)
	if c.slots != nil {
		e.Slots = c.slots.ids
	}
	return e
}

// isWrite reports whether the operation feeds tokens.
func isWrite(v corpus.Verb) bool {
	switch v {
	case corpus.Update, corpus.AppendDecode, corpus.AppendWindow, corpus.AppendWindowUnder:
		return true
	}
	return false
}

// readsOnly reports whether a write may still be rolled back, and a mask still
// used, after the operation.
func readsOnly(v corpus.Verb) bool {
	switch v {
	case corpus.MaskOp, corpus.ValidOffset, corpus.TemporalView, corpus.ProjectedBytes, corpus.Attend,
		corpus.Snapshot, corpus.Extract, corpus.ToQuantized, corpus.Release:
		return true
	}
	return false
}

// perform does a legal operation. It returns the cache that it made, if any.
func (m *Model) perform(op *corpus.Op, c *cache, e *Expect) *cache {
	switch op.Verb {
	case corpus.New:
		return m.put(op.Out, m.open(op))
	case corpus.Update, corpus.AppendDecode, corpus.AppendWindow, corpus.AppendWindowUnder:
		n := len(op.Tokens[0])
		block := c.isBlock(n) || op.Verb == corpus.AppendWindow || op.Verb == corpus.AppendWindowUnder
		c.describe(n, block, e)
		e.Mask = MaskForm{B: len(c.rows), N: n, Window: c.w}
		c.write(op.Tokens, n, block)
		for i := range e.Rows {
			e.Rows[i].Tail = c.rows[i].tail
		}
	case corpus.MaskOp:
		c.mask(op, e)
	case corpus.Prepare:
		c.prepare(op)
	case corpus.Finalize:
		c.finalize()
	case corpus.Filter:
		c.filter(op.Rows)
	case corpus.Extend:
		o := m.caches[op.Other]
		c.extend(o)
		m.remove(o)
	case corpus.Merge:
		sources := m.all(op.Caches)
		return m.put(op.Out, merged(sources))
	case corpus.Extract:
		limit := unbounded
		if op.Limit != nil {
			limit = *op.Limit
		}
		made := m.put(op.Out, c.extract(op.Row, limit))
		made.contents(e)
		return made
	case corpus.Trim:
		e.Trimmed = c.trim(op.N)
	case corpus.Save:
		saved := m.all(op.Caches)
		for i, s := range saved {
			saved[i] = s.clone()
		}
		m.files[op.File] = saved
	case corpus.Load:
		made := make([]*cache, len(op.Outs))
		for i, out := range op.Outs {
			made[i] = m.put(out, m.files[op.File][i].clone())
		}
		if len(made) == 1 {
			return made[0]
		}
		return &cache{kind: corpus.List, exact: m.exact, kids: made}
	case corpus.ToQuantized:
		made := m.put(op.Out, c.clone())
		made.kind = corpus.Quantized
		if isRing(c.kind) {
			made.kind = corpus.RotatingQuantized
		}
		return made
	case corpus.TrimFront:
		c.trimFront()
	case corpus.Write:
		c.slots.write(c.kind, op.Slot, column(op.Tokens))
	case corpus.Advance:
		c.slots.advance(op.N)
	case corpus.Rollback:
		c.rollback(func(i int) int { return kept(op, i) }, op.Preserve)
	case corpus.Snapshot:
		m.snaps[op.As] = c.clone()
	case corpus.Restore:
		*c = *m.snaps[op.From].clone()
	case corpus.Adopt:
		return m.put(op.Out, m.snaps[op.From].clone())
	case corpus.TemporalView:
		c.view(e)
	case corpus.ValidOffset:
		for i := range c.rows {
			e.Offsets = append(e.Offsets, c.rows[i].n+min(c.rows[i].pad, 0))
		}
	case corpus.ProjectedBytes:
		e.Bytes = m.projectedBytes(c, op.N)
	}
	return nil
}

// kept is how many tokens of the last write a rollback leaves in row i.
func kept(op *corpus.Op, i int) int {
	if op.KeepRows != nil {
		return op.KeepRows[i]
	}
	return op.Keep
}

// column is the first token of each row.
func column(tokens [][]int) []int {
	ids := make([]int, len(tokens))
	for i, t := range tokens {
		ids[i] = t[0]
	}
	return ids
}

// open makes the cache of a new operation.
func (m *Model) open(op *corpus.Op) *cache {
	c := &cache{kind: op.Kind, exact: m.exact, w: unbounded, keep: op.Keep, chunk: op.ChunkSize}
	switch {
	case op.Kind == corpus.List:
		c.kids = m.all(op.Caches)
		return c
	case isSlots(op.Kind):
		c.slots = &slots{ids: make([][]int, op.Slots)}
		if op.Kind == corpus.Arrays && len(op.LeftPadding) > 0 {
			c.slots.left = slices.Clone(op.LeftPadding)
		}
		return c
	case isRing(op.Kind):
		c.w = op.MaxSize
	}
	c.rows = make([]row, 1)
	if isBatch(op.Kind) {
		c.rows = make([]row, len(op.LeftPadding))
		for i, l := range op.LeftPadding {
			c.rows[i].pad = -l
		}
	}
	return c
}

// put names a cache.
func (m *Model) put(name string, c *cache) *cache {
	if _, ok := m.caches[name]; !ok {
		m.names = append(m.names, name)
	}
	m.caches[name] = c
	return c
}

// all returns the caches of those names; nil stands for one that is not there.
func (m *Model) all(names []string) []*cache {
	out := make([]*cache, len(names))
	for i, n := range names {
		out[i] = m.caches[n]
	}
	return out
}

// remove forgets a cache and what is inside it.
func (m *Model) remove(c *cache) {
	m.names = slices.DeleteFunc(m.names, func(n string) bool {
		gone := m.caches[n] == c || slices.Contains(c.kids, m.caches[n])
		if gone {
			delete(m.caches, n)
		}
		return gone
	})
}

// lose gives up what an operation outside the domain may have changed or made.
func (m *Model) lose(op *corpus.Op) {
	if c := m.caches[op.Cache]; c != nil {
		if !readsOnly(op.Verb) {
			c.lose()
		}
	}
	switch op.Verb {
	case corpus.New, corpus.Merge, corpus.Extract, corpus.ToQuantized, corpus.Adopt:
		m.put(op.Out, &cache{kind: op.Kind, exact: m.exact, lost: true})
	case corpus.Load:
		for _, out := range op.Outs {
			m.put(out, &cache{exact: m.exact, lost: true})
		}
	case corpus.Snapshot:
		delete(m.snaps, op.As)
	case corpus.Save:
		delete(m.files, op.File)
	case corpus.Extend:
		if o := m.caches[op.Other]; o != nil {
			m.remove(o)
		}
	}
}

// projectedBytes is what tokens more columns, up to the window, of one row take;
// recurrent state takes the same however many there are.
func (m *Model) projectedBytes(c *cache, tokens int) int {
	if c.slots != nil {
		n := 0
		for slot, ids := range c.slots.ids {
			if len(ids) > 0 {
				n += m.shape.KVHeads * m.shape.Width(slot%2) * m.shape.DType.Size()
			}
		}
		return n
	}
	if !c.buffer || len(c.rows) == 0 {
		return 0
	}
	return m.shape.KVHeads * (m.columnBytes(c.kind, m.shape.KeyDim) + m.columnBytes(c.kind, m.shape.ValueDim)) * min(tokens, c.w)
}

// columnBytes is one head's bytes in a column of dim elements.
func (m *Model) columnBytes(k corpus.Kind, dim int) int {
	if isQuantized(k) {
		return dim*m.quant.Bits/8 + 2*dim/m.quant.GroupSize*m.shape.DType.Size()
	}
	return dim * m.shape.DType.Size()
}
