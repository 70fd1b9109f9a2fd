package props

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
	gocmp "github.com/google/go-cmp/cmp"
)

// attendTolerance is how far two attention outputs over grid values may lie
// apart. Each implementation is allowed 1e-5 times the largest |value|, which
// the grid bounds by 2.
const attendTolerance = 2 * 2 * 1e-5

// Difference is the first step at which an answer is not what it should be.
// It is an error.
type Difference struct {
	Case  string
	Step  int // index into the case's operations
	Op    corpus.Op
	Field string // of the observation: "returned", "state.offset", "error", …
	// Want and Got are plain values: token ids [row][column], mask rows as
	// strings, a number, a list, a code; nil where there is nothing.
	Want, Got any
	Detail    string // what the values alone do not show: a shape, the first differing byte
	Says      string // what is wrong, where "FIELD differs" would not tell; else ""
}

func (d *Difference) Error() string { return d.String() }

// String says where the difference is and, if the values are lists, how they
// differ (- wanted, + got).
func (d *Difference) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "case %q, #%d %s: ", d.Case, d.Step, opText(d.Op))
	switch {
	case d.Says != "":
		b.WriteString(d.Says)
	case plain(d.Want) && plain(d.Got):
		fmt.Fprintf(&b, "%s is %s, want %s", d.Field, valueText(d.Got), valueText(d.Want))
	default:
		b.WriteString(d.Field + " differs")
	}
	if d.Detail != "" {
		b.WriteString("; " + d.Detail)
	}
	_, columns := d.Want.([][]int)
	if (!plain(d.Want) || !plain(d.Got)) && (d.Says == "" || !columns) { // columns are drawn by who reports this
		if diff := gocmp.Diff(d.Want, d.Got); diff != "" {
			diff = strings.ReplaceAll(diff, strconv.Itoa(Unknown), "?")
			b.WriteString(" (-want +got):\n" + diff)
		}
	}
	return b.String()
}

// quoted makes a child's text safe to print.
func quoted(text string) string {
	if text == "" {
		return ""
	}
	return strconv.Quote(clip(text))
}

// clip shortens a text that a child has had a hand in: it may be a whole line
// of the protocol. What is lost is the middle: the reason that a program gives
// for its end is the last of its words.
func clip(text string) string {
	const head, tail = 200, 600
	if len(text) <= head+tail {
		return text
	}
	return strings.ToValidUTF8(text[:head], "") + " … " + strings.ToValidUTF8(text[len(text)-tail:], "")
}

// plain reports whether a value is shown well enough on one line.
func plain(v any) bool {
	switch v.(type) {
	case nil, int, bool, string:
		return true
	}
	return false
}

func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return "absent"
	case string:
		if v == "" {
			return "none"
		}
		return v
	}
	return fmt.Sprint(v)
}

// CompareRuns holds the answers got against the answers want, both to c, and
// returns the first difference, or nil.
//
// At Layout and Columns every byte of what was returned counts, and every
// scalar, mask and error; at Layout the physical buffer too (stored, buffer).
// Under the exact semantics mask rows of padding queries count at no level.
//
// At Visible, what counts is: for each query of a real token, the token ids in
// the columns that its mask selects, as a multiset (order is layout, but a
// token twice would weigh twice); offset, size, trimmable, trimmed, offsets,
// bytes, error; the last real tokens of each extract and temporal view. A mask
// operation says what a query sees only together with the columns that the
// write after it returns. So the two are paired: a write of n tokens a row
// (update, append_decode, append_window of more than one) with each mask of
// the same n on the same cache that no change of that cache separates from it;
// and the append operations with the mask that they answer themselves. A write
// without such a mask shows nothing but its state. A null mask selects every
// column. A mask before write or advance belongs to recurrent state, which has
// no columns: it is compared as it stands. Of a mask and a write that do not
// fit each other, the one is reported that is not as wide as is wanted.
//
// An answer that ends with an unsupported operation is compared up to there.
// After an operation that raises, nothing is compared that involves its caches
// ([DropAfterRaises]).
func CompareRuns(c corpus.Case, want, got []corpus.Step, level Level) *Difference {
	x := comparison{c: &c, level: level, want: want, got: got}
	dropped := DropAfterRaises(c, want)
	for i := range min(len(want), len(got)) {
		if want[i].Unsupported != "" || got[i].Unsupported != "" {
			return nil
		}
		if dropped != nil && dropped[i] {
			continue
		}
		if d := x.step(i); d != nil {
			return d
		}
	}
	return x.length(len(want))
}

