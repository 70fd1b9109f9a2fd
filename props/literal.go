package props

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// Literal makes case number i of a seed for a comparison with mlx-lm itself:
// everything well-formed, sequences that mlx-lm corrupts or refuses included,
// over the kinds, data types, quantizations and fills that info claims and
// mlx-lm has. Each number gives an unrelated case, and the same seed and
// number the same one. It knows how many rows each cache has and nothing else.
func Literal(seed uint64, i int, info Info) corpus.Case {
	g := &literal{Rand: rand.New(rand.NewPCG(Mix(seed), Mix(uint64(i)^0x9E3779B97F4A7C15)))}
	g.c = corpus.Case{
		Name: fmt.Sprintf("literal-%d-%d", seed, i), Source: "generated", Semantics: ring.MLXLM,
		Step: pickOne(g, []int{2, 3, 4, 8, 256}), Fill: pickOne(g, info.Fills),
	}
	family := weighted(g, literalFamilies, func(f literalFamily) int {
		if !slices.ContainsFunc(f.kinds, func(k corpus.Kind) bool { return slices.Contains(info.Kinds, k) }) {
			return 0
		}
		return f.weight
	})
	g.kinds = slices.DeleteFunc(slices.Clone(family.kinds), func(k corpus.Kind) bool { return !slices.Contains(info.Kinds, k) })
	if len(g.kinds) == 0 {
		return g.c // nothing claimed is mlx-lm's
	}
	g.shape(info)
	for range 5 + g.IntN(36) {
		if len(g.c.Ops) >= 40 || g.bytes > literalBytes {
			break
		}
		g.next(info)
	}
	return g.c
}

// Mix spreads a seed over all 64 bits, so that adjacent seeds give unrelated
// streams.
func Mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// literalBytes bounds what the answers to one case may hold, well under the
// longest line of the protocol.
const literalBytes = 8 << 20

// literalFamily is kinds that meet each other in one case.
type literalFamily struct {
	weight int
	kinds  []corpus.Kind
}

var literalFamilies = []literalFamily{
	{45, []corpus.Kind{corpus.Rotating, corpus.BatchRotating}},
	{15, []corpus.Kind{corpus.KV, corpus.BatchKV}},
	{10, []corpus.Kind{corpus.Quantized, corpus.KV}},
	{10, []corpus.Kind{corpus.Arrays}},
	{8, []corpus.Kind{corpus.Chunked}},
	{4, []corpus.Kind{corpus.Concatenate}},
	{10, []corpus.Kind{corpus.List, corpus.KV, corpus.Rotating, corpus.BatchKV, corpus.BatchRotating, corpus.Arrays, corpus.Chunked}},
}

// literal is a case that grows.
type literal struct {
	*rand.Rand
	c      corpus.Case
	kinds  []corpus.Kind
	window int
	caches []*literalCache
	names  int
	token  int
	bytes  int
}

// literalCache is what the generator knows of a cache.
type literalCache struct {
	name     string
	kind     corpus.Kind
	rows     int
	ends     int // rows of what is pending; 0 while nothing is
	lengths  []int
	fed      int // columns since prepare
	width    int // columns that prepare announced
	columns  int // an upper bound of what it holds
	slots    int
	children []*literalCache
	child    bool // belongs to a list
}

// fewestRows is the rows that all of a list's children have, or a cache's own.
func (c *literalCache) fewestRows() int {
	n := c.rows
	for i, child := range c.children {
		if i == 0 {
			n = child.rows
		}
		n = min(n, child.rows)
	}
	return n
}

func pickOne[T any](g *literal, list []T) T { return list[g.IntN(len(list))] }

// weighted picks by weight; all weights 0 picks the first.
func weighted[T any](g *literal, list []T, weight func(T) int) T {
	sum := 0
	for _, v := range list {
		sum += weight(v)
	}
	if sum == 0 {
		return list[0]
	}
	n := g.IntN(sum)
	for _, v := range list {
		if n -= weight(v); n < 0 {
			return v
		}
	}
	panic("weights do not add up")
}

