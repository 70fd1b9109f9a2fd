package props

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// measured are generated cases of one size: windows of 8, two rows, two heads,
// widths of 8.
func measured(b *testing.B) []corpus.Case {
	b.Helper()
	d := Domain{Info: ReferenceTarget().Info(), Kinds: []corpus.Kind{corpus.Rotating, corpus.BatchRotating}}
	var list []corpus.Case
	for i := 0; len(list) < 60; i++ {
		c := Generate(RandomSource(1, i), d)
		if op := c.Ops[0]; op.MaxSize != 8 || len(op.LeftPadding) != 2 {
			continue
		}
		c.Shape = corpus.Shape{KVHeads: 2, KeyDim: 8, ValueDim: 8, DType: ring.BFloat16}
		c.Step, c.Fill, c.Quant = corpus.DefaultStep, corpus.Grid, nil
		if !slices.ContainsFunc(c.Ops, func(op corpus.Op) bool {
			return op.Verb == corpus.ToQuantized || op.Verb == corpus.Save || op.Verb == corpus.Load
		}) {
			list = append(list, c)
		}
	}
	return list
}

// BenchmarkStepwise judges the reference by the properties that share one run
// of a case. The figure to look at is ops/s, on one core and on both: -cpu 1,2.
func BenchmarkStepwise(b *testing.B) {
	cases := measured(b)
	stepwise(b, func(i int) corpus.Case { return cases[i%len(cases)] })
}

// BenchmarkRandom is the same on cases of all kinds and sizes, made on the way.
func BenchmarkRandom(b *testing.B) {
	d := Domain{Info: ReferenceTarget().Info()}
	stepwise(b, func(i int) corpus.Case { return Generate(RandomSource(1, i), d) })
}

func stepwise(b *testing.B, next func(i int) corpus.Case) {
	t := ReferenceTarget()
	list := slices.DeleteFunc(Properties(), func(p Property) bool { return p.look == nil })
	var cases, ops atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c := next(int(cases.Add(1)))
			ops.Add(int64(len(c.Ops)))
			if f, err := Check(context.Background(), t, c, list); err != nil || f != nil {
				b.Error(f, err)
				return
			}
		}
	})
	b.ReportMetric(float64(ops.Load())/b.Elapsed().Seconds(), "ops/s")
}