// CompareWants holds the answers got against what c itself wants, and returns
// the first difference, or nil. Only what a want names is compared, at the
// levels of [CompareRuns]; columns are compared by token id.
func CompareWants(c corpus.Case, got []corpus.Step, level Level) *Difference {
	x := comparison{c: &c, level: level, got: got}
	for i := range min(len(c.Ops), len(got)) {
		if got[i].Unsupported != "" {
			return nil
		}
		if d := x.wanted(i); d != nil {
			return d
		}
	}
	return x.length(len(c.Ops))
}

// DropAfterRaises says which operations of c involve something that a raises in
// steps has spoiled: what mlx-lm leaves behind when it raises halfway is no
// part of the semantics. It is nil if nothing was raised. The operation that
// raised is not among them; it spoils the caches that it is done to (not those
// that merge and save only read) and all that it should have made. What is made
// from something spoiled is spoiled, caches, snapshots and files alike, and so
// are a list and its children together.
func DropAfterRaises(c corpus.Case, steps []corpus.Step) []bool {
	if !slices.ContainsFunc(steps, func(s corpus.Step) bool { return s.Error == "raises" }) {
		return nil
	}
	lists := listChildren(&c)
	spoiled := map[string]bool{}
	isSpoiled := func(name string) bool { return spoiled[name] }
	spoil := func(names []string) {
		for _, name := range names {
			spoiled[name] = true
		}
		for list, children := range lists {
			if spoiled[list] || slices.ContainsFunc(children, isSpoiled) {
				spoiled[list] = true
				for _, child := range children {
					spoiled[child] = true
				}
			}
		}
	}
	dropped := make([]bool, len(c.Ops))
	for i := range c.Ops {
		reads, changes, makes := namesOf(&c.Ops[i])
		switch {
		case slices.ContainsFunc(reads, isSpoiled) || slices.ContainsFunc(changes, isSpoiled):
			dropped[i] = true
			spoil(append(changes, makes...))
		case i < len(steps) && steps[i].Error == "raises":
			spoil(append(changes, makes...))
		default:
			for _, name := range makes { // anew, from what is sound
				delete(spoiled, name)
			}
		}
	}
	return dropped
}

// namesOf returns what op only reads, what it is done to, and what it makes:
// caches, snapshots and files, each name with a mark of its kind.
func namesOf(op *corpus.Op) (reads, changes, makes []string) {
	add := func(to *[]string, mark string, names ...string) {
		for _, name := range names {
			if name != "" {
				*to = append(*to, mark+name)
			}
		}
	}
	add(&reads, "cache ", op.Caches...)
	add(&reads, "snapshot ", op.From)
	add(&changes, "cache ", op.Cache, op.Other)
	add(&makes, "cache ", op.Out)
	add(&makes, "cache ", op.Outs...)
	add(&makes, "snapshot ", op.As)
	if op.Verb == corpus.Save {
		add(&makes, "file ", op.File)
	} else {
		add(&reads, "file ", op.File)
	}
	return reads, changes, makes
}

// listChildren maps each list of c to its children, by the names of namesOf.
func listChildren(c *corpus.Case) map[string][]string {
	var lists map[string][]string
	for i := range c.Ops {
		if op := &c.Ops[i]; op.Verb == corpus.New && op.Kind == corpus.List {
			if lists == nil {
				lists = map[string][]string{}
			}
			children, _, makes := namesOf(op)
			lists[makes[0]] = children
		}
	}
	return lists
}

// comparison is one pass over a case. want is nil when the case's own wants
// are the measure.
type comparison struct {
	c         *corpus.Case
	level     Level
	want, got []corpus.Step

	tokens *Tokens     // made on first use
	rank   map[int]int // of fed; made on first use
	lists  map[string][]string
	listed bool
}

// ids returns the token ids of observed planes.
func (x *comparison) ids(planes []corpus.Plane) [][]int {
	if x.tokens == nil {
		x.tokens = NewTokens(*x.c)
	}
	return x.tokens.IDs(planes)
}

func (x *comparison) differs(i int, field string, want, got any, detail string) *Difference {
	return &Difference{Case: x.c.Name, Step: i, Op: x.c.Ops[i], Field: field, Want: want, Got: got, Detail: detail}
}