// shape draws sizes: nine in ten small, the rest windows that cross the usual
// growth step. A quantized kind needs whole groups.
func (g *literal) shape(info Info) {
	s := corpus.Shape{KVHeads: 1 + g.IntN(3), DType: pickOne(g, info.DTypes)}
	g.window = 1 + g.IntN(16)
	s.KeyDim, s.ValueDim = 4+g.IntN(5), 4+g.IntN(5)
	if g.IntN(10) == 0 {
		g.window = 300 + g.IntN(301)
		g.c.Step = corpus.DefaultStep
		s.KeyDim, s.ValueDim = 4+g.IntN(61), 4+g.IntN(61)
		s.KVHeads = 1 + g.IntN(2)
	}
	if slices.Contains(g.kinds, corpus.Quantized) {
		q := pickOne(g, info.Quant)
		g.c.Quant = &q
		s.KeyDim, s.ValueDim = q.GroupSize*(1+g.IntN(3)), q.GroupSize*(1+g.IntN(2))
		if g.c.Fill == corpus.Bits {
			// A NaN's bits are each machine's own, in mlx too, but for this type.
			s.DType = ring.BFloat16
		}
	}
	g.c.Shape = s
}

func (g *literal) emit(op corpus.Op) { g.c.Ops = append(g.c.Ops, op) }

func (g *literal) add(k corpus.Kind, rows int) *literalCache {
	g.names++
	c := &literalCache{name: fmt.Sprintf("c%d", g.names), kind: k, rows: rows}
	g.caches = append(g.caches, c)
	return c
}

func (g *literal) drop(c *literalCache) {
	g.caches = slices.DeleteFunc(g.caches, func(o *literalCache) bool { return o == c || slices.Contains(c.children, o) })
}

// next appends one operation, or a mask and the update that it is for.
func (g *literal) next(info Info) {
	if len(g.caches) == 0 || (len(g.caches) < 6 && g.IntN(8) == 0) {
		g.new(pickOne(g, g.kinds))
		return
	}
	c := pickOne(g, g.caches)
	type action struct {
		weight int
		do     func()
	}
	actions := []action{
		{2, func() { g.stray(c) }},
		{2, func() { g.saveAndLoad() }},
	}
	if c.kind != corpus.List && c.kind != corpus.Arrays {
		actions = append(actions, action{60, func() { g.update(c) }}, action{12, func() { g.mask(c, g.columns()) }})
		actions = append(actions, action{5, func() { g.emit(corpus.Op{Verb: corpus.Trim, Cache: c.name, N: g.trimmed()}) }})
	}
	switch c.kind {
	case corpus.BatchKV, corpus.BatchRotating, corpus.Arrays, corpus.List:
		actions = append(actions,
			action{8, func() { g.prepare(c) }}, action{8, func() { g.finalize(c) }}, action{6, func() { g.filter(c) }},
			action{6, func() { g.extend(c) }}, action{8, func() { g.extract(c) }})
	case corpus.KV:
		actions = append(actions, action{4, func() { g.toQuantized(c, info) }})
	case corpus.Chunked:
		actions = append(actions, action{20, func() { g.emit(corpus.Op{Verb: corpus.TrimFront, Cache: c.name}) }})
	}
	switch c.kind {
	case corpus.KV, corpus.Rotating, corpus.Arrays, corpus.List:
		actions = append(actions, action{8, func() { g.merge(c) }})
	}
	switch c.kind {
	case corpus.Arrays:
		actions = append(actions, action{30, func() { g.write(c) }}, action{15, func() { g.mask(c, g.columns()) }},
			action{15, func() { g.emit(corpus.Op{Verb: corpus.Advance, Cache: c.name, N: g.IntN(5)}) }})
	case corpus.List:
		actions = append(actions, action{8, func() { g.emit(corpus.Op{Verb: corpus.Trim, Cache: c.name, N: g.trimmed()}) }})
	}
	weighted(g, actions, func(a action) int { return a.weight }).do()
}

func (g *literal) paddings(rows, most int) []int {
	out := make([]int, rows)
	for i := range out {
		out[i] = g.IntN(most + 1)
	}
	return out
}

