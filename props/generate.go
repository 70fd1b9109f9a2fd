package props

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/models"
	"example.com/ringcheck/reference/ring"
)

// Source gives a generator its choices. Lower numbers make simpler cases, so
// that whatever lowers them shrinks the case.
type Source interface {
	// Int returns a number from 0 to n-1; n is at least 1.
	Int(n int) int
}

// RandomSource returns the choices of case number i of a seed: each number
// gives an unrelated case, and so do adjacent seeds.
func RandomSource(seed uint64, i int) Source {
	return random{rand.New(rand.NewPCG(Mix(seed), Mix(uint64(i)^0xD1B54A32D192ED03)))}
}

type random struct{ r *rand.Rand }

func (r random) Int(n int) int { return r.r.IntN(n) }

// ByteSource returns choices read from bytes, and 0 when they are used up.
func ByteSource(b []byte) Source { return &byteSource{b} }

type byteSource struct{ b []byte }

func (s *byteSource) Int(n int) int {
	if len(s.b) == 0 {
		return 0
	}
	v := int(s.b[0])
	s.b = s.b[1:]
	if n > 256 && len(s.b) > 0 {
		v = v<<8 | int(s.b[0])
		s.b = s.b[1:]
	}
	return v % n
}

// Domain says which cases to generate: those that a target claims, narrowed by
// what the caller asks for. A nil list asks for all.
type Domain struct {
	Info      Info
	Kinds     []corpus.Kind
	Semantics []ring.Semantics
}

// weights is how often each operation is tried where a cache has it: in free
// sequences, and in even ones, where it makes up for what is seldom possible.
// It is the only knob of the mix, besides the grammars.
var weights = map[corpus.Verb]struct{ free, even int }{
	corpus.New: {6, 2}, corpus.Update: {40, 2}, corpus.AppendDecode: {10, 2}, corpus.AppendWindow: {10, 2},
	corpus.AppendWindowUnder: {2, 2}, corpus.MaskOp: {4, 1}, corpus.Prepare: {12, 2}, corpus.Finalize: {6, 2},
	corpus.Filter: {5, 2}, corpus.Extend: {5, 2}, corpus.Merge: {6, 2}, corpus.Extract: {6, 2}, corpus.Trim: {5, 2},
	corpus.Rollback: {10, 2}, corpus.Snapshot: {4, 3}, corpus.Restore: {6, 6}, corpus.Adopt: {2, 5},
	corpus.Save: {3, 1}, corpus.Load: {4, 4}, corpus.TemporalView: {3, 3}, corpus.Release: {1, 2}, corpus.ValidOffset: {2, 2},
	corpus.ProjectedBytes: {1, 2}, corpus.Attend: {2, 3}, corpus.ToQuantized: {2, 40}, corpus.TrimFront: {10, 2},
	corpus.Write: {20, 2}, corpus.Advance: {10, 2},
}

// kindWeights is how often a case is about each kind: the rings are what this is
// about, and have the most to go wrong.
var kindWeights = map[corpus.Kind]int{
	corpus.Rotating: 12, corpus.BatchRotating: 12, corpus.RotatingQuantized: 5, corpus.BatchRotatingQuantized: 8,
	corpus.KV: 3, corpus.BatchKV: 4, corpus.Quantized: 2, corpus.Arrays: 4, corpus.List: 3, corpus.Chunked: 2,
	corpus.Concatenate: 2, corpus.BatchRecurrent: 6,
}

// oddly is one in how many operations of free sequences must be refused.
const oddly = 12

// grammars are the ways in which an engine calls a cache, beside free
// sequences. Each appends operations to a case that has its first caches.
var grammars = []struct {
	name   string
	weight int
	kinds  []corpus.Kind // that it needs one of; nil: any
	run    func(*generator)
}{
	{"free", 10, nil, (*generator).free},
	{"every operation", 8, nil, (*generator).even},
	{"continuous batching", 4, []corpus.Kind{corpus.BatchRotating, corpus.BatchRotatingQuantized, corpus.BatchKV}, (*generator).batching},
	{"speculative rounds", 3, []corpus.Kind{corpus.BatchRotating, corpus.BatchRotatingQuantized}, (*generator).speculation},
	{"prompt-cache reuse", 3, []corpus.Kind{corpus.Rotating, corpus.RotatingQuantized, corpus.KV}, (*generator).reuse},
}

