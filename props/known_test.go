package props

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// The known ids: reports against mlx-lm (M) and its ports (P), quirks (Q),
// differences (D), defects (O, S), the rules of exact (E) and the numbered items
// of docs/semantics.md. Each has a case of its name in the corpus or, where the
// case language cannot say it, a test here.
func knownIDs() []string {
	ids := []string{"M40", "Q15", "Q16", "Q18", "Q20", "Q24", "Q25", "Q27", "Q29", "Q31", "P17", "P19", "P20", "P21", "P22", "P25", "P26", "P29"}
	series := func(format string, numbers ...int) {
		for _, n := range numbers {
			ids = append(ids, fmt.Sprintf(format, n))
		}
	}
	to := func(first, last int) (out []int) {
		for n := first; n <= last; n++ {
			out = append(out, n)
		}
		return out
	}
	series("M%02d", slices.Concat(to(1, 23), to(26, 37))...)
	series("P%02d", slices.Concat(to(1, 4), to(9, 13))...)
	series("Q%02d", slices.Concat(to(1, 5), to(7, 13))...)
	series("D-%d", to(1, 30)...)
	series("O-%d", to(1, 6)...)
	series("S-%d", to(1, 6)...)
	series("E%d", to(1, 10)...)
	series("item-%03d", to(1, 100)...)
	return ids
}

// namedTests are the tests of what no case can say, by id.
var namedTests = map[string]func(*testing.T){
	"M12": TestM12BookkeepingIsBounded, "M16": TestM16NBytes, "M20": TestM20GroupedQueriesUnderPadding,
	"M22": TestM22LongerPromptServesShorter, "D-21": TestD21MergeOfShapes, "S-6": TestS6RowPositions,
	"item-044": TestS6RowPositions, "item-066": TestS6RowPositions, "item-065": TestItem065ReadAttendsAgain,
	"item-053": TestItem053CloseTwice, "item-079": TestItem053CloseTwice, "item-064": TestItem064MaskLeases,
}

func TestKnownIsComplete(t *testing.T) {
	cases := map[string]bool{}
	for f, err := range corpus.All(corpus.FS()) {
		if err != nil {
			t.Fatal(err)
		}
		name, known := strings.CutPrefix(f.Path, "known/")
		if !known {
			continue
		}
		c := f.Case
		if name != c.Name+".json" || c.Name != c.ID && !strings.HasPrefix(c.Name, c.ID+"-") {
			t.Errorf("%s: named %q, id %q", f.Path, c.Name, c.ID)
		}
		if c.Notes == "" || !strings.HasPrefix(c.Link, "https://") && c.Link != "" {
			t.Errorf("%s: wants a note of one sentence, and a whole link where there is one", f.Path)
		}
		cases[c.ID] = true
	}
	ids := knownIDs()
	for _, id := range ids {
		if cases[id] == (namedTests[id] != nil) {
			t.Errorf("%s: wants a case or, where none can say it, a test", id)
		}
	}
	for id := range maps.Keys(cases) {
		if !slices.Contains(ids, id) {
			t.Errorf("%s: has a case, and is no known id", id)
		}
	}
}

// Every known case holds of the reference, at layout level.
func TestKnownCases(t *testing.T) {
	for f, err := range corpus.All(corpus.FS()) {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(f.Path, "known/") {
			continue
		}
		steps, err := ReferenceTarget().Run(context.Background(), f.Case, t.TempDir())
		if err != nil {
			t.Errorf("%s: %v", f.Path, err)
		} else if d := CompareWants(f.Case, steps, Layout); d != nil {
			t.Errorf("%s: %v", f.Path, d)
		}
	}
}

// invisible are the known cases of a ring whose last write is there for
// something else than what it returns, by what that is.
var invisible = map[string]string{
	"D-2": "a mask that no write may follow", "D-25": "what a ring cannot do", "M37": "trimmable",
	"O-6": "a refusal", "Q29": "what is allocated", "S-2": "refusals",
}

