package draw

import (
	"fmt"
	"slices"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
	"example.com/ringcheck/reference/ring"
)

// masks draws what operation i answered as a mask, over the keys that it meets:
// those that the operation itself returned, or the write after it. Where what
// came differs, each side is drawn over its own keys, unless the keys are the
// same: then one table shows both.
func (a *artist) masks(i int, want, got *observation) []Table {
	write := i
	if a.in.Case.Ops[i].Verb == corpus.MaskOp {
		write = a.writeOf(i)
	}
	w := mask{of: i, write: write, mask: want.Mask}
	g := mask{of: i, write: write, mask: got.Mask}
	if write >= 0 {
		w.keys = a.wanted(write).Returned
		if a.compare {
			g.keys = a.observe(a.in.Answers, write).Returned
		}
	}
	w.sameKeys = w.keys == nil || equal(w.keys, g.keys)
	g.sameKeys = w.sameKeys
	switch {
	case w.mask == nil && g.mask == nil:
		return nil
	case g.mask == nil || w.mask != nil && w.same(&g):
		return []Table{a.mask(&w, nil, Both)}
	case w.mask == nil:
		return []Table{a.mask(&g, nil, Came)}
	case w.mask.N == g.mask.N && w.mask.B == g.mask.B && w.mask.S == g.mask.S && w.sameKeys:
		return []Table{a.mask(&w, &g, Both)}
	}
	return []Table{a.mask(&w, &g, Wanted), a.mask(&g, &w, Came)}
}

// mask is a mask and the keys that it is over, as far as they are known.
type mask struct {
	of, write int // operations; write is -1 where no write uses the mask
	mask      *ring.Mask
	keys      [][]int
	sameKeys  bool // as the mask that it is compared with
}

func (m *mask) same(o *mask) bool {
	return m.mask.B == o.mask.B && m.mask.N == o.mask.N && m.mask.S == o.mask.S &&
		slices.Equal(m.mask.Data, o.mask.Data) && (m.sameKeys || o.keys == nil)
}

// sees returns the tokens that query q of row b attends to, as far as the keys
// and the mask both go.
func (m *mask) sees(b, q int) []int {
	if b >= len(m.keys) {
		return nil
	}
	var ids []int
	for s, id := range m.keys[b] {
		if attends, _ := m.mask.Sees(b, q, s); attends {
			ids = append(ids, id)
		}
	}
	return ids
}

// mask draws m. Cells in which other differs are marked; on both sides of one
// table a bit says what came, else what m has.
func (a *artist) mask(m, other *mask, side Side) Table {
	op := &a.in.Case.Ops[m.of]
	var queries [][]int
	t := Table{Caption: fmt.Sprintf("mask of #%d", m.of), Side: side, Columns: max(m.mask.S, columnsOf(m.keys)), Write: -1}
	switch {
	case m.write == m.of:
		queries = op.Tokens
		t.Caption += " over the keys that it returned"
	case m.write >= 0:
		queries = a.in.Case.Ops[m.write].Tokens
		t.Caption += fmt.Sprintf(" over the keys of #%d", m.write)
	default:
		t.Notes = append(t.Notes, "no write uses this mask")
	}
	if m.mask.N == 0 {
		t.Notes = append(t.Notes, "null: every query attends to every column")
	}
	rows := max(m.mask.B, len(m.keys))
	cost := make([]int, rows)
	for b := range cost {
		cost[b] = immaterial
		for q := range m.mask.N {
			if a.differingBits(m, other, queries, b, q) != nil {
				cost[b] = matters
			}
		}
	}
	for _, sp := range elide(cost, maxRows) {
		if sp.hidden {
			t.Lines = append(t.Lines, gap(sp, "rows"))
			continue
		}
		for b := sp.from; b < sp.to; b++ {
			t.Lines = append(t.Lines, a.maskRow(m, other, side, queries, b, t.Columns)...)
		}
	}
	return t
}

// differingBits says which columns of a query differ from other's; nil if none
// do, or nobody compares the query. Where the two are over other keys they are
// compared token by token, and what counts is what only m attends to.
func (a *artist) differingBits(m, other *mask, queries [][]int, b, q int) []bool {
	if other == nil || b >= m.mask.B || pads(queries, b, q) && (a.in.Level == props.Visible || a.in.Case.Semantics == ring.Exact) {
		return nil
	}
	bits := make([]bool, m.mask.S)
	some := false
	var sees map[int]bool
	if !m.sameKeys && b < len(m.keys) && b < len(other.keys) {
		sees = set(other.sees(b, q))
	}
	for s := range bits {
		attends, ok := m.mask.Sees(b, q, s)
		if sees != nil {
			bits[s] = attends && (s >= len(m.keys[b]) || !sees[m.keys[b][s]])
		} else {
			also, too := other.mask.Sees(b, q, s)
			bits[s] = ok != too || attends != also
		}
		some = some || bits[s]
	}
	if !some {
		return nil
	}
	return bits
}