// Generate makes a case of the domain: legal operations, as package models
// says, and a few that must be refused. It never looks at a target.
func Generate(src Source, d Domain) corpus.Case {
	g := &generator{src: src}
	g.c = corpus.Case{Name: "generated", Source: "generated", Ops: make([]corpus.Op, 0, 32)}
	semantics := slices.DeleteFunc(keep(d.Info.Semantics, d.Semantics), func(s ring.Semantics) bool { return len(d.kinds(s)) == 0 })
	if len(semantics) == 0 {
		return g.c
	}
	g.c.Semantics = chosen(g, semantics)
	g.kinds = d.kinds(g.c.Semantics)
	g.ops = d.Info.Ops
	kind := g.kind()
	g.shape(kind, d.Info)
	g.m = models.New(g.c.Semantics, g.c.Shape, g.c.Quant)
	g.kinds = slices.DeleteFunc(g.kinds, func(k corpus.Kind) bool { return !family(kind, k) || quantized(k) && g.c.Quant == nil })
	if g.create(kind); len(g.m.Names()) == 0 {
		return g.c
	}

	sum := 0
	for _, gr := range grammars {
		sum += g.weight(gr.weight, gr.kinds, kind)
	}
	n := g.int(sum)
	for _, gr := range grammars {
		if n -= g.weight(gr.weight, gr.kinds, kind); n < 0 {
			gr.run(g)
			break
		}
	}
	for range 8 { // wherever it has come to
		g.offend(g.any())
	}
	return g.c
}

// kinds are those that there are under s.
func (d Domain) kinds(s ring.Semantics) []corpus.Kind {
	return slices.DeleteFunc(keep(d.Info.Kinds, d.Kinds), func(k corpus.Kind) bool { return !k.Has(corpus.New, s) })
}

// kind draws what the case is about.
func (g *generator) kind() corpus.Kind {
	sum := 0
	for _, k := range g.kinds {
		sum += kindWeights[k]
	}
	n, i := g.int(sum), 0
	for n -= kindWeights[g.kinds[0]]; n >= 0; n -= kindWeights[g.kinds[i]] {
		i++
	}
	return g.kinds[i]
}

// weight is a grammar's weight where the case has a kind that it needs.
func (g *generator) weight(w int, needs []corpus.Kind, kind corpus.Kind) int {
	if needs == nil || slices.Contains(needs, kind) {
		return w
	}
	return 0
}

func quantized(k corpus.Kind) bool {
	return k == corpus.Quantized || k == corpus.RotatingQuantized || k == corpus.BatchRotatingQuantized
}

// family reports whether caches of two kinds meet in one case.
func family(a, b corpus.Kind) bool {
	for _, f := range [][]corpus.Kind{
		{corpus.Rotating, corpus.BatchRotating}, {corpus.RotatingQuantized, corpus.BatchRotatingQuantized},
		{corpus.KV, corpus.BatchKV, corpus.Quantized}, {corpus.Rotating, corpus.RotatingQuantized},
	} {
		if slices.Contains(f, a) && slices.Contains(f, b) {
			return true
		}
	}
	return a == b || a == corpus.List
}

func keep[T comparable](all, some []T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(v T) bool { return some != nil && !slices.Contains(some, v) })
}

// generator is a case that grows, and what the model knows of it.
type generator struct {
	src            Source
	m              *models.Model
	c              corpus.Case
	kinds          []corpus.Kind
	ops            []corpus.Verb
	window         int
	names          int
	token          int
	saved, snapped bool // whether there is something to load, and to restore
	refuse         bool // whether what must be refused is emitted, too
	evenly         bool // whether operations come as in even sequences; see weights
}

func (g *generator) int(n int) int        { return g.src.Int(n) }
func (g *generator) oneIn(n int) bool     { return g.src.Int(n) == n-1 }
func chosen[T any](g *generator, l []T) T { return l[g.src.Int(len(l))] }

// maxOps is where a case ends.
const maxOps = 48

