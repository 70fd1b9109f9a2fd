package corpus

import (
	"fmt"
	"slices"

	"example.com/ringcheck/reference/ring"
)

// Lint returns what is wrong with c beyond its text, in the order of its
// operations: nothing for a case that can be kept. Names must be defined before
// they are used, and once; a token id must stand for one column and be told
// from all others by its bytes; a want must say something that its operation
// can fulfil. Whether an operation is legal is not asked: an illegal one is
// well-formed where its want is an error.
func Lint(c Case) []Problem {
	if _, err := Parse(Format(c), ""); err != nil {
		return []Problem{err.(*Error).Problem} // made in Go, and such that no file can hold it
	}
	l := &linter{
		c: c, op: -1,
		caches: map[string]*named{}, snaps: map[string]*named{}, files: map[string][]*named{},
		fed: map[int]int{}, keys: map[string]int{}, values: map[string]int{},
	}
	l.header()
	for l.op = range c.Ops {
		o := &c.Ops[l.op]
		result := l.names(o)
		l.tokens(o)
		if o.Want != nil {
			l.want(o, result)
		}
	}
	return l.problems
}

// named is what is known of a name. One that a refused operation would have
// made, or that extend has used up, stays known and is gone.
type named struct {
	kind Kind // "" where it cannot be told
	gone bool
}

type linter struct {
	c            Case
	op           int // index of the operation at hand, -1 for the header
	problems     []Problem
	caches       map[string]*named
	snaps        map[string]*named
	files        map[string][]*named // the caches saved
	fed          map[int]int         // by token id: the operation that fed it last
	undone       int                 // the last operation that can have taken tokens back, plus one
	keys, values map[string]int      // token id by bytes
}

func (l *linter) report(field, format string, args ...any) {
	p := Problem{Op: l.op, Field: field, What: fmt.Sprintf(format, args...)}
	if l.op >= 0 {
		p.Verb = l.c.Ops[l.op].Verb
	}
	l.problems = append(l.problems, p)
}

func (l *linter) header() {
	c := l.c
	if c.Source == "" {
		l.report("source", "is empty; say where the case comes from")
	}
	if len(c.Ops) == 0 {
		l.report("ops", "is empty; a case without operations shows nothing")
	}
	for _, w := range []struct {
		field string
		n     int
	}{{"shape.key_dim", c.Shape.KeyDim}, {"shape.value_dim", c.Shape.ValueDim}} {
		if n := c.Shape.KVHeads * w.n; n < 4 {
			l.report(w.field, "times kv_heads is %d; with fewer than 4 elements a column does not name its token", n)
		}
	}
	l.quant()
}

// quant checks the quantization, whose absence or impossibility is right only
// where some operation is refused for it.
func (l *linter) quant() {
	needed, refused := false, false
	for i := range l.c.Ops {
		o := &l.c.Ops[i]
		needed = needed || o.Verb == ToQuantized || o.Verb == New && slices.Contains(quantized, o.Kind)
		refused = refused || o.refused() && (o.Want.Error == "quant" || o.Want.Error == "raises")
	}
	q, s := l.c.Quant, l.c.Shape
	switch {
	case needed && q == nil:
		l.report("quant", "is missing; a quantized kind occurs")
	case q == nil || refused:
	case !slices.Contains([]int{32, 64, 128}, q.GroupSize):
		l.report("quant.group_size", "is %d, want 32, 64 or 128", q.GroupSize)
	case !slices.Contains([]int{2, 3, 4, 5, 6, 8}, q.Bits):
		l.report("quant.bits", "is %d, want 2, 3, 4, 5, 6 or 8", q.Bits)
	case s.KeyDim%q.GroupSize != 0 || s.ValueDim%q.GroupSize != 0:
		l.report("quant.group_size", "%d does not divide key_dim %d and value_dim %d", q.GroupSize, s.KeyDim, s.ValueDim)
	}
}

// refused reports whether o's want is an error.
func (o *Op) refused() bool { return o.Want != nil && o.Want.Error != "" }

// use returns what is known of the cache of that name, and complains where it
// cannot be used.
func (l *linter) use(field, name string) *named {
	n := l.caches[name]
	switch {
	case n == nil:
		l.report(field, "no operation before this one makes a cache %q", name)
		n = &named{}
		l.caches[name] = n
	case n.gone:
		l.report(field, "%q is no cache any more, or was never made", name)
	}
	return n
}

