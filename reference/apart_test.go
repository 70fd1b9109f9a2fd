package reference_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// Nothing shares memory: what goes into a cache, what comes out of it, and what
// is made of it. Upstream hands out its live arrays (Q08), and a snapshot that
// shared some would serve another conversation's tokens (P09).

// feeder feeds a cache n columns that it takes.
type feeder func(n int) (keys, values ring.Array)

// feederOf returns a feeder for a cache of those rows.
func feederOf(rows int, f reference.Format) feeder {
	seed := 0
	return func(n int) (ring.Array, ring.Array) {
		seed++
		if f != (reference.Format{}) {
			return columns(seed, ring.BFloat16, rows, n, 32)
		}
		var lists [][]int
		for row := range rows {
			lists = append(lists, span(100*seed+10*row+1, 100*seed+10*row+n))
		}
		return tokens(lists...)
	}
}

// stir does to a cache all that changes one: it writes in place and appends,
// wraps, trims, pads, finalizes, filters. A refusal is as good as any answer.
func stir(c reference.Cache) {
	if list, ok := c.(*reference.CacheList); ok {
		for i := range list.Len() {
			stir(list.At(i))
		}
		return
	}
	rows := rowsOf(c)
	f := formatOf(c)
	next := feederOf(rows, f)
	write := func(n int) {
		if u, ok := c.(updater); ok {
			_ = one(u.Update(next(n)))
		}
	}
	for range 7 {
		write(1)
	}
	write(2)
	write(1)
	_ = one(reference.Trim(c, 1))
	write(1)
	if w, ok := c.(interface {
		Write(int, ring.Tensor) error
	}); ok {
		_ = w.Write(0, state([]int{3}, make([]float32, rows)...))
		_ = c.(interface{ Advance(int) error }).Advance(1)
	}
	lengths, right := make([]int, rows), make([]int, rows)
	for i := range rows {
		lengths[i], right[i] = 2-i%2, i%2
	}
	_ = reference.Prepare(c, reference.Padding{Lengths: lengths, RightPadding: right})
	write(2)
	_ = reference.Finalize(c)
	if chunked, ok := c.(*reference.ChunkedKVCache); ok {
		_ = chunked.TrimFront()
	}
	if b, ok := c.(*reference.BatchRotatingKVCache); ok {
		before := b.Position().Offset
		write(2)
		_ = b.Rollback(before, make([]int, rows), true)
		b.Release()
	}
	write(1)
	_ = reference.Filter(c, []int{rows - 1})
	next = feederOf(1, f)
	write(1)
}

func rowsOf(c reference.Cache) int {
	switch c := c.(type) {
	case *reference.BatchRotatingKVCache:
		return len(c.Position().Offset)
	case *reference.BatchKVCache:
		return len(c.Offsets())
	case *reference.ArraysCache:
		return c.BatchSize()
	case *reference.BatchRecurrent:
		return c.BatchSize()
	}
	return 1
}

func formatOf(c reference.Cache) reference.Format {
	if q, ok := c.(interface{ Format() reference.Format }); ok {
		return q.Format()
	}
	return reference.Format{}
}

// apart fails unless a and b, made anew for each trial, have nothing in common.
func apart(t *testing.T, name string, make func() (a, b reference.Cache)) {
	t.Helper()
	for _, turned := range []bool{false, true} {
		a, b := make()
		if turned {
			a, b = b, a
		}
		still, other := look(b), look(a)
		stir(a)
		if look(b) != still {
			t.Errorf("%s (turned: %t): one changed with the other", name, turned)
		}
		if look(a) == other {
			t.Errorf("%s (turned: %t): the stirred one is as it was", name, turned)
		}
	}
}