// shape draws sizes. The windows are those around which rings go wrong.
func (g *generator) shape(kind corpus.Kind, info Info) {
	g.window = chosen(g, []int{4, 3, 2, 1, 5, 8, 4, 3, 8, 7, 12, 17})
	g.c.Step = chosen(g, []int{corpus.DefaultStep, 2, 3, 4})
	s := corpus.Shape{KVHeads: 1 + g.int(2), KeyDim: 4 + g.int(5), ValueDim: 4 + g.int(5), DType: chosen(g, info.DTypes)}
	if g.oneIn(8) && slices.Contains(info.Fills, corpus.Bits) {
		g.c.Fill = corpus.Bits
	}
	becomes := slices.Contains([]corpus.Kind{corpus.KV, corpus.BatchKV, corpus.Rotating, corpus.BatchRotating}, kind) && slices.Contains(g.ops, corpus.ToQuantized)
	if n := len(info.Quant); n > 0 && (quantized(kind) || becomes && g.oneIn(3)) {
		q := info.Quant[min(g.int(n), g.int(n))]
		g.c.Quant = &q
		g.c.Fill = corpus.Grid // arbitrary bits may quantize alike
		s.KeyDim, s.ValueDim = q.GroupSize, q.GroupSize*(1+g.int(2))
	}
	g.c.Shape = s
}

// emit appends an operation if it is legal, or if its refusal is certain and
// that is what is being drawn.
func (g *generator) emit(op corpus.Op) bool {
	if len(g.c.Ops) >= maxOps || !slices.Contains(g.ops, op.Verb) {
		return false
	}
	ok, code := g.m.Legal(&op)
	if !ok && (code == "" || !g.refuse) {
		return false
	}
	g.m.Apply(&op)
	g.c.Ops = append(g.c.Ops, op)
	g.saved = g.saved || ok && op.Verb == corpus.Save
	g.snapped = g.snapped || ok && op.Verb == corpus.Snapshot
	return ok
}

func (g *generator) name(prefix string) string {
	g.names++
	return fmt.Sprintf("%s%d", prefix, g.names)
}

// create makes a new cache and returns its name; "" if none was made.
func (g *generator) create(k corpus.Kind) string {
	op := corpus.Op{Verb: corpus.New, Kind: k, MaxSize: g.window}
	if g.oneIn(8) {
		op.MaxSize = 1 + g.int(5)
	}
	switch k {
	case corpus.Rotating:
		if g.c.Semantics == ring.MLXLM && g.oneIn(2) {
			op.Keep = g.int(max(1, op.MaxSize))
		}
	case corpus.BatchKV, corpus.BatchRotating, corpus.BatchRotatingQuantized:
		op.LeftPadding = g.paddings(1+g.int(4), 3)
	case corpus.Arrays:
		if g.oneIn(2) {
			op.LeftPadding = g.paddings(1+g.int(3), 3)
		}
	case corpus.List:
		return g.createList()
	}
	switch k {
	case corpus.KV, corpus.BatchKV, corpus.Quantized, corpus.Concatenate:
		op.MaxSize = 0
	case corpus.Arrays, corpus.BatchRecurrent:
		op.MaxSize, op.Slots = 0, 1+g.int(2)
	case corpus.Chunked:
		op.MaxSize, op.ChunkSize = 0, g.window
	}
	op.Out = g.name("c")
	if !g.emit(op) {
		return ""
	}
	return op.Out
}

func (g *generator) createList() string {
	op := corpus.Op{Verb: corpus.New, Kind: corpus.List}
	for _, k := range chosen(g, [][]corpus.Kind{
		{corpus.Rotating}, {corpus.KV, corpus.Rotating}, {corpus.BatchRotating}, {corpus.BatchKV, corpus.BatchRotating}, {corpus.Arrays, corpus.KV},
	}) {
		child := corpus.Op{Verb: corpus.New, Kind: k, Out: g.name("c")}
		switch k {
		case corpus.Rotating:
			child.MaxSize = g.window
		case corpus.BatchRotating:
			child.MaxSize, child.LeftPadding = g.window, []int{0, 0}
		case corpus.BatchKV:
			child.LeftPadding = []int{0, 0}
		case corpus.Arrays:
			child.Slots = 1
		}
		if !g.emit(child) {
			return ""
		}
		op.Caches = append(op.Caches, child.Out)
	}
	op.Out = g.name("l")
	if !g.emit(op) {
		return ""
	}
	return op.Out
}