// length reports an answer that has too few steps, or too many.
func (x *comparison) length(want int) *Difference {
	got := len(x.got)
	if got == want {
		return nil
	}
	i := min(want, got, len(x.c.Ops)-1)
	if i < 0 {
		return &Difference{Case: x.c.Name, Field: "steps", Want: want, Got: got}
	}
	return x.differs(i, "steps", want, got, "an answer has one step an operation")
}

// sameRefusal reports whether a code is the wanted one. Below Layout, where
// nobody claims to be mlx-lm, any refusal will do where mlx-lm raises.
func (x *comparison) sameRefusal(want, got string) bool {
	return want == got || x.level < Layout && want == "raises" && got != ""
}

// step compares step i of two runs.
func (x *comparison) step(i int) *Difference {
	w, g := &x.want[i], &x.got[i]
	if !x.sameRefusal(w.Error, g.Error) {
		return x.differs(i, "error", w.Error, g.Error, quoted(g.Message))
	}
	if w.Error == "raises" {
		return nil
	}
	if w.Error != "" {
		if w.State == nil || g.State == nil {
			return nil
		}
		return x.state(i, w.State, g.State, true)
	}
	if x.level >= Columns {
		if d := x.planes(i, "returned", w.Returned, g.Returned); d != nil {
			return d
		}
		if d := x.mask(i, w.Mask, g.Mask); d != nil {
			return d
		}
	}
	if x.level == Layout {
		if d := x.planes(i, "stored", w.Stored, g.Stored); d != nil {
			return d
		}
	}
	if d := x.state(i, w.State, g.State, true); d != nil {
		return d
	}
	if d := x.scalars(i, w.Trimmed, g.Trimmed, w.Offsets, g.Offsets, w.Bytes, g.Bytes, true); d != nil {
		return d
	}
	if d := x.attended(i, w.Attended, g.Attended); d != nil {
		return d
	}
	if x.level == Layout {
		return nil
	}
	if planes, ok := tailPlanes(x.c.Ops[i].Verb, w, x.level); ok {
		other, _ := tailPlanes(x.c.Ops[i].Verb, g, x.level)
		if planes != nil && other != nil && !equalPlanes(planes, other) {
			if d := x.tail(i, x.ids(planes), other); d != nil {
				return d
			}
		}
	}
	if x.level == Visible {
		return x.visible(i)
	}
	return nil
}

// wanted compares step i with the case's own want.
func (x *comparison) wanted(i int) *Difference {
	w, g := x.c.Ops[i].Want, &x.got[i]
	if w == nil || w.Returned == nil && w.Stored == nil && w.State == nil && w.Mask == nil &&
		w.Trimmed == nil && w.Offsets == nil && w.Bytes == nil && w.Error == "" {
		return nil
	}
	if !x.sameRefusal(w.Error, g.Error) {
		return x.differs(i, "error", w.Error, g.Error, quoted(g.Message))
	}
	if x.level >= Columns {
		if d := x.columns(i, "returned", w.Returned, g.Returned); d != nil {
			return d
		}
		if w.Mask != nil {
			if d := x.mask(i, w.Mask, g.Mask); d != nil {
				return d
			}
		}
	}
	if x.level == Layout {
		if d := x.columns(i, "stored", w.Stored, g.Stored); d != nil {
			return d
		}
	}
	if w.State != nil {
		if d := x.state(i, w.State, g.State, false); d != nil {
			return d
		}
	}
	if d := x.scalars(i, w.Trimmed, g.Trimmed, w.Offsets, g.Offsets, w.Bytes, g.Bytes, false); d != nil {
		return d
	}
	if x.level == Layout {
		return nil
	}
	if planes, ok := tailPlanes(x.c.Ops[i].Verb, g, x.level); ok && planes != nil {
		want := w.Stored
		if x.c.Ops[i].Verb == corpus.TemporalView {
			want = w.Returned
		}
		if d := x.tail(i, want, planes); d != nil {
			return d
		}
	}
	if x.level == Visible {
		return x.visible(i)
	}
	return nil
}

// planes compares two sets of planes, byte by byte.
func (x *comparison) planes(i int, field string, want, got []corpus.Plane) *Difference {
	if equalPlanes(want, got) {
		return nil
	}
	return x.differs(i, field, idsOrNil(x, want), idsOrNil(x, got), planesDetail(want, got))
}

