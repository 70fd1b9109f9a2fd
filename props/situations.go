package props

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/models"
	"example.com/ringcheck/reference/ring"
)

// Situations count what cases exercise: the states and operations around which
// rings go wrong, every refusal, and every ordered pair of operations on one
// cache. The zero Situations count nothing yet. It is for one goroutine.
type Situations struct {
	Cases, Ops int
	counts     [len(situations)]int
	kinds      map[claimed]int
	refusals   map[string]int
	pairs      map[pair]int
}

// claimed is a kind under a semantics.
type claimed struct {
	kind      corpus.Kind
	semantics ring.Semantics
}

// pair are two operations that follow each other on one cache. The first may
// be the one that made it.
type pair struct{ first, then corpus.Verb }

// situation is one thing that a case can get into.
type situation struct {
	name string
	// Where it can occur: in one of these kinds, under this semantics (0: both),
	// with these operations.
	kinds     []corpus.Kind
	semantics ring.Semantics
	verbs     []corpus.Verb
	hit       func(o *occurrence) bool
}

// occurrence is one operation that succeeds, as the model and the cache see it.
type occurrence struct {
	op            *corpus.Op
	expect        *models.Expect
	before, after models.Info   // of the operation's cache, or (after) of what it made
	was, is       corpus.State  // what that cache said of itself
	others        []models.Info // of what else is joined or merged
	widest        int           // left padding of what is merged, the widest
	last          corpus.Verb   // the operation on the cache before this one
}

var (
	batchRings = []corpus.Kind{corpus.BatchRotating, corpus.BatchRotatingQuantized}
	allRings   = []corpus.Kind{corpus.Rotating, corpus.BatchRotating, corpus.RotatingQuantized, corpus.BatchRotatingQuantized}
	growing    = []corpus.Kind{corpus.KV, corpus.BatchKV, corpus.Rotating, corpus.BatchRotating, corpus.RotatingQuantized, corpus.BatchRotatingQuantized}
)

func list(v ...corpus.Verb) []corpus.Verb { return v }

