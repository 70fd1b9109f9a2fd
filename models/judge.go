package models

import (
	"fmt"
	"slices"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// Rule is one thing that must be true of every observation.
type Rule uint8

const (
	// RuleRefusal: an operation is refused with the predicted code, or not at
	// all.
	RuleRefusal Rule = iota
	// RuleOffsets: the offset of every row, which a refusal does not move.
	RuleOffsets
	// RuleSize: size and trimmable.
	RuleSize
	// RulePositions: idx, total, rotated, ends, right padding, lengths, start
	// position. It binds implementations that claim mlx-lm's bookkeeping.
	RulePositions
	// RuleConservation: left padding follows from offset and columns. It binds
	// the same ones.
	RuleConservation
	// RuleReturned: what a write returns is as wide as it must be, and every
	// token that the row holds is in it.
	RuleReturned
	// RuleMaskFits: a mask has the queries asked for and the columns that the
	// write returns, or is absent, as it must.
	RuleMaskFits
	// RuleWindow: each query of a real token sees exactly the tokens it must,
	// each once.
	RuleWindow
	// RuleNoGhost: no query of a real token sees padding, a token taken back,
	// evicted, later or of another row, or one token twice.
	RuleNoGhost
	// RuleExtract: an extracted cache ends with the tokens that its row held.
	RuleExtract
	// RuleView: a temporal view holds the newest tokens of every row, in order.
	RuleView
	// RuleTrimmed: how many tokens a trim took.
	RuleTrimmed
	// RuleValidOffset: valid_offset is the number of real tokens.
	RuleValidOffset
	// RuleBytes: projected_bytes.
	RuleBytes
	// RuleSlots: recurrent state holds the ids written to it. Observed as
	// stored, one list a row, one id a slot up to the last that holds anything.
	RuleSlots

	// NumRules is the number of rules.
	NumRules
)

var ruleNames = [NumRules]string{
	"refusal", "offsets", "size", "positions", "conservation", "returned", "mask fits keys", "window",
	"no ghost", "extract", "temporal view", "trimmed", "valid offset", "projected bytes", "slots",
}

func (r Rule) String() string { return ruleNames[r] }

// RuleSet is a set of rules.
type RuleSet uint32

// Rules makes a set.
func Rules(rules ...Rule) RuleSet {
	var s RuleSet
	for _, r := range rules {
		s |= 1 << r
	}
	return s
}

// Has reports whether r is in the set.
func (s RuleSet) Has(r Rule) bool { return s&(1<<r) != 0 }

// Violation says which rule an observation broke, where, and how.
type Violation struct {
	Rule  Rule
	Cache string // the operation's cache, or what it made
	Row   int    // -1: no row in particular
	Query int    // -1: no query in particular
	What  string // the thing observed
	Got   any
	Want  any
}

func (v *Violation) Error() string {
	where := v.Cache
	if v.Row >= 0 {
		where += fmt.Sprintf(", row %d", v.Row)
	}
	if v.Query >= 0 {
		where += fmt.Sprintf(", query %d", v.Query)
	}
	return fmt.Sprintf("%v: %s: %s is %v, want %v", v.Rule, where, v.What, v.Got, v.Want)
}

func broken(r Rule, what string, got, want any) *Violation {
	return &Violation{Rule: r, Row: -1, Query: -1, What: what, Got: got, Want: want}
}

// Judge holds the observations of one run of a case, as token ids, against a
// model. An id that the case has not fed stands for a column that nobody may
// see. Fields of an observation that are absent are not judged.
type Judge struct {
	Model *Model
	// Skip names the rules not to judge by.
	Skip RuleSet
	// Checks counts, per rule, what was compared: rows of masks for RuleWindow
	// and RuleNoGhost, rows for RuleReturned and RuleView, else observations.
	Checks [NumRules]int
	// Unknown counts the operations of which the model predicts nothing.
	Unknown int

	masks    map[string][]openMask
	seen     []int
	sorted   [2][]int
	contains map[int]bool
}

// openMask is a mask that fits the next write of its cache.
type openMask struct {
	mask  *ring.Mask
	form  MaskForm
	block bool
}

// NewJudge returns the judge of a run of c that has not begun.
func NewJudge(c *corpus.Case) *Judge {
	return &Judge{
		Model: New(c.Semantics, c.Shape, c.Quant),
		masks: map[string][]openMask{}, contains: map[int]bool{},
	}
}

// Step judges the observation of the case's next operation. It returns nil
// where got is as it must be, or the first rule broken.
func (j *Judge) Step(op *corpus.Op, got *corpus.Want) *Violation {
	return j.observe(j.Model.Apply(op), op, got)
}

// observe is Step, once the model has spoken.
func (j *Judge) observe(e *Expect, op *corpus.Op, got *corpus.Want) *Violation {
	v := j.judge(e, op, got)
	if v != nil {
		if v.Cache = op.Cache; v.Cache == "" {
			v.Cache = op.Out
		}
	}
	if e.Error == "" && !readsOnly(op.Verb) {
		delete(j.masks, op.Cache)
		if len(e.State.Kids) > 0 { // what a list does, it does to its children
			clear(j.masks)
		}
	}
	return v
}

// judge runs the rules that op calls for, the most telling first.
func (j *Judge) judge(e *Expect, op *corpus.Op, got *corpus.Want) *Violation {
	if !e.Known {
		j.Unknown++
		return nil
	}
	if j.on(RuleRefusal) && !sameRefusal(e.Error, got.Error) {
		return broken(RuleRefusal, "error", quoted(got.Error), quoted(e.Error))
	}
	if got.Error == "" && e.Error == "" {
		if v := j.answer(e, op, got); v != nil {
			return v
		}
	}
	if got.State == nil || e.State.Kind == "" {
		return nil
	}
	return j.state(&e.State, got.State)
}

// sameRefusal reports whether a code is the wanted one. Raises wants any: it
// stands for an error of mlx-lm's that has no code of its own.
func sameRefusal(want, got string) bool {
	return want == got || want == "raises" && got != ""
}

func quoted(code string) string {
	if code == "" {
		return "none"
	}
	return code
}

// on reports whether the rule is judged, and counts it.
func (j *Judge) on(r Rule) bool {
	if j.Skip.Has(r) {
		return false
	}
	j.Checks[r]++
	return true
}

// answer judges what an operation that succeeded returned.
func (j *Judge) answer(e *Expect, op *corpus.Op, got *corpus.Want) *Violation {
	switch {
	case isWrite(op.Verb):
		if got.Returned == nil {
			return nil
		}
		if v := j.returned(e, got.Returned); v != nil {
			return v
		}
		for _, m := range j.masks[op.Cache] {
			if m.form.N != len(op.Tokens[0]) || m.block != e.Block || !m.form.Null && m.form.B != len(e.Rows) {
				continue
			}
			if v := j.selected(e, got.Returned, &m); v != nil {
				return v
			}
		}
		return j.own(e, op, got)
	case op.Verb == corpus.MaskOp && got.Mask != nil:
		if v := j.mask(e, got.Mask); v != nil {
			return v
		}
		if e.Mask.Padding == nil && e.Mask.Window >= 0 {
			j.masks[op.Cache] = append(j.masks[op.Cache], openMask{got.Mask, e.Mask, e.Block})
		}
	case op.Verb == corpus.Extract && len(e.Contents) == 1:
		return j.extracted(&e.Contents[0], got)
	case op.Verb == corpus.TemporalView && got.Returned != nil:
		return j.view(e.Contents, got.Returned)
	case op.Verb == corpus.Trim && got.Trimmed != nil && j.on(RuleTrimmed) && *got.Trimmed != e.Trimmed:
		return broken(RuleTrimmed, "trimmed", *got.Trimmed, e.Trimmed)
	case op.Verb == corpus.ValidOffset && got.Offsets != nil && j.on(RuleValidOffset) && !slices.Equal(got.Offsets, e.Offsets):
		return broken(RuleValidOffset, "offsets", got.Offsets, slices.Clone(e.Offsets))
	case op.Verb == corpus.ProjectedBytes && got.Bytes != nil && j.on(RuleBytes) && *got.Bytes != e.Bytes:
		return broken(RuleBytes, "bytes", *got.Bytes, e.Bytes)
	}
	if e.Slots != nil && got.Stored != nil {
		return j.slots(e.Slots, got.Stored)
	}
	return nil
}

// own judges the mask that an append answers itself: its own, or the caller's.
func (j *Judge) own(e *Expect, op *corpus.Op, got *corpus.Want) *Violation {
	switch {
	case got.Mask == nil || op.Verb == corpus.Update:
		return nil
	case op.Verb == corpus.AppendWindowUnder:
		if j.on(RuleMaskFits) && !slices.Equal(got.Mask.Data, op.Mask.Data) {
			return broken(RuleMaskFits, "mask", got.Mask.Data, op.Mask.Data)
		}
		return nil
	}
	if v := j.mask(e, got.Mask); v != nil {
		return v
	}
	return j.selected(e, got.Returned, &openMask{mask: got.Mask, form: e.Mask, block: e.Block})
}

// returned: every token held is among the columns of its row.
func (j *Judge) returned(e *Expect, got [][]int) *Violation {
	if j.Skip.Has(RuleReturned) {
		return nil
	}
	if len(got) != len(e.Rows) {
		return broken(RuleReturned, "number of rows returned", len(got), len(e.Rows))
	}
	for i := range e.Rows {
		j.Checks[RuleReturned]++
		var v *Violation
		if t := e.Rows[i].Tail; len(got[i]) != e.Width {
			v = broken(RuleReturned, "number of columns returned", len(got[i]), e.Width)
		} else if !j.holds(got[i], t) {
			v = broken(RuleReturned, "row returned", slices.Clone(got[i]), fmt.Sprintf("all of %v", t))
		}
		if v != nil {
			v.Row = i
			return v
		}
	}
	return nil
}

// holds reports whether every one of tokens is among columns.
func (j *Judge) holds(columns, tokens []int) bool {
	if len(tokens) == 0 || runs(columns, tokens) {
		return true
	}
	clear(j.contains)
	for _, id := range columns {
		j.contains[id] = true
	}
	return !slices.ContainsFunc(tokens, func(id int) bool { return !j.contains[id] })
}

// runs reports whether tokens stand in columns one after the other, wrapping
// around at the end: the common case.
func runs(columns, tokens []int) bool {
	at := slices.Index(columns, tokens[0])
	if at < 0 || len(columns) < len(tokens) {
		return false
	}
	for _, id := range tokens {
		if columns[at] != id {
			return false
		}
		if at++; at == len(columns) {
			at = 0
		}
	}
	return true
}

// mask judges a mask alone: its extents, and how many columns each query sees.
func (j *Judge) mask(e *Expect, got *ring.Mask) *Violation {
	f := &e.Mask
	if f.Padding != nil { // of recurrent state: all that a query sees of it
		flat := slices.Concat(f.Padding...)
		switch {
		case j.on(RuleMaskFits) && (got.N == 0 || len(got.Data) != len(flat)):
			return broken(RuleMaskFits, "mask", got.Data, flat)
		case j.on(RuleNoGhost) && !slices.Equal(got.Data, flat):
			return broken(RuleNoGhost, "mask", got.Data, flat)
		}
		return nil
	}
	if !j.on(RuleMaskFits) {
		return nil
	}
	if f.Null || got.N == 0 {
		if f.Null != (got.N == 0) {
			return broken(RuleMaskFits, "whether there is no mask", got.N == 0, f.Null)
		}
		return nil
	}
	if got.B != f.B || got.N != f.N || got.S != e.Width {
		return broken(RuleMaskFits, "extent [b n s]", [3]int{got.B, got.N, got.S}, [3]int{f.B, f.N, e.Width})
	}
	if f.Window < 0 {
		return nil
	}
	for i := range e.Rows {
		r := &e.Rows[i]
		for q := range r.Real {
			n := 0
			for s := range got.S {
				if got.At(i, r.Lead+q, s) {
					n++
				}
			}
			if want := r.Sees(q, f.Window); n != want {
				v := broken(RuleMaskFits, "number of columns seen", n, want)
				v.Row, v.Query = i, r.Lead+q
				return v
			}
		}
	}
	return nil
}

// selected judges which tokens a mask selects of the columns that the write
// after it returned.
func (j *Judge) selected(e *Expect, returned [][]int, m *openMask) *Violation {
	if j.Skip.Has(RuleWindow) && j.Skip.Has(RuleNoGhost) || len(returned) != len(e.Rows) {
		return nil
	}
	for i := range e.Rows {
		r := &e.Rows[i]
		for q := range r.Real {
			j.Checks[RuleWindow]++
			j.Checks[RuleNoGhost]++
			if !j.see(returned[i], m.mask, i, r.Lead+q) {
				return nil // it does not fit; where a mask's extents are judged that was said
			}
			want := r.Visible(q, m.form.Window)
			if j.same(j.seen, want) {
				continue
			}
			rule := RuleWindow
			if !j.Skip.Has(RuleNoGhost) && ghost(j.seen, r.Tail[:r.Past+q+1]) {
				rule = RuleNoGhost
			} else if j.Skip.Has(RuleWindow) {
				continue
			}
			v := broken(rule, "what the query sees", slices.Clone(j.seen), slices.Clone(want))
			v.Row, v.Query = i, r.Lead+q
			return v
		}
	}
	return nil
}

// see makes j.seen what query q of row b sees of the columns; those that the mask
// lacks are hidden. It reports whether the mask has such a query.
func (j *Judge) see(columns []int, m *ring.Mask, b, q int) bool {
	j.seen = j.seen[:0]
	for s, id := range columns {
		switch sees, ok := m.Sees(b, q, s); {
		case sees:
			j.seen = append(j.seen, id)
		case !ok && s < m.S:
			return false
		}
	}
	return true
}

// same reports whether a and b hold the same ids, each as often.
func (j *Judge) same(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	if len(b) == 0 || runs(a, b) {
		return true
	}
	for i, ids := range [2][]int{a, b} {
		j.sorted[i] = append(j.sorted[i][:0], ids...)
		slices.Sort(j.sorted[i])
	}
	return slices.Equal(j.sorted[0], j.sorted[1])
}

// ghost reports whether seen holds an id that is not in held, or one twice.
func ghost(seen, held []int) bool {
	left := map[int]bool{}
	for _, id := range held {
		left[id] = true
	}
	for _, id := range seen {
		if !left[id] {
			return true
		}
		left[id] = false
	}
	return false
}

// extracted: the cache ends with the row's tokens; stored shows all its columns.
func (j *Judge) extracted(want *Content, got *corpus.Want) *Violation {
	rows := got.Stored
	if rows == nil {
		rows = got.Returned
	}
	if rows == nil || !j.on(RuleExtract) {
		return nil
	}
	if len(rows) != 1 {
		return broken(RuleExtract, "number of rows", len(rows), 1)
	}
	if got.Stored != nil && len(rows[0]) != want.Columns() {
		return broken(RuleExtract, "number of columns", len(rows[0]), want.Columns())
	}
	if !slices.Equal(last(rows[0], len(want.Tail)), want.Tail) {
		return broken(RuleExtract, "columns", rows[0], fmt.Sprintf("… %v", want.Tail))
	}
	return nil
}

// view: the tokens of every row in order, pads and garbage around them.
func (j *Judge) view(want []Content, got [][]int) *Violation {
	if j.Skip.Has(RuleView) {
		return nil
	}
	if len(got) != len(want) {
		return broken(RuleView, "number of rows", len(got), len(want))
	}
	for i := range want {
		j.Checks[RuleView]++
		w := &want[i]
		if len(got[i]) != w.Columns() || !slices.Equal(got[i][w.Front:w.Front+len(w.Tail)], w.Tail) {
			v := broken(RuleView, "columns", got[i], fmt.Sprintf("%d columns, from %d on %v", w.Columns(), w.Front, w.Tail))
			v.Row = i
			return v
		}
	}
	return nil
}

// slots: got has one list a row, of the slots that hold anything.
func (j *Judge) slots(slots [][]int, got [][]int) *Violation {
	if !j.on(RuleSlots) {
		return nil
	}
	var want [][]int
	for n, ids := range slots {
		if ids != nil && want == nil {
			want = make([][]int, len(ids))
		}
		for i, id := range ids { // a slot before it that holds nothing shows as 0
			want[i] = append(append(want[i], make([]int, n-len(want[i]))...), id)
		}
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		return broken(RuleSlots, "slots by row", got, want)
	}
	return nil
}

// state judges what a cache says of itself, as far as it says it.
func (j *Judge) state(p *Positions, got corpus.State) *Violation {
	for i := range got {
		f := &got[i]
		rule, want := RulePositions, corpus.Field{}
		switch f.Name {
		case corpus.FOffset:
			rule, want = RuleOffsets, corpus.Field{Kind: corpus.Ints, Ints: p.Offset}
			if f.Kind == corpus.Int && len(p.Offset) == 1 {
				want = corpus.IntField(f.Name, p.Offset[0])
			}
		case corpus.FSize:
			rule, want = RuleSize, corpus.IntField(f.Name, p.Size)
		case corpus.FTrimmable:
			rule, want = RuleSize, corpus.BoolField(f.Name, p.Trimmable)
		case corpus.FLeftPadding:
			rule, want = RuleConservation, corpus.IntsField(f.Name, p.LeftPadding)
			if isBatch(p.Kind) {
				want.Kind = corpus.Ints
			}
		case corpus.FIdx:
			want = corpus.IntField(f.Name, p.Idx)
		case corpus.FTotal:
			want = corpus.IntField(f.Name, p.Total)
		case corpus.FRotated:
			want = corpus.BoolField(f.Name, p.Rotated)
		case corpus.FEnds:
			want = corpus.IntsField(f.Name, p.Ends)
		case corpus.FRightPadding:
			want = corpus.IntsField(f.Name, p.RightPadding)
		case corpus.FLengths:
			want = corpus.IntsField(f.Name, p.Lengths)
		case corpus.FStartPosition:
			want = corpus.IntField(f.Name, p.Start)
		case corpus.FCaches:
			if len(f.States) != len(p.Kids) && j.on(RuleSize) {
				return broken(RuleSize, f.Name.String(), len(f.States), len(p.Kids))
			}
			for k := range min(len(f.States), len(p.Kids)) {
				if v := j.state(&p.Kids[k], f.States[k]); v != nil {
					return v
				}
			}
			continue
		default: // of the layout: not the model's business
			continue
		}
		if j.on(rule) && (f.Kind != want.Kind || f.Int != want.Int || !slices.Equal(f.Ints, want.Ints)) {
			return broken(rule, f.Name.String(), value(f), value(&want))
		}
	}
	return nil
}

func value(f *corpus.Field) any {
	switch f.Kind {
	case corpus.Null:
		return "null"
	case corpus.Bool:
		return f.Int != 0
	case corpus.Ints:
		return slices.Clone(f.Ints)
	}
	return f.Int
}