func idsOrNil(x *comparison, planes []corpus.Plane) any {
	if ids := x.ids(planes); ids != nil {
		return ids
	}
	return nil
}

// columns compares planes with wanted token ids; nil wants nothing.
func (x *comparison) columns(i int, field string, want [][]int, got []corpus.Plane) *Difference {
	if want == nil {
		return nil
	}
	ids := x.ids(got)
	if ids != nil && slices.EqualFunc(want, ids, slices.Equal[[]int]) {
		return nil
	}
	detail := ""
	switch {
	case len(got) == 0:
		detail = "the answer has no " + field
	case ids == nil:
		detail = x.misshapen(got, want)
	}
	return x.differs(i, field, want, idsOrNil(x, got), detail)
}

func equalPlanes(a, b []corpus.Plane) bool {
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		p, q := &a[k], &b[k]
		if p.Name != q.Name || p.Array.DType != q.Array.DType || p.Array.Shape != q.Array.Shape ||
			!bytes.Equal(p.Array.Data, q.Array.Data) {
			return false
		}
	}
	return true
}

// planesDetail says what differs between two sets of planes: names, then
// types and shapes, then the first differing element.
func planesDetail(want, got []corpus.Plane) string {
	if w, g := shapesText(want), shapesText(got); w != g {
		return fmt.Sprintf("the planes are %s, want %s", g, w)
	}
	for k := range want {
		w, g := want[k].Array, got[k].Array
		size := w.DType.Size()
		for e := 0; (e+1)*size <= min(len(w.Data), len(g.Data)); e++ {
			we, ge := w.Data[e*size:(e+1)*size], g.Data[e*size:(e+1)*size]
			if bytes.Equal(we, ge) {
				continue
			}
			h, s, d := w.Shape[1], w.Shape[2], w.Shape[3]
			return fmt.Sprintf("first differing element: %s[b=%d h=%d s=%d d=%d] is %x, want %x (little-endian)",
				want[k].Name, e/d/s/h, e/d/s%h, e/d%s, e%d, ge, we)
		}
	}
	return ""
}

func shapesText(planes []corpus.Plane) string {
	if len(planes) == 0 {
		return "none"
	}
	texts := make([]string, len(planes))
	for k, p := range planes {
		texts[k] = fmt.Sprintf("%s %v%v", p.Name, p.Array.DType, p.Array.Shape)
	}
	return strings.Join(texts, ", ")
}

// mask compares two masks as arrays.
func (x *comparison) mask(i int, want, got *ring.Mask) *Difference {
	if want == nil && got == nil {
		return nil
	}
	if want != nil && got != nil && want.N > 0 && got.N > 0 && want.B == 0 && got.B == 0 {
		return nil // no rows, whose text does not say how long they are
	}
	if want != nil && got != nil && want.B == got.B && want.N == got.N && want.S == got.S {
		if slices.Equal(want.Data, got.Data) {
			return nil
		}
		if x.c.Semantics == ring.Exact && x.equalRealQueries(i, want, got) {
			return nil
		}
	}
	if want == nil || got == nil {
		return x.differs(i, "mask", maskValue(want), maskValue(got), "")
	}
	return x.differs(i, "mask", maskValue(want), maskValue(got),
		fmt.Sprintf("got [%d, 1, %d, %d], want [%d, 1, %d, %d]", got.B, got.N, got.S, want.B, want.N, want.S))
}

func maskValue(m *ring.Mask) any {
	switch {
	case m == nil:
		return nil
	case m.N == 0:
		return "null"
	}
	return maskRows(m)
}

// equalRealQueries reports whether two masks of one shape agree in the rows of
// real tokens. Those are the tokens of step i, or else of the write whose mask
// operation it is; where there is no such write all rows count.
func (x *comparison) equalRealQueries(i int, want, got *ring.Mask) bool {
	write := &x.c.Ops[i]
	for j := i + 1; write.Tokens == nil; j++ {
		if j == len(x.c.Ops) {
			return false
		}
		if !x.refused(j) && x.changes(j, x.c.Ops[i].Cache) {
			if write = &x.c.Ops[j]; writeWidth(write) != x.c.Ops[i].N {
				return false
			}
		}
	}
	if len(write.Tokens) != want.B {
		return false
	}
	for b, row := range write.Tokens {
		if len(row) != want.N {
			return false
		}
		for q, token := range row {
			from := (b*want.N + q) * want.S
			if token > 0 && !slices.Equal(want.Data[from:from+want.S], got.Data[from:from+want.S]) {
				return false
			}
		}
	}
	return true
}

