package reference_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

// TestRowsAreSerialRings is what a batched ring is for, in exact semantics: each
// of its rows holds, byte for byte in all planes, what a serial ring would hold
// that was fed with this row's tokens alone; masks show a token what it would
// see there; and no other row, padding, or operation on the batch has any part
// in it. The model of a row is its tokens and how many of the last it holds.
func TestRowsAreSerialRings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, true)
		w.run(t)
	})
}

// TestPlainRowsAreSerialRings is the same for rings that are not quantized.
func TestPlainRowsAreSerialRings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, false)
		w.run(t)
	})
}

// row is one sequence of a batch.
type row struct {
	tokens []int // all of it
	held   int   // how many of the last are stored
}

// wrote counts tokens that a write added.
func (r *row) wrote(w int, tokens ...int) {
	r.tokens = append(slices.Clip(r.tokens), tokens...)
	r.held = min(r.held, w-1) + len(tokens)
}

// dropped takes the last n tokens back.
func (r *row) dropped(n int) {
	r.tokens = slices.Clip(r.tokens[:len(r.tokens)-n])
	r.held -= n
}

// world is a batched ring and the model of its rows.
type world struct {
	maxSize  int
	format   reference.Format
	dtype    ring.DType
	heads    int
	width    [2]int // of keys and values
	c        *reference.BatchRotatingKVCache
	rows     []row
	last     int            // token id
	known    map[string]int // ids by the bytes of their columns
	planesOf map[int][]string
	log      []string
}

func newWorld(t *rapid.T, quantized bool) *world {
	w := &world{
		maxSize:  rapid.SampledFrom([]int{1, 2, 3, 4, 5, 8}).Draw(t, "max size"),
		dtype:    rapid.SampledFrom([]ring.DType{ring.BFloat16, ring.Float16, ring.Float32}).Draw(t, "dtype"),
		heads:    rapid.IntRange(1, 2).Draw(t, "heads"),
		width:    [2]int{2, 3},
		known:    map[string]int{},
		planesOf: map[int][]string{},
	}
	rows := rapid.IntRange(1, 5).Draw(t, "rows")
	left := make([]int, rows)
	if rapid.Bool().Draw(t, "left-padded") {
		left = rapid.SliceOfN(rapid.IntRange(0, 3), rows, rows).Draw(t, "left padding")
	}
	if quantized {
		w.format = reference.Format{
			GroupSize: rapid.SampledFrom([]int{32, 64, 128}).Draw(t, "group size"),
			Bits:      rapid.SampledFrom([]int{2, 3, 4, 5, 6, 8}).Draw(t, "bits"),
		}
		w.width = [2]int{w.format.GroupSize, w.format.GroupSize * rapid.IntRange(1, 2).Draw(t, "value groups")}
	}
	w.c = w.batch(left)
	w.rows = make([]row, rows)
	if slices.Max(left) > 0 {
		n := slices.Max(left) + rapid.IntRange(1, 3).Draw(t, "columns")
		w.write(t, n, func(i int) (int, int) { return left[i], n }, w.c.Update)
	}
	return w
}

func (w *world) batch(left []int) *reference.BatchRotatingKVCache {
	c := must(reference.NewBatchRotatingKVCache(ring.Exact, w.maxSize, left))
	if w.format != (reference.Format{}) {
		c = must(reference.NewBatchRotatingQuantizedKVCache(ring.Exact, w.maxSize, left, w.format))
	}
	c.Step = 2
	return c
}

func (w *world) serial() *reference.RotatingKVCache {
	c := must(reference.NewRotatingKVCache(ring.Exact, w.maxSize, 0))
	if w.format != (reference.Format{}) {
		c = must(reference.NewRotatingQuantizedKVCache(ring.Exact, w.maxSize, w.format))
	}
	c.Step = 2
	return c
}

// arrays are the keys and values of tokens, one list a row.
func (w *world) arrays(rows [][]int) (sides [2]ring.Array) {
	for side := range sides {
		a := ring.Array{DType: w.dtype, Shape: [4]int{len(rows), w.heads, len(rows[0]), w.width[side]}}
		for _, ids := range rows {
			for h := range w.heads {
				for _, id := range ids {
					x := uint32(id)*0x9E3779B1 + uint32(2*h+side)*0x85EBCA6B
					for range w.width[side] {
						x = x*1664525 + 1013904223
						u := reference.FloatBits(w.dtype, float32(int32(x))/(1<<28))
						for k := range w.dtype.Size() {
							a.Data = append(a.Data, byte(u>>(8*k)))
						}
					}
				}
			}
		}
		sides[side] = a
	}
	return sides
}