// paddings draws one number a row, mostly zero.
func (g *generator) paddings(rows, most int) []int {
	out := make([]int, rows)
	if g.oneIn(2) {
		for i := range out {
			out[i] = g.int(most + 1)
		}
	}
	return out
}

// free appends up to some two dozen operations, each on a cache drawn from the
// newest and all others.
func (g *generator) free() {
	for range 3 + g.int(24) {
		name := g.any()
		if info, _ := g.m.Info(name); g.oneIn(oddly) || info.Pending && g.oneIn(4) {
			g.offend(name)
		} else {
			g.step(name)
		}
	}
}

// even is free with every operation as likely as any other, so that each comes
// after each.
func (g *generator) even() {
	g.evenly = true
	g.free()
	g.free()
}

// any returns the name of a cache, the newest as likely as all others.
func (g *generator) any() string {
	names := g.m.Names()
	if len(names) == 0 {
		return ""
	}
	back := 0
	if g.oneIn(2) {
		back = g.int(len(names))
	}
	return names[len(names)-1-back]
}

// step appends one operation on a cache, drawn by weight.
func (g *generator) step(name string) {
	info, ok := g.m.Info(name)
	if !ok || info.Lost {
		g.create(chosen(g, g.kinds))
		return
	}
	weight := func(v corpus.Verb) int {
		switch {
		case !g.fits(v, info):
			return 0
		case g.evenly:
			return weights[v].even
		}
		return weights[v].free
	}
	sum := 0
	for _, v := range corpus.Verbs {
		sum += weight(v)
	}
	if sum == 0 {
		return
	}
	n := g.int(sum)
	for _, v := range corpus.Verbs {
		if n -= weight(v); n < 0 {
			g.do(v, name, info)
			return
		}
	}
}

// fits reports whether it makes sense to try the verb on a cache now.
func (g *generator) fits(v corpus.Verb, info models.Info) bool {
	if !slices.Contains(g.ops, v) {
		return false
	}
	switch v {
	case corpus.New:
		return len(g.m.Names()) < 6
	case corpus.Load:
		return g.saved
	case corpus.Restore, corpus.Adopt:
		if !g.snapped {
			return false
		}
	case corpus.Save:
		return true
	case corpus.ToQuantized:
		if g.c.Quant == nil {
			return false
		}
	}
	switch v {
	case corpus.Rollback:
		return (info.Round > 0 || g.evenly) && info.Kind.Has(v, g.c.Semantics)
	case corpus.Finalize:
		return (info.Pending || g.evenly) && info.Kind.Has(v, g.c.Semantics)
	case corpus.Trim:
		return info.Trim >= 0 && info.Kind.Has(v, g.c.Semantics)
	}
	return info.Kind.Has(v, g.c.Semantics)
}