// Compared reports whether a field of a state counts at a level.
func Compared(name corpus.FieldName, level Level) bool {
	switch level {
	case Layout:
		return true
	case Columns:
		return name != corpus.FBuffer
	}
	switch name {
	case corpus.FOffset, corpus.FSize, corpus.FTrimmable, corpus.FCaches:
		return true
	}
	return false
}

// state compares two states. Unless strict, got may have fields that want has
// not.
func (x *comparison) state(i int, want, got corpus.State, strict bool) *Difference {
	name, w, g, equal := compareStates(want, got, x.level, strict)
	if equal {
		return nil
	}
	return x.differs(i, "state."+name, w, g, "")
}

// compareStates returns the name and the values of the first field that
// differs; within a list's children the name is a path.
func compareStates(want, got corpus.State, level Level, strict bool) (name string, w, g any, equal bool) {
	for k := range want {
		wf := &want[k]
		if !Compared(wf.Name, level) {
			continue
		}
		gf := field(got, wf.Name, k)
		switch {
		case gf == nil:
			return wf.Name.String(), fieldValue(wf), nil, false
		case wf.Kind != gf.Kind || wf.Int != gf.Int || !slices.Equal(wf.Ints, gf.Ints) || len(wf.States) != len(gf.States):
			return wf.Name.String(), fieldValue(wf), fieldValue(gf), false
		}
		for child := range wf.States {
			name, w, g, equal := compareStates(wf.States[child], gf.States[child], level, strict)
			if !equal {
				return fmt.Sprintf("%v.%d.%s", wf.Name, child, name), w, g, false
			}
		}
	}
	if !strict || level == Visible {
		return "", nil, nil, true
	}
	for k := range got {
		if gf := &got[k]; Compared(gf.Name, level) && field(want, gf.Name, k) == nil {
			return gf.Name.String(), nil, fieldValue(gf), false
		}
	}
	return "", nil, nil, true
}

// field finds a field, first at the place where it usually is.
func field(s corpus.State, name corpus.FieldName, at int) *corpus.Field {
	if at < len(s) && s[at].Name == name {
		return &s[at]
	}
	for k := range s {
		if s[k].Name == name {
			return &s[k]
		}
	}
	return nil
}

// scalars compares what trim, valid_offset and projected_bytes answer. Unless
// strict, a nil want wants nothing.
func (x *comparison) scalars(i int, wTrim, gTrim *int, wOff, gOff []int, wBytes, gBytes *int, strict bool) *Difference {
	if (strict || wTrim != nil) && !equalInt(wTrim, gTrim) {
		return x.differs(i, "trimmed", intValue(wTrim), intValue(gTrim), "")
	}
	if (strict || wOff != nil) && ((wOff == nil) != (gOff == nil) || !slices.Equal(wOff, gOff)) {
		return x.differs(i, "offsets", wOff, gOff, "")
	}
	if (strict || wBytes != nil) && !equalInt(wBytes, gBytes) {
		return x.differs(i, "bytes", intValue(wBytes), intValue(gBytes), "")
	}
	return nil
}

func equalInt(a, b *int) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

func intValue(v *int) any {
	if v == nil {
		return nil
	}
	return *v
}

// attended compares attention outputs, where both sides computed them and the
// values are tame enough for a tolerance to mean something.
func (x *comparison) attended(i int, want, got []float32) *Difference {
	if want == nil || got == nil || x.c.Fill != corpus.Grid {
		return nil
	}
	if len(want) != len(got) {
		return x.differs(i, "attended", len(want), len(got), "numbers of elements")
	}
	for e := range want {
		if !(math.Abs(float64(want[e])-float64(got[e])) <= attendTolerance) {
			return x.differs(i, "attended", fmt.Sprint(want[e]), fmt.Sprint(got[e]), fmt.Sprintf("element %d of %d, tolerance %g", e, len(want), attendTolerance))
		}
	}
	return nil
}