func TestCachesAreApart(t *testing.T) {
	for _, s := range semanticses {
		for _, f := range []reference.Format{{}, {GroupSize: 32, Bits: 4}} {
			name := func(what string) string { return fmt.Sprint(what, " ", s, " ", f) }
			single := func(n int) *reference.RotatingKVCache {
				c := must(reference.NewRotatingKVCache(s, 4, 0))
				if f != (reference.Format{}) {
					c = must(reference.NewRotatingQuantizedKVCache(s, 4, f))
				}
				c.Step = 3
				must(c.Update(feederOf(1, f)(n)))
				return c
			}
			several := func(n int) *reference.BatchRotatingKVCache {
				c := must(reference.NewBatchRotatingKVCache(s, 4, []int{0, 0}))
				if f != (reference.Format{}) {
					c = must(reference.NewBatchRotatingQuantizedKVCache(s, 4, []int{0, 0}, f))
				}
				c.Step = 3
				must(c.Update(feederOf(2, f)(n)))
				return c
			}
			for _, n := range []int{1, 2, 4, 6} { // a buffer with spare columns, without, full, over
				apart(t, name("extracted"), func() (a, b reference.Cache) {
					c := several(n)
					return c, must(c.Extract(1))
				})
				apart(t, name("extracted with a limit"), func() (a, b reference.Cache) {
					c := several(n)
					return c, must(c.ExtractLimit(0, 99))
				})
				apart(t, name("two extracted"), func() (a, b reference.Cache) {
					c := several(n)
					return must(c.Extract(0)), must(c.Extract(0))
				})
				apart(t, name("merged"), func() (a, b reference.Cache) {
					c := single(n)
					return c, must(reference.MergeRotating([]*reference.RotatingKVCache{c, single(2)}))
				})
				apart(t, name("merged alone"), func() (a, b reference.Cache) {
					c := single(n)
					return c, must(reference.MergeRotating([]*reference.RotatingKVCache{c}))
				})
				apart(t, name("merged rows"), func() (a, b reference.Cache) {
					c := several(n)
					return c, must(reference.MergeRows([]reference.Cache{c}))
				})
				apart(t, name("extended by"), func() (a, b reference.Cache) {
					c, other := several(n), several(n)
					ok(t, c.Extend(other))
					return c, other
				})
				apart(t, name("extended by, while empty"), func() (a, b reference.Cache) {
					c, other := several(1), several(n)
					ok(t, c.Filter([]int{0}))
					empty := must(reference.NewBatchRotatingKVCache(s, 4, []int{0}))
					if f != (reference.Format{}) {
						empty = must(reference.NewBatchRotatingQuantizedKVCache(s, 4, []int{0}, f))
					}
					ok(t, empty.Extend(other))
					return empty, other
				})
				apart(t, name("adopted"), func() (a, b reference.Cache) {
					c := several(n)
					return c, must(reference.AdoptBatchRotating(c.Snapshot()))
				})
				apart(t, name("adopted twice"), func() (a, b reference.Cache) {
					snapshot := several(n).Snapshot()
					return must(reference.AdoptBatchRotating(snapshot)), must(reference.AdoptBatchRotating(snapshot))
				})
				apart(t, name("adopted serial"), func() (a, b reference.Cache) {
					c := single(n)
					return c, must(reference.AdoptRotating(c.Snapshot()))
				})
				apart(t, name("adopted serial, twice"), func() (a, b reference.Cache) {
					snapshot := single(n).Snapshot()
					return must(reference.AdoptRotating(snapshot)), must(reference.AdoptRotating(snapshot))
				})
				apart(t, name("restored"), func() (a, b reference.Cache) {
					c, d := several(n), several(2)
					ok(t, d.Restore(c.Snapshot()))
					return c, d
				})
				apart(t, name("restored twice"), func() (a, b reference.Cache) {
					c, d := several(n), several(2)
					snapshot := c.Snapshot()
					ok(t, c.Restore(snapshot))
					ok(t, d.Restore(snapshot))
					return c, d
				})
				apart(t, name("restored serial"), func() (a, b reference.Cache) {
					c, d := single(n), single(2)
					ok(t, d.Restore(c.Snapshot()))
					return c, d
				})
				apart(t, name("made of a state"), func() (a, b reference.Cache) {
					c := single(n)
					return c, must(reference.FromState(reference.State(c)))
				})
				apart(t, name("made of the columns"), func() (a, b reference.Cache) {
					c := several(n)
					snapshot := must(reference.NewSnapshot(s, false, 0, f, c.Position(), c.Columns()))
					return c, must(reference.AdoptBatchRotating(snapshot))
				})

				// A snapshot stays what it was, whatever comes after it.
				c, d := several(n), single(n)
				snapshot, serial := c.Snapshot(), d.Snapshot()
				was, alone := look(must(reference.AdoptBatchRotating(snapshot))), look(must(reference.AdoptRotating(serial)))
				stir(c)
				stir(d)
				same(t, name("the snapshot"), look(must(reference.AdoptBatchRotating(snapshot))), was)
				same(t, name("the serial snapshot"), look(must(reference.AdoptRotating(serial))), alone)
			}
		}
	}

	plain := func(n int) *reference.KVCache {
		c := newKV(3)
		must(c.Update(feederOf(1, reference.Format{})(n)))
		return c
	}
	rows := func(n int) *reference.BatchKVCache {
		c := newBatchKV(3, 0, 0)
		must(c.Update(feederOf(2, reference.Format{})(n)))
		return c
	}
	arrays := func(n int) *reference.ArraysCache {
		c := reference.NewArraysCache(1, make([]int, n))
		ok(t, c.Write(0, state([]int{2}, make([]float32, n)...)))
		ok(t, c.Prepare(reference.Padding{Lengths: make([]int, n)}))
		return c
	}
	recurrent := func(n int) *reference.BatchRecurrent {
		c := reference.NewBatchRecurrent(1)
		ok(t, c.Write(0, state([]int{2}, make([]float32, n)...)))
		ok(t, c.Prepare(reference.Padding{LeftPadding: make([]int, n), Lengths: make([]int, n), RightPadding: append(make([]int, n-1), 0)}))
		return c
	}
	for name, make := range map[string]func() (a, b reference.Cache){
		"kv merged": func() (a, b reference.Cache) {
			c := plain(2)
			return c, must(reference.MergeKV([]*reference.KVCache{c}))
		},
		"batch kv extracted": func() (a, b reference.Cache) { c := rows(3); return c, must(c.Extract(1)) },
		"batch kv extended": func() (a, b reference.Cache) {
			c, other := rows(3), rows(3)
			ok(t, c.Extend(other))
			return c, other
		},
		"arrays merged": func() (a, b reference.Cache) {
			c := arrays(1)
			return c, must(reference.MergeArrays([]*reference.ArraysCache{c}))
		},
		"arrays extracted": func() (a, b reference.Cache) { c := arrays(2); return c, must(c.Extract(1)) },
		"arrays extended": func() (a, b reference.Cache) {
			c, other := arrays(1), arrays(2)
			ok(t, c.Extend(other))
			return c, other
		},
		"recurrent merged": func() (a, b reference.Cache) {
			c := recurrent(2)
			return c, must(reference.MergeRecurrent([]*reference.BatchRecurrent{c}))
		},
		"recurrent extracted": func() (a, b reference.Cache) { c := recurrent(2); return c, must(c.Extract(1)) },
		"list merged": func() (a, b reference.Cache) {
			c := reference.NewCacheList(plain(2), arrays(1))
			return c, must(reference.MergeLists([]*reference.CacheList{c}))
		},
		"list extracted": func() (a, b reference.Cache) {
			c := reference.NewCacheList(rows(2), arrays(2))
			return c, must(c.Extract(0))
		},
	} {
		apart(t, name, make)
	}
	apart(t, "kv quantized", func() (a, b reference.Cache) {
		c := newKV(3)
		must(c.Update(columns(1, ring.BFloat16, 1, 2, 32)))
		// Only its offset would move on: another width does not fit.
		return must(c.ToQuantized(reference.Format{GroupSize: 32, Bits: 4})), c
	})
	apart(t, "ring quantized", func() (a, b reference.Cache) {
		c := must(reference.NewRotatingKVCache(ring.Exact, 4, 0))
		must(c.Update(columns(1, ring.BFloat16, 1, 2, 32)))
		return must(c.ToQuantized(reference.Format{GroupSize: 32, Bits: 4})), must(reference.AdoptRotating(must(c.ToQuantized(reference.Format{GroupSize: 32, Bits: 4})).Snapshot()))
	})
	for i, c := range kinds(t) {
		fill := func(c reference.Cache) reference.Cache {
			if u, ok := c.(updater); ok {
				must(u.Update(feederOf(rowsOf(c), formatOf(c))(2)))
			}
			if w, ok := c.(interface {
				Write(int, ring.Tensor) error
			}); ok {
				check := w.Write(0, state([]int{2}, make([]float32, max(1, rowsOf(c)))...))
				if check != nil {
					panic(check)
				}
			}
			return c
		}
		apart(t, fmt.Sprintf("%T made of a state", c), func() (a, b reference.Cache) {
			c := fill(kinds(t)[i])
			return c, must(reference.FromState(reference.State(c)))
		})
	}
}

