package reference_test

import (
	"testing"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// BenchmarkOperations is how many operations the reference does in a second at
// the shape of most generated cases: a window of 8, 2 rows, 2 heads, width 8.
// An operation is a mask or an update. The bar is 400,000 on one core.
func BenchmarkOperations(b *testing.B) {
	array := func(n int) ring.Array {
		return ring.Array{DType: ring.BFloat16, Shape: [4]int{2, 2, n, 8}, Data: make([]byte, 2*2*2*n*8)}
	}
	run := func(columns ...int) func(*testing.B) {
		return func(b *testing.B) {
			c := must(reference.NewBatchRotatingKVCache(ring.MLXLM, 8, []int{0, 1}))
			operations := 0
			b.ReportAllocs()
			for b.Loop() {
				for _, n := range columns {
					must(c.Mask(n, nil))
					must(c.Update(array(n), array(n)))
					operations += 2
				}
			}
			b.ReportMetric(float64(operations)/b.Elapsed().Seconds(), "ops/s")
		}
	}
	b.Run("decodes", run(1))
	b.Run("blocks", run(3))
	b.Run("mixed", run(1, 1, 1, 3, 1, 1, 9))
}
