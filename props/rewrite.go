package props

import (
	"context"
	"fmt"
	"math"
	"slices"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/models"
	"example.com/ringcheck/models/attention"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// The properties of this file change a case in a way that must not matter, run
// both, and compare what the caches hold at the end. What a cache holds is
// asked by one more token a row under its mask (a probe), which every
// implementation can answer at any level.

func rewrites() []Property {
	return []Property{
		{Name: "repeatable", Doc: "the same case is answered the same again", more: repeatable},
		{Name: "bits", Doc: "any bit pattern comes back unchanged", more: anyBits},
		{Name: "renaming", Doc: "which tokens stand in other rows and columns changes nothing", more: renaming},
		{Name: "padding is silent", Doc: "which bytes padding holds changes nothing", more: silentPadding},
		{Name: "refused means unchanged", Doc: "leaving out what was refused changes nothing", more: refusedUnchanged},
		{Name: "chunking", Doc: "a block in two parts leaves what the whole leaves", more: likewise(splitBlocks)},
		{Name: "trim undone", Doc: "trimming tokens and feeding them again changes nothing", more: likewise(trimAndFeed)},
		{Name: "rollback undone", Doc: "writing tokens and rolling all of them back changes nothing", more: likewise(writeAndRollBack)},
		{Name: "snapshot round trip", Doc: "restoring a snapshot just taken changes nothing", more: likewise(restoreAtOnce)},
		{Name: "adopt round trip", Doc: "a cache adopted from a snapshot goes on as its source", more: likewise(adoptAndGoOn)},
		{Name: "prompt file round trip", Doc: "a cache loaded from its own file goes on as its source", more: likewise(loadAndGoOn)},
		{Name: "apart", Doc: "snapshots, extracted, merged and adopted caches stay what they were when their source goes on", more: apart},
		{Name: "rows", Doc: "row i of a batch is the serial ring of row i", more: rowsAreSerial},
		{Name: "filter commutes", Doc: "filtering rows and then asking is asking and then filtering", more: filterCommutes},
		{Name: "extend", Doc: "after an extend each side's rows are what they were", more: extendKeeps},
		{Name: "merge then extract", Doc: "rows taken out of a batch and merged again are what they were", more: mergeKeeps},
		{Name: "attention", Doc: "attention is the float64 model's, over the tokens each query may see", more: attentionHolds},
	}
}

// rewriter makes a case from another, operation by operation, and knows what
// is legal in it.
type rewriter struct {
	from   *corpus.Case
	c      corpus.Case
	m      *models.Model
	rename map[string]string // of caches
	names  int
	token  int
	legal  []bool // of each operation of the case itself
	broken bool   // an operation would not do in the new case what it does in the case
}

func newRewriter(x *examination) *rewriter {
	c := &x.c
	w := &rewriter{from: c, c: *c, m: models.New(c.Semantics, c.Shape, c.Quant), rename: map[string]string{}, legal: x.legality()}
	w.c.Ops = make([]corpus.Op, 0, len(c.Ops)+8)
	for _, id := range c.TokenIDs() {
		w.token = max(w.token, id, -id)
	}
	return w
}

// legality says which operations of the case succeed.
func (x *examination) legality() []bool {
	if x.legal == nil {
		m := models.New(x.c.Semantics, x.c.Shape, x.c.Quant)
		x.legal = make([]bool, len(x.c.Ops))
		for i := range x.c.Ops {
			x.legal[i], _ = m.Legal(&x.c.Ops[i])
			m.Apply(&x.c.Ops[i])
		}
	}
	return x.legal
}

// pass appends operation i of the case itself, under the names of now.
func (w *rewriter) pass(i int) { w.put(i, w.from.Ops[i]) }

// put appends what stands for operation i of the case.
func (w *rewriter) put(i int, op corpus.Op) {
	now := func(name string) string {
		if to, ok := w.rename[name]; ok {
			return to
		}
		return name
	}
	op.Cache, op.Other = now(op.Cache), now(op.Other)
	if len(op.Caches) > 0 {
		op.Caches = slices.Clone(op.Caches)
		for i := range op.Caches {
			op.Caches[i] = now(op.Caches[i])
		}
	}
	op.Want = nil
	ok, _ := w.m.Legal(&op)
	w.broken = w.broken || ok != w.legal[i] // what follows is another case
	w.m.Apply(&op)
	w.c.Ops = append(w.c.Ops, op)
}

// add appends an operation that must succeed, if it will.
func (w *rewriter) add(op corpus.Op) bool {
	if ok, _ := w.m.Legal(&op); !ok {
		return false
	}
	w.m.Apply(&op)
	w.c.Ops = append(w.c.Ops, op)
	return true
}

// must is add, and breaks the rewriting where it is refused.
func (w *rewriter) must(op corpus.Op) {
	if !w.add(op) {
		w.broken = true
	}
}

func (w *rewriter) name() string {
	w.names++
	return fmt.Sprintf("rewrite%d", w.names)
}

func (w *rewriter) fresh(rows, n int) [][]int {
	out := make([][]int, rows)
	for i := range out {
		for range n {
			w.token++
			out[i] = append(out[i], w.token)
		}
	}
	return out
}

// probe asks a cache what it holds: it feeds one token a row under its mask.
// It returns the index of the mask operation, or -1 where the cache cannot be
// asked.
func (w *rewriter) probe(name string) int {
	info, ok := w.m.Info(name)
	if !ok || info.Lost || info.Pending || info.Rows == 0 || !info.Kind.Has(corpus.MaskOp, w.c.Semantics) || !info.Kind.Has(corpus.Update, w.c.Semantics) {
		return -1
	}
	at := len(w.c.Ops)
	if w.add(corpus.Op{Verb: corpus.MaskOp, Cache: name, N: 1}) && w.add(corpus.Op{Verb: corpus.Update, Cache: name, Tokens: w.fresh(info.Rows, 1)}) {
		return at
	}
	w.c.Ops = w.c.Ops[:at]
	return -1
}

// held is what the probe at an operation saw: per row the token ids, sorted,
// without the probe's own.
func (r *run) held(mask int) ([][]int, bool) {
	if mask+1 >= len(r.steps) || r.steps[mask].Error != "" || r.steps[mask+1].Error != "" || r.steps[mask+1].Unsupported != "" {
		return nil, false
	}
	m, ids, fed := r.steps[mask].Mask, r.tokens().IDs(r.steps[mask+1].Returned), r.c.Ops[mask+1].Tokens
	if len(ids) != len(fed) {
		return nil, false
	}
	out := make([][]int, len(ids))
	for b, row := range ids {
		own := fed[b][0]
		for j, id := range row {
			seen := m == nil || m.N == 0
			if !seen && (m.B == len(ids) || m.B == 1) && j < m.S {
				seen = m.At(b%m.B, 0, j)
			}
			if seen && id != own {
				out[b] = append(out[b], id)
			}
		}
		slices.Sort(out[b])
	}
	return out, true
}

// likewise makes a property of a rewriting: the caches of the rewritten case
// hold in the end what those of the case hold. rewrite is given each operation
// of the case in turn, and appends it and what else it likes; it reports
// whether it changed anything.
func likewise(rewrite func(w *rewriter, i int) bool) func(context.Context, *examination) (*Finding, error) {
	return func(ctx context.Context, x *examination) (*Finding, error) {
		if slices.ContainsFunc(x.c.Ops, func(op corpus.Op) bool { return op.Kind == corpus.List }) {
			return nil, nil // a list's children have two names
		}
		changed := newRewriter(x)
		any := false
		for i := range x.c.Ops {
			any = rewrite(changed, i) || any
		}
		if !any || changed.broken {
			return nil, nil
		}
		plain, err := x.ask(ctx)
		if plain == nil || err != nil {
			return nil, err
		}
		type pair struct{ a, b int }
		var probes []pair
		for _, name := range plain.names {
			if b := changed.probe(changed.current(name)); b >= 0 {
				probes = append(probes, pair{plain.at[name], b})
			}
		}
		if len(probes) == 0 || !claims(x.info, changed.c) {
			return nil, nil
		}
		b, err := x.run(ctx, changed.c)
		if err != nil {
			return nil, err
		}
		for _, p := range probes {
			if f := sameHeld(plain.run, b, p.a, p.b, nil); f != nil {
				return f, nil
			}
		}
		return nil, nil
	}
}

// asking is the case itself with some of its caches asked at the end what they
// hold: the newest few and the newest batch.
type asking struct {
	run   *run
	names []string
	at    map[string]int // the probe of each
}

// ask runs the case that way, which all rewritings share; nil where no cache can
// be asked.
func (x *examination) ask(ctx context.Context) (*asking, error) {
	if x.asked != nil {
		return x.asked, nil
	}
	w, p := passed(x), &asking{at: map[string]int{}}
	names := w.m.Names()
	names = slices.Clone(names[max(0, len(names)-3):])
	if batch := w.batch(); batch != "" && !slices.Contains(names, batch) {
		names = append(names, batch)
	}
	for _, name := range names {
		if at := w.probe(name); at >= 0 {
			p.names, p.at[name] = append(p.names, name), at
		}
	}
	if len(p.names) == 0 || !claims(x.info, w.c) {
		return nil, nil
	}
	var err error
	if p.run, err = x.run(ctx, w.c); err != nil {
		return nil, err
	}
	x.asked = p
	return p, nil
}

// claims reports whether a target claims all operations of a case.
func claims(info Info, c corpus.Case) bool { return info.Lacks(c) == "" }

// sameHeld compares two probes; becomes says what b must hold where a holds
// something, nil that it is the same.
func sameHeld(a, b *run, ma, mb int, becomes func([][]int) [][]int) *Finding {
	want, ok := a.held(ma)
	if !ok {
		return nil // the case itself is refused here; other properties say so
	}
	got, ok := b.held(mb)
	if !ok {
		return b.finding(mb+1, "refused or not answered, although it is legal")
	}
	if becomes != nil {
		want = becomes(want)
	}
	for i := range max(len(got), len(want)) {
		if !slices.Equal(at(want, i), at(got, i)) {
			return b.finding(mb+1, "row %d holds the tokens %v, want %v", i, at(got, i), at(want, i))
		}
	}
	if len(got) != len(want) {
		return b.finding(mb+1, "there are %d rows, want %d", len(got), len(want))
	}
	return nil
}

func at(rows [][]int, i int) []int {
	if i < len(rows) {
		return rows[i]
	}
	return nil
}

func repeatable(ctx context.Context, x *examination) (*Finding, error) {
	a, err := x.base(ctx)
	if err != nil {
		return nil, err
	}
	b, err := x.run(ctx, x.c)
	if err != nil {
		return nil, err
	}
	if d := CompareRuns(x.c, a.steps, b.steps, max(x.info.Level, Columns)); d != nil {
		return b.finding(d.Step, "a second run answers differently: %v", d), nil
	}
	return nil, nil
}

// sameAnswers compares what two runs of cases that differ only in bytes and
// token ids answer, with the ids of the first turned by rename.
func sameAnswers(a, b *run, rename func(int) int) *Finding {
	wa, wb := a.ids(), b.ids()
	dropped := DropAfterRaises(*a.c, a.steps)
	for i := range min(len(wa), len(wb)) {
		if dropped != nil && dropped[i] || wa[i].Error == "raises" {
			continue
		}
		if wa[i].Error != wb[i].Error {
			return b.finding(i, "refused with %q, want %q", wb[i].Error, wa[i].Error)
		}
		for _, side := range [2]struct {
			what string
			a, b [][]int
		}{{"returned", wa[i].Returned, wb[i].Returned}, {"stored", wa[i].Stored, wb[i].Stored}} {
			want := slices.Clone(side.a)
			for r := range want {
				want[r] = slices.Clone(want[r])
				for j, id := range want[r] {
					if id != 0 && id != Unknown {
						want[r][j] = rename(id)
					}
				}
			}
			if !slices.EqualFunc(want, side.b, slices.Equal[[]int]) {
				return b.finding(i, "%s is %v, want %v", side.what, side.b, want)
			}
		}
		if name, w, g, ok := compareStates(wa[i].State, wb[i].State, Layout, true); !ok {
			return b.finding(i, "state.%s is %v, want %v", name, g, w)
		}
		if ma, mb := wa[i].Mask, wb[i].Mask; (ma == nil) != (mb == nil) || ma != nil && !slices.Equal(ma.Data, mb.Data) {
			return b.finding(i, "the mask differs from that of the case with other tokens")
		}
	}
	return nil
}

// withTokens returns the case with every token id turned by f.
func withTokens(c corpus.Case, f func(int) int) corpus.Case {
	c.Ops = slices.Clone(c.Ops)
	for i := range c.Ops {
		op := &c.Ops[i]
		op.Want = nil
		op.Tokens = slices.Clone(op.Tokens)
		for r := range op.Tokens {
			op.Tokens[r] = slices.Clone(op.Tokens[r])
			for j, id := range op.Tokens[r] {
				op.Tokens[r][j] = f(id)
			}
		}
	}
	return c
}

func underTokens(ctx context.Context, x *examination, c corpus.Case, rename func(int) int) (*Finding, error) {
	a, err := x.base(ctx)
	if err != nil {
		return nil, err
	}
	b, err := x.run(ctx, c)
	if err != nil {
		return nil, err
	}
	return sameAnswers(a, b, rename), nil
}

func anyBits(ctx context.Context, x *examination) (*Finding, error) {
	if x.c.Fill == corpus.Bits || x.c.Quant != nil || !slices.Contains(x.info.Fills, corpus.Bits) {
		return nil, nil
	}
	c := x.c
	c.Fill = corpus.Bits
	return underTokens(ctx, x, c, func(id int) int { return id })
}

func renaming(ctx context.Context, x *examination) (*Finding, error) {
	f := func(id int) int {
		switch {
		case id > 0 && id%3 == 0:
			return id + 1_000_000
		case id > 0 && id%3 == 1:
			return id + 500_000
		}
		return id
	}
	return underTokens(ctx, x, withTokens(x.c, f), f)
}

func silentPadding(ctx context.Context, x *examination) (*Finding, error) {
	f := func(id int) int {
		if id < 0 {
			return id - 1_000_000
		}
		return id
	}
	if !slices.ContainsFunc(x.c.Ops, func(op corpus.Op) bool {
		return slices.ContainsFunc(op.Tokens, func(row []int) bool { return slices.ContainsFunc(row, func(id int) bool { return id < 0 }) })
	}) {
		return nil, nil
	}
	return underTokens(ctx, x, withTokens(x.c, f), f)
}

func refusedUnchanged(ctx context.Context, x *examination) (*Finding, error) {
	a, err := x.base(ctx)
	if err != nil {
		return nil, err
	}
	c := x.c
	c.Ops = nil
	var kept []int
	for i := range a.steps {
		e := a.steps[i].Error
		if e == "raises" || a.steps[i].Unsupported != "" {
			return nil, nil // what is left behind is not part of the semantics
		}
		if e == "" {
			c.Ops, kept = append(c.Ops, x.c.Ops[i]), append(kept, i)
		}
	}
	if len(kept) == len(a.steps) {
		return nil, nil
	}
	b, err := x.run(ctx, c)
	if err != nil {
		return nil, err
	}
	want := make([]corpus.Step, len(kept))
	for k, i := range kept {
		want[k] = a.steps[i]
	}
	if d := CompareRuns(c, b.steps, want, x.info.Level); d != nil {
		return a.finding(kept[min(d.Step, len(kept)-1)], "an operation refused before has changed the cache: %v", d), nil
	}
	return nil, nil
}

// rolledBack reports whether a rollback follows the write at i: then it must
// stay one write.
func (w *rewriter) rolledBack(i int) bool {
	for j := i + 1; j < len(w.from.Ops); j++ {
		op := &w.from.Ops[j]
		if op.Cache == w.from.Ops[i].Cache && w.legal[j] {
			switch op.Verb {
			case corpus.Rollback:
				return true
			case corpus.Update, corpus.AppendDecode, corpus.AppendWindow, corpus.AppendWindowUnder:
				return false
			}
		}
	}
	return false
}

func splitBlocks(w *rewriter, i int) bool {
	op := w.from.Ops[i]
	info, _ := w.m.Info(w.current(op.Cache)) // which columns are sinks depends on the blocks
	if op.Verb != corpus.Update || !w.legal[i] || len(op.Tokens[0]) < 2 || info.Keep > 0 || w.rolledBack(i) {
		w.pass(i)
		return false
	}
	n := len(op.Tokens[0]) / 2
	before := len(w.c.Ops)
	for _, part := range [2]func([]int) []int{func(r []int) []int { return r[:n] }, func(r []int) []int { return r[n:] }} {
		half := op
		half.Tokens = make([][]int, len(op.Tokens))
		for r := range op.Tokens {
			half.Tokens[r] = part(op.Tokens[r])
		}
		w.put(i, half)
	}
	if info, ok := w.m.Info(op.Cache); !ok || info.Lost || len(w.c.Ops) != before+2 {
		w.broken = true
	}
	// mlx-lm refuses a single column while padding is pending.
	if w.c.Semantics == ring.MLXLM && (n == 1 || len(op.Tokens[0])-n == 1) {
		if info, _ := w.m.Info(op.Cache); info.Pending {
			w.broken = true
		}
	}
	return true
}

func trimAndFeed(w *rewriter, i int) bool {
	op := w.from.Ops[i]
	w.pass(i)
	if op.Verb != corpus.Update || !w.legal[i] || w.rolledBack(i) {
		return false
	}
	name := w.current(op.Cache)
	info, ok := w.m.Info(name)
	n := min(info.Trim, 2, len(op.Tokens[0]))
	if !ok || n < 1 {
		return false
	}
	again := corpus.Op{Verb: corpus.Update, Cache: name}
	for _, row := range op.Tokens {
		again.Tokens = append(again.Tokens, row[len(row)-n:])
	}
	if !w.add(corpus.Op{Verb: corpus.Trim, Cache: name, N: n}) {
		return false
	}
	w.must(again)
	return true
}

func (w *rewriter) current(name string) string {
	if to, ok := w.rename[name]; ok {
		return to
	}
	return name
}

func writeAndRollBack(w *rewriter, i int) bool {
	op := w.from.Ops[i]
	name := w.current(op.Cache)
	info, ok := w.m.Info(name)
	added := false
	if ok && op.Verb == corpus.Update && w.legal[i] && !info.Pending && info.Columns > 0 && info.Kind.Has(corpus.Rollback, w.c.Semantics) &&
		w.add(corpus.Op{Verb: corpus.AppendWindow, Cache: name, Tokens: w.fresh(info.Rows, 2)}) {
		w.must(corpus.Op{Verb: corpus.Rollback, Cache: name, Keep: 0})
		added = true
	}
	w.pass(i)
	return added
}

func restoreAtOnce(w *rewriter, i int) bool {
	op := w.from.Ops[i]
	w.pass(i)
	if op.Verb != corpus.Update && op.Verb != corpus.Prepare || w.rolledBack(i) {
		return false
	}
	name, as := w.current(op.Cache), w.name()
	if !w.add(corpus.Op{Verb: corpus.Snapshot, Cache: name, As: as}) {
		return false
	}
	w.must(corpus.Op{Verb: corpus.Restore, Cache: name, From: as})
	return true
}

func adoptAndGoOn(w *rewriter, i int) bool {
	op := w.from.Ops[i]
	w.pass(i)
	if op.Verb != corpus.Update || w.rolledBack(i) {
		return false
	}
	name, as, out := w.current(op.Cache), w.name(), w.name()
	if !w.add(corpus.Op{Verb: corpus.Snapshot, Cache: name, As: as}) || !w.add(corpus.Op{Verb: corpus.Adopt, From: as, Out: out}) {
		return false
	}
	w.rename[op.Cache] = out
	return true
}

func loadAndGoOn(w *rewriter, i int) bool {
	op := w.from.Ops[i]
	w.pass(i)
	if op.Verb != corpus.Update || w.rolledBack(i) || w.names > 3 {
		return false
	}
	name, file, out := w.current(op.Cache), w.name(), w.name()
	if info, ok := w.m.Info(name); !ok || info.Lost || info.Kind == corpus.List {
		return false
	}
	if !w.add(corpus.Op{Verb: corpus.Save, Caches: []string{name}, File: file}) {
		return false
	}
	w.must(corpus.Op{Verb: corpus.Load, File: file, Outs: []string{out}})
	if info, ok := w.m.Info(out); !ok || info.Lost {
		w.broken = true // mlx-lm's batches are of no use after a load (Q03)
	}
	w.rename[op.Cache] = out
	return true
}

// apart copies a cache in every way halfway through the case, and compares
// what the copies hold at once with what they hold at the end.
func apart(ctx context.Context, x *examination) (*Finding, error) {
	at := -1
	for i := len(x.c.Ops) / 2; i < len(x.c.Ops); i++ {
		if x.c.Ops[i].Verb == corpus.Update {
			at = i
			break
		}
	}
	if at < 0 {
		return nil, nil
	}
	early, late := newRewriter(x), newRewriter(x)
	for i := range at + 1 {
		early.pass(i)
		late.pass(i)
	}
	source := x.c.Ops[at].Cache
	copies, snapshot := early.copies(source)
	late.copies(source)
	for i := at + 1; i < len(x.c.Ops); i++ {
		late.pass(i)
	}
	late.goAround(source)
	if snapshot != "" {
		if late.add(corpus.Op{Verb: corpus.Restore, Cache: source, From: snapshot}) {
			late.goAround(source)
		}
		again := corpus.Op{Verb: corpus.Adopt, From: snapshot, Out: early.name()}
		if early.add(again) && late.add(again) {
			copies = append(copies, again.Out)
		}
	}
	var probes [][2]int
	for _, name := range copies {
		if a, b := early.probe(name), late.probe(name); a >= 0 && b >= 0 {
			probes = append(probes, [2]int{a, b})
		}
	}
	if len(probes) == 0 || !claims(x.info, late.c) {
		return nil, nil
	}
	a, err := x.run(ctx, early.c)
	if err != nil {
		return nil, err
	}
	b, err := x.run(ctx, late.c)
	if err != nil {
		return nil, err
	}
	for _, p := range probes {
		if f := sameHeld(a, b, p[0], p[1], nil); f != nil {
			f.What = "a copy has changed with its source: " + f.What
			return f, nil
		}
	}
	return nil, nil
}

// goAround writes to a cache until a ring has overwritten all that it held, as
// far as that is legal.
func (w *rewriter) goAround(name string) {
	info, _ := w.m.Info(name)
	for range min(info.MaxSize, 20) {
		if !w.add(corpus.Op{Verb: corpus.Update, Cache: name, Tokens: w.fresh(info.Rows, 1)}) {
			return
		}
	}
}

// copies makes an adopted, an extracted and a merged cache of one, as far as
// that is legal, and returns their names, and that of the snapshot.
func (w *rewriter) copies(name string) (made []string, snapshot string) {
	add := func(op corpus.Op) bool {
		if !w.add(op) {
			return false
		}
		made = append(made, op.Out)
		return true
	}
	as, adopted, row, merged := w.name(), w.name(), w.name(), w.name()
	if w.add(corpus.Op{Verb: corpus.Snapshot, Cache: name, As: as}) {
		snapshot = as
		add(corpus.Op{Verb: corpus.Adopt, From: as, Out: adopted})
	}
	source := name
	if info, ok := w.m.Info(name); ok && info.Rows > 0 && add(corpus.Op{Verb: corpus.Extract, Cache: name, Row: info.Rows - 1, Out: row}) {
		source = row
	}
	add(corpus.Op{Verb: corpus.Merge, Caches: []string{source}, Out: merged})
	return made, snapshot
}

// batch returns the newest cache with rows to be taken apart, "" if there is
// none.
func (w *rewriter) batch() string {
	for _, name := range slices.Backward(w.m.Names()) {
		info, ok := w.m.Info(name)
		if ok && !info.Lost && !info.Pending && info.Rows > 0 && info.Columns > 0 && info.Kind.Has(corpus.Filter, w.c.Semantics) && info.Kind.Has(corpus.Update, w.c.Semantics) {
			return name
		}
	}
	return ""
}

// passed is a rewriter that has gone through the whole case.
func passed(x *examination) *rewriter {
	w := newRewriter(x)
	for i := range x.c.Ops {
		w.pass(i)
	}
	return w
}

// rowsAreSerial feeds the tokens that a row holds to a serial cache of its
// own, and compares the two.
func rowsAreSerial(ctx context.Context, x *examination) (*Finding, error) {
	w := passed(x)
	name := w.batch()
	info, _ := w.m.Info(name)
	serial, ok := map[corpus.Kind]corpus.Kind{
		corpus.BatchRotating: corpus.Rotating, corpus.BatchRotatingQuantized: corpus.RotatingQuantized, corpus.BatchKV: corpus.KV,
	}[info.Kind]
	if !ok {
		return nil, nil
	}
	type pair struct{ alone, row int }
	var probes []pair
	for row := range info.Rows {
		tokens := slices.Clone(w.m.Tokens(name, row))
		alone := w.name()
		w.must(corpus.Op{Verb: corpus.New, Out: alone, Kind: serial, MaxSize: info.MaxSize})
		if len(tokens) > 0 {
			w.must(corpus.Op{Verb: corpus.Update, Cache: alone, Tokens: [][]int{tokens}})
		}
		probes = append(probes, pair{alone: w.probe(alone), row: row})
	}
	whole := w.probe(name)
	if whole < 0 || w.broken || !claims(x.info, w.c) {
		return nil, nil
	}
	r, err := x.run(ctx, w.c)
	if err != nil {
		return nil, err
	}
	got, ok := r.held(whole)
	if !ok {
		return r.finding(whole+1, "refused or not answered, although it is legal"), nil
	}
	for _, p := range probes {
		if p.alone < 0 {
			continue
		}
		want, ok := r.held(p.alone)
		if !ok {
			return r.finding(p.alone+1, "refused or not answered, although it is legal"), nil
		}
		if p.row >= len(got) || len(want) != 1 || !slices.Equal(want[0], got[p.row]) {
			return r.finding(whole+1, "row %d holds the tokens %v, its serial twin %v", p.row, at(got, p.row), want), nil
		}
	}
	return nil, nil
}

func filterCommutes(ctx context.Context, x *examination) (*Finding, error) {
	w := passed(x)
	name := w.batch()
	info, _ := w.m.Info(name)
	var rows []int
	for i := info.Rows - 1; i >= 0; i -= 2 {
		rows = append(rows, i)
	}
	return w.compare(ctx, x, name, func() string {
		w.must(corpus.Op{Verb: corpus.Filter, Cache: name, Rows: rows})
		return name
	}, func(want [][]int) [][]int {
		kept := make([][]int, len(rows))
		for i, row := range rows {
			kept[i] = at(want, row)
		}
		return kept
	})
}

// compare asks a cache of the case, and the one that change makes of it, what
// they hold; becomes says what that must be.
func (w *rewriter) compare(ctx context.Context, x *examination, name string, change func() string, becomes func([][]int) [][]int) (*Finding, error) {
	if name == "" {
		return nil, nil
	}
	plain, err := x.ask(ctx)
	if plain == nil || err != nil {
		return nil, err
	}
	before, asked := plain.at[name]
	after := w.probe(change())
	if !asked || after < 0 || w.broken || !claims(x.info, w.c) {
		return nil, nil
	}
	r, err := x.run(ctx, w.c)
	if err != nil {
		return nil, err
	}
	return sameHeld(plain.run, r, before, after, becomes), nil
}

// extendKeeps joins a fresh batch of one longer and one shorter row to a
// cache, on either side.
func extendKeeps(ctx context.Context, x *examination) (*Finding, error) {
	w := passed(x)
	name := w.batch()
	info, _ := w.m.Info(name)
	tokens := w.fresh(2, 3)
	tokens[1][0] = -tokens[1][0]
	ours := [][]int{lastOf(tokens[0], info.MaxSize-1), lastOf(tokens[1][1:], info.MaxSize-1)}
	onto := info.Rows%2 == 1
	return w.compare(ctx, x, name, func() string {
		other := w.name()
		w.must(corpus.Op{Verb: corpus.New, Out: other, Kind: info.Kind, MaxSize: info.MaxSize, LeftPadding: []int{0, 1}})
		w.must(corpus.Op{Verb: corpus.Update, Cache: other, Tokens: tokens})
		whole := name
		if !onto {
			whole, other = other, name
		}
		w.must(corpus.Op{Verb: corpus.Extend, Cache: whole, Other: other})
		return whole
	}, func(want [][]int) [][]int {
		if onto {
			return append(want, ours...)
		}
		return append(ours, want...)
	})
}

// lastOf is the last n of a list; all of it where n is negative, which stands
// for no window.
func lastOf(list []int, n int) []int {
	if n < 0 {
		return list
	}
	out := list[max(0, len(list)-n):]
	if len(out) == 0 {
		return nil
	}
	return out
}

// mergeKeeps takes all rows of a batch out and merges them again.
func mergeKeeps(ctx context.Context, x *examination) (*Finding, error) {
	w := passed(x)
	name := w.batch()
	info, _ := w.m.Info(name)
	return w.compare(ctx, x, name, func() string {
		merge := corpus.Op{Verb: corpus.Merge, Out: w.name()}
		for row := range info.Rows {
			out := w.name()
			w.must(corpus.Op{Verb: corpus.Extract, Cache: name, Row: row, Out: out})
			merge.Caches = append(merge.Caches, out)
		}
		w.must(merge)
		return merge.Out
	}, nil)
}

// attentionHolds lets a query of the last column attend over every exact ring
// at the end of the case.
func attentionHolds(ctx context.Context, x *examination) (*Finding, error) {
	if x.c.Semantics != ring.Exact || x.c.Fill != corpus.Grid {
		return nil, nil
	}
	w := passed(x)
	type asked struct {
		step, window int
		rows         [][]int
		kind         corpus.Kind
	}
	var all []asked
	for _, name := range w.m.Names() {
		info, ok := w.m.Info(name)
		if !ok || info.Lost || info.Pending || info.Columns == 0 || info.Rows == 0 || info.MaxSize == 0 {
			continue
		}
		q := asked{step: len(w.c.Ops), window: info.MaxSize, kind: info.Kind}
		for row := range info.Rows {
			q.rows = append(q.rows, slices.Clone(w.m.Tokens(name, row)))
		}
		if w.add(corpus.Op{Verb: corpus.Attend, Cache: name, Queries: 1, Scale: 0.5}) {
			all = append(all, q)
		}
	}
	if len(all) == 0 || !claims(x.info, w.c) {
		return nil, nil
	}
	r, err := x.run(ctx, w.c)
	if err != nil {
		return nil, err
	}
	for _, q := range all {
		if q.step >= len(r.steps) {
			return nil, nil // not answered; another property says so
		}
		s := &r.steps[q.step]
		if s.Error != "" {
			return r.finding(q.step, "refused with %s, although it is legal", s.Error), nil
		}
		if s.Attended == nil {
			continue
		}
		heads, dv := r.c.Shape.KVHeads, r.c.Shape.ValueDim
		if len(s.Attended) != len(q.rows)*heads*dv {
			return r.finding(q.step, "%d numbers, want %d", len(s.Attended), len(q.rows)*heads*dv), nil
		}
		for row, tokens := range q.rows {
			if len(tokens) == 0 {
				continue
			}
			want, largest, err := modelAttention(r.c, q.kind, lastOf(tokens, q.window), 0.5)
			if err != nil {
				return nil, err
			}
			for h := range heads {
				for d := range dv {
					got := float64(s.Attended[(row*heads+h)*dv+d])
					if !(math.Abs(got-want[h][d]) <= 1e-5*largest) {
						return r.finding(q.step, "row %d, head %d, element %d is %v, want %v", row, h, d, got, want[h][d]), nil
					}
				}
			}
		}
	}
	return nil, nil
}

// modelAttention is the float64 model's answer for one query over tokens, and
// the largest |value| among them. Quantized rings are asked over what they
// store.
func modelAttention(c *corpus.Case, kind corpus.Kind, tokens []int, scale float64) (out [][]float64, largest float64, err error) {
	side := func(plane int) ([]float32, error) {
		a := corpus.TokenArray(c.Shape, c.Fill, plane, [][]int{tokens})
		if kind == corpus.RotatingQuantized || kind == corpus.BatchRotatingQuantized {
			p, err := reference.Quantize(a, c.Quant.GroupSize, c.Quant.Bits)
			if err != nil {
				return nil, err
			}
			if a, err = reference.Dequantize(p, c.Quant.GroupSize, c.Quant.Bits); err != nil {
				return nil, err
			}
		}
		return reference.Floats(a)
	}
	keys, err := side(corpus.KeyPlane)
	if err != nil {
		return nil, 0, err
	}
	values, err := side(corpus.ValuePlane)
	if err != nil {
		return nil, 0, err
	}
	queries, err := reference.Floats(QueryArray(c, 1, 1))
	if err != nil {
		return nil, 0, err
	}
	vector := func(all []float32, h, columns, j, width int) []float64 {
		v := make([]float64, width)
		for d := range v {
			v[d] = float64(all[(h*columns+j)*width+d])
		}
		return v
	}
	heads := make([]attention.Head, c.Shape.KVHeads)
	asked := make([][]float64, c.Shape.KVHeads)
	visible := make([]bool, len(tokens))
	for h := range heads {
		asked[h] = vector(queries, h, 1, 0, c.Shape.KeyDim)
		for j := range tokens {
			heads[h].Keys = append(heads[h].Keys, vector(keys, h, len(tokens), j, c.Shape.KeyDim))
			heads[h].Values = append(heads[h].Values, vector(values, h, len(tokens), j, c.Shape.ValueDim))
			visible[j] = true
		}
	}
	for _, v := range values {
		largest = max(largest, math.Abs(float64(v)))
	}
	out, err = attention.Attend(asked, heads, visible, scale)
	return out, largest, err
}