// do appends an operation of the verb.
func (g *generator) do(v corpus.Verb, name string, info models.Info) {
	op := corpus.Op{Verb: v, Cache: name}
	switch v {
	case corpus.New:
		g.create(chosen(g, g.kinds))
		return
	case corpus.Update, corpus.AppendDecode, corpus.AppendWindow, corpus.AppendWindowUnder:
		g.write(v, name, info)
		return
	case corpus.MaskOp:
		op.N, op.Window = g.columns(info), g.attention(info)
	case corpus.Prepare:
		g.prepare(name, info)
		return
	case corpus.Filter:
		op.Rows = g.rows(info.Rows)
		if g.emit(op) && len(op.Rows) == 0 && g.oneIn(2) { // rows come back
			info, _ = g.m.Info(name)
			g.prepare(name, info)
		}
		return
	case corpus.Extend:
		op.Other = g.partner(name, info)
		if op.Other == "" {
			return
		}
	case corpus.Merge:
		g.merge(name, info)
		return
	case corpus.Extract:
		g.extract(name, info)
		return
	case corpus.Trim:
		op.N = g.int(max(1, info.Trim+1))
	case corpus.Rollback:
		g.rollback(name, info)
		return
	case corpus.Snapshot:
		op.As = g.name("s")
	case corpus.Restore:
		var fitting []string
		for _, from := range g.m.Snapshots() {
			op.From = from
			if ok, _ := g.m.Legal(&op); ok {
				fitting = append(fitting, from)
			}
		}
		if len(fitting) == 0 { // a start for the next time
			g.emit(corpus.Op{Verb: corpus.Snapshot, Cache: name, As: g.name("s")})
			return
		}
		op.From = chosen(g, fitting)
	case corpus.Adopt:
		op = corpus.Op{Verb: v, From: chosen(g, g.m.Snapshots()), Out: g.name("c")}
	case corpus.Save:
		op = corpus.Op{Verb: v, Caches: []string{name}, File: g.name("f")}
	case corpus.Load:
		op = corpus.Op{Verb: v, File: chosen(g, g.m.Files())}
		for range g.m.Saved(op.File) {
			op.Outs = append(op.Outs, g.name("c"))
		}
	case corpus.ToQuantized:
		op.Out = g.name("c")
	case corpus.Write:
		op.Slot = g.int(max(1, info.Slots))
		op.Tokens = g.fresh(max(1, info.Rows), 1)
	case corpus.Advance:
		op.N = g.int(5)
	case corpus.ProjectedBytes:
		op.N = g.int(2*g.window + 1)
	case corpus.Attend:
		op.Queries, op.Scale = 1+g.int(max(1, min(info.Columns, 3))), 0.5
	}
	g.emit(op)
}

// fresh makes n new tokens a row.
func (g *generator) fresh(rows, n int) [][]int {
	out := make([][]int, rows)
	for i := range out {
		out[i] = make([]int, n)
		for j := range out[i] {
			g.token++
			out[i][j] = g.token
		}
	}
	return out
}

// tokens makes the next n columns of a cache: padding where its rows are owed
// some.
func (g *generator) tokens(name string, info models.Info, n int) [][]int {
	out := g.fresh(max(1, info.Rows), n)
	if info.Rows == 0 || info.Slots > 0 {
		return out
	}
	for i := range out {
		lead, real := g.m.Split(name, i, n)
		for j := range out[i] {
			if j < lead || j >= lead+real {
				out[i][j] = -out[i][j]
			}
		}
	}
	return out
}

// columns draws the size of a write: decodes, small blocks, and those at the
// boundaries of the window and the growth step.
func (g *generator) columns(info models.Info) int {
	w := g.window
	if info.MaxSize > 0 {
		w = info.MaxSize
	}
	n := 1
	switch g.int(8) {
	case 4, 5:
		n = 2 + g.int(2)
	case 6:
		n = max(1, chosen(g, []int{w, w - 1, w + 1, 2*w + 1}))
	case 7:
		n = max(1, min(16, chosen(g, []int{g.c.Step, g.c.Step + 1, w + 2, 3*w + 2})))
	}
	if info.Pending && info.Due > 0 {
		n = min(n, info.Due)
		if g.oneIn(2) {
			n = info.Due
		}
	}
	return n
}

// attention draws the window of a mask.
func (g *generator) attention(info models.Info) *int {
	if info.Slots > 0 {
		return nil // recurrent state has no window
	}
	w := 0
	switch g.int(8) {
	case 5:
		w = max(1, info.Total-1+g.int(3))
	case 6:
		w = 1 + g.int(max(1, g.window))
	case 7:
		w = g.window + g.int(3)
	default:
		return nil
	}
	return &w
}

// write appends a mask and the write that it is for.
func (g *generator) write(v corpus.Verb, name string, info models.Info) {
	n := g.columns(info)
	if v == corpus.AppendDecode {
		n = 1
	}
	tokens := g.tokens(name, info, n)
	if v == corpus.Update && info.Kind.Has(corpus.MaskOp, g.c.Semantics) && !g.oneIn(4) {
		g.emit(corpus.Op{Verb: corpus.MaskOp, Cache: name, N: n, Window: g.attention(info)})
	}
	op := corpus.Op{Verb: v, Cache: name, Tokens: tokens}
	if v == corpus.AppendWindowUnder {
		width := n + min(info.Columns, info.MaxSize-1)
		op.Mask, op.Causal = seeAll(max(1, info.Rows), n, max(1, width)), g.oneIn(2)
	}
	g.emit(op)
}