// scribble turns every byte and every number of what a call has answered.
func scribble(v any) {
	switch v := v.(type) {
	case ring.Array:
		scribble(v.Data)
	case ring.Tensor:
		scribble(v.Data)
		scribble(v.Shape)
	case []byte:
		for i := range v {
			v[i] ^= 0xFF
		}
	case []bool:
		for i := range v {
			v[i] = !v[i]
		}
	case []int:
		for i := range v {
			v[i] += 1000
		}
	case ring.Planes:
		for _, a := range v {
			scribble(a)
		}
	case ring.KV:
		scribble(v.Keys)
		scribble(v.Values)
	case []ring.Tensor:
		for _, a := range v {
			scribble(a)
		}
	case ring.Position:
		scribble(v.Offset)
		scribble(v.LeftPadding)
		scribble(v.Ends)
	case *ring.Mask:
		if v != nil {
			scribble(v.Data)
		}
	case reference.Read:
		scribble(v.KV)
		scribble(v.Mask)
	case reference.Value:
		scribble(v.Tensor)
		scribble(v.Ints)
		for _, kid := range v.List {
			scribble(kid)
		}
	case reference.Padding:
		scribble(v.LeftPadding)
		scribble(v.Lengths)
		scribble(v.RightPadding)
	}
}

// TestArraysAreApart: a cache shares no array with its caller, going in or
// coming out.
func TestArraysAreApart(t *testing.T) {
	for _, c := range kinds(t) {
		next := feederOf(rowsOf(c), formatOf(c))
		// untouched calls f, scribbles over all that it was given and has
		// answered, and holds the cache against what f left.
		untouched := func(what string, f func() []any) {
			t.Helper()
			all := f()
			before := look(c)
			for _, v := range all {
				scribble(v)
			}
			if look(c) != before {
				t.Errorf("%T: %s shares memory", c, what)
			}
		}
		// later holds what was answered against itself, after the cache has
		// been written in place.
		later := func(what string, kv ring.KV, write func()) {
			t.Helper()
			copied := ring.KV{Keys: clones(kv.Keys), Values: clones(kv.Values)}
			write()
			if !reflect.DeepEqual(copied, kv) {
				t.Errorf("%T: %s changed with a later write (Q08)", c, what)
			}
		}
		if u, ok := c.(updater); ok {
			update := func(n int) ring.KV {
				keys, values := next(n)
				return must(u.Update(keys, values))
			}
			for _, n := range []int{2, 1, 4, 1, 1, 1, 6, 1} {
				untouched(fmt.Sprint("an update of ", n), func() []any {
					keys, values := next(n)
					return []any{keys, values, must(u.Update(keys, values))}
				})
				kv := update(n)
				later("what an update answered", kv, func() { update(1); update(1) })
			}
			if held, ok := c.(interface{ KeysAndValues() ring.KV }); ok {
				later("keys and values", held.KeysAndValues(), func() { update(1) })
				untouched("keys and values", func() []any { return []any{held.KeysAndValues()} })
			}
			if held, ok := c.(interface{ Columns() ring.KV }); ok {
				later("the columns", held.Columns(), func() { update(1) })
				untouched("the columns", func() []any { return []any{held.Columns()} })
			}
			if held, ok := c.(interface{ TemporalView() (ring.KV, error) }); ok {
				later("the temporal view", must(held.TemporalView()), func() { update(1) })
				untouched("the temporal view", func() []any { return []any{must(held.TemporalView())} })
			}
		}
		if w, ok := c.(interface {
			Write(int, ring.Tensor) error
			Slots() []ring.Tensor
		}); ok {
			untouched("a slot", func() []any {
				a := state([]int{2}, make([]float32, max(2, rowsOf(c)))...)
				if err := w.Write(0, a); err != nil {
					t.Fatal(err)
				}
				return []any{a, w.Slots()}
			})
		}
		rows := rowsOf(c)
		untouched("padding", func() []any {
			p := right(make([]int, rows), make([]int, rows))
			for i := range rows {
				p.Lengths[i], p.RightPadding[i] = 2-i%2, i%2
			}
			_ = reference.Prepare(c, p)
			return []any{p}
		})
		if rows == 2 {
			untouched("a filter's rows", func() []any {
				keep := []int{1, 0}
				ok(t, reference.Filter(c, keep))
				return []any{keep}
			})
		}
		untouched("the state", func() []any {
			_, v := reference.State(c)
			return []any{v}
		})
		for i := range reflect.TypeOf(c).NumMethod() { // whatever else answers slices
			m := reflect.ValueOf(c).Method(i)
			if m.Type().NumIn() == 0 && m.Type().NumOut() > 0 {
				untouched(reflect.TypeOf(c).Method(i).Name, func() []any {
					var all []any
					for _, out := range m.Call(nil) {
						all = append(all, out.Interface())
					}
					return all
				})
			}
		}
		if b, ok := c.(*reference.BatchRotatingKVCache); ok {
			_ = b.Finalize()
			next := feederOf(rowsOf(c), formatOf(c))
			untouched("a decode", func() []any {
				keys, values := next(1)
				return []any{keys, values, must(b.AppendDecode(keys, values))}
			})
			untouched("a window", func() []any {
				keys, values := next(2)
				return []any{keys, values, must(b.AppendWindow(keys, values))}
			})
			untouched("a window under a mask", func() []any {
				keys, values := next(2)
				m := must(b.Mask(2, nil))
				return []any{keys, values, m, must(b.AppendWindowUnder(keys, values, m, false))}
			})
			untouched("a rollback", func() []any {
				before, keep := b.Position().Offset, []int{0, 0}
				err := b.Rollback(before, keep, false)
				if err != nil {
					t.Fatal(err)
				}
				return []any{before, keep}
			})
			untouched("a mask", func() []any { return []any{must(b.Mask(2, nil))} })
		}
	}
	left := []int{0, 1}
	for _, c := range []any{reference.NewBatchKVCache(left), must(reference.NewBatchRotatingKVCache(ring.Exact, 4, left)), reference.NewArraysCache(1, left)} {
		before := look(c)
		scribble(left)
		if look(c) != before {
			t.Errorf("%T shares its left padding", c)
		}
		left[0], left[1] = 0, 1
	}
}

