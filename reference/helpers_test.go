package reference_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

// The tests of this package feed tokens that carry their identity: lane e of
// head h of token id is 64 id + 8 h + e in the keys and its negative in the
// values, in float32, which holds it exactly. So any column can be read back as
// the one token whose it is, or as 0 where it is zero bytes.
const (
	heads    = 2
	keyDim   = 4
	valueDim = 3
)

// tokens makes keys and values [b h s d] of token ids, one list a row.
func tokens(rows ...[]int) (keys, values ring.Array) {
	return plane(rows, keyDim, 1), plane(rows, valueDim, -1)
}

func plane(rows [][]int, dim int, sign float32) ring.Array {
	columns := 0
	if len(rows) > 0 {
		columns = len(rows[0])
	}
	a := ring.Array{DType: ring.Float32, Shape: [4]int{len(rows), heads, columns, dim}}
	for _, row := range rows {
		for h := range heads {
			for _, id := range row {
				for e := range dim {
					f := sign * float32(64*id+8*h+e)
					a.Data = binary.LittleEndian.AppendUint32(a.Data, math.Float32bits(f))
				}
			}
		}
	}
	return a
}

// ids reads columns back, [row][column]. All heads and lanes of both sides must
// be one token's.
func ids(t rapid.TB, kv ring.KV) [][]int {
	t.Helper()
	if len(kv.Keys) == 0 && len(kv.Values) == 0 {
		return nil
	}
	k, v := read(t, kv.Keys, keyDim, 1), read(t, kv.Values, valueDim, -1)
	if !reflect.DeepEqual(k, v) {
		t.Fatalf("keys are tokens %v, values %v", k, v)
	}
	return k
}

func read(t rapid.TB, p ring.Planes, dim int, sign float32) [][]int {
	t.Helper()
	if len(p) != 1 || p[0].Shape[1] != heads || p[0].Shape[3] != dim {
		t.Fatalf("planes %v are not those of tokens", p)
	}
	a := p[0]
	elements := floats(a)
	at := func(row, h, s, e int) float32 { return elements[((row*heads+h)*a.Columns()+s)*dim+e] }
	out := make([][]int, a.Rows())
	for row := range out {
		out[row] = make([]int, a.Columns())
		for s := range out[row] {
			id := int(sign*at(row, 0, s, 0)) >> 6
			out[row][s] = id
			for h := range heads {
				for e := range dim {
					want := sign * float32(64*id+8*h+e)
					if id == 0 {
						want = 0
					}
					if got := at(row, h, s, e); got != want {
						t.Fatalf("row %d, column %d, head %d, lane %d holds %v, which is not of token %d", row, s, h, e, got, id)
					}
				}
			}
		}
	}
	return out
}