var situations = [...]situation{
	{"the ring wraps", allRings, 0, list(corpus.Update), func(o *occurrence) bool { return o.after.Rotated && !o.before.Rotated }},
	{"a decode after an overshoot", allRings, 0, list(corpus.Update), func(o *occurrence) bool { return o.writes() && !o.expect.Block && o.overshot() }},
	{"a block after an overshoot", allRings, 0, list(corpus.Update), func(o *occurrence) bool { return o.writes() && o.expect.Block && o.overshot() }},
	{"a block after a wrapped decode", allRings, 0, list(corpus.Update), func(o *occurrence) bool { return o.writes() && o.expect.Block && o.before.Rotated }},
	{"a merge of an overshoot", allRings, 0, list(corpus.Merge), func(o *occurrence) bool { return o.op.Verb == corpus.Merge && slices.ContainsFunc(o.others, overshot) }},
	{"a merge of an overshoot with left padding (S-1)", batchRings, ring.Exact, list(corpus.Merge), func(o *occurrence) bool {
		return o.op.Verb == corpus.Merge && o.widest > 0 && slices.ContainsFunc(o.others, overshot)
	}},
	{"a merge of an empty cache and a full one", allRings, 0, list(corpus.Merge), func(o *occurrence) bool {
		empty := func(i models.Info) bool { return i.Columns == 0 }
		return o.op.Verb == corpus.Merge && slices.ContainsFunc(o.others, empty) && !o.every(empty)
	}},
	{"a filter while padding is pending (D-4)", batchRings, ring.Exact, list(corpus.Filter), func(o *occurrence) bool { return o.op.Verb == corpus.Filter && o.before.Pending }},
	{"one column while padding is pending (D-1)", batchRings, ring.Exact, list(corpus.Prepare), func(o *occurrence) bool { return o.writes() && o.before.Pending && len(o.op.Tokens[0]) == 1 }},
	{"a padded prompt in several blocks", batchRings, 0, list(corpus.Prepare), func(o *occurrence) bool { return o.writes() && o.before.Pending && o.after.Due > 0 }},
	{"a finalize that rolls, left padding below 0 (O-2)", batchRings, ring.MLXLM, list(corpus.Finalize), func(o *occurrence) bool {
		return o.op.Verb == corpus.Finalize && o.before.Pending && slices.ContainsFunc(o.wasInts(corpus.FLeftPadding), negative) &&
			!slices.Equal(o.wasInts(corpus.FOffset), o.isInts(corpus.FOffset))
	}},
	{"a block that gives a row no token (O-3)", batchRings, 0, list(corpus.Prepare), func(o *occurrence) bool {
		return o.writes() && slices.ContainsFunc(o.expect.Rows, func(r models.Row) bool { return r.Real == 0 && r.Past > 0 })
	}},
	{"a block's mask that hides a token (O-1)", batchRings, ring.MLXLM, list(corpus.MaskOp), func(o *occurrence) bool {
		return o.op.Verb == corpus.MaskOp && slices.ContainsFunc(o.expect.Rows, func(r models.Row) bool { return r.Hides })
	}},
	{"a row of left padding only", batchRings, 0, list(corpus.Merge), func(o *occurrence) bool { return slices.Contains(o.isInts(corpus.FLeftPadding), o.after.MaxSize) }},
	{"a rollback that trims", batchRings, 0, list(corpus.Rollback), func(o *occurrence) bool { return o.rollsBack() && o.after.Total < o.before.Total }},
	{"a rollback that shifts", batchRings, 0, list(corpus.Rollback), func(o *occurrence) bool { return o.shifts() }},
	{"a rollback that keeps nothing of a row", batchRings, 0, list(corpus.Rollback), func(o *occurrence) bool {
		return o.rollsBack() && o.before.Round > 0 && (o.op.KeepRows == nil && o.op.Keep == 0 || slices.Contains(o.op.KeepRows, 0))
	}},
	{"a rollback of a rotated ring", batchRings, 0, list(corpus.Rollback), func(o *occurrence) bool { return o.shifts() && o.before.Rotated }},
	{"a rollback with spare columns", batchRings, 0, list(corpus.Rollback), func(o *occurrence) bool { return o.shifts() && number(o.was, corpus.FBuffer) > o.before.Columns }},
	{"growth by another step", growing, 0, list(corpus.Update), func(o *occurrence) bool {
		return o.writes() && !o.expect.Block && number(o.was, corpus.FBuffer) > 0 && number(o.is, corpus.FBuffer) > number(o.was, corpus.FBuffer)
	}},
	{"a trim, then a block", growing, 0, list(corpus.Trim), func(o *occurrence) bool { return o.writes() && o.expect.Block && o.last == corpus.Trim }},
	{"a trim, then a decode", growing, 0, list(corpus.Trim), func(o *occurrence) bool { return o.writes() && !o.expect.Block && o.last == corpus.Trim }},
	{"an extend of a rotated and an unrotated ring", batchRings, 0, list(corpus.Extend), func(o *occurrence) bool { return o.joins(func(a, b bool) bool { return a != b }) }},
	{"an extend of two rotated rings", batchRings, 0, list(corpus.Extend), func(o *occurrence) bool { return o.joins(func(a, b bool) bool { return a && b }) }},
	{"an extend of an empty cache and a full one", batchRings, 0, list(corpus.Extend), func(o *occurrence) bool {
		return o.op.Verb == corpus.Extend && (o.before.Columns == 0) != (o.others[0].Columns == 0)
	}},
	{"a batch of no rows", batchRings, ring.Exact, list(corpus.Filter), func(o *occurrence) bool {
		return o.op.Verb == corpus.Filter && o.after.Rows == 0 && o.before.Columns > 0
	}},
	{"a write of W-1 columns", allRings, 0, list(corpus.Update), func(o *occurrence) bool { return o.width(func(w int) int { return w - 1 }) }},
	{"a write of W columns", allRings, 0, list(corpus.Update), func(o *occurrence) bool { return o.width(func(w int) int { return w }) }},
	{"a write of W+1 columns", allRings, 0, list(corpus.Update), func(o *occurrence) bool { return o.width(func(w int) int { return w + 1 }) }},
	{"a write of 2W+1 columns", allRings, 0, list(corpus.Update), func(o *occurrence) bool { return o.width(func(w int) int { return 2*w + 1 }) }},
	{"a mask narrower than the ring", allRings, 0, list(corpus.MaskOp), func(o *occurrence) bool { return o.looks(func(w, ring int) bool { return w < ring }) }},
	{"a mask wider than the ring", allRings, 0, list(corpus.MaskOp), func(o *occurrence) bool { return o.looks(func(w, ring int) bool { return w > ring }) }},
	{"a snapshot restored over a later state", allRings, 0, list(corpus.Restore), func(o *occurrence) bool { return o.op.Verb == corpus.Restore && o.before.Total > o.after.Total }},
	{"a rotated ring adopted", allRings, 0, list(corpus.Adopt), func(o *occurrence) bool { return o.op.Verb == corpus.Adopt && o.after.Rotated }},
	{"a rotated ring loaded", allRings, 0, list(corpus.Load), func(o *occurrence) bool { return o.op.Verb == corpus.Load && o.after.Rotated }},
	{"a chunk dropped at the front", []corpus.Kind{corpus.Chunked}, 0, list(corpus.TrimFront), func(o *occurrence) bool { return o.op.Verb == corpus.TrimFront && o.after.Columns < o.before.Columns }},
}