func clones(p ring.Planes) ring.Planes {
	var out ring.Planes
	for _, a := range p {
		a.Data = bytes.Clone(a.Data)
		out = append(out, a)
	}
	return out
}

// TestReadsChangeNothing: what only looks at a cache leaves it as it is (D-13:
// upstream puts a batched ring in order to read it).
func TestReadsChangeNothing(t *testing.T) {
	changes := map[string]bool{"Finalize": true, "Release": true, "TrimFront": true}
	for _, c := range kinds(t) {
		stir(c)
		before := look(c)
		for i := range reflect.TypeOf(c).NumMethod() {
			m := reflect.ValueOf(c).Method(i)
			if name := reflect.TypeOf(c).Method(i).Name; !changes[name] && m.Type().NumIn() == 0 {
				m.Call(nil)
				same(t, fmt.Sprintf("%T after %s", c, name), look(c), before)
			}
		}
		if m, ok := c.(interface {
			Mask(int, *int) (*ring.Mask, error)
		}); ok {
			_ = one(m.Mask(1, nil))
			_ = one(m.Mask(3, in(2)))
		}
		_ = one(reference.Extract(c, 0))
		_ = one(reference.Merge([]reference.Cache{c, c}))
		reference.State(c)
		if b, ok := c.(*reference.BatchRotatingKVCache); ok {
			_ = one(b.ExtractLimit(0, 1))
			_ = one(b.ValidOffset(0))
			must(b.ProjectedBytes(3))
		}
		same(t, fmt.Sprintf("%T", c), look(c), before)
	}
}