// define makes a name known.
func (l *linter) define(field, name string, kind Kind, refused bool) *named {
	if l.caches[name] != nil {
		l.report(field, "%q is the name of a cache already; names are given once", name)
	}
	n := &named{kind, refused}
	l.caches[name] = n
	return n
}

// names follows the names that o uses and makes, checks that the kind of each
// cache has the operation, and returns the cache that o's state would describe:
// the one it makes, else the one it works on; nil where there is neither.
func (l *linter) names(o *Op) *named {
	var in *named
	if o.Cache != "" {
		in = l.use("cache", o.Cache)
		l.capable("cache", o, in.kind)
	}
	var others []*named
	for i, name := range o.Caches {
		field := fmt.Sprintf("caches.%d", i)
		n := l.use(field, name)
		if o.Verb != New { // a list is made of any kinds
			l.capable(field, o, n.kind)
		}
		others = append(others, n)
	}
	kind, refused := Kind(""), o.refused()
	switch o.Verb {
	case New:
		kind = o.Kind
		l.capable("kind", o, kind)
	case Merge:
		if len(others) > 0 {
			kind = become(merged, others[0].kind)
		}
	case Extract:
		kind = become(extracted, in.kind)
	case ToQuantized:
		kind = become(requantized, in.kind)
	case Extend:
		n := l.use("other", o.Other)
		l.capable("other", o, n.kind)
		if o.Other == o.Cache {
			l.report("other", "is the cache itself")
		}
		n.gone = n.gone || !refused
	case Snapshot:
		if l.snaps[o.As] != nil {
			l.report("as", "%q is the name of a snapshot already; names are given once", o.As)
		}
		l.snaps[o.As] = &named{in.kind, refused}
	case Restore, Adopt:
		n := l.snaps[o.From]
		if n == nil || n.gone {
			l.report("from", "no operation before this one takes a snapshot %q", o.From)
		} else {
			kind = n.kind
		}
	case Save:
		if !refused {
			l.files[o.File] = others
		}
	case Load:
		return l.load(o)
	}
	if o.Out != "" {
		if made := l.define("out", o.Out, kind, refused); !refused {
			return made
		}
	}
	return in
}

func (l *linter) load(o *Op) (first *named) {
	saved, ok := l.files[o.File]
	switch {
	case o.refused():
	case !ok:
		l.report("file", "no operation before this one saves %q", o.File)
	case len(saved) != len(o.Outs):
		l.report("outs", "are %d, and %d caches were saved", len(o.Outs), len(saved))
	}
	for i, name := range o.Outs {
		kind := Kind("")
		if i < len(saved) {
			kind = saved[i].kind
		}
		n := l.define(fmt.Sprintf("outs.%d", i), name, kind, o.refused())
		if first == nil {
			first = n
		}
	}
	return first
}

// capable complains of a want of success from a kind that lacks the operation.
func (l *linter) capable(field string, o *Op, k Kind) {
	if k != "" && o.Want != nil && !o.refused() && !k.Has(o.Verb, l.c.Semantics) {
		l.report(field, "%s has no %s under %v; want an error", k, o.Verb, l.c.Semantics)
	}
}

// tokens follows the ids that o feeds.
func (l *linter) tokens(o *Op) {
	for _, row := range o.Tokens {
		if o.Verb == Write && len(row) != 1 {
			l.report("tokens", "a row has %d tokens; a slot takes one a row", len(row))
		}
		for _, id := range row {
			if id == 0 {
				l.report("tokens", "feeds 0, which stands for a column of zero bytes")
				continue
			}
			before, again := l.fed[id]
			if again && before >= l.undone {
				l.report("tokens", "feeds %d again, which operation %d fed, with no trim, rollback or restore since", id, before)
			}
			if !again {
				l.distinct(id)
			}
			if !o.refused() {
				l.fed[id] = l.op
			} else if !again {
				l.fed[id] = -1
			}
		}
	}
	switch o.Verb {
	case Trim, Rollback, Restore:
		if !o.refused() {
			l.undone = l.op
		}
	}
}