func (g *literal) new(k corpus.Kind) *literalCache {
	rows := 1
	op := corpus.Op{Verb: corpus.New, Kind: k}
	switch k {
	case corpus.Rotating:
		op.MaxSize = g.window
		if g.IntN(3) == 0 {
			op.Keep = g.IntN(min(g.window, 20) + 2)
		}
	case corpus.BatchKV, corpus.BatchRotating:
		rows = 1 + g.IntN(4)
		op.LeftPadding = make([]int, rows)
		if g.IntN(2) == 0 {
			op.LeftPadding = g.paddings(rows, 4)
		}
		if k == corpus.BatchRotating {
			op.MaxSize = g.window
		}
	case corpus.Arrays:
		op.Slots = 1 + g.IntN(3)
		if g.IntN(2) == 0 {
			rows = 1 + g.IntN(3)
			op.LeftPadding = g.paddings(rows, 3)
		}
	case corpus.Chunked:
		op.ChunkSize = g.window
	case corpus.List:
		return g.newList()
	}
	if g.IntN(20) == 0 && (k == corpus.KV || k == corpus.Rotating || k == corpus.Quantized || k == corpus.Concatenate) {
		rows = 2 // a serial cache under a batched model
	}
	c := g.add(k, rows)
	c.slots = op.Slots
	op.Out = c.name
	g.emit(op)
	return c
}

// newList makes a list of one to three new children of one layout.
func (g *literal) newList() *literalCache {
	children := pickOne(g, [][]corpus.Kind{
		{corpus.KV, corpus.Rotating}, {corpus.Rotating, corpus.Rotating}, {corpus.KV}, {corpus.Arrays, corpus.KV},
		{corpus.KV, corpus.Chunked}, {corpus.BatchKV, corpus.BatchRotating}, {corpus.BatchRotating}, {corpus.BatchRotating, corpus.Arrays, corpus.BatchKV},
	})
	rows := 1
	if children[0] == corpus.BatchKV || children[0] == corpus.BatchRotating {
		rows = 1 + g.IntN(3)
	}
	list := &literalCache{kind: corpus.List, rows: rows}
	op := corpus.Op{Verb: corpus.New, Kind: corpus.List}
	for _, k := range children {
		c := g.add(k, rows)
		c.child = true
		child := corpus.Op{Verb: corpus.New, Kind: k, Out: c.name}
		switch k {
		case corpus.Rotating:
			child.MaxSize = g.window
		case corpus.BatchKV, corpus.BatchRotating:
			child.LeftPadding = make([]int, rows)
			if k == corpus.BatchRotating {
				child.MaxSize = g.window
			}
		case corpus.Arrays:
			child.Slots, c.slots = 1, 1
			if rows > 1 {
				child.LeftPadding = make([]int, rows)
			}
		case corpus.Chunked:
			child.ChunkSize = g.window
		}
		g.emit(child)
		list.children = append(list.children, c)
		op.Caches = append(op.Caches, c.name)
	}
	g.names++
	list.name = fmt.Sprintf("c%d", g.names)
	op.Out = list.name
	g.caches = append(g.caches, list)
	g.emit(op)
	return list
}

// columns draws the size of a write: mostly decodes, and the sizes around the
// window and the growth step.
func (g *literal) columns() int {
	w := g.window
	switch n := g.IntN(100); {
	case n < 55:
		return 1
	case n < 80:
		return 2 + g.IntN(5)
	case n < 97:
		return max(1, pickOne(g, []int{w - 1, w, w + 1, g.c.Step - 1, g.c.Step, g.c.Step + 1, 2*w + 1})%800)
	case n < 99 && w < 20:
		return 3*w + g.IntN(3)
	}
	return 0
}

func (g *literal) trimmed() int {
	switch g.IntN(12) {
	case 0:
		return -1 - g.IntN(2)
	case 1:
		return g.window + g.IntN(3)
	}
	return g.IntN(min(g.window, 8) + 1)
}

func (g *literal) window0() *int {
	w := 0
	switch g.IntN(10) {
	case 0:
	case 1, 2, 3:
		w = 1 + g.IntN(g.window+2)
	default:
		return nil
	}
	return &w
}

func (g *literal) mask(c *literalCache, n int) {
	n = max(1, n)
	op := corpus.Op{Verb: corpus.MaskOp, Cache: c.name, N: n, Window: g.window0()}
	if c.kind == corpus.Arrays {
		op.Window = nil
		n = 1 + g.IntN(6)
		op.N = n
	}
	g.bytes += n * (c.columns + n) * c.rows
	g.emit(op)
}