// prepare announces padding: left padding on a cache that never held a column,
// or right padding to a width of its own.
func (g *generator) prepare(name string, info models.Info) {
	op := corpus.Op{Verb: corpus.Prepare, Cache: name}
	rows := info.Rows
	if rows == 0 {
		rows = 1 + g.int(3)
	}
	if !info.Started && (g.oneIn(3) || info.Slots > 0 && g.oneIn(2)) {
		op.LeftPadding = g.paddings(rows, 3)
	}
	if op.LeftPadding == nil || g.oneIn(2) {
		most := 0
		for _, l := range op.LeftPadding {
			most = max(most, l)
		}
		width := most + 1 + g.int(2*g.window+3)
		op.Lengths, op.RightPadding = make([]int, rows), make([]int, rows)
		for i := range rows {
			left := 0
			if op.LeftPadding != nil {
				left = op.LeftPadding[i]
			}
			op.Lengths[i] = width - g.int(width-left+1)*g.int(2)
			if op.Lengths[i] == left && !g.oneIn(4) {
				op.Lengths[i] = width // rows that get no token are rare
			}
			op.RightPadding[i] = width - op.Lengths[i]
		}
		if g.c.Semantics == ring.Exact && g.oneIn(12) && info.Slots == 0 {
			flag := g.oneIn(2)
			op.RightPadded = &flag
		}
	}
	if g.emit(op) && info.Slots > 0 {
		for range g.int(4) { // of the prompt's chunks
			n := 1 + g.int(3)
			g.emit(corpus.Op{Verb: corpus.MaskOp, Cache: name, N: n})
			g.emit(corpus.Op{Verb: corpus.Advance, Cache: name, N: n})
		}
	}
}

// rows draws which rows to keep: some, in order; at times repeated, reordered
// or none.
func (g *generator) rows(n int) []int {
	out := []int{}
	for i := range n {
		if g.int(3) > 0 {
			out = append(out, i)
		}
	}
	if len(out) == 0 && n > 0 && !(g.c.Semantics == ring.Exact && g.oneIn(2)) {
		out = append(out, g.int(n))
	}
	if len(out) > 0 && g.oneIn(6) {
		slices.Reverse(out)
		out = append(out, out[0])
	}
	return out
}

// partner finds or makes a cache that can join another.
func (g *generator) partner(name string, info models.Info) string {
	var found []string
	for _, n := range g.m.Names() {
		if o, ok := g.m.Info(n); ok && n != name && o.Kind == info.Kind && !o.Lost {
			found = append(found, n)
		}
	}
	if len(found) > 0 && !g.oneIn(3) {
		return chosen(g, found)
	}
	made := g.create(info.Kind)
	o, ok := g.m.Info(made)
	if ok && o.Slots > 0 && g.oneIn(2) {
		g.emit(corpus.Op{Verb: corpus.Write, Cache: made, Slot: g.int(o.Slots), Tokens: g.fresh(max(1, o.Rows), 1)})
	}
	if ok && g.oneIn(2) && o.Slots == 0 && o.Kind != corpus.List {
		g.write(corpus.Update, made, o)
		if g.oneIn(2) {
			for range o.MaxSize + g.int(2) { // until it wraps
				o, _ = g.m.Info(made)
				g.decode(made, o)
			}
		}
	}
	return made
}

// merge makes a batch of a cache and others of its kind.
func (g *generator) merge(name string, info models.Info) {
	op := corpus.Op{Verb: corpus.Merge, Caches: []string{name}}
	for _, n := range g.m.Names() {
		o, ok := g.m.Info(n)
		if !ok || n == name || o.Lost || len(op.Caches) == 4 || !g.oneIn(2) {
			continue
		}
		if o.Kind == info.Kind || (g.c.Semantics == ring.Exact && family(o.Kind, info.Kind)) {
			op.Caches = append(op.Caches, n)
		}
	}
	op.Out = g.name("c")
	g.emit(op)
}

