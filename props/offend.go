package props

import (
	"fmt"
	"slices"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/models"
	"example.com/ringcheck/reference/ring"
)

// offend appends an operation that must be refused: each operation, with each
// code that the cache can be made to answer to it, is as likely as any other. It
// does nothing where there is none.
func (g *generator) offend(name string) {
	info, ok := g.m.Info(name)
	if !ok || info.Lost {
		return
	}
	if slices.Contains(allRings, info.Kind) && slices.Contains(g.kinds, info.Kind) && g.oneIn(6) {
		g.stranger(info)
	}
	type offence struct {
		code string
		verb corpus.Verb
	}
	var kinds []offence
	of := map[offence][]corpus.Op{}
	for _, op := range g.offences(name, info) {
		if !slices.Contains(g.ops, op.Verb) || op.Kind != "" && !slices.Contains(g.kinds, op.Kind) {
			continue
		}
		if ok, code := g.m.Legal(&op); !ok && code != "" {
			o := offence{code, op.Verb}
			if of[o] == nil {
				kinds = append(kinds, o)
			}
			of[o] = append(of[o], op)
		}
	}
	if len(kinds) == 0 {
		return
	}
	g.refuse = true
	g.emit(chosen(g, of[chosen(g, kinds)]))
	g.refuse = false
	g.names++ // the one that the operation has for what it would make
}

// stranger makes a cache that differs from one of its kind in its window.
func (g *generator) stranger(info models.Info) {
	window := g.window
	g.window++
	g.create(info.Kind)
	g.window = window
}

// offences are operations that break a rule, in some state of the cache at
// least.
func (g *generator) offences(name string, info models.Info) (list []corpus.Op) {
	made, snapshot := fmt.Sprintf("c%d", g.names+1), fmt.Sprintf("s%d", g.names+1)
	on := func(op corpus.Op) {
		op.Cache = name
		list = append(list, op)
	}
	rows, w := max(1, info.Rows), max(1, info.MaxSize)
	for _, v := range []corpus.Verb{corpus.Update, corpus.AppendDecode, corpus.AppendWindow} {
		on(corpus.Op{Verb: v, Tokens: g.fresh(rows, 0)})
		on(corpus.Op{Verb: v, Tokens: g.fresh(rows, 1)})
		on(corpus.Op{Verb: v, Tokens: g.fresh(rows, 2)})
		on(corpus.Op{Verb: v, Tokens: g.fresh(rows+1, 1)})
	}
	width := min(info.Columns, w-1) + 1
	for _, s := range [][2]int{{rows, width + 1}, {rows + 1, width}, {max(1, rows-1), width}} {
		on(corpus.Op{Verb: corpus.AppendWindowUnder, Tokens: g.fresh(rows, 1), Mask: seeAll(s[0], 1, s[1])})
	}
	for _, n := range []int{0, -1} {
		on(corpus.Op{Verb: corpus.MaskOp, N: n})
		on(corpus.Op{Verb: corpus.MaskOp, N: 1, Window: &n})
		on(corpus.Op{Verb: corpus.MaskOp, N: 2, Window: &n})
	}
	each := func(rows, n int) []int { return slices.Repeat([]int{n}, rows) }
	for _, n := range []int{1, -1} {
		on(corpus.Op{Verb: corpus.Prepare, LeftPadding: each(rows, n)})
	}
	on(corpus.Op{Verb: corpus.Prepare, LeftPadding: each(rows+1, 1)})
	on(corpus.Op{Verb: corpus.Prepare, Lengths: each(rows, 2), RightPadding: each(rows, 1)})
	on(corpus.Op{Verb: corpus.Prepare, Lengths: each(rows+1, 2), RightPadding: each(rows+1, 1)})
	if rows > 1 {
		uneven := each(rows, 1)
		uneven[0] = 2
		on(corpus.Op{Verb: corpus.Prepare, Lengths: each(rows, 2), RightPadding: uneven})
	}
	on(corpus.Op{Verb: corpus.Finalize})
	for _, keep := range [][]int{{info.Rows}, {-1}, {}, {0}} {
		on(corpus.Op{Verb: corpus.Filter, Rows: keep})
	}
	for _, row := range []int{info.Rows, -1, 0} {
		on(corpus.Op{Verb: corpus.Extract, Row: row, Out: made})
	}
	limit := 0
	on(corpus.Op{Verb: corpus.Extract, Row: 0, Limit: &limit, Out: made})
	for _, n := range []int{-1, 0, 1, info.Trim + 1} {
		on(corpus.Op{Verb: corpus.Trim, N: n})
	}
	for _, n := range []int{-1, 0, info.Round + 1} {
		on(corpus.Op{Verb: corpus.Rollback, Keep: n})
		on(corpus.Op{Verb: corpus.Rollback, KeepRows: each(rows, n)})
	}
	for _, n := range []int{rows + 1, max(1, rows-1)} {
		on(corpus.Op{Verb: corpus.Rollback, KeepRows: each(n, 0)})
	}
	on(corpus.Op{Verb: corpus.Attend, Scale: 0.5})
	on(corpus.Op{Verb: corpus.Attend, Queries: 1, Scale: 0.5})
	on(corpus.Op{Verb: corpus.Attend, Queries: info.Columns + 1, Scale: 0.5})
	on(corpus.Op{Verb: corpus.TemporalView})
	on(corpus.Op{Verb: corpus.ProjectedBytes, N: -1})
	if g.c.Quant != nil {
		on(corpus.Op{Verb: corpus.ToQuantized, Out: made})
	}
	on(corpus.Op{Verb: corpus.TrimFront})
	on(corpus.Op{Verb: corpus.Advance, N: -1})
	for _, slot := range []int{-1, info.Slots} {
		on(corpus.Op{Verb: corpus.Write, Slot: slot, Tokens: g.fresh(rows, 1)})
	}
	on(corpus.Op{Verb: corpus.Write, Tokens: g.fresh(rows+1, 1)})
	on(corpus.Op{Verb: corpus.Snapshot, As: snapshot})
	for _, from := range g.m.Snapshots() {
		on(corpus.Op{Verb: corpus.Restore, From: from})
	}
	list = append(list, corpus.Op{Verb: corpus.Merge, Caches: []string{name}, Out: made})
	if names := g.m.Names(); len(names) > 2 { // more than two, of which several may differ
		list = append(list, corpus.Op{Verb: corpus.Merge, Caches: slices.Clone(names[len(names)-3:]), Out: made})
	}
	for _, other := range g.m.Names() {
		if other != name {
			on(corpus.Op{Verb: corpus.Extend, Other: other})
			list = append(list, corpus.Op{Verb: corpus.Merge, Caches: []string{name, other}, Out: made})
		}
	}
	for _, k := range []corpus.Kind{corpus.Rotating, corpus.BatchRotating, corpus.RotatingQuantized, corpus.BatchRotatingQuantized} {
		op := corpus.Op{Verb: corpus.New, Kind: k, Out: made}
		if k == corpus.BatchRotating || k == corpus.BatchRotatingQuantized {
			op.LeftPadding = each(2, 0)
		}
		list = append(list, op)
	}
	list = append(list, corpus.Op{Verb: corpus.New, Kind: corpus.Rotating, MaxSize: w, Keep: 1, Out: made})
	return list
}

// seeAll is a mask that hides nothing.
func seeAll(b, n, s int) *ring.Mask {
	m := &ring.Mask{B: b, N: n, S: s, Data: make([]bool, b*n*s)}
	for i := range m.Data {
		m.Data[i] = true
	}
	return m
}