// update feeds columns. While padding is pending it mostly follows what was
// announced; columns past a row's length are padding.
func (g *literal) update(c *literalCache) {
	n := g.columns()
	if left := c.width - c.fed; c.ends > 0 && left > 0 && g.IntN(8) > 0 {
		n = min(max(n, 1), left)
		if g.IntN(2) == 0 {
			n = left
		}
	}
	if c.kind != corpus.Chunked && g.IntN(3) > 0 {
		g.mask(c, n)
	}
	tokens := make([][]int, c.rows)
	for i := range tokens {
		tokens[i] = make([]int, n)
		for j := range tokens[i] {
			g.token++
			tokens[i][j] = g.token
			if c.ends > 0 && i < len(c.lengths) && c.fed+j >= c.lengths[i] {
				tokens[i][j] = -g.token
			}
		}
	}
	c.fed += n
	c.columns += n
	held := c.columns
	if c.kind == corpus.Rotating || c.kind == corpus.BatchRotating {
		held = min(held, g.window+n)
	}
	s := g.c.Shape
	g.bytes += 3 * c.rows * s.KVHeads * (held + g.c.Step) * (s.KeyDim + s.ValueDim) * s.DType.Size()
	g.emit(corpus.Op{Verb: corpus.Update, Cache: c.name, Tokens: tokens})
}

func (g *literal) prepare(c *literalCache) {
	op := corpus.Op{Verb: corpus.Prepare, Cache: c.name}
	if g.IntN(4) == 0 {
		op.LeftPadding = g.paddings(c.rows, 3)
	}
	if op.LeftPadding == nil || g.IntN(2) == 0 {
		width := 1 + g.IntN(min(2*g.window, 24)+3)
		op.Lengths, op.RightPadding = make([]int, c.rows), make([]int, c.rows)
		pending := false
		for i := range c.rows {
			op.Lengths[i] = width - g.IntN(width+1)*g.IntN(2)
			op.RightPadding[i] = width - op.Lengths[i]
			pending = pending || op.RightPadding[i] > 0
		}
		if refused := op.LeftPadding != nil && c.columns > 0; pending && !refused {
			for _, t := range append([]*literalCache{c}, c.children...) {
				t.ends, t.lengths, t.fed, t.width = c.rows, op.Lengths, 0, width
			}
		}
	}
	g.emit(op)
}

// finalize ends what is pending. Lengths that were not filtered with their
// rows are broadcast, which can change the number of rows.
func (g *literal) finalize(c *literalCache) {
	for _, t := range append([]*literalCache{c}, c.children...) {
		if t.kind != corpus.Arrays && t.ends > 0 && (t.rows == 1 || t.ends == 1) {
			t.rows = max(t.rows, t.ends)
		}
		if t.kind == corpus.Arrays && t.columns == 0 {
			t.rows = 1 // without slots only padding and lengths said how many
		}
		t.ends = 0
	}
	g.emit(corpus.Op{Verb: corpus.Finalize, Cache: c.name})
}

func (g *literal) filter(c *literalCache) {
	have := c.fewestRows()
	rows := make([]int, 0, have)
	for i := range have {
		if g.IntN(3) > 0 {
			rows = append(rows, i)
		}
	}
	if len(rows) == 0 || g.IntN(5) == 0 {
		rows = append(rows, g.IntN(have))
	}
	if g.IntN(6) == 0 {
		g.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	}
	for _, t := range append([]*literalCache{c}, c.children...) {
		t.rows = len(rows)
	}
	g.emit(corpus.Op{Verb: corpus.Filter, Cache: c.name, Rows: rows})
}

func (g *literal) extend(c *literalCache) {
	var others []*literalCache
	for _, o := range g.caches {
		if o != c && o.kind == c.kind && !o.child && !c.child && sameKinds(o.children, c.children) {
			others = append(others, o)
		}
	}
	if len(others) == 0 || c.rows > 8 {
		return
	}
	o := pickOne(g, others)
	c.rows += o.rows
	c.slots = min(c.slots, o.slots)
	c.columns = max(c.columns, o.columns)
	for i, child := range c.children {
		child.rows += o.children[i].rows
		child.columns = max(child.columns, o.children[i].columns)
	}
	g.emit(corpus.Op{Verb: corpus.Extend, Cache: c.name, Other: o.name})
	g.drop(o)
}

func sameKinds(a, b []*literalCache) bool {
	return slices.EqualFunc(a, b, func(x, y *literalCache) bool { return x.kind == y.kind })
}

var literalSerial = map[corpus.Kind]corpus.Kind{corpus.BatchKV: corpus.KV, corpus.BatchRotating: corpus.Rotating}