// same fails unless got is want.
func same[T any](t rapid.TB, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// look is all that a cache is, its private fields included.
func look(c any) string {
	if list, ok := c.(*reference.CacheList); ok {
		var all []string
		for i := range list.Len() {
			all = append(all, look(list.At(i)))
		}
		return strings.Join(all, "\n")
	}
	return fmt.Sprintf("%T%+v", c, reflect.ValueOf(c).Elem())
}

// refuses fails unless f refuses with that code and changes none of the caches.
func refuses(t rapid.TB, what, code string, f func() error, caches ...any) {
	t.Helper()
	var before []string
	for _, c := range caches {
		before = append(before, look(c))
	}
	err := f()
	if err == nil || ring.CodeOf(err) != code {
		t.Errorf("%s: error %v (code %q), want code %q", what, err, ring.CodeOf(err), code)
	}
	for i, c := range caches {
		if after := look(c); after != before[i] {
			at := 0
			for at < len(after) && at < len(before[i]) && after[at] == before[i][at] {
				at++
			}
			t.Errorf("%s: refused, and changed ...%.200s to ...%.200s", what, before[i][max(0, at-60):], after[max(0, at-60):])
		}
	}
}

// updater is every cache that takes columns.
type updater interface {
	reference.Cache
	Update(keys, values ring.Array) (ring.KV, error)
}

// feed updates a cache with one list of tokens a row, and returns the tokens
// that it answered.
func feed(t rapid.TB, c updater, rows ...[]int) [][]int {
	t.Helper()
	kv, err := c.Update(tokens(rows...))
	if err != nil {
		t.Fatalf("update with %v: %v", rows, err)
	}
	return ids(t, kv)
}

// feeding is an update that returns its error alone.
func feeding(c updater, rows ...[]int) func() error {
	return func() error {
		_, err := c.Update(tokens(rows...))
		return err
	}
}

// one returns the error of a call that returns something besides.
func one[T any](_ T, err error) error { return err }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func ok(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// span is from, from+1, ..., to.
func span(from, to int) []int {
	var out []int
	for i := from; i <= to; i++ {
		out = append(out, i)
	}
	return out
}

func in(w int) *int { return &w }

// serial is a ring of one sequence with a small growth step.
func serial(t rapid.TB, semantics ring.Semantics, maxSize, keep int) *reference.RotatingKVCache {
	t.Helper()
	c, err := reference.NewRotatingKVCache(semantics, maxSize, keep)
	if err != nil {
		t.Fatal(err)
	}
	c.Step = 3
	return c
}

// batch is a ring of several sequences with a small growth step.
func batch(t rapid.TB, semantics ring.Semantics, maxSize int, left ...int) *reference.BatchRotatingKVCache {
	t.Helper()
	c, err := reference.NewBatchRotatingKVCache(semantics, maxSize, left)
	if err != nil {
		t.Fatal(err)
	}
	c.Step = 3
	return c
}

// held is all columns of a cache's buffer as tokens.
func held(t rapid.TB, c interface{ Columns() ring.KV }) [][]int {
	t.Helper()
	return ids(t, c.Columns())
}

// extracted is the tokens of a row taken out of a batch.
func extracted(t rapid.TB, c *reference.BatchRotatingKVCache, row int) []int {
	t.Helper()
	one, err := c.Extract(row)
	if err != nil {
		t.Fatal(err)
	}
	return columnsOf(t, one)
}

// limited is extracted with a limit.
func limited(t rapid.TB, c *reference.BatchRotatingKVCache, row, limit int) []int {
	t.Helper()
	one, err := c.ExtractLimit(row, limit)
	if err != nil {
		t.Fatal(err)
	}
	return columnsOf(t, one)
}

func columnsOf(t rapid.TB, c *reference.RotatingKVCache) []int {
	t.Helper()
	if all := held(t, c); len(all) == 1 {
		return all[0]
	}
	return nil
}

// masked is a mask as text: one string of 1 and 0 a query, one list a row.
func masked(m *ring.Mask, err error) [][]string {
	if err != nil {
		panic(err)
	}
	if m == nil {
		return nil
	}
	out := make([][]string, m.B)
	for b := range out {
		for q := range m.N {
			var s strings.Builder
			for c := range m.S {
				s.WriteByte("01"[map[bool]int{true: 1}[m.At(b, q, c)]])
			}
			out[b] = append(out[b], s.String())
		}
	}
	return out
}

var semanticses = []ring.Semantics{ring.MLXLM, ring.Exact}

// stepped are the plain caches without a window, of one row.
func stepped() []updater {
	kv, batchKV, chunked := reference.NewKVCache(), reference.NewBatchKVCache([]int{0}), reference.NewChunkedKVCache(2)
	kv.Step, batchKV.Step, chunked.Step = 3, 3, 3
	return []updater{kv, batchKV, chunked, reference.NewConcatenateKVCache()}
}

// columns makes keys and values [rows, 1, n, width] of any numbers, which seed
// tells apart.
func columns(seed int, dtype ring.DType, rows, n, width int) (keys, values ring.Array) {
	make := func(side int) ring.Array {
		a := ring.Array{DType: dtype, Shape: [4]int{rows, 1, n, width}}
		x := uint32(seed)*0x9E3779B1 + uint32(side)*0x85EBCA6B
		for range rows * n * width {
			x = x*1664525 + 1013904223
			u := reference.FloatBits(dtype, float32(int32(x)>>12)/1e4)
			a.Data = append(a.Data, byte(u), byte(u>>8))
			if dtype == ring.Float32 {
				a.Data = append(a.Data, byte(u>>16), byte(u>>24))
			}
		}
		return a
	}
	return make(0), make(1)
}