func (g *generator) extract(name string, info models.Info) {
	if info.Rows == 0 {
		return
	}
	op := corpus.Op{Verb: corpus.Extract, Cache: name, Row: g.int(max(1, info.Rows)), Out: g.name("c")}
	if info.MaxSize > 0 && g.oneIn(2) && g.c.Semantics == ring.Exact {
		limit := 1 + g.int(g.window)
		op.Limit = &limit
	}
	if !g.emit(op) {
		return
	}
	if out, ok := g.m.Info(op.Out); ok && op.Limit != nil { // a ring that is shorter than its offset says (E10)
		if out.Trim > 0 && !g.oneIn(4) {
			g.emit(corpus.Op{Verb: corpus.Trim, Cache: op.Out, N: 1})
		}
		for range 1 + g.int(3) {
			g.write(corpus.Update, op.Out, out)
		}
	}
}

// rollback keeps some of what the last write wrote.
func (g *generator) rollback(name string, info models.Info) {
	op := corpus.Op{Verb: corpus.Rollback, Cache: name, Preserve: g.oneIn(2)}
	most := info.Round + 1
	if op.Keep = g.int(most); g.oneIn(2) {
		op.Keep = 0
		for range info.Rows {
			op.KeepRows = append(op.KeepRows, g.int(most))
		}
	}
	g.emit(op)
}

// batching is a server: rows join by merge and extend, decode, finish and are
// filtered out, prompts are prefilled with right padding.
func (g *generator) batching() {
	batch := g.m.Names()[0]
	for range 2 + g.int(6) {
		info, ok := g.m.Info(batch)
		if !ok || info.Lost || len(g.c.Ops) >= maxOps {
			return
		}
		switch g.int(7) {
		case 0, 1: // decode a few steps
			for range 1 + g.int(g.window+2) {
				info, _ := g.m.Info(batch)
				g.decode(batch, info)
			}
		case 2: // a padded prompt, in chunks
			g.prompt(batch)
		case 3: // rows finish
			if info.Rows > 0 {
				g.extract(batch, info)
				g.emit(corpus.Op{Verb: corpus.Filter, Cache: batch, Rows: g.rows(info.Rows)})
			}
		case 4: // new rows, prefilled apart
			other := g.create(info.Kind)
			if other == "" {
				continue
			}
			g.prompt(other)
			g.emit(corpus.Op{Verb: corpus.Extend, Cache: batch, Other: other})
		case 5: // all rows out, and in again beside new ones
			g.remerge(batch, info)
		case 6: // back to before a row has finished and another has joined
			as := g.name("s")
			if info.Rows == 0 || !g.emit(corpus.Op{Verb: corpus.Snapshot, Cache: batch, As: as}) {
				continue
			}
			g.emit(corpus.Op{Verb: corpus.Filter, Cache: batch, Rows: counting(info.Rows - 1)})
			g.emit(corpus.Op{Verb: corpus.Extend, Cache: batch, Other: g.create(info.Kind)})
			g.emit(corpus.Op{Verb: corpus.Restore, Cache: batch, From: as})
		}
	}
}