func (g *literal) extract(c *literalCache) {
	if c.columns == 0 && c.kind != corpus.List && g.IntN(8) > 0 {
		return // mlx-lm raises
	}
	k := c.kind
	if s, ok := literalSerial[k]; ok {
		k = s
	}
	out := g.add(k, 1)
	out.columns, out.slots = c.columns, c.slots
	g.emit(corpus.Op{Verb: corpus.Extract, Cache: c.name, Row: g.IntN(c.fewestRows()), Out: out.name})
	if k == corpus.List {
		g.caches = g.caches[:len(g.caches)-1] // its children have no names
	}
}

var literalBatch = map[corpus.Kind]corpus.Kind{corpus.KV: corpus.BatchKV, corpus.Rotating: corpus.BatchRotating}

func (g *literal) merge(c *literalCache) {
	sources := []*literalCache{c}
	for _, o := range g.caches {
		if o.kind == c.kind && sameKinds(o.children, c.children) && g.IntN(2) == 0 && len(sources) < 4 {
			sources = append(sources, o)
		}
	}
	g.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
	op := corpus.Op{Verb: corpus.Merge}
	for _, s := range sources {
		op.Caches = append(op.Caches, s.name)
	}
	if c.kind == corpus.List && slices.ContainsFunc(c.children, func(x *literalCache) bool {
		return x.kind == corpus.BatchKV || x.kind == corpus.BatchRotating
	}) {
		return // mlx-lm's batches have a merge that is meant for their serial twins
	}
	k := c.kind
	if b, ok := literalBatch[k]; ok {
		k = b
	}
	out := g.add(k, len(sources))
	for _, s := range sources {
		out.columns, out.slots = max(out.columns, s.columns), sources[0].slots
	}
	op.Out = out.name
	g.emit(op)
	if k == corpus.List {
		g.caches = g.caches[:len(g.caches)-1]
	}
}

func (g *literal) toQuantized(c *literalCache, info Info) {
	if g.c.Quant == nil || !slices.Contains(info.Kinds, corpus.Quantized) {
		return
	}
	out := g.add(corpus.Quantized, c.rows)
	out.columns = c.columns
	g.emit(corpus.Op{Verb: corpus.ToQuantized, Cache: c.name, Out: out.name})
}

func (g *literal) write(c *literalCache) {
	tokens := make([][]int, c.rows)
	for i := range tokens {
		g.token++
		tokens[i] = []int{g.token}
	}
	c.columns++
	g.emit(corpus.Op{Verb: corpus.Write, Cache: c.name, Slot: g.IntN(c.slots), Tokens: tokens})
}

// saveAndLoad saves one to three caches and loads them under new names.
func (g *literal) saveAndLoad() {
	n := 1 + g.IntN(min(3, len(g.caches)))
	g.names++
	save := corpus.Op{Verb: corpus.Save, File: fmt.Sprintf("f%d", g.names)}
	load := corpus.Op{Verb: corpus.Load, File: save.File}
	for _, i := range g.Perm(len(g.caches))[:n] {
		c := g.caches[i]
		save.Caches = append(save.Caches, c.name)
		out := g.add(c.kind, c.rows)
		out.columns, out.slots = c.columns, c.slots
		load.Outs = append(load.Outs, out.name)
		if c.kind == corpus.List || c.kind == corpus.Concatenate && c.columns == 0 {
			g.caches = g.caches[:len(g.caches)-1]
		}
	}
	g.emit(save)
	g.emit(load)
}

// stray calls an operation that the kind may not have.
func (g *literal) stray(c *literalCache) {
	switch op := (corpus.Op{Cache: c.name}); g.IntN(5) {
	case 0:
		op.Verb, op.Rows = corpus.Filter, []int{0}
		if _, ok := literalSerial[c.kind]; ok || c.kind == corpus.Arrays || c.kind == corpus.List {
			return
		}
		g.emit(op)
	case 1:
		op.Verb = corpus.Finalize
		g.finalize(c)
	case 2:
		op.Verb = corpus.TrimFront
		g.emit(op)
	case 3:
		op.Verb, op.N = corpus.Advance, 1
		if c.kind != corpus.Arrays {
			g.emit(op)
		}
	case 4:
		if c.kind == corpus.Arrays {
			op.Verb, op.N = corpus.Trim, 1
			g.emit(op)
		}
	}
}
