package props

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/models"
)

// Exhausted says what [Exhaust] has tried.
type Exhausted struct {
	Depth     int // every sequence of so many letters
	States    int // that the caches got into, those that differ by token names counted once
	Sequences int // that were run: each letter after each state
}

func (e Exhausted) String() string {
	return fmt.Sprintf("depth %d, %d states, %d sequences", e.Depth, e.States, e.Sequences)
}

// letter is one or two operations on the cache that a sequence is about. It
// returns the name of that cache afterwards.
type letter struct {
	name string
	does func(g *generator, name string, info models.Info) string
}

// letters are the alphabet. One that a cache does not have, or that package
// models cannot speak of, leads nowhere.
var letters = []letter{
	{"decode", func(g *generator, name string, info models.Info) string { return g.underMask(name, info, 1) }},
	{"block of 2", func(g *generator, name string, info models.Info) string { return g.underMask(name, info, 2) }},
	{"block of 3", func(g *generator, name string, info models.Info) string { return g.underMask(name, info, 3) }},
	{"append_window of 1", func(g *generator, name string, info models.Info) string {
		return g.then(name, corpus.Op{Verb: corpus.AppendWindow, Cache: name, Tokens: g.tokens(name, info, 1)})
	}},
	{"append_window of 2", func(g *generator, name string, info models.Info) string {
		return g.then(name, corpus.Op{Verb: corpus.AppendWindow, Cache: name, Tokens: g.tokens(name, info, 2)})
	}},
	{"trim", func(g *generator, name string, _ models.Info) string {
		return g.then(name, corpus.Op{Verb: corpus.Trim, Cache: name, N: 1})
	}},
	{"prepare, the last row shorter", func(g *generator, name string, info models.Info) string {
		return g.then(name, padded(name, max(1, info.Rows), 2, 1))
	}},
	{"prepare, the last row empty", func(g *generator, name string, info models.Info) string {
		return g.then(name, padded(name, max(1, info.Rows), 2, 2))
	}},
	{"finalize", func(g *generator, name string, _ models.Info) string {
		return g.then(name, corpus.Op{Verb: corpus.Finalize, Cache: name})
	}},
	{"filter, the last row stays", func(g *generator, name string, info models.Info) string {
		return g.then(name, corpus.Op{Verb: corpus.Filter, Cache: name, Rows: []int{max(0, info.Rows-1)}})
	}},
	{"filter, no row stays", func(g *generator, name string, _ models.Info) string {
		return g.then(name, corpus.Op{Verb: corpus.Filter, Cache: name, Rows: []int{}})
	}},
	{"extend", func(g *generator, name string, info models.Info) string {
		if info.Rows > 1 || !info.Kind.Has(corpus.Extend, g.c.Semantics) {
			return "" // at most two rows
		}
		other := corpus.Op{Verb: corpus.New, Out: g.name("c"), Kind: info.Kind, MaxSize: info.MaxSize, LeftPadding: []int{0}, Slots: info.Slots}
		if info.Slots > 0 {
			other.LeftPadding = nil
		}
		g.emit(other)
		if o, ok := g.m.Info(other.Out); ok && info.Slots == 0 {
			g.emit(corpus.Op{Verb: corpus.Update, Cache: other.Out, Tokens: g.tokens(other.Out, o, 2)})
		}
		return g.then(name, corpus.Op{Verb: corpus.Extend, Cache: name, Other: other.Out})
	}},
	{"merge", func(g *generator, name string, _ models.Info) string {
		out := g.name("c")
		return g.then(out, corpus.Op{Verb: corpus.Merge, Out: out, Caches: []string{name}})
	}},
	{"merge with an empty cache", func(g *generator, name string, info models.Info) string {
		if info.Rows > 1 || !info.Kind.Has(corpus.Merge, g.c.Semantics) {
			return ""
		}
		fresh, out := corpus.Op{Verb: corpus.New, Out: g.name("c"), Kind: info.Kind, MaxSize: info.MaxSize, Slots: info.Slots}, g.name("c")
		if info.Kind == corpus.BatchRotating || info.Kind == corpus.BatchRotatingQuantized {
			fresh.LeftPadding = []int{0}
		}
		g.emit(fresh)
		return g.then(out, corpus.Op{Verb: corpus.Merge, Out: out, Caches: []string{name, fresh.Out}})
	}},
	{"extract", func(g *generator, name string, info models.Info) string {
		out := g.name("c")
		return g.then(out, corpus.Op{Verb: corpus.Extract, Cache: name, Row: max(0, info.Rows-1), Out: out})
	}},
	{"rollback of all", func(g *generator, name string, _ models.Info) string {
		return g.then(name, corpus.Op{Verb: corpus.Rollback, Cache: name})
	}},
	{"rollback of all but one", func(g *generator, name string, _ models.Info) string {
		return g.then(name, corpus.Op{Verb: corpus.Rollback, Cache: name, Keep: 1})
	}},
	{"trim_front", func(g *generator, name string, _ models.Info) string {
		return g.then(name, corpus.Op{Verb: corpus.TrimFront, Cache: name})
	}},
	{"write", func(g *generator, name string, info models.Info) string {
		return g.then(name, corpus.Op{Verb: corpus.Write, Cache: name, Tokens: g.fresh(max(1, info.Rows), 1)})
	}},
	{"advance", func(g *generator, name string, _ models.Info) string {
		g.emit(corpus.Op{Verb: corpus.MaskOp, Cache: name, N: 1})
		return g.then(name, corpus.Op{Verb: corpus.Advance, Cache: name, N: 1})
	}},
}