// tailPlanes returns the planes of which a level below Layout compares only
// the last real tokens: the buffer of an extract, and at Visible what
// temporal_view returned.
func tailPlanes(verb corpus.Verb, s *corpus.Step, level Level) (planes []corpus.Plane, ok bool) {
	switch {
	case verb == corpus.Extract:
		return s.Stored, true
	case verb == corpus.TemporalView && level == Visible:
		return s.Returned, true
	}
	return nil, false
}

// tail compares the end of each row: as many tokens as the wanted row holds.
// Those are its last columns whose ids are real and rise in the order in which
// they were fed; padding, zeros, and rejected tokens that a rollback turned to
// the front (they were fed later than what follows them) end the run.
func (x *comparison) tail(i int, want [][]int, planes []corpus.Plane) *Difference {
	if want == nil {
		return nil
	}
	got := x.ids(planes)
	if len(got) != len(want) {
		return x.differs(i, "last tokens", want, got, x.misshapen(planes, want))
	}
	rank := x.fed()
	for b := range want {
		w, g := want[b], got[b]
		n := 0
		for n < len(w) && w[len(w)-1-n] > 0 && (n == 0 || rank[w[len(w)-1-n]] < rank[w[len(w)-n]]) {
			n++
		}
		w = w[len(w)-n:]
		from := max(0, len(g)-n)
		if !slices.Equal(w, g[from:]) {
			detail := fmt.Sprintf("row %d", b)
			if s := slices.Index(g[from:], Unknown); s >= 0 {
				detail += x.unlike(planes, b, from+s, w)
			}
			return x.differs(i, "last tokens", w, g[from:], detail)
		}
	}
	return nil
}

// fed says when each id was first fed: its place among the case's tokens, from
// 1 on.
func (x *comparison) fed() map[int]int {
	if x.rank == nil {
		x.rank = map[int]int{}
		for _, id := range x.c.TokenIDs() {
			if _, ok := x.rank[id]; !ok {
				x.rank[id] = len(x.rank) + 1
			}
		}
	}
	return x.rank
}

// refused reports whether operation i is one that changes nothing because it
// is refused.
func (x *comparison) refused(i int) bool {
	if x.want != nil {
		return i < len(x.want) && x.want[i].Error != ""
	}
	if w := x.c.Ops[i].Want; w != nil {
		return w.Error != ""
	}
	return i < len(x.got) && x.got[i].Error != ""
}

// changes reports whether operation i changes a cache, or makes it.
func (x *comparison) changes(i int, cache string) bool {
	op := &x.c.Ops[i]
	switch op.Verb {
	case corpus.MaskOp, corpus.TemporalView, corpus.ValidOffset, corpus.ProjectedBytes, corpus.Snapshot,
		corpus.Save, corpus.Attend, corpus.Release:
		return false
	case corpus.New, corpus.Merge, corpus.Extract, corpus.ToQuantized, corpus.Adopt:
		return op.Out == cache
	case corpus.Load:
		return slices.Contains(op.Outs, cache)
	}
	if op.Cache == cache || op.Other == cache {
		return true
	}
	if !x.listed {
		x.lists, x.listed = listChildren(x.c), true
	}
	return x.lists != nil && (slices.Contains(x.lists["cache "+op.Cache], "cache "+cache) ||
		op.Other != "" && slices.Contains(x.lists["cache "+op.Other], "cache "+cache))
}

// writeWidth returns the number of tokens a row of a write to whose columns a
// mask operation's queries belong, and -1 for any other operation. A mask of
// one query is that of a decode, which append_window of one token is not.
func writeWidth(op *corpus.Op) int {
	switch op.Verb {
	case corpus.Update, corpus.AppendDecode, corpus.AppendWindow:
		if len(op.Tokens) == 0 || op.Verb == corpus.AppendWindow && len(op.Tokens[0]) == 1 {
			return -1
		}
		return len(op.Tokens[0])
	}
	return -1
}

// visible compares, for a write at step j, what each query of a real token may
// see, under the write's own mask and every mask operation paired with it.
func (x *comparison) visible(j int) *Difference {
	op := &x.c.Ops[j]
	if x.refused(j) {
		return nil
	}
	v := &seen{write: j}
	if op.Tokens != nil {
		if want, got := x.masks(j); want != nil && got != nil {
			if d := x.under(v, j, want, got); d != nil {
				return d
			}
		}
	}
	width := writeWidth(op)
	recurrent := op.Verb == corpus.Write || op.Verb == corpus.Advance
	if width < 0 && !recurrent {
		return nil
	}
	for i := j - 1; i >= 0; i-- {
		m := &x.c.Ops[i]
		switch {
		case x.refused(i):
			continue
		case m.Verb != corpus.MaskOp || m.Cache != op.Cache:
			if x.changes(i, op.Cache) {
				return nil
			}
			continue
		case !recurrent && m.N != width:
			continue
		}
		want, got := x.masks(i)
		var d *Difference
		switch {
		case want == nil:
		case recurrent || got == nil:
			d = x.mask(i, want, got)
		default:
			d = x.under(v, i, want, got)
		}
		if d != nil {
			return d
		}
	}
	return nil
}