// counting is 0, 1, … n-1.
func counting(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// decode writes one column under its mask.
func (g *generator) decode(name string, info models.Info) {
	if info.Rows == 0 {
		return
	}
	g.emit(corpus.Op{Verb: corpus.MaskOp, Cache: name, N: 1})
	op := corpus.Op{Verb: corpus.Update, Cache: name, Tokens: g.tokens(name, info, 1)}
	if info.Kind.Has(corpus.AppendDecode, g.c.Semantics) && g.oneIn(3) {
		op.Verb = corpus.AppendDecode
	}
	g.emit(op)
}

// prompt announces right padding, feeds the whole width in chunks, finalizes.
func (g *generator) prompt(name string) {
	info, _ := g.m.Info(name)
	g.prepare(name, info)
	if g.oneIn(8) {
		g.emit(corpus.Op{Verb: corpus.Finalize, Cache: name})
	}
	chunk := 1 + g.int(g.window+2)
	for range 12 {
		info, ok := g.m.Info(name)
		if !ok || !info.Pending || info.Due == 0 {
			break
		}
		n := min(chunk, info.Due)
		switch g.int(8) {
		case 0, 1:
			g.offend(name)
		case 2: // it is taken up elsewhere
			g.takeUp(name)
		}
		g.emit(corpus.Op{Verb: corpus.MaskOp, Cache: name, N: n})
		if !g.emit(corpus.Op{Verb: corpus.Update, Cache: name, Tokens: g.tokens(name, info, n)}) {
			chunk++ // mlx-lm refuses one column while padding is pending
		}
	}
	g.emit(corpus.Op{Verb: corpus.Finalize, Cache: name})
}

// takeUp makes a copy of a cache by way of a snapshot or of a file, and ends the
// copy's padding.
func (g *generator) takeUp(name string) {
	as, out := g.name("s"), g.name("c")
	made := false
	if g.oneIn(2) {
		made = g.emit(corpus.Op{Verb: corpus.Snapshot, Cache: name, As: as}) && g.emit(corpus.Op{Verb: corpus.Adopt, From: as, Out: out})
	} else {
		made = g.emit(corpus.Op{Verb: corpus.Save, Caches: []string{name}, File: as}) && g.emit(corpus.Op{Verb: corpus.Load, File: as, Outs: []string{out}})
	}
	if made {
		g.emit(corpus.Op{Verb: corpus.Finalize, Cache: out})
	}
}

// remerge extracts every row and merges all into a new batch.
func (g *generator) remerge(name string, info models.Info) {
	merge := corpus.Op{Verb: corpus.Merge, Out: g.name("c")}
	for i := range info.Rows {
		op := corpus.Op{Verb: corpus.Extract, Cache: name, Row: i, Out: g.name("c")}
		if g.emit(op) {
			merge.Caches = append(merge.Caches, op.Out)
		}
	}
	if len(merge.Caches) == 0 || !g.emit(merge) {
		return
	}
	if made, ok := g.m.Info(merge.Out); ok {
		g.decode(merge.Out, made)
	}
}

// speculation is rounds of a few drafted tokens, of which each row keeps some.
func (g *generator) speculation() {
	name := g.m.Names()[0]
	g.prompt(name)
	for range 1 + g.int(6) {
		info, ok := g.m.Info(name)
		if !ok || info.Lost || info.Rows == 0 || info.Pending {
			return
		}
		if g.oneIn(4) {
			g.decode(name, info)
			continue
		}
		n := 1 + g.int(4)
		op := corpus.Op{Verb: corpus.AppendWindow, Cache: name, Tokens: g.tokens(name, info, n)}
		if g.oneIn(2) {
			g.emit(corpus.Op{Verb: corpus.MaskOp, Cache: name, N: n})
			op.Verb = corpus.Update
		}
		g.emit(op)
		info, _ = g.m.Info(name)
		if info.Round > 0 && !g.oneIn(4) {
			g.rollback(name, info)
		}
	}
}

// reuse is a prompt cache: a conversation is snapshotted or saved, taken up
// again, trimmed, and continued.
func (g *generator) reuse() {
	name := g.m.Names()[0]
	for range 2 + g.int(6) {
		info, ok := g.m.Info(name)
		if !ok || info.Lost || len(g.c.Ops) >= maxOps {
			return
		}
		switch g.int(5) {
		case 0, 1:
			g.write(corpus.Update, name, info)
		case 2:
			as, out := g.name("s"), g.name("c")
			if g.emit(corpus.Op{Verb: corpus.Snapshot, Cache: name, As: as}) && g.emit(corpus.Op{Verb: corpus.Adopt, From: as, Out: out}) {
				name = out
			}
		case 3:
			file, out := g.name("f"), g.name("c")
			if g.emit(corpus.Op{Verb: corpus.Save, Caches: []string{name}, File: file}) && g.emit(corpus.Op{Verb: corpus.Load, File: file, Outs: []string{out}}) {
				name = out
			}
		case 4:
			if info.Trim > 0 {
				g.emit(corpus.Op{Verb: corpus.Trim, Cache: name, N: g.int(info.Trim + 1)})
			}
			g.write(corpus.Update, name, info)
		}
	}
}
