package models

import (
	"reflect"
	"strconv"
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

// ints draws a list that is sometimes absent and often of the length wanted.
func ints(t *rapid.T, label string, n, low, high int) []int {
	if rapid.IntRange(0, 5).Draw(t, label+" odd") == 0 {
		n = rapid.IntRange(-1, 4).Draw(t, label+" length")
	}
	if n < 0 {
		return nil
	}
	return rapid.SliceOfN(rapid.IntRange(low, high), n, n).Draw(t, label)
}

// anyOp draws an operation that may be anything at all, or that is shaped as
// the cache needs it.
func anyOp(t *rapid.T, m *Model, next *int) *corpus.Op {
	odds := func(label string, one int) bool { return rapid.IntRange(1, one).Draw(t, label) == 1 }
	var live []string
	for _, n := range m.Names() {
		if i, _ := m.Info(n); !i.Lost {
			live = append(live, n)
		}
	}
	name := func(label string) string {
		if len(live) == 0 || odds(label+" is any", 12) {
			return "c" + strconv.Itoa(rapid.IntRange(0, 4).Draw(t, label))
		}
		return rapid.SampledFrom(live).Draw(t, label)
	}
	op := &corpus.Op{
		Verb: rapid.SampledFrom(corpus.Verbs[1:]).Draw(t, "verb"), Cache: name("cache"), Other: name("other"),
		N: rapid.IntRange(-1, 9).Draw(t, "n"), Slot: rapid.IntRange(-1, 2).Draw(t, "slot"),
		Keep: rapid.IntRange(-1, 3).Draw(t, "keep"), Preserve: rapid.Bool().Draw(t, "preserve"), Queries: 1,
		As: "s", From: "s", File: "f", Outs: []string{name("outs")}, Caches: []string{name("caches")},
	}
	op.Out = "c" + strconv.Itoa(rapid.IntRange(0, 4).Draw(t, "out"))
	i, ok := m.Info(op.Cache)
	if rows := i.Rows; !ok || i.Lost || odds("new", 20) {
		kind := rapid.SampledFrom(corpus.Kinds).Draw(t, "kind")
		if m.exact && !kind.Has(corpus.New, ring.Exact) && !odds("kind not of exact", 20) {
			kind = corpus.BatchRotating
		}
		op = &corpus.Op{
			Verb: corpus.New, Out: op.Out, Kind: kind, Caches: op.Caches,
			MaxSize: rapid.IntRange(1, 5).Draw(t, "max size"), ChunkSize: rapid.IntRange(1, 4).Draw(t, "chunk"),
			Slots: rapid.IntRange(1, 2).Draw(t, "slots"), LeftPadding: ints(t, "left", rapid.IntRange(0, 3).Draw(t, "rows"), 0, 3),
		}
		if odds("odd", 10) {
			op.MaxSize, op.ChunkSize, op.Slots, op.Keep = rows-1, rows-1, rows-1, rows
		}
		return op
	}
	switch {
	case rapid.Bool().Draw(t, "anything"):
	case i.Slots > 0:
		op.Verb = rapid.SampledFrom([]corpus.Verb{corpus.Write, corpus.Advance, corpus.Prepare, corpus.MaskOp}).Draw(t, "common")
	default:
		op.Verb = rapid.SampledFrom([]corpus.Verb{corpus.Update, corpus.Update, corpus.AppendWindow, corpus.MaskOp}).Draw(t, "common")
	}
	rows := i.Rows
	op.Row = rapid.IntRange(-1, rows).Draw(t, "row")
	if rapid.Bool().Draw(t, "window") {
		w := rapid.IntRange(-1, 7).Draw(t, "width")
		op.Window, op.Limit = &w, &w
	}
	if rapid.Bool().Draw(t, "per row") {
		op.KeepRows = ints(t, "keeps", rows, 0, 3)
	}
	op.Rows = ints(t, "keep rows", rapid.IntRange(0, 3).Draw(t, "kept"), 0, max(0, rows-1))
	op.LeftPadding = ints(t, "left", rows, 0, 2)
	if op.Verb == corpus.Prepare && rapid.IntRange(0, 3).Draw(t, "right only") > 0 {
		op.LeftPadding = nil
	}
	op.RightPadding = ints(t, "right", rows, 0, 3)
	for _, r := range op.RightPadding {
		op.Lengths = append(op.Lengths, 4-r)
	}
	if rapid.IntRange(0, 9).Draw(t, "flag") == 0 {
		flag := rapid.Bool().Draw(t, "right padded")
		op.RightPadded = &flag
	}
	n := rapid.SampledFrom([]int{1, 1, 1, 1, 2, 3, 7, 0}).Draw(t, "columns")
	for i := range rows {
		lead, real := 0, n
		if c := m.caches[op.Cache]; c.slots == nil && i < len(c.rows) {
			lead, real = m.Split(op.Cache, i, n)
		}
		if rapid.IntRange(0, 30).Draw(t, "wrong sign") == 0 {
			real = 0
		}
		row := make([]int, n)
		for j := range row {
			*next++
			row[j] = -*next
			if j >= lead && j < lead+real {
				row[j] = *next
			}
		}
		op.Tokens = append(op.Tokens, row)
	}
	if rapid.IntRange(0, 30).Draw(t, "rows wrong") == 0 && len(op.Tokens) > 0 {
		op.Tokens = op.Tokens[1:]
	}
	return op
}

// frozen is a copy of all that a model knows.
func frozen(m *Model) map[string]*cache {
	out := map[string]*cache{}
	for name, c := range m.caches {
		n := c.clone()
		n.round = c.round
		out[name] = n
	}
	for name, c := range m.snaps {
		out["snapshot "+name] = c.clone()
	}
	return out
}

// TestAnyOperation feeds the model anything: it does not panic, Legal and Apply
// agree, a refused operation changes nothing, reading changes nothing but the
// round, and what a cache holds stays within its invariants.
func TestAnyOperation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sem := rapid.SampledFrom([]ring.Semantics{ring.MLXLM, ring.Exact}).Draw(t, "semantics")
		m := New(sem, corpus.Shape{KVHeads: 2, KeyDim: 32, ValueDim: 64, DType: ring.BFloat16}, &corpus.Quant{GroupSize: 32, Bits: 4})
		next := 0
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			op := anyOp(t, m, &next)
			before := frozen(m)
			ok, code := m.Legal(op)
			if !ok && code == "" && rapid.IntRange(0, 9).Draw(t, "leave the domain") > 0 {
				continue
			}
			e := m.Apply(op)
			if e.Known != (ok || code != "") || e.Error != code {
				t.Fatalf("%+v: legal %v, code %q, but known %v, error %q", op, ok, code, e.Known, e.Error)
			}
			after := frozen(m)
			if code != "" || ok && readsOnly(op.Verb) {
				for name, c := range before { // what the operation made may have taken a name
					if !reflect.DeepEqual(c, after[name]) && (code != "" || name != op.Out && name != "snapshot "+op.As) {
						t.Fatalf("%+v, error %q: %s has changed", op, code, name)
					}
				}
			}
			for name, c := range after {
				if why := unsound(c); why != "" {
					t.Fatalf("after %+v, %s: %s", op, name, why)
				}
			}
		}
	})
}