func equalMasks(a, b *ring.Mask) bool {
	return a.B == b.B && a.N == b.N && a.S == b.S && slices.Equal(a.Data, b.Data)
}

// masks returns the wanted and the observed mask of step i.
func (x *comparison) masks(i int) (want, got *ring.Mask) {
	if x.want != nil {
		return x.want[i].Mask, x.got[i].Mask
	}
	if w := x.c.Ops[i].Want; w != nil {
		want = w.Mask
	}
	return want, x.got[i].Mask
}

// returned returns the wanted and the observed ids of what step j returned.
func (x *comparison) returned(j int) (want, got [][]int) {
	if x.want != nil {
		want = x.ids(x.want[j].Returned)
	} else if w := x.c.Ops[j].Want; w != nil {
		want = w.Returned
	}
	if got = x.ids(x.got[j].Returned); got == nil {
		got = [][]int{}
	}
	return want, got
}

// seen is what one write returned, as ids; they are looked up on first use.
type seen struct {
	write     int
	looked    bool
	want, got [][]int
}

// under compares what the write's queries see under the masks of step i.
func (x *comparison) under(v *seen, i int, wantMask, gotMask *ring.Mask) *Difference {
	if x.want != nil && equalMasks(wantMask, gotMask) &&
		equalPlanes(x.want[v.write].Returned, x.got[v.write].Returned) {
		return nil
	}
	if !v.looked {
		v.want, v.got = x.returned(v.write)
		v.looked = true
	}
	if v.want == nil {
		return nil
	}
	if len(v.got) != len(v.want) {
		return x.differs(v.write, "returned", v.want, v.got, x.misshapen(x.got[v.write].Returned, v.want))
	}
	var w, g []int
	for b, row := range x.c.Ops[v.write].Tokens {
		for q, token := range row {
			if token <= 0 || b >= len(v.want) {
				continue
			}
			var ok bool
			if w, ok = selected(w[:0], v.want[b], wantMask, b, q); !ok {
				return nil // the wanted mask does not fit its own columns: nothing is said
			}
			if g, ok = selected(g[:0], v.got[b], gotMask, b, q); !ok {
				return x.misfit(v, i, b, wantMask, gotMask)
			}
			if slices.Equal(w, g) {
				continue
			}
			rank := x.fed()
			byFeeding := func(a, b int) int { return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(a, b)) }
			slices.SortFunc(w, byFeeding)
			slices.SortFunc(g, byFeeding)
			if !slices.Equal(w, g) {
				detail := fmt.Sprintf("row %d, query %d (token %d), under the mask of #%d", b, q, token, i)
				for s, id := range v.got[b] {
					if sees, _ := gotMask.Sees(b, q, s); id == Unknown && sees {
						detail += x.unlike(x.got[v.write].Returned, b, s, lacking(w, g))
						break
					}
				}
				return x.differs(v.write, "visible tokens", w, g, detail)
			}
		}
	}
	return nil
}

// misfit is the difference of a mask that does not fit the columns of row b
// that the write returned: whichever of the two is not as wide as is wanted.
func (x *comparison) misfit(v *seen, i, b int, want, got *ring.Mask) *Difference {
	wide, columns := len(v.want[b]), len(v.got[b])
	if got.S == columns { // of too few rows or queries
		return x.mask(i, want, got)
	}
	if got.S == wide {
		d := x.differs(v.write, "returned", v.want, v.got, "")
		d.Says = fmt.Sprintf("returned %d columns, want %d; the mask of #%d has %d", columns, wide, i, got.S)
		return d
	}
	d := x.differs(i, "mask", maskValue(want), maskValue(got), "")
	d.Says = fmt.Sprintf("the mask of #%d has %d columns, want %d, which is what #%d returned", i, got.S, columns, v.write)
	return d
}