// TestKnownCasesAreVisible: what a known case says of the columns of a ring is
// also said to who is judged by what a query sees. Without the columns that were
// there before, the last write that returns such is not as the case wants it; nor
// is, where one follows, the extract that shows them.
func TestKnownCasesAreVisible(t *testing.T) {
	checked := 0
	for f, err := range corpus.All(corpus.FS()) {
		if err != nil {
			t.Fatal(err)
		}
		c := f.Case
		rings := slices.ContainsFunc(c.Ops, func(op corpus.Op) bool { return op.Kind == corpus.Rotating || op.Kind == corpus.BatchRotating })
		if !strings.HasPrefix(f.Path, "known/") || c.Semantics != ring.MLXLM || !rings || Corrupts(c) {
			continue
		}
		steps, err := ReferenceTarget().Run(t.Context(), c, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		last := -1
		ids := Observed(c, steps)
		for i, op := range c.Ops {
			switch {
			case op.Verb == corpus.Extract:
				last = -1
			case len(op.Tokens) > 0 && len(ids[i].Returned) > 0 && len(ids[i].Returned[0]) > len(op.Tokens[0]):
				last = i
			}
		}
		if last < 0 {
			continue
		}
		for b, row := range ids[last].Returned {
			for s, id := range row {
				for _, p := range steps[last].Returned {
					for h := range p.Array.Shape[1] {
						if !slices.Contains(c.Ops[last].Tokens[b], id) {
							clear(column(p.Array, b, h, s))
						}
					}
				}
			}
		}
		checked++
		if d := CompareWants(c, steps, Visible); (d == nil) == (invisible[c.Name] == "") {
			t.Errorf("%s, #%d: %v; it is listed for %q", f.Path, last, d, invisible[c.Name])
		}
	}
	if checked < 20 {
		t.Errorf("%d cases were checked", checked)
	}
}

// quantShape is that of the tests which quantize.
var quantShape = corpus.Shape{KVHeads: 2, KeyDim: 32, ValueDim: 32, DType: ring.Float32}

// tokenColumns are the keys and values of tokens.
func tokenColumns(s corpus.Shape, tokens ...[]int) (keys, values ring.Array) {
	return corpus.TokenArray(s, corpus.Grid, corpus.KeyPlane, tokens), corpus.TokenArray(s, corpus.Grid, corpus.ValuePlane, tokens)
}

// feed updates a cache with tokens, one list a row.
func feed(t *testing.T, c interface {
	Update(keys, values ring.Array) (ring.KV, error)
}, s corpus.Shape, tokens ...[]int) ring.KV {
	t.Helper()
	kv, err := c.Update(tokenColumns(s, tokens...))
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

func made[V any](v V, err error) V {
	if err != nil {
		panic(err) // of a constructor with constant arguments
	}
	return v
}

// M12: what a ring keeps beside its columns does not grow with the tokens.
func TestM12BookkeepingIsBounded(t *testing.T) {
	s := corpus.Shape{KVHeads: 1, KeyDim: 4, ValueDim: 4, DType: ring.BFloat16}
	for _, semantics := range []ring.Semantics{ring.MLXLM, ring.Exact} {
		c := made(reference.NewBatchRotatingKVCache(semantics, 8, []int{0, 3}))
		keys, values := tokenColumns(s, []int{1}, []int{2})
		const steps = 50_000
		size := 0
		for i := range steps {
			if _, err := c.Update(keys, values); err != nil {
				t.Fatal(err)
			}
			n := made(c.NBytes())
			if i == 8 {
				size = n
			}
			if p := c.Position(); i > 8 && (n != size || c.BufferColumns() != 8 || len(p.Offset) != 2 || len(p.LeftPadding) != 2 || p.Idx > 8) {
				t.Fatalf("%v: after %d tokens: %d bytes in %d columns, and %d before; %+v", semantics, i+1, n, c.BufferColumns(), size, p)
			}
		}
		if p := c.Position(); p.Offset[0] != steps || p.Total != steps {
			t.Errorf("%v: offset %d and total %d after %d tokens", semantics, p.Offset[0], p.Total, steps)
		}
	}
}

// M16: slots that hold nothing count for nothing; a quantized cache sums the
// bytes of all planes, and raises while it is empty.
func TestM16NBytes(t *testing.T) {
	a := reference.NewArraysCache(2, nil)
	if n := made(a.NBytes()); n != 0 {
		t.Errorf("an empty ArraysCache has %d bytes", n)
	}
	keys, _ := tokenColumns(quantShape, []int{1})
	if err := a.Write(1, keys.Tensor()); err != nil {
		t.Fatal(err)
	}
	if n := made(a.NBytes()); n != 2*32*4 {
		t.Errorf("one slot of [1 2 1 32] float32 has %d bytes", n)
	}
	q := made(reference.NewQuantizedKVCache(reference.Format{GroupSize: 32, Bits: 4}))
	q.Step = 4
	if _, err := q.NBytes(); ring.CodeOf(err) != "raises" {
		t.Errorf("nbytes of an empty QuantizedKVCache: %v", err)
	}
	feed(t, q, quantShape, []int{1})
	// Both sides: 4 columns of 2 heads of 16 bytes of codes, a scale and a bias.
	if n := made(q.NBytes()); n != 2*4*2*(16+4+4) {
		t.Errorf("a QuantizedKVCache of 4 columns has %d bytes", n)
	}
}

// M20: the padding mask of a batch holds for every query head of a group, over
// quantized columns.
func TestM20GroupedQueriesUnderPadding(t *testing.T) {
	f := reference.Format{GroupSize: 32, Bits: 8}
	queries := func(rows int) ring.Array { // 5 query heads for each of 2 kv heads
		s := quantShape
		s.KVHeads = 10
		return corpus.TokenArray(s, corpus.Grid, corpus.QueryPlane, slices.Repeat([][]int{{-1000, -1001, -1002}}, rows))
	}
	read := func(padding []int, tokens ...[]int) reference.Read {
		c := made(reference.NewBatchRotatingQuantizedKVCache(ring.Exact, 8, padding, f))
		keys, values := tokenColumns(quantShape, tokens...)
		return made(c.AppendWindow(keys, values))
	}
	both := made(read([]int{0, 2}, []int{1, 2, 3}, []int{-1, -2, 11}).Attend(queries(2), 0.25))
	alone := made(read([]int{0}, []int{11}).Attend(made(lastQuery(queries(1))), 0.25))
	row := both[len(both)/2:]
	for head := range 10 {
		got := row[(head*3+2)*32:][:32]
		if want := alone[head*32:][:32]; !slices.Equal(got, want) {
			t.Fatalf("query head %d of the padded row attends to %v, alone to %v", head, got[:4], want[:4])
		}
		if first := row[head*3*32:][:32]; slices.ContainsFunc(first, func(x float32) bool { return x != 0 }) {
			t.Fatalf("query head %d of a padding query, which sees nothing, attends to %v", head, first[:4])
		}
	}
}

// lastQuery is the last of the queries of one row, [1, heads, 1, d].
func lastQuery(a ring.Array) (ring.Array, error) {
	n, width := a.Shape[2], a.Shape[3]*a.DType.Size()
	out := ring.Array{DType: a.DType, Shape: [4]int{1, a.Shape[1], 1, a.Shape[3]}}
	for h := range a.Shape[1] {
		out.Data = append(out.Data, a.Data[(h*n+n-1)*width:][:width]...)
	}
	return out, nil
}

// M22 is about a trie of stored prompts, which there is none of here. What its
// pruning rests on can be shown: a longer prompt whose caches can be trimmed
// serves the one that is a token shorter, which need not be kept.
func TestM22LongerPromptServesShorter(t *testing.T) {
	s := corpus.Shape{KVHeads: 1, KeyDim: 4, ValueDim: 4, DType: ring.BFloat16}
	prompt := func(tokens ...int) []reference.Cache {
		kv, r := reference.NewKVCache(), made(reference.NewRotatingKVCache(ring.MLXLM, 8, 0))
		feed(t, kv, s, tokens)
		feed(t, r, s, tokens)
		return []reference.Cache{kv, r}
	}
	longer, shorter := prompt(1, 2, 3), prompt(1, 2)
	if n, err := reference.TrimPromptCache(longer, 1); n != 1 || err != nil {
		t.Fatalf("trimmed %d, %v", n, err)
	}
	for i := range longer {
		type columns interface{ KeysAndValues() ring.KV }
		got, want := longer[i].(columns).KeysAndValues(), shorter[i].(columns).KeysAndValues()
		if !equalKV(got, want) {
			t.Errorf("cache %d: the trimmed prompt holds %v, the shorter one %v", i, got, want)
		}
	}
}

func equalKV(a, b ring.KV) bool {
	equal := func(a, b ring.Array) bool { return a.Shape == b.Shape && slices.Equal(a.Data, b.Data) }
	return slices.EqualFunc(a.Keys, b.Keys, equal) && slices.EqualFunc(a.Values, b.Values, equal)
}

// Q08: neither what a cache was given nor what it has returned changes with it,
// nor it with them.
func TestQ08NothingIsShared(t *testing.T) {
	s := corpus.Shape{KVHeads: 1, KeyDim: 4, ValueDim: 4, DType: ring.BFloat16}
	for _, semantics := range []ring.Semantics{ring.MLXLM, ring.Exact} {
		caches := map[string]interface {
			Update(keys, values ring.Array) (ring.KV, error)
			Columns() ring.KV
		}{
			"rotating":       made(reference.NewRotatingKVCache(semantics, 4, 0)),
			"batch_rotating": made(reference.NewBatchRotatingKVCache(semantics, 4, []int{0})),
			"kv":             reference.NewKVCache(),
		}
		for name, c := range caches {
			keys, values := tokenColumns(s, []int{1, 2, 3, 4})
			given := slices.Clone(keys.Data)
			first := made(c.Update(keys, values))
			returned := slices.Clone(first.Keys[0].Data)
			feed(t, c, s, []int{5}) // in place, over token 1 of a ring
			if !slices.Equal(keys.Data, given) || !slices.Equal(first.Keys[0].Data, returned) {
				t.Errorf("%v %s: a decode changed what an earlier update was given or has returned", semantics, name)
			}
			held := c.Columns()
			clear(keys.Data)
			clear(first.Keys[0].Data)
			if !equalKV(held, c.Columns()) {
				t.Errorf("%v %s: writing to what an update was given or has returned changed the cache", semantics, name)
			}
		}
	}
}

// D-21: mlx-lm merges sources of other head counts into the most heads,
// repeating a single one; exact refuses.
func TestD21MergeOfShapes(t *testing.T) {
	narrow := corpus.Shape{KVHeads: 1, KeyDim: 4, ValueDim: 4, DType: ring.BFloat16}
	wide := narrow
	wide.KVHeads = 2
	merge := func(semantics ring.Semantics) (*reference.BatchRotatingKVCache, error) {
		a, b := made(reference.NewRotatingKVCache(semantics, 4, 0)), made(reference.NewRotatingKVCache(semantics, 4, 0))
		feed(t, a, narrow, []int{1, 2})
		feed(t, b, wide, []int{11})
		return reference.MergeRotating([]*reference.RotatingKVCache{a, b})
	}
	m, err := merge(ring.MLXLM)
	if err != nil {
		t.Fatal(err)
	}
	keys := m.Columns().Keys[0]
	if keys.Shape != [4]int{2, 2, 2, 4} {
		t.Fatalf("merged keys are %v", keys.Shape)
	}
	one, _ := tokenColumns(narrow, []int{1, 2})
	if got, want := keys.Data[:32], slices.Concat(one.Data, one.Data); !slices.Equal(got, want) {
		t.Errorf("row 0 holds %x, want its one head twice: %x", got, want)
	}
	two, _ := tokenColumns(wide, []int{11})
	if got, want := keys.Data[32:], slices.Concat(make([]byte, 8), two.Data[:8], make([]byte, 8), two.Data[8:]); !slices.Equal(got, want) {
		t.Errorf("row 1 holds %x, want its heads behind a column of zeros: %x", got, want)
	}
	if _, err := merge(ring.Exact); ring.CodeOf(err) != "shape" {
		t.Errorf("exact: %v", err)
	}
}

// S-6, items 44 and 66: the positions that a rotary embedding reads stay during
// a step, and catch up when they are released; whatever else moves offsets
// brings them up to date.
func TestS6RowPositions(t *testing.T) {
	f := reference.Format{GroupSize: 32, Bits: 4}
	for _, semantics := range []ring.Semantics{ring.MLXLM, ring.Exact} {
		plain := made(reference.NewBatchRotatingKVCache(semantics, 8, []int{0, 1}))
		quantized := made(reference.NewBatchRotatingQuantizedKVCache(semantics, 8, []int{0, 1}, f))
		for name, c := range map[string]*reference.BatchRotatingKVCache{"plain": plain, "quantized": quantized} {
			stands := func(when string, want ...int) {
				t.Helper()
				if got := c.RowPositions(); !slices.Equal(got, want) {
					t.Errorf("%v %s, %s: positions %v, want %v", semantics, name, when, got, want)
				}
			}
			stands("new", 0, -1)
			feed(t, c, quantShape, []int{1, 2}, []int{-1, 11})
			stands("after an update", 0, -1)
			c.Release()
			stands("released", 2, 1)
			feed(t, c, quantShape, []int{3}, []int{12})
			stands("after a decode", 2, 1)
			if err := c.Prepare(reference.Padding{Lengths: []int{2, 1}, RightPadding: []int{0, 1}}); err != nil {
				t.Fatal(err)
			}
			stands("announced", 3, 2)
			feed(t, c, quantShape, []int{4, 5}, []int{13, -2})
			stands("after a block", 3, 2)
			if err := c.Finalize(); err != nil {
				t.Fatal(err)
			}
			stands("finalized", 5, 3)
			if _, err := c.Trim(1); err != nil {
				t.Fatal(err)
			}
			stands("trimmed", 4, 2)
			if err := c.Filter([]int{1}); err != nil {
				t.Fatal(err)
			}
			stands("filtered", 2)
		}
	}
}

// Item 65: a read attends any number of times, over what it read, also after
// the ring has moved on.
func TestItem065ReadAttendsAgain(t *testing.T) {
	c := made(reference.NewBatchRotatingKVCache(ring.Exact, 4, []int{0}))
	feed(t, c, quantShape, []int{1, 2, 3, 4})
	keys, values := tokenColumns(quantShape, []int{5})
	read := made(c.AppendDecode(keys, values))
	query := corpus.TokenArray(quantShape, corpus.Grid, corpus.QueryPlane, [][]int{{-1000}})
	first := made(read.Attend(query, 0.25))
	feed(t, c, quantShape, []int{6, 7})
	if again := made(read.Attend(query, 0.25)); !slices.Equal(first, again) {
		t.Errorf("attended to %v, and the second time to %v", first[:4], again[:4])
	}
	if slices.Equal(first, made(c.Attend(query, 0.25))) {
		t.Error("the ring has moved on, and its attention has not")
	}
}

// deviceColumns are the keys and values of tokens as a device cache takes them.
func deviceColumns(s corpus.Shape, tokens ...[]int) (keys, values accelerated.View) {
	k, v := tokenColumns(s, tokens...)
	return accelerated.HostView(k), accelerated.HostView(v)
}

func deviceConfig(s corpus.Shape, masks *accelerated.Masks, q accelerated.Quant) accelerated.Config {
	return accelerated.Config{
		Semantics: ring.Exact, MaxSize: 4, KVHeads: s.KVHeads, KeyDim: s.KeyDim, ValueDim: s.ValueDim,
		DType: s.DType, Quant: q, Masks: masks,
	}
}

// Items 53 and 79: a cache that is closed has given its memory back, is closed
// once more without harm, and refuses everything else. The caches of package
// reference hold nothing that must be given back.
func TestItem053CloseTwice(t *testing.T) {
	for name, q := range map[string]accelerated.Quant{"plain": {}, "quantized": {GroupSize: 32, Bits: 4}} {
		dev := cpu.Open(cpu.Options{})
		c := made(accelerated.NewBatchRotating(dev, deviceConfig(quantShape, nil, q), []int{0, 1}))
		keys, values := deviceColumns(quantShape, []int{1, 2}, []int{-1, 11})
		held := made(c.Update(keys, values)).Keys[0].Buffer
		if !dev.Owns(held) {
			t.Fatalf("%s: what an update returned is not the device's", name)
		}
		for range 2 {
			if err := c.Close(); err != nil {
				t.Errorf("%s: close: %v", name, err)
			}
		}
		if dev.Owns(held) {
			t.Errorf("%s: the closed cache has kept its columns", name)
		}
		if _, err := c.Update(keys, values); ring.CodeOf(err) != "closed" {
			t.Errorf("%s: update after close: %v", name, err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Item 64: caches that share their masks build one for a position that they
// share; a mask that is leased outlives the one that replaces it, until it is
// released. In package reference a mask is a value.
func TestItem064MaskLeases(t *testing.T) {
	dev := cpu.Open(cpu.Options{})
	masks := accelerated.NewMasks(dev)
	padded := func(tokens ...[]int) *accelerated.Cache {
		c := made(accelerated.NewBatchRotating(dev, deviceConfig(quantShape, masks, accelerated.Quant{}), []int{0, 1}))
		keys, values := deviceColumns(quantShape, tokens...)
		made(c.Update(keys, values))
		return c
	}
	a, b := padded([]int{1, 2}, []int{-1, 11}), padded([]int{3, 4}, []int{-2, 12})
	first, same := made(a.Mask(2, nil)), made(b.Mask(2, nil))
	if first.View() != same.View() {
		t.Error("two caches at one position have two masks")
	}
	other := made(a.Mask(3, nil))
	if other.View() == first.View() {
		t.Error("masks of two and of three queries are one")
	}
	buffer := first.View().Buffer
	first.Release()
	if !dev.Owns(buffer) {
		t.Error("a mask is gone that is leased once more")
	}
	same.Release()
	if dev.Owns(buffer) {
		t.Error("a mask that was replaced and released is still there")
	}
	kept := other.View()
	other.Release()
	again := made(b.Mask(3, nil))
	if again.View() != kept {
		t.Error("the last mask was not kept for the next who asks")
	}
	again.Release()
	for _, c := range []*accelerated.Cache{a, b} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	masks.Close()
}