// planes are the stored bytes of one token's column, plane by plane, and
// remembers whose they are.
func (w *world) planes(id int) []string {
	if p, ok := w.planesOf[id]; ok {
		return p
	}
	sides := w.arrays([][]int{{id}})
	var stored ring.Planes
	for _, a := range sides {
		if w.format == (reference.Format{}) {
			stored = append(stored, a)
		} else {
			stored = append(stored, must(reference.Quantize(a, w.format.GroupSize, w.format.Bits))...)
		}
	}
	var p []string
	zero := 0
	for _, a := range stored {
		p = append(p, string(a.Data))
		zero += len(a.Data)
	}
	w.planesOf[id] = p
	w.known[strings.Join(p, "")] = id
	w.known[strings.Repeat("\x00", zero)] = 0
	return p
}

// column is the bytes of one column of a row, plane by plane.
func column(kv ring.KV, row, s int) (p []string) {
	for _, a := range slices.Concat(kv.Keys, kv.Values) {
		n := a.Shape[3] * a.DType.Size()
		var all []byte
		for h := range a.Shape[1] {
			all = append(all, a.Data[((row*a.Shape[1]+h)*a.Shape[2]+s)*n:][:n]...)
		}
		p = append(p, string(all))
	}
	return p
}

func (w *world) fail(t *rapid.T, format string, args ...any) {
	t.Helper()
	t.Fatalf("%s\nafter %s", fmt.Sprintf(format, args...), strings.Join(w.log, "; "))
}

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *world) token() int {
	w.last++
	return w.last
}

// write feeds n columns, of which those in [from, to) of each row are tokens
// and the others padding, and holds the mask that was made before against what
// a serial ring would show.
func (w *world) write(t *rapid.T, n int, span func(row int) (from, to int), update func(keys, values ring.Array) (ring.KV, error)) {
	var window *int
	if rapid.IntRange(0, 3).Draw(t, "windowed") == 0 {
		window = in(rapid.IntRange(1, w.maxSize+2).Draw(t, "window"))
	}
	sees := w.maxSize
	if window != nil {
		sees = min(*window, sees)
	}
	m, err := w.c.Mask(n, window)
	if err != nil {
		w.fail(t, "mask: %v", err)
	}
	width := min(w.c.Position().Idx, w.maxSize-1) + n
	if p := w.c.Position(); p.Rotated {
		width = w.maxSize - 1 + n
	}

	ids := make([][]int, len(w.rows))
	before := slices.Clone(w.rows)
	for i := range ids {
		from, to := span(i)
		for j := range n {
			id := w.token()
			if j < from || j >= to {
				id = -id
			}
			w.planes(id)
			ids[i] = append(ids[i], id)
		}
		w.rows[i].wrote(w.maxSize, ids[i][min(from, n):max(from, min(to, n))]...)
	}
	w.note("write %v", ids)
	sides := w.arrays(ids)
	kv, err := update(sides[0], sides[1])
	if err != nil {
		w.fail(t, "write: %v", err)
	}
	if got := kv.Keys[0].Columns(); got != width || m.S != width || m.B != len(w.rows) || m.N != n {
		w.fail(t, "the write answered %d columns, the mask is %dx%dx%d, want %d columns", got, m.B, m.N, m.S, width)
	}
	for i, r := range before {
		from, to := span(i)
		for q := from; q < min(to, n); q++ {
			all := append(slices.Clip(r.tokens), ids[i][from:q+1]...)
			count := min(min(r.held, w.maxSize-1)+q-from+1, sees)
			var seen []int
			for s := range width {
				if m.At(i, q, s) {
					id, ok := w.known[strings.Join(column(kv, i, s), "")]
					if !ok {
						w.fail(t, "row %d, query %d sees column %d, which is of no token", i, q, s)
					}
					seen = append(seen, id)
				}
			}
			slices.Sort(seen) // a row's tokens rise
			if want := all[len(all)-count:]; !slices.Equal(seen, want) {
				w.fail(t, "row %d, query %d (window %v) sees %v, want %v", i, q, window, seen, want)
			}
		}
	}
}

func everything(n int) func(int) (int, int) {
	return func(int) (int, int) { return 0, n }
}

func (w *world) run(t *rapid.T) {
	w.check(t)
	for range rapid.IntRange(1, 12).Draw(t, "operations") {
		w.step(t)
		w.check(t)
	}
}

