package models

import (
	"slices"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// ruling says whether an operation is refused, and whether the model can speak
// of it at all.
type ruling struct {
	code  string
	known bool
}

var (
	legal   = ruling{known: true}
	outside = ruling{}
)

func refused(code string) ruling { return ruling{code: code, known: true} }

// Legal reports whether op will succeed. Where it will not, code is that of the
// refusal, or "" where the operation leaves the model's domain: it is not said
// what happens, or mlx-lm corrupts silently. Where several codes apply it is
// the first in the order of [ring.Codes].
func (m *Model) Legal(op *corpus.Op) (ok bool, code string) {
	r := m.rule(op)
	return r == legal, r.code
}

// rule is Legal's answer.
func (m *Model) rule(op *corpus.Op) ruling {
	switch op.Verb {
	case corpus.New:
		return m.ruleNew(op)
	case corpus.Merge:
		return m.ruleMerge(m.all(op.Caches))
	case corpus.Save:
		return m.ruleSave(m.all(op.Caches))
	case corpus.Load:
		return m.ruleLoad(op)
	case corpus.Adopt:
		if m.snaps[op.From] == nil {
			return outside
		}
		return legal
	}
	c := m.caches[op.Cache]
	if c == nil || c.anyLost() {
		return outside
	}
	if r := c.has(op.Verb); r != legal {
		return r
	}
	switch op.Verb {
	case corpus.Update, corpus.AppendDecode, corpus.AppendWindow, corpus.AppendWindowUnder:
		return m.ruleWrite(c, op)
	case corpus.MaskOp:
		return c.ruleMask(op)
	case corpus.Prepare:
		return c.rulePrepare(op)
	case corpus.Finalize:
		return c.ruleFinalize()
	case corpus.Filter:
		return c.ruleFilter(op.Rows)
	case corpus.Extend:
		return c.ruleExtend(m.caches[op.Other])
	case corpus.Extract:
		return c.ruleExtract(op)
	case corpus.Trim:
		return c.ruleTrim(op.N)
	case corpus.Write:
		return c.ruleSlot(op)
	case corpus.Advance:
		switch {
		case op.N < 0 && c.kind == corpus.BatchRecurrent:
			return refused("range")
		case op.N < 0:
			return outside
		}
	case corpus.Rollback:
		return c.ruleRollback(op)
	case corpus.Restore:
		s := m.snaps[op.From]
		switch {
		case s == nil:
			return outside
		case isSerialRing(s.kind) != isSerialRing(c.kind):
			return refused("not_supported")
		case len(s.rows) != len(c.rows):
			return refused("rows")
		case s.w != c.w:
			return refused("max_size")
		case s.kind != c.kind:
			return refused("quant")
		case s.keep != c.keep:
			return outside
		}
	case corpus.TemporalView:
		switch {
		case c.a == 0:
			return refused("empty")
		case c.keep > 0:
			return outside // where sinks stand in a view is not said
		}
	case corpus.Attend:
		switch {
		case c.a == 0:
			return refused("empty")
		case op.Queries < 1 || len(c.rows) == 0:
			return outside
		case op.Queries > c.a:
			return refused("range")
		}
	case corpus.ProjectedBytes:
		if op.N < 0 {
			return refused("range")
		}
	case corpus.ToQuantized:
		return m.ruleQuantize(c)
	}
	return legal
}

// has says whether the cache's kind has the operation.
func (c *cache) has(v corpus.Verb) ruling {
	switch {
	case c.kind.Has(v, c.semantics()):
		return legal
	case v == corpus.Trim && c.kind == corpus.BatchRecurrent:
		return refused("not_trimmable")
	case c.exact, v == corpus.ToQuantized && isRing(c.kind): // the latter: not yet implemented upstream
		return refused("not_supported")
	}
	return outside
}

func (m *Model) ruleNew(op *corpus.Op) ruling {
	bad := func(n int) bool { return n < 0 }
	if slices.ContainsFunc(op.LeftPadding, bad) || op.Keep < 0 {
		return outside
	}
	if m.exact {
		switch {
		case !op.Kind.Has(corpus.New, ring.Exact):
			return refused("not_supported")
		case op.Kind == corpus.BatchRecurrent:
			return need(op.Slots >= 1)
		case op.MaxSize < 1:
			return refused("max_size")
		case op.Keep > 0:
			return refused("keep")
		case isQuantized(op.Kind) && m.quant == nil:
			return outside
		case isQuantized(op.Kind) && !(quantizes(m.quant, m.shape.KeyDim) && quantizes(m.quant, m.shape.ValueDim)):
			return refused("quant")
		}
		return legal
	}
	if isQuantized(op.Kind) && (m.quant == nil || !quantizes(m.quant, m.shape.KeyDim) || !quantizes(m.quant, m.shape.ValueDim)) {
		return outside
	}
	switch op.Kind {
	case corpus.KV, corpus.Quantized, corpus.Concatenate:
		return legal
	case corpus.Rotating:
		return need(op.MaxSize >= 1 && op.Keep < op.MaxSize)
	case corpus.RotatingQuantized:
		return need(op.MaxSize >= 1 && op.Keep == 0)
	case corpus.BatchKV:
		return need(len(op.LeftPadding) > 0)
	case corpus.BatchRotating, corpus.BatchRotatingQuantized:
		return need(op.MaxSize >= 1 && op.Keep == 0 && len(op.LeftPadding) > 0)
	case corpus.Chunked:
		return need(op.ChunkSize >= 1)
	case corpus.Arrays, corpus.BatchRecurrent:
		return need(op.Slots >= 1)
	case corpus.List:
		return need(len(op.Caches) > 0 && !slices.ContainsFunc(m.all(op.Caches), gone))
	}
	return outside
}

// ruleQuantize: of kv, and of rotating under exact.
func (m *Model) ruleQuantize(c *cache) ruling {
	switch {
	case m.quant == nil:
		return outside
	case quantizes(m.quant, m.shape.KeyDim) && quantizes(m.quant, m.shape.ValueDim):
		return legal
	case c.exact:
		return refused("quant")
	}
	return outside
}

// need is legal where ok holds, and outside the domain elsewhere.
func need(ok bool) ruling {
	if ok {
		return legal
	}
	return outside
}

func gone(c *cache) bool { return c == nil || c.anyLost() }

// quantizes reports whether heads of that width can be quantized.
func quantizes(q *corpus.Quant, dim int) bool {
	return slices.Contains([]int{32, 64, 128}, q.GroupSize) && slices.Contains([]int{2, 3, 4, 5, 6, 8}, q.Bits) &&
		dim%q.GroupSize == 0
}

func (m *Model) ruleWrite(c *cache, op *corpus.Op) ruling {
	if len(op.Tokens) == 0 {
		return outside
	}
	n := len(op.Tokens[0])
	ragged := slices.ContainsFunc(op.Tokens, func(t []int) bool { return len(t) != n })
	switch {
	case c.pending && op.Verb == corpus.AppendDecode,
		c.pending && n == 1 && !c.exact && isBatchRing(c.kind) && op.Verb == corpus.Update:
		return refused("pending_padding")
	case n == 0 && !ragged && c.exact:
		return refused("no_tokens")
	case len(op.Tokens) != len(c.rows) && c.exact:
		return refused("rows")
	case n == 0 || ragged || len(op.Tokens) != len(c.rows):
		return outside
	case op.Verb == corpus.AppendDecode && n > 1, op.Verb == corpus.AppendWindowUnder && !fits(op.Mask, len(c.rows), n, c.width(n)):
		return refused("shape")
	case c.kind == corpus.Quantized && !c.buffer && !(m.packs(m.shape.KeyDim) && m.packs(m.shape.ValueDim)):
		return refused("raises") // Q31
	}
	for i, t := range op.Tokens {
		lead, real := c.rows[i].split(n, c.pending)
		for j, id := range t {
			if id == 0 || id > 0 != (j >= lead && j < lead+real) {
				return outside // a pad where a token belongs, or the reverse
			}
		}
	}
	return legal
}

// fits reports whether the mask has those extents.
func fits(m *ring.Mask, b, n, s int) bool { return m != nil && m.B == b && m.N == n && m.S == s }

// packs reports whether mlx-lm allocates the true packed width (Q31).
func (m *Model) packs(dim int) bool { return dim/(32/m.quant.Bits) == dim*m.quant.Bits/32 }

func (c *cache) ruleMask(op *corpus.Op) ruling {
	switch {
	case op.N < 1 && (c.exact && isRing(c.kind) || c.kind == corpus.BatchRecurrent):
		return refused("range")
	case op.N < 1:
		return outside
	case c.slots != nil:
		return legal
	case c.exact && op.Window != nil && *op.Window < 1:
		return refused("window")
	case isRing(c.kind) && op.Window != nil && *op.Window < 1: // D-18
		return outside
	case len(c.rows) == 0:
		return outside
	}
	return legal
}

func (c *cache) rulePrepare(op *corpus.Op) ruling {
	if c.kind == corpus.List {
		return c.ruleKids(corpus.Prepare, func(_ int, k *cache) ruling { return k.rulePrepare(op) })
	}
	bad := func(n int) bool { return n < 0 }
	left, lengths, right := op.LeftPadding, op.Lengths, op.RightPadding
	if slices.ContainsFunc(left, bad) || slices.ContainsFunc(lengths, bad) || slices.ContainsFunc(right, bad) {
		return outside
	}
	rows := len(c.rows)
	if c.slots != nil {
		rows = c.slots.rows(c.kind)
		if c.kind == corpus.Arrays {
			return need(len(lengths) == rows)
		}
	}
	if rows == 0 && !c.buffer {
		rows = max(len(left), len(lengths))
	}
	perRow := func(v []int) bool { return v == nil || len(v) == rows }
	if c.exact && c.slots == nil {
		switch {
		case c.pending:
			return refused("pending_padding")
		case rows == 0 && !c.buffer:
			return outside
		case !perRow(left) || !perRow(lengths) || !perRow(right):
			return refused("rows")
		case lengths != nil && right != nil && !even(lengths, right):
			return refused("shape")
		case left != nil && c.buffer:
			return refused("left_padding_on_non_empty")
		case announced(op) && lengths == nil:
			return outside
		}
		return c.ruleLengths(op)
	}
	switch {
	case c.slots == nil && lengths != nil && len(lengths) == len(right) && !even(lengths, right):
		return outside
	case left != nil && c.buffer:
		return refused("left_padding_on_non_empty")
	case rows == 0 || !perRow(left) || !perRow(lengths) || !perRow(right):
		return outside
	case c.slots != nil && lengths != nil && right != nil && !even(lengths, right):
		return refused("shape")
	case c.slots != nil:
		return need(lengths != nil) // what was announced before is replaced
	case op.RightPadded != nil:
		return outside
	case c.pending:
		return need(left == nil && !announced(op) && !isRing(c.kind))
	case announced(op) && lengths == nil:
		return outside
	}
	return c.ruleLengths(op)
}

// ruleLengths: announced lengths include the left padding.
func (c *cache) ruleLengths(op *corpus.Op) ruling {
	if !announced(op) {
		return legal
	}
	if op.RightPadding != nil && !even(op.Lengths, op.RightPadding) {
		return outside
	}
	for i, l := range op.Lengths {
		due := 0
		if i < len(c.rows) {
			due = -c.rows[i].pad
		}
		if op.LeftPadding != nil {
			due += op.LeftPadding[i]
		}
		if l < due {
			return outside
		}
	}
	return legal
}

// even reports whether the sums of lengths and right are all the same.
func even(lengths, right []int) bool {
	for i := range lengths {
		if lengths[i]+right[i] != lengths[0]+right[0] {
			return false
		}
	}
	return true
}

// ruleKids is what a list's children say. Where one refuses, the list raises,
// and mlx-lm may have left the work half done: that is outside the domain.
func (c *cache) ruleKids(v corpus.Verb, rule func(i int, k *cache) ruling) ruling {
	for i, k := range c.kids {
		r := k.has(v)
		if r == legal {
			r = rule(i, k)
		}
		if r != legal {
			return outside
		}
	}
	return legal
}

func (c *cache) ruleFinalize() ruling {
	switch {
	case c.kind == corpus.List:
		return c.ruleKids(corpus.Finalize, func(_ int, k *cache) ruling { return k.ruleFinalize() })
	case c.exact || !c.pending:
		return legal
	case !c.buffer:
		return refused("raises") // D-9
	case c.kind == corpus.BatchKV:
		for i := range c.rows {
			if c.rows[i].pad != c.rows[i].owed {
				return outside // it rolls by what was announced
			}
		}
	}
	return legal
}

func (c *cache) ruleFilter(keep []int) ruling {
	if c.kind == corpus.List {
		return c.ruleKids(corpus.Filter, func(_ int, k *cache) ruling { return k.ruleFilter(keep) })
	}
	rows := len(c.rows)
	if c.slots != nil {
		rows = c.slots.rows(c.kind)
	}
	if slices.ContainsFunc(keep, func(i int) bool { return i < 0 || i >= rows }) {
		if c.exact {
			return refused("range")
		}
		return outside
	}
	if c.exact {
		return legal
	}
	switch {
	case len(keep) == 0 && c.slots == nil:
		return refused("raises")
	case len(keep) == 0 || c.pending:
		return outside
	}
	if c.kind == corpus.BatchKV {
		least := unbounded
		for _, i := range keep {
			least = min(least, c.leftPadding(i))
		}
		if least > 0 && (!c.buffer || least > c.idx) {
			return outside // M27: the index falls below 0
		}
	}
	return legal
}

func (c *cache) ruleExtend(o *cache) ruling {
	switch {
	case o == nil || o == c || o.anyLost() || o.kind != c.kind:
		return outside
	case c.kind == corpus.List:
		if len(c.kids) != len(o.kids) {
			return outside
		}
		return c.ruleKids(corpus.Extend, func(i int, k *cache) ruling { return k.ruleExtend(o.kids[i]) })
	case c.slots != nil:
		return need(len(c.slots.ids) == len(o.slots.ids) && (c.kind == corpus.Arrays || c.slots.lengths == nil && o.slots.lengths == nil))
	case c.exact && (c.pending || o.pending):
		return refused("pending_padding")
	case c.exact && c.w != o.w:
		return refused("max_size")
	case c.pending || o.pending || c.w != o.w || !c.exact && (len(c.rows) == 0 || len(o.rows) == 0):
		return outside
	}
	return legal
}

func (m *Model) ruleMerge(sources []*cache) ruling {
	if len(sources) == 0 || slices.ContainsFunc(sources, gone) {
		return outside
	}
	first := sources[0]
	kind := batchOf[first.kind]
	for _, s := range sources {
		if r := s.has(corpus.Merge); r != legal {
			return r
		}
		if batchOf[s.kind] != kind && !(m.exact && isRing(s.kind) && isRing(first.kind)) {
			return outside
		}
	}
	switch {
	case kind == corpus.List:
		for i := range first.kids {
			parts := make([]*cache, len(sources))
			for j, s := range sources {
				if len(s.kids) != len(first.kids) {
					return outside
				}
				parts[j] = s.kids[i]
			}
			if m.ruleMerge(parts) != legal {
				return outside
			}
		}
		return legal
	case first.slots != nil:
		return m.ruleMergeSlots(sources)
	}
	if slices.ContainsFunc(sources, func(s *cache) bool { return s.pending }) {
		if m.exact {
			return refused("pending_padding")
		}
		return outside
	}
	if slices.ContainsFunc(sources, func(s *cache) bool { return s.w != first.w }) {
		return refused("max_size")
	}
	if m.exact && slices.ContainsFunc(sources, func(s *cache) bool { return isQuantized(s.kind) != isQuantized(first.kind) }) {
		return refused("quant")
	}
	if m.exact {
		rows := 0
		for _, s := range sources {
			if slices.ContainsFunc(s.rows, func(r row) bool { return r.pad < 0 }) {
				return outside
			}
			rows += len(s.rows)
		}
		return need(rows > 0)
	}
	for _, s := range sources {
		if len(s.rows[0].tail) < min(s.tot, s.w) {
			return outside // O-3: padding would come in as tokens
		}
	}
	return legal
}

func (m *Model) ruleMergeSlots(sources []*cache) ruling {
	n := len(sources[0].slots.ids)
	for _, s := range sources {
		if len(s.slots.ids) != n || s.kind != sources[0].kind {
			return outside
		}
	}
	if sources[0].kind == corpus.BatchRecurrent {
		return legal
	}
	held := make([]int, n) // sources that have the slot
	for _, s := range sources {
		if s.slots.rows(s.kind) != 1 {
			return outside
		}
		for e, ids := range s.slots.ids {
			if ids != nil {
				held[e]++
			}
		}
	}
	// mlx-lm looks at slot 0 only to see whether all are empty, and finds no
	// prototype of a slot that none has.
	all, none := !slices.Contains(held, 0), !slices.ContainsFunc(held, func(n int) bool { return n > 0 })
	return need(all || none)
}

func (m *Model) ruleSave(caches []*cache) ruling {
	if slices.ContainsFunc(caches, gone) {
		return outside
	}
	if !m.exact && slices.ContainsFunc(caches, func(c *cache) bool { return !savable(c) }) {
		return outside
	}
	return legal
}

// savable reports whether mlx-lm saves the cache and loads the same one (O-4).
func savable(c *cache) bool {
	switch c.kind {
	case corpus.KV, corpus.Rotating, corpus.Quantized, corpus.Concatenate, corpus.Chunked:
		return c.buffer
	case corpus.List:
		return !slices.ContainsFunc(c.kids, func(k *cache) bool { return !savable(k) })
	}
	return false
}

func (m *Model) ruleLoad(op *corpus.Op) ruling {
	return need(len(op.Outs) > 0 && len(m.files[op.File]) == len(op.Outs))
}

func (c *cache) ruleExtract(op *corpus.Op) ruling {
	if c.kind == corpus.List {
		return c.ruleKids(corpus.Extract, func(_ int, k *cache) ruling { return k.ruleExtract(op) })
	}
	rows := len(c.rows)
	if c.slots != nil {
		rows = c.slots.rows(c.kind)
	}
	in := op.Row >= 0 && op.Row < rows
	switch {
	case !c.exact && op.Limit != nil:
		return outside // mlx-lm has no limit
	case c.exact && c.pending:
		return refused("pending_padding")
	case c.exact && (!in || op.Limit != nil && *op.Limit < 1 && isRing(c.kind)):
		return refused("range")
	case c.kind == corpus.BatchRecurrent:
		return need(in && op.Limit == nil && !c.slots.absent())
	case c.kind == corpus.Arrays:
		return need(in && op.Limit == nil && !slices.ContainsFunc(c.slots.ids, func(ids []int) bool { return ids == nil }))
	case op.Row < 0:
		return outside
	case !in:
		return refused("raises")
	case !c.exact && !c.buffer:
		return refused("raises") // D-12
	case !c.exact && c.pending:
		return outside
	case c.rows[op.Row].pad < 0 && c.kind != corpus.BatchKV:
		return outside // left padding is still to come
	}
	return legal
}

func (c *cache) ruleTrim(n int) ruling {
	if c.kind == corpus.List {
		return c.ruleKids(corpus.Trim, func(_ int, k *cache) ruling { return k.ruleTrim(n) })
	}
	if c.exact {
		switch {
		case c.slots != nil:
			return refused("not_trimmable")
		case c.pending:
			return refused("pending_padding")
		case n < 0:
			return refused("range")
		case c.tot >= c.w:
			return refused("not_trimmable")
		case len(c.rows) == 0:
			return outside
		case n > c.minHeld():
			return refused("over_trim")
		}
		return legal
	}
	switch {
	case c.slots != nil || n < 0 || c.pending || len(c.rows) == 0:
		return outside
	case c.tot >= c.w: // M31
		return outside
	case min(n, c.tot) > c.minHeld() || isRing(c.kind) && n > c.minHeld(): // O-5
		return outside
	case n > 0 && c.kind == corpus.Concatenate: // M30: the next update brings them back
		return outside
	}
	return legal
}

func (c *cache) ruleRollback(op *corpus.Op) ruling {
	switch {
	case c.pending && c.exact:
		return refused("pending_padding")
	case c.pending || len(c.rows) == 0:
		return outside
	case op.KeepRows != nil && len(op.KeepRows) != len(c.rows):
		return refused("rows")
	}
	for i := range c.rows {
		if k := kept(op, i); k < 0 || k > c.round {
			return refused("range")
		}
	}
	return need(!c.roundPadded || c.round == 0)
}

func (c *cache) ruleSlot(op *corpus.Op) ruling {
	rows := c.slots.rows(c.kind)
	if c.slots.rowless(c.kind) {
		rows = len(op.Tokens)
	}
	there := op.Slot >= 0 && op.Slot < len(c.slots.ids)
	if c.kind == corpus.BatchRecurrent && rows > 0 {
		switch {
		case len(op.Tokens) != rows:
			return refused("rows")
		case !there:
			return refused("range")
		}
	}
	ok := there && rows > 0 && len(op.Tokens) == rows
	return need(ok && !slices.ContainsFunc(op.Tokens, func(t []int) bool { return len(t) != 1 }))
}