// then appends the operation that a letter ends with, and returns next; "" if
// it leads nowhere. A refusal stays at the end of the case, to be judged.
func (g *generator) then(next string, op corpus.Op) string {
	if !g.emit(op) {
		return ""
	}
	return next
}

// underMask writes n columns under the mask made for them.
func (g *generator) underMask(name string, info models.Info, n int) string {
	if info.Kind.Has(corpus.MaskOp, g.c.Semantics) {
		g.emit(corpus.Op{Verb: corpus.MaskOp, Cache: name, N: n})
	}
	return g.then(name, corpus.Op{Verb: corpus.Update, Cache: name, Tokens: g.tokens(name, info, n)})
}

// padded announces rows of width columns, the last one with right padding.
func padded(name string, rows, width, right int) corpus.Op {
	op := corpus.Op{Verb: corpus.Prepare, Cache: name, Lengths: slices.Repeat([]int{width}, rows), RightPadding: make([]int, rows)}
	op.Lengths[rows-1] -= right
	op.RightPadding[rows-1] = right
	return op
}

// roots are the caches that sequences start with: every kind that can be new,
// windows and chunks of 1 to 3, batches of one or two rows.
func (d Domain) roots() []corpus.Case {
	var out []corpus.Case
	for _, s := range keep(d.Info.Semantics, d.Semantics) {
		for _, k := range keep(d.Info.Kinds, d.Kinds) {
			if !k.Has(corpus.New, s) || k == corpus.List {
				continue // what a list does, its children do
			}
			c := corpus.Case{
				Name: "exhaustive", Source: "every short sequence", Semantics: s, Step: 2,
				Shape: corpus.Shape{KVHeads: 1, KeyDim: 4, ValueDim: 4, DType: d.Info.DTypes[0]},
			}
			if quantized(k) {
				c.Quant = &d.Info.Quant[0]
				c.Shape.KeyDim, c.Shape.ValueDim = c.Quant.GroupSize, c.Quant.GroupSize
			}
			windows, rows := []int{0}, [][]int{nil}
			if slices.Contains(allRings, k) || k == corpus.Chunked {
				windows = []int{1, 2, 3}
			}
			if k == corpus.BatchKV || slices.Contains(batchRings, k) {
				rows = [][]int{{0}, {0, 0}, {0, 1}}
			}
			for _, w := range windows {
				for _, left := range rows {
					op := corpus.Op{Verb: corpus.New, Out: "c1", Kind: k, MaxSize: w, LeftPadding: left}
					switch k {
					case corpus.Chunked:
						op.MaxSize, op.ChunkSize = 0, w
					case corpus.Arrays, corpus.BatchRecurrent:
						op.Slots = 1
					}
					c.Ops = []corpus.Op{op}
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// sequence is a root and the letters after it.
type sequence struct {
	root    int
	letters string
}

// spell makes the case of a sequence, and the model after it. name is that of
// the cache it is about, "" where the last letter leads nowhere; before is the
// number of operations before that letter.
func (d Domain) spell(root corpus.Case, word string) (g *generator, name string, before int) {
	g = &generator{c: root, ops: d.Info.Ops, names: 1, refuse: true, m: models.New(root.Semantics, root.Shape, root.Quant)}
	g.c.Ops = make([]corpus.Op, 0, 4*len(word)+1)
	name = g.then("c1", root.Ops[0])
	for i := range len(word) {
		info, _ := g.m.Info(name)
		before = len(g.c.Ops)
		if name = letters[word[i]].does(g, name, info); name == "" {
			break
		}
	}
	return g, name, before
}

// Exhaust judges t on every sequence of letters up to a depth, by the
// properties that need one run, and stops at the first finding. A state is
// gone on from once: states that differ by token names only are one. If ctx
// ends, it returns what was done up to the last depth that was finished.
func Exhaust(ctx context.Context, t Target, d Domain, depth int) (Exhausted, *Finding, error) {
	roots := d.roots()
	stepwise := slices.DeleteFunc(Properties(), func(p Property) bool { return p.look == nil })
	seen := map[[16]byte]bool{}
	var done, doing Exhausted
	var frontier []sequence
	for i := range roots {
		frontier = append(frontier, sequence{root: i})
	}
	for level := 0; level <= depth && len(frontier) > 0; level++ {
		var next []sequence
		for part := range slices.Chunk(frontier, 1024) { // bounds what is held at once
			tries := part // the roots themselves
			if level > 0 {
				tries = make([]sequence, 0, len(part)*len(letters))
				for _, s := range part {
					for l := range letters {
						tries = append(tries, sequence{s.root, s.letters + string(rune(l))})
					}
				}
			}
			states := make([]visited, len(tries))
			cores := runtime.GOMAXPROCS(0)
			if _, ok := t.(Leaker); ok {
				cores = 1 // what a run leaves behind can be told while no other is under way
			}
			parallel(cores, len(tries), func(i int) {
				states[i] = d.visit(ctx, t, stepwise, roots[tries[i].root], tries[i].letters)
			})
			for i, s := range states {
				switch {
				case s.err != nil || s.finding != nil:
					return done, s.finding, s.err
				case s.ran:
					doing.Sequences++
				}
				if s.ok && !seen[s.key] {
					seen[s.key] = true
					next = append(next, tries[i])
				}
			}
			if ctx.Err() != nil {
				return done, nil, nil
			}
		}
		frontier = next
		doing.Depth, doing.States = level, len(seen)
		done = doing
	}
	return done, nil, nil
}

// parallel calls f for each i below n, on so many cores.
func parallel(cores, n int, f func(i int)) {
	var wg sync.WaitGroup
	for core := range cores {
		wg.Go(func() {
			for i := core; i < n; i += cores {
				f(i)
			}
		})
	}
	wg.Wait()
}

// visited is where a sequence leads.
type visited struct {
	ran, ok bool // whether there was anything to run; whether it can be gone on from
	key     [16]byte
	finding *Finding
	err     error
}

// visit runs one sequence and judges it.
func (d Domain) visit(ctx context.Context, t Target, list []Property, root corpus.Case, word string) (s visited) {
	if ctx.Err() != nil {
		return s
	}
	g, name, before := d.spell(root, word)
	if s.ran = len(g.c.Ops) > before; !s.ran {
		return s
	}
	x := newExamination(t, g.c)
	if s.finding, s.err = x.check(ctx, list); ctx.Err() != nil {
		return visited{} // out of time, which the caller sees
	}
	if s.finding != nil || s.err != nil {
		return s
	}
	if info, known := g.m.Info(name); known && !info.Lost {
		s.ok, s.key = true, stateKey(g, name, info, x.own)
	}
	return s
}

// stateKey identifies all that the future of a cache depends on, as far as it
// can be seen: what it says of itself and holds, and what the model knows.
// Tokens are numbered in the order in which they appear.
func stateKey(g *generator, name string, info models.Info, r *run) [16]byte {
	ids := map[int]int{}
	b := make([]byte, 0, 512)
	tokens := func(row []int) {
		b = append(b, '[')
		for _, id := range row {
			if id != 0 && id != Unknown && ids[id] == 0 {
				ids[id] = len(ids) + 1
			}
			b = binary.AppendVarint(b, int64(ids[id]))
			if id < 0 {
				b = append(b, '-')
			}
		}
	}
	b = fmt.Appendf(b, "%v %+v\n", g.c.Semantics, info)
	last := &r.steps[len(r.steps)-1]
	b = corpus.AppendState(b, last.State)
	for _, row := range r.tokens().IDs(last.Stored) {
		tokens(row)
	}
	b = append(b, '\n')
	if info.Slots == 0 {
		for row := range info.Rows {
			tokens(g.m.Tokens(name, row))
			lead, real := g.m.Split(name, row, 8)
			b = append(b, byte(lead), byte(real))
		}
	}
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}