func (w *world) step(t *rapid.T) {
	n := rapid.IntRange(1, w.maxSize+2).Draw(t, "n")
	total := w.c.Position().Total
	switch op := rapid.IntRange(0, 12).Draw(t, "operation"); op {
	case 0, 1: // decodes
		for range n {
			w.write(t, 1, everything(1), w.c.Update)
		}
	case 2: // a block
		if n == 1 {
			n = 2
		}
		w.write(t, n, everything(n), w.c.Update)
	case 3: // a window, of one column too: its mask is a block's
		w.window(t, n)
	case 4, 5: // a prefill, padded on the right, in chunks
		lengths := rapid.SliceOfN(rapid.IntRange(0, n), len(w.rows), len(w.rows)).Draw(t, "lengths")
		pad := reference.Padding{Lengths: lengths, RightPadding: make([]int, len(lengths))}
		pending := false
		for i, l := range lengths {
			pad.RightPadding[i] = n - l
			pending = pending || l < n
		}
		w.note("prepare %v", pad)
		ok(t, w.c.Prepare(pad))
		chunk := rapid.IntRange(1, n).Draw(t, "chunk")
		for at := 0; at < n; at += chunk {
			size := min(chunk, n-at)
			w.write(t, size, func(i int) (int, int) { return 0, max(0, min(lengths[i]-at, size)) }, w.c.Update)
			for i, r := range w.rows {
				if got := must(w.c.ValidOffset(i)); got != len(r.tokens) {
					w.fail(t, "row %d stands at %d, want %d", i, got, len(r.tokens))
				}
			}
			if pending && rapid.IntRange(0, 3).Draw(t, "cancel") == 0 { // a request is given up amid its prefill
				keep := rapid.SliceOfN(rapid.IntRange(0, len(w.rows)-1), 1, 5).Draw(t, "keep")
				w.filter(t, keep)
				kept := make([]int, len(keep))
				for i, k := range keep {
					kept[i] = lengths[k]
				}
				lengths = kept
			}
		}
		w.note("finalize")
		ok(t, w.c.Finalize())
	case 6:
		w.filter(t, rapid.SliceOfN(rapid.IntRange(0, len(w.rows)-1), 1, 5).Draw(t, "keep"))
	case 7: // another batch joins
		other := w.other(t)
		w.note("extend by %v", other.rows)
		if len(w.rows)+len(other.rows) > 5 {
			return
		}
		ok(t, w.c.Extend(other.c))
		w.rows = append(w.rows, other.rows...)
	case 8: // all rows are merged anew, a serial ring among them
		source, r := w.single(t)
		w.note("merge with %v", r)
		w.c = must(reference.MergeRows([]reference.Cache{source, w.c}))
		w.rows = append([]row{r}, w.rows...)
		for i := range w.rows {
			w.rows[i].held = min(w.rows[i].held, w.maxSize)
		}
		if len(w.rows) > 5 {
			w.filter(t, []int{0, 1, 2, 3, 4})
		}
	case 9: // trim
		least := len(w.rows[0].tokens)
		for _, r := range w.rows {
			least = min(least, r.held)
		}
		k := min(n, least)
		if total >= w.maxSize {
			return
		}
		w.note("trim %d", k)
		if got := must(w.c.Trim(k)); got != k {
			w.fail(t, "trimmed %d", got)
		}
		for i := range w.rows {
			w.rows[i].dropped(k)
		}
	case 10, 11: // a round of speculation is taken back, row by row
		before := w.c.Position().Offset
		if n == 1 && op == 10 {
			w.write(t, 1, everything(1), w.c.Update)
		} else {
			w.window(t, n)
		}
		keep := rapid.SliceOfN(rapid.IntRange(0, n), len(w.rows), len(w.rows)).Draw(t, "keep")
		w.note("keep %v", keep)
		ok(t, w.c.Rollback(before, keep, rapid.Bool().Draw(t, "preserve columns")))
		for i := range w.rows {
			w.rows[i].dropped(n - keep[i])
		}
	case 12: // the ring becomes another one
		w.note("adopt")
		w.c = must(reference.AdoptBatchRotating(w.c.Snapshot()))
	}
}

// window appends n columns under the mask of a block, and holds both masks
// against each other where they are one.
func (w *world) window(t *rapid.T, n int) {
	if n == 1 {
		yes := true // make the next write a block, whose mask the model then sees
		lengths := make([]int, len(w.rows))
		for i := range lengths {
			lengths[i] = 1
		}
		ok(t, w.c.Prepare(reference.Padding{Lengths: lengths, RightPadded: &yes}))
	}
	want := must(w.c.Mask(n, nil))
	w.write(t, n, everything(n), func(keys, values ring.Array) (ring.KV, error) {
		r, err := w.c.AppendWindow(keys, values)
		if err == nil && !slices.Equal(r.Mask.Data, want.Data) {
			w.fail(t, "the window's own mask differs")
		}
		return r.KV, err
	})
	if n == 1 {
		ok(t, w.c.Finalize())
	}
}