func negative(n int) bool             { return n < 0 }
func overshot(i models.Info) bool     { return i.MaxSize > 0 && i.Columns > i.MaxSize }
func (o *occurrence) overshot() bool  { return overshot(o.before) }
func (o *occurrence) writes() bool    { return len(o.expect.Rows) > 0 && len(o.op.Tokens) > 0 }
func (o *occurrence) rollsBack() bool { return o.op.Verb == corpus.Rollback }
func (o *occurrence) shifts() bool {
	return o.rollsBack() && o.after.Total == o.before.Total && !slices.Equal(o.wasInts(corpus.FOffset), o.isInts(corpus.FOffset))
}
func (o *occurrence) every(is func(models.Info) bool) bool {
	return !slices.ContainsFunc(o.others, func(i models.Info) bool { return !is(i) })
}
func (o *occurrence) joins(rotated func(a, b bool) bool) bool {
	return o.op.Verb == corpus.Extend && o.before.Columns > 0 && o.others[0].Columns > 0 && rotated(o.before.Rotated, o.others[0].Rotated)
}
func (o *occurrence) width(of func(w int) int) bool {
	return o.writes() && o.before.MaxSize > 1 && len(o.op.Tokens[0]) == of(o.before.MaxSize)
}
func (o *occurrence) looks(is func(w, ring int) bool) bool {
	return o.op.Verb == corpus.MaskOp && o.op.Window != nil && *o.op.Window > 0 && is(*o.op.Window, o.before.MaxSize)
}
func (o *occurrence) wasInts(name corpus.FieldName) []int { f, _ := o.was.Get(name); return f.Ints }
func (o *occurrence) isInts(name corpus.FieldName) []int  { f, _ := o.is.Get(name); return f.Ints }
func number(s corpus.State, name corpus.FieldName) int    { f, _ := s.Get(name); return f.Int }

// Add counts what c exercises; steps are the reference's answers to it.
func (s *Situations) Add(c corpus.Case, steps []corpus.Step) {
	if s.pairs == nil {
		s.kinds, s.refusals, s.pairs = map[claimed]int{}, map[string]int{}, map[pair]int{}
	}
	s.Cases++
	m := models.New(c.Semantics, c.Shape, c.Quant)
	said, last := map[string]corpus.State{}, map[string]corpus.Verb{}
	for i := range min(len(c.Ops), len(steps)) {
		op := &c.Ops[i]
		s.Ops++
		o := occurrence{op: op, was: said[op.Cache], is: steps[i].State, last: last[op.Cache]}
		o.before, _ = m.Info(op.Cache)
		touched := slices.Concat([]string{op.Cache}, op.Caches, []string{op.Other})
		for _, name := range touched[1:] {
			if info, ok := m.Info(name); ok {
				o.others = append(o.others, info)
				f, _ := said[name].Get(corpus.FLeftPadding)
				o.widest = max(o.widest, slices.Max(append(f.Ints, 0)))
			}
		}
		if o.expect = m.Apply(op); !o.expect.Known {
			continue
		}
		if code := o.expect.Error; code != "" {
			s.refusals[code]++
			continue
		}
		out := op.Cache
		if op.Out != "" {
			out = op.Out
		} else if len(op.Outs) > 0 {
			out = op.Outs[0]
		}
		o.after, _ = m.Info(out)
		for k := range situations {
			if situations[k].hit(&o) {
				s.counts[k]++
			}
		}
		if op.Verb == corpus.New {
			s.kinds[claimed{op.Kind, c.Semantics}]++
		}
		for _, name := range touched {
			if first := last[name]; first != "" && op.Verb != corpus.New {
				s.pairs[pair{first, op.Verb}]++
			}
		}
		for _, name := range slices.Concat(touched, []string{op.Out}, op.Outs) {
			last[name] = op.Verb
		}
		delete(last, "")
		if op.Verb != corpus.MaskOp {
			said[out] = steps[i].State
		}
	}
}

// refusable are the codes that the cases of a domain can provoke.
var refusable = map[ring.Semantics][]string{
	ring.MLXLM: {"left_padding_on_non_empty", "pending_padding", "max_size", "not_supported", "raises"},
	ring.Exact: {
		"not_supported", "pending_padding", "no_tokens", "rows", "shape", "range", "not_trimmable", "over_trim",
		"window", "max_size", "keep", "left_padding_on_non_empty", "empty",
	},
}