// made returns planes of the set that name is of, whose columns are those of
// ids; nil where that set has no columns of tokens.
func (x *comparison) made(name string, ids [][]int) []corpus.Plane {
	set := slices.IndexFunc(planeSets, func(set []string) bool { return slices.Contains(set, name) })
	if set < 0 {
		return nil
	}
	var arrays ring.Planes
	for plane := range 2 {
		a := corpus.TokenArray(x.c.Shape, x.c.Fill, plane, ids)
		if len(planeSets[set]) == 2 {
			arrays = append(arrays, a)
			continue
		}
		if x.c.Quant == nil {
			return nil
		}
		q, err := reference.Quantize(a, x.c.Quant.GroupSize, x.c.Quant.Bits)
		if err != nil {
			return nil
		}
		arrays = append(arrays, q...)
	}
	planes := make([]corpus.Plane, len(arrays))
	for k, a := range arrays {
		planes[k] = corpus.Plane{Name: planeSets[set][k], Array: a}
	}
	return planes
}

// misshapen says which of the planes got is not of the case's shape, or has
// not as many columns as another. How many there are is the target's affair, if
// only all planes have as many.
func (x *comparison) misshapen(got []corpus.Plane, ids [][]int) string {
	if len(got) == 0 {
		return "the answer has no planes"
	}
	blank := make([][]int, len(ids))
	for b := range blank {
		blank[b] = make([]int, len(ids[0]))
	}
	want := x.made(got[0].Name, blank)
	for k := range min(len(want), len(got)) {
		w, g := want[k].Array, got[k].Array
		fits := w.Shape
		fits[2] = g.Shape[2]
		switch {
		case w.DType != g.DType:
			return fmt.Sprintf("%s is %v%v, want %v%v ([b h s d])", got[k].Name, g.DType, g.Shape, w.DType, w.Shape)
		case g.Shape != fits:
			return fmt.Sprintf("%s is %v%v, want %v ([b h s d])", got[k].Name, g.DType, g.Shape, w.Shape)
		}
	}
	for _, p := range got {
		if a, b := got[0].Array.Columns(), p.Array.Columns(); a != b {
			return fmt.Sprintf("%s has %d columns, %s %d", got[0].Name, a, p.Name, b)
		}
	}
	return "the planes are not of the case's shape: " + shapesText(got)
}

// unlike says how column s of row b, which is no token's, differs from that of
// the tokens wanted which it is most like.
func (x *comparison) unlike(got []corpus.Plane, b, s int, wanted []int) string {
	best, text := -1, ""
	for _, id := range wanted {
		if id == Unknown {
			continue
		}
		alike, first := 0, ""
		for k, p := range x.made(got[0].Name, [][]int{{id}}) {
			w, g := p.Array, got[k].Array
			size := w.DType.Size()
			columns := g.Shape[2] * size * g.Shape[3]
			for h := range w.Shape[1] {
				for d := range w.Shape[3] {
					we := w.Data[(h*w.Shape[3]+d)*size:][:size]
					ge := g.Data[(b*g.Shape[1]+h)*columns+(s*g.Shape[3]+d)*size:][:size]
					switch {
					case bytes.Equal(we, ge):
						alike++
					case first == "":
						first = fmt.Sprintf("; token %d: first differing element: %s[b=%d h=%d s=%d d=%d] is %x, want %x (little-endian)",
							id, p.Name, b, h, s, d, ge, we)
					}
				}
			}
		}
		if alike > best && first != "" {
			best, text = alike, first
		}
	}
	return text
}

// lacking returns those of ids that other has fewer of.
func lacking(ids, other []int) []int {
	left := slices.Clone(ids)
	for _, id := range other {
		if k := slices.Index(left, id); k >= 0 {
			left = slices.Delete(left, k, k+1)
		}
	}
	return left
}

// selected appends the ids that query q of row b may see; false if the mask is
// not over so many rows, queries or columns.
func selected(dst, ids []int, m *ring.Mask, b, q int) ([]int, bool) {
	if m.N == 0 {
		return append(dst, ids...), true
	}
	if m.B > 1 && b >= m.B || m.B == 0 || q >= m.N || m.S != len(ids) {
		return dst, false
	}
	for s, id := range ids {
		if sees, _ := m.Sees(b, q, s); sees {
			dst = append(dst, id)
		}
	}
	return dst, true
}