func (w *world) filter(t *rapid.T, keep []int) {
	w.note("filter %v", keep)
	ok(t, w.c.Filter(keep))
	rows := make([]row, len(keep))
	for i, k := range keep {
		rows[i] = w.rows[k]
	}
	w.rows = rows
}

// single is a serial ring with tokens of its own: a new one, or a row of the
// batch, taken out whole or with a limit, that went on alone.
func (w *world) single(t *rapid.T) (*reference.RotatingKVCache, row) {
	c, r := w.serial(), row{}
	if rapid.Bool().Draw(t, "extracted") {
		i := rapid.IntRange(0, len(w.rows)-1).Draw(t, "row")
		limit := rapid.IntRange(1, 2*w.maxSize).Draw(t, "limit")
		c, r = must(w.c.ExtractLimit(i, limit)), w.rows[i]
		r.held = min(r.held, limit)
	}
	for _, n := range rapid.SliceOfN(rapid.IntRange(1, w.maxSize+2), 0, 3).Draw(t, "writes") {
		w.feed(t, c, &r, n)
	}
	return c, r
}

// feed writes n tokens to a serial ring.
func (w *world) feed(t *rapid.T, c *reference.RotatingKVCache, r *row, n int) {
	var ids []int
	for range n {
		ids = append(ids, w.token())
		w.planes(w.last)
	}
	w.note("feed %v", ids)
	sides := w.arrays([][]int{ids})
	must(c.Update(sides[0], sides[1]))
	r.wrote(w.maxSize, ids...)
}

// other is a batch with tokens of its own.
func (w *world) other(t *rapid.T) *world {
	v := *w
	v.c, v.rows = v.batch([]int{0, 0}), make([]row, 2)
	for _, n := range rapid.SliceOfN(rapid.IntRange(1, w.maxSize+2), 0, 3).Draw(t, "writes") {
		v.write(t, n, everything(n), v.c.Update)
	}
	w.last = v.last
	return &v
}

// check holds every row against its model, and one of them against a serial
// ring that is fed with its tokens alone, cut in other pieces.
func (w *world) check(t *rapid.T) {
	p := w.c.Position()
	a := p.Idx
	if p.Rotated {
		a = w.maxSize
	}
	twin := rapid.IntRange(0, len(w.rows)-1).Draw(t, "twin")
	for i, r := range w.rows {
		if p.Offset[i] != len(r.tokens) {
			w.fail(t, "row %d stands at %d, want %d", i, p.Offset[i], len(r.tokens))
		}
		if p.LeftPadding[i] < 0 || a > 0 && a-p.LeftPadding[i] != r.held {
			w.fail(t, "row %d has left padding %d of %d columns, and holds %d tokens", i, p.LeftPadding[i], a, r.held)
		}
		one := must(w.c.Extract(i))
		got := one.Columns()
		if n := one.BufferColumns(); n != r.held || one.Offset() != len(r.tokens) {
			w.fail(t, "row %d comes out with %d columns at %d, want %d at %d", i, n, one.Offset(), r.held, len(r.tokens))
		}
		for s, id := range r.tokens[len(r.tokens)-r.held:] {
			if !slices.Equal(column(got, 0, s), w.planes(id)) {
				w.fail(t, "row %d, column %d is not token %d", i, s, id)
			}
		}
		if i == twin {
			w.checkTwin(t, i, r, got)
		}
	}
}

func (w *world) checkTwin(t *rapid.T, i int, r row, got ring.KV) {
	serial, of := w.serial(), row{}
	for at := 0; at < len(r.tokens); {
		n := min(rapid.IntRange(1, w.maxSize+3).Draw(t, "piece"), len(r.tokens)-at)
		sides := w.arrays([][]int{r.tokens[at : at+n]})
		must(serial.Update(sides[0], sides[1]))
		of.wrote(w.maxSize, r.tokens[at:at+n]...)
		at += n
	}
	want, columns := ring.KV{}, 0
	if len(r.tokens) > 0 {
		want = must(serial.TemporalView())
		columns = want.Keys[0].Columns()
	}
	if columns != min(len(r.tokens), w.maxSize) {
		w.fail(t, "the serial ring of row %d shows %d columns of %d tokens", i, columns, len(r.tokens))
	}
	for s := range min(columns, r.held) {
		if !slices.Equal(column(got, 0, r.held-1-s), column(want, 0, columns-1-s)) {
			w.fail(t, "row %d and its serial ring differ %d columns from the end", i, s)
		}
	}
}
