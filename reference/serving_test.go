package reference_test

import (
	"math"
	"testing"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// TestAttend: a ring attends as the read of the last write does.
func TestAttend(t *testing.T) {
	for _, f := range []reference.Format{{}, {GroupSize: 32, Bits: 8}} {
		c := must(reference.NewBatchRotatingKVCache(ring.Exact, 4, []int{0, 2}))
		alone := must(reference.NewRotatingKVCache(ring.Exact, 4, 0))
		if f != (reference.Format{}) {
			c = must(reference.NewBatchRotatingQuantizedKVCache(ring.Exact, 4, []int{0, 2}, f))
			alone = must(reference.NewRotatingQuantizedKVCache(ring.Exact, 4, f))
		}
		for i, n := range []int{3, 1, 1, 2, 1, 1, 1, 5, 1, 1} {
			keys, values := columns(i, ring.Float32, 2, n, 32)
			queries, _ := columns(99, ring.Float32, 2, n, 32)
			queries.Shape[1], queries.Data = 2, append(queries.Data, queries.Data...) // two query heads
			var r reference.Read
			if n == 1 {
				r = must(c.AppendDecode(keys, values))
			} else {
				r = must(c.AppendWindow(keys, values))
			}
			want := must(r.Attend(queries, 0.25))
			near(t, "the batch", must(c.Attend(queries, 0.25)), want)
			near(t, "the read, once more", must(r.Attend(queries, 0.25)), want)
			if i == 0 { // the first columns of row 1 are padding: they see nothing
				for _, x := range want[2*3*32:][:2*32] {
					if x != 0 {
						t.Fatalf("a query of padding reads %v", x)
					}
				}
			}

			// The serial ring is row 0 alone.
			first := func(a ring.Array) ring.Array {
				a.Shape[0] = 1
				a.Data = a.Data[:len(a.Data)/2]
				return a
			}
			must(alone.Update(first(keys), first(values)))
			near(t, "the serial ring", must(alone.Attend(first(queries), 0.25)), want[:len(want)/2])
			few := first(queries)
			few.Shape[1] = 1
			few.Data = few.Data[:len(few.Data)/2]
			few.Shape[2] = 0
			few.Data = nil
			refuses(t, "no queries", "range", func() error { return one(alone.Attend(few, 1)) }, alone)
		}
		keys, _ := columns(0, ring.Float32, 2, 1, 64)
		code := "shape"
		refuses(t, "queries of another width", code, func() error { return one(c.Attend(keys, 1)) }, c)
	}
}

func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-4*max(1, math.Abs(float64(want[i])))) {
			t.Fatalf("%s: number %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}