func pads(queries [][]int, b, q int) bool {
	return b < len(queries) && q < len(queries[b]) && queries[b][q] <= 0
}

// maskRow draws one row of the batch: its keys, then a line a query.
func (a *artist) maskRow(m, other *mask, side Side, queries [][]int, b, columns int) []Line {
	var lines []Line
	name := fmt.Sprintf("row %d", b)
	if b < len(m.keys) {
		line := Line{Kind: KeyLine, Label: name + " keys", Cells: make([]Cell, columns)}
		var fresh map[int]bool
		if b < len(queries) {
			fresh = set(queries[b])
		}
		all := region{active: len(m.keys[b])}
		for s, id := range m.keys[b] {
			line.Cells[s] = all.cell(id, s, nil)
			if fresh[id] && id > 0 {
				line.Cells[s].Mark |= Fresh
			}
		}
		lines = append(lines, line)
	}
	if b >= m.mask.B {
		return lines
	}
	cost := make([]int, m.mask.N)
	for q := range cost {
		cost[q] = immaterial
		if a.differingBits(m, other, queries, b, q) != nil {
			cost[q] = matters
		}
	}
	if len(cost) > 0 {
		cost[0] = min(cost[0], ends)
		cost[len(cost)-1] = min(cost[len(cost)-1], ends)
	}
	for _, sp := range elide(cost, maxQueries) {
		if sp.hidden {
			lines = append(lines, gap(sp, "queries"))
			continue
		}
		for q := sp.from; q < sp.to; q++ {
			lines = append(lines, a.query(m, other, side, queries, b, q, columns))
		}
	}
	return lines
}

// query draws what one query attends to.
func (a *artist) query(m, other *mask, side Side, queries [][]int, b, q, columns int) Line {
	line := Line{Kind: QueryLine, Label: fmt.Sprintf("row %d query %d", b, q), Cells: make([]Cell, columns)}
	if b < len(queries) && q < len(queries[b]) {
		if id := queries[b][q]; id > 0 {
			line.Label = fmt.Sprintf("query %d (%d)", q, id)
		} else {
			line.Label = fmt.Sprintf("query %d (pad)", q)
		}
	}
	differs := a.differingBits(m, other, queries, b, q)
	shown := m
	if other != nil && side == Both {
		shown = other // both over the same keys: the marks say what was wanted
	}
	n := 0
	for s := range m.mask.S {
		attends := shown.mask.At(b, q, s)
		c := Cell{Class: Hidden}
		if attends {
			c.Class = Attends
			n++
		}
		if differs != nil && differs[s] {
			c.Mark = Differs
			switch {
			case attends == (side == Wanted):
				c.Class = Missing
			case side != Wanted:
				c.Class = Extra
			}
		}
		line.Cells[s] = c
	}
	line.Tail = "attends to " + plural(n, "key")
	if ids := shown.sees(b, q); len(ids) > 0 {
		line.Tail += ": " + ranges(ids)
	}
	if differs != nil && shown == other {
		if ids := m.sees(b, q); len(ids) > 0 {
			line.Tail += "; wanted " + ranges(ids)
		}
	}
	return line
}

// writeOf returns the write whose queries and keys the mask of operation i is
// for: the first operation after it that changes the cache, if it writes as
// many tokens a row; -1 if there is none. A mask of one query is that of a
// decode, which append_window of one token is not.
func (a *artist) writeOf(i int) int {
	ops := a.in.Case.Ops
	m := &ops[i]
	if m.Verb != corpus.MaskOp {
		return -1
	}
	for j := i + 1; j < len(ops); j++ {
		op := &ops[j]
		switch op.Verb {
		case corpus.MaskOp, corpus.TemporalView, corpus.ValidOffset, corpus.ProjectedBytes, corpus.Snapshot,
			corpus.Save, corpus.Attend, corpus.Release, corpus.Extract, corpus.Merge, corpus.ToQuantized:
			continue
		}
		if op.Cache != m.Cache && op.Other != m.Cache && op.Out != m.Cache && !slices.Contains(op.Outs, m.Cache) ||
			a.refused(j) {
			continue
		}
		switch op.Verb {
		case corpus.Update, corpus.AppendDecode, corpus.AppendWindow:
			if op.Cache == m.Cache && len(op.Tokens) > 0 && len(op.Tokens[0]) == m.N && (m.N > 1 || op.Verb != corpus.AppendWindow) {
				return j
			}
		}
		return -1
	}
	return -1
}

// refused reports whether operation i is wanted to be refused.
func (a *artist) refused(i int) bool {
	if w := a.in.Case.Ops[i].Want; w != nil {
		return w.Error != ""
	}
	return i < len(a.in.Reference) && a.in.Reference[i].Error != ""
}