// unsound says which invariant of a cache does not hold, "" if all do.
func unsound(c *cache) string {
	if c.lost || c.slots != nil {
		return ""
	}
	for _, k := range c.kids {
		if why := unsound(k); why != "" {
			return why
		}
	}
	if isRing(c.kind) && isBatch(c.kind) && min(c.a, c.w) != min(c.tot, c.w) {
		return "columns and total disagree"
	}
	if !c.exact && isSerialRing(c.kind) && c.a < min(c.tot, c.w) {
		return "a serial ring holds less than mlx-lm takes for granted"
	}
	if c.rot && (c.a != c.w || c.idx < 1 || c.idx > c.w) || !c.rot && c.idx != c.a {
		return "the write index is out of place"
	}
	for i := range c.rows {
		r := &c.rows[i]
		switch {
		case len(r.tail) > r.n:
			return "more is held than there is"
		case r.pad >= 0 && c.garbage(i) < 0:
			return "more is held than there are columns for"
		case c.exact && r.pad >= 0 && c.garbage(i) != 0:
			return "an extract would have garbage in front"
		case c.exact && c.leftPadding(i) < 0:
			return "left padding is negative"
		case r.pad > 0 && !c.pending:
			return "trailing padding without an announcement"
		}
		for _, id := range r.tail {
			if id <= 0 {
				return "padding is held as a token"
			}
		}
	}
	return ""
}

// TestApart: what snapshot, restore, adopt, extract and merge make shares
// nothing with its source.
func TestApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New(ring.Exact, corpus.Shape{}, nil)
		do := func(op corpus.Op) {
			if ok, code := m.Legal(&op); !ok {
				t.Fatalf("%s: %q", op.Verb, code)
			}
			m.Apply(&op)
		}
		next := 0
		write := func(name string, n int) {
			tokens := make([][]int, len(m.caches[name].rows))
			for i := range tokens {
				for range n {
					next++
					tokens[i] = append(tokens[i], next)
				}
			}
			do(corpus.Op{Verb: corpus.Update, Cache: name, Tokens: tokens})
		}
		some := func(name string) {
			for range rapid.IntRange(1, 4).Draw(t, "writes") {
				write(name, rapid.IntRange(1, 5).Draw(t, "n"))
			}
		}
		do(corpus.Op{Verb: corpus.New, Out: "b", Kind: corpus.BatchRotating, MaxSize: 4, LeftPadding: []int{0, 0}})
		some("b")
		do(corpus.Op{Verb: corpus.Snapshot, Cache: "b", As: "s"})
		do(corpus.Op{Verb: corpus.Adopt, From: "s", Out: "adopted"})
		do(corpus.Op{Verb: corpus.Extract, Cache: "b", Out: "extracted"})
		do(corpus.Op{Verb: corpus.Merge, Caches: []string{"b"}, Out: "merged"})
		do(corpus.Op{Verb: corpus.Save, Caches: []string{"b"}, File: "f"})
		do(corpus.Op{Verb: corpus.Load, File: "f", Outs: []string{"loaded"}})
		made := []string{"b", "adopted", "extracted", "merged", "loaded"}
		for _, changed := range made {
			before := frozen(m)
			if n := m.caches[changed].minHeld(); n > 0 && m.caches[changed].tot < 4 {
				do(corpus.Op{Verb: corpus.Trim, Cache: changed, N: 1})
			}
			some(changed)
			after := frozen(m)
			delete(before, changed)
			delete(after, changed)
			if !reflect.DeepEqual(before, after) {
				t.Fatalf("a write to %s has changed another", changed)
			}
		}
		do(corpus.Op{Verb: corpus.Restore, Cache: "b", From: "s"})
		if want := m.snaps["s"].clone(); !reflect.DeepEqual(m.caches["b"].clone(), want) {
			t.Fatal("restore does not bring the snapshot back")
		}
	})
}
