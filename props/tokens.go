package props

import (
	"math"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// Unknown stands for a column whose bytes are those of no token that the case
// feeds: neither a token's, nor all zero. It is no token id.
const Unknown = math.MinInt

// Tokens turns the columns of a case's planes back into token ids. It is for
// one goroutine.
type Tokens struct {
	c     corpus.Case
	plain *corpus.Lookup    // keys and values; made on first use, as all of these
	quant *corpus.Lookup    // the six quantized planes
	slots [2]*corpus.Lookup // slots of recurrent state, even and odd
	bytes [6][]byte         // of one column, plane by plane
}

// NewTokens returns a Tokens for the tokens that c feeds.
func NewTokens(c corpus.Case) *Tokens { return &Tokens{c: c} }

// IDs returns the token id of each column, [row][column]: 0 for a column whose
// bytes are zero in all planes, [Unknown] for one whose planes are not all of
// one token. The columns of recurrent state are its slots; those that hold
// nothing are 0. IDs returns nil if there are no planes, or they are not of the
// case's shape.
func (t *Tokens) IDs(planes []corpus.Plane) [][]int {
	if len(planes) == 0 {
		return nil
	}
	switch planes[0].Name {
	case "keys":
		s := t.c.Shape
		if !fit(planes, s.KVHeads, extent{s.DType, s.KeyDim}, extent{s.DType, s.ValueDim}) {
			return nil
		}
		if t.plain == nil {
			t.plain = corpus.PlainLookup(t.c)
		}
		return t.columns(planes, t.plain)
	case "keys.packed":
		s, q := t.c.Shape, t.c.Quant
		if q == nil {
			return nil
		}
		var want []extent
		for _, d := range []int{s.KeyDim, s.ValueDim} {
			scale := extent{s.DType, d / q.GroupSize}
			want = append(want, extent{ring.Uint32, d * q.Bits / 32}, scale, scale)
		}
		if !fit(planes, s.KVHeads, want...) {
			return nil
		}
		if t.quant == nil {
			t.quant = quantLookup(t.c)
		}
		return t.columns(planes, t.quant)
	}
	return t.slotIDs(planes)
}

// extent is the data type and the last axis of a plane.
type extent struct {
	dtype ring.DType
	width int
}

// fit reports whether there is one plane a want, all with the same rows and
// columns.
func fit(planes []corpus.Plane, heads int, want ...extent) bool {
	if len(planes) != len(want) {
		return false
	}
	for i, p := range planes {
		a := p.Array
		if a.DType != want[i].dtype || a.Shape[1] != heads || a.Shape[3] != want[i].width ||
			a.Rows() != planes[0].Array.Rows() || a.Columns() != planes[0].Array.Columns() {
			return false
		}
	}
	return true
}

// columns looks up each column.
func (t *Tokens) columns(planes []corpus.Plane, lookup *corpus.Lookup) [][]int {
	ids := make([][]int, planes[0].Array.Rows())
	for b := range ids {
		ids[b] = make([]int, planes[0].Array.Columns())
		for s := range ids[b] {
			for p := range planes {
				t.bytes[p] = corpus.AppendColumn(t.bytes[p][:0], planes[p].Array, b, s)
			}
			ids[b][s] = find(lookup, t.bytes[:len(planes)])
		}
	}
	return ids
}

func find(lookup *corpus.Lookup, planes [][]byte) int {
	if id, ok := lookup.ID(planes...); ok {
		return id
	}
	return Unknown
}

// slotIDs returns one column a slot, up to the last that is set.
func (t *Tokens) slotIDs(planes []corpus.Plane) [][]int {
	var ids [][]int
	last := slot(planes[len(planes)-1].Name)
	for _, p := range planes {
		n := slot(p.Name)
		if n < 0 || n > last {
			return nil
		}
		s, plane := t.c.Shape, n%2
		if !fit([]corpus.Plane{p}, s.KVHeads, extent{s.DType, s.Width(plane)}) || p.Array.Columns() != 1 {
			return nil
		}
		if t.slots[plane] == nil {
			t.slots[plane] = slotLookup(t.c, plane)
		}
		if ids == nil {
			ids = make([][]int, p.Array.Rows())
			for b := range ids {
				ids[b] = make([]int, last+1)
			}
		}
		if len(ids) != p.Array.Rows() {
			return nil
		}
		for b := range ids {
			t.bytes[0] = corpus.AppendColumn(t.bytes[0][:0], p.Array, b, 0)
			ids[b][n] = find(t.slots[plane], t.bytes[:1])
		}
	}
	return ids
}

func slotLookup(c corpus.Case, plane int) *corpus.Lookup {
	l := corpus.NewLookup()
	for _, id := range c.TokenIDs() {
		l.Add(id, corpus.AppendToken(nil, id, plane, c.Shape, c.Fill))
	}
	return l
}

// quantLookup knows each token by the six planes of its quantized column. A
// case whose shape cannot be quantized has no such columns.
func quantLookup(c corpus.Case) *corpus.Lookup {
	var ids []int
	for _, id := range c.TokenIDs() {
		ids = append(ids, id)
	}
	var planes ring.Planes
	for plane := range 2 {
		a := corpus.TokenArray(c.Shape, c.Fill, plane, [][]int{ids})
		q, err := reference.Quantize(a, c.Quant.GroupSize, c.Quant.Bits)
		if err != nil {
			return corpus.NewLookup()
		}
		planes = append(planes, q...)
	}
	l := corpus.NewLookup()
	for s, id := range ids {
		var column [][]byte
		for _, a := range planes {
			column = append(column, corpus.AppendColumn(nil, a, 0, s))
		}
		l.Add(id, column...)
	}
	return l
}