// possible reports whether a cache of the domain can get there.
func (d Domain) possible(kinds []corpus.Kind, semantics ring.Semantics, verbs []corpus.Verb) bool {
	for _, v := range verbs {
		if !slices.Contains(d.Info.Ops, v) {
			return false
		}
	}
	for _, s := range keep(d.Info.Semantics, d.Semantics) {
		for _, k := range keep(d.Info.Kinds, d.Kinds) {
			lacks := func(v corpus.Verb) bool { return !k.Has(v, s) }
			if (semantics == 0 || semantics == s) && slices.Contains(kinds, k) && !slices.ContainsFunc(verbs, lacks) {
				return true
			}
		}
	}
	return false
}

// makes says which kinds come out of an operation that makes a cache from
// others, besides those that it is done to.
var makes = map[corpus.Verb][]corpus.Kind{
	corpus.Merge:       {corpus.BatchKV, corpus.BatchRotating, corpus.BatchRotatingQuantized},
	corpus.Extract:     {corpus.KV, corpus.Rotating, corpus.RotatingQuantized},
	corpus.ToQuantized: {corpus.Quantized, corpus.RotatingQuantized},
}

// pairs returns the ordered pairs of operations that can follow each other on
// one cache of the domain.
func (d Domain) pairs() map[pair]bool {
	out := map[pair]bool{}
	for _, s := range keep(d.Info.Semantics, d.Semantics) {
		for _, k := range keep(d.Info.Kinds, d.Kinds) {
			for _, first := range d.Info.Ops {
				for _, then := range d.Info.Ops {
					switch {
					case !k.Has(first, s) && !slices.Contains(makes[first], k), !k.Has(then, s):
					case then == corpus.New || then == corpus.Load || then == corpus.Adopt: // these begin a cache
					case first == corpus.New && (then == corpus.TemporalView || then == corpus.Attend): // refused: empty
					default:
						out[pair{first, then}] = true
					}
				}
			}
		}
	}
	return out
}

// Missing names what the cases of a domain can get into, and these did not.
func (s *Situations) Missing(d Domain) []string {
	var out []string
	for i, x := range situations {
		if s.counts[i] == 0 && d.possible(x.kinds, x.semantics, x.verbs) {
			out = append(out, x.name)
		}
	}
	for _, sem := range keep(d.Info.Semantics, d.Semantics) {
		for _, k := range keep(d.Info.Kinds, d.Kinds) {
			if k.Has(corpus.New, sem) && s.kinds[claimed{k, sem}] == 0 {
				out = append(out, fmt.Sprintf("a new %s under %v", k, sem))
			}
		}
		for _, code := range refusable[sem] {
			if s.refusals[code] == 0 {
				out = append(out, "a refusal: "+code)
			}
		}
	}
	var pairs []string
	for p := range d.pairs() {
		if s.pairs[p] == 0 {
			pairs = append(pairs, fmt.Sprintf("%s, then %s", p.first, p.then))
		}
	}
	slices.Sort(pairs)
	return append(out, pairs...)
}

// Count is how often something occurred.
type Count struct {
	Name string
	N    int
}

// Counts says how often cases got into each situation, pairs of operations
// apart.
func (s *Situations) Counts() []Count {
	var out []Count
	for i, x := range situations {
		out = append(out, Count{x.name, s.counts[i]})
	}
	for _, code := range slices.Sorted(maps.Keys(s.refusals)) {
		out = append(out, Count{"a refusal: " + code, s.refusals[code]})
	}
	return out
}

// String is the table of all counts; a pair of operations is counted in the
// line of the first.
func (s *Situations) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d cases, %d operations\n", s.Cases, s.Ops)
	line := func(n int, format string, args ...any) {
		fmt.Fprintf(&b, "%8d  "+format+"\n", append([]any{n}, args...)...)
	}
	for i, x := range situations {
		line(s.counts[i], "%s", x.name)
	}
	for _, sem := range []ring.Semantics{ring.MLXLM, ring.Exact} {
		for _, k := range corpus.Kinds {
			if n := s.kinds[claimed{k, sem}]; n > 0 {
				line(n, "a new %s under %v", k, sem)
			}
		}
	}
	for _, code := range slices.Sorted(maps.Keys(s.refusals)) {
		line(s.refusals[code], "a refusal: %s", code)
	}
	for _, first := range corpus.Verbs {
		sum, text := 0, ""
		for _, then := range corpus.Verbs {
			if n := s.pairs[pair{first, then}]; n > 0 {
				sum += n
				text += fmt.Sprintf(" %s %d", then, n)
			}
		}
		if sum > 0 {
			line(sum, "%s, then:%s", first, text)
		}
	}
	return b.String()
}