// distinct complains of a token whose bytes do not name it.
func (l *linter) distinct(id int) {
	for _, p := range []struct {
		plane int
		known map[string]int
	}{{KeyPlane, l.keys}, {ValuePlane, l.values}} {
		b := string(l.fingerprint(id, p.plane))
		if allZero([]byte(b)) {
			l.report("tokens", "all bytes of plane %d of %d are zero; take another id", p.plane, id)
		} else if other, ok := p.known[b]; ok {
			l.report("tokens", "plane %d of %d has the bytes of %d; take another id", p.plane, id, other)
		}
		p.known[b] = id
	}
}

// fingerprint returns the first 64 elements of a token, or all where there are
// fewer. That ids differ in none of 64 does not happen.
func (l *linter) fingerprint(id, plane int) (b []byte) {
	width := l.c.Shape.Width(plane)
	for h := 0; h < l.c.Shape.KVHeads && h*width < 64; h++ {
		b = appendElements(b, min(width, 64-h*width), id, plane, h, l.c.Shape.DType, l.c.Fill)
	}
	return b
}

// want checks that o's want says something, and nothing that cannot be: of is
// the cache that its state describes.
func (l *linter) want(o *Op, of *named) {
	w := o.Want
	said := 0
	for _, f := range []struct {
		name    string
		present bool
		verbs   []Verb // that have it; nil for all
	}{
		{"error", w.Error != "", nil},
		{"trimmed", w.Trimmed != nil, []Verb{Trim}},
		{"mask", w.Mask != nil, []Verb{MaskOp, AppendDecode, AppendWindow, AppendWindowUnder}},
		{"offsets", w.Offsets != nil, []Verb{ValidOffset}},
		{"bytes", w.Bytes != nil, []Verb{ProjectedBytes}},
		{"returned", w.Returned != nil, []Verb{Update, AppendDecode, AppendWindow, AppendWindowUnder, TemporalView}},
		{"stored", w.Stored != nil, stateful},
		{"state", len(w.State) > 0, stateful},
	} {
		if !f.present {
			continue
		}
		said++
		switch {
		case f.name == "state" && o.refused(): // which leaves the cache as it was
		case f.verbs != nil && !slices.Contains(f.verbs, o.Verb):
			l.report("want."+f.name, "%s has no such result", o.Verb)
		case o.refused() && f.name != "error":
			l.report("want."+f.name, "a refused operation has no such result")
		}
	}
	if said == 0 {
		l.report("want", "says nothing; leave it out or fill it")
	}
	switch w.Error {
	case "closed", "busy", "read_open", "dtype":
		l.report("want.error", "%s comes from the Go interface only; no case can raise it", w.Error)
	case "raises":
		if l.c.Semantics == ring.Exact {
			l.report("want.error", "raises is of mlx-lm's; exact has a code for every refusal")
		}
	}
	if w.Mask != nil && w.Mask.N == 0 && l.c.Semantics == ring.Exact && (of == nil || of.kind != BatchRecurrent) {
		l.report("want.mask", "is null; under exact a mask is always there")
	}
	if of != nil && of.kind != "" {
		for _, f := range w.State {
			many := o.Verb == Load && len(o.Outs) > 1 && f.Name == FCaches // the states of all that was loaded
			if !many && !slices.Contains(stateOf[of.kind], f.Name) {
				l.report("want.state."+f.Name.String(), "the state of %s has no such field", of.kind)
			}
		}
	}
	l.columns("want.returned", w.Returned)
	l.columns("want.stored", w.Stored)
}

// columns checks that rows can be the columns of one array of this case.
func (l *linter) columns(field string, rows [][]int) {
	for i, row := range rows {
		if len(row) != len(rows[0]) {
			l.report(field, "row %d has %d columns, row 0 %d; all rows of an array are of one length", i, len(row), len(rows[0]))
		}
		for _, id := range row {
			if _, ok := l.fed[id]; !ok && id != 0 {
				l.report(field, "names token %d, which no operation has fed", id)
			}
		}
	}
}

// stateful are the operations that have a cache whose state can be looked at.
var stateful = slices.DeleteFunc(slices.Clone(Verbs), func(v Verb) bool { return v == MaskOp || v == Save })
