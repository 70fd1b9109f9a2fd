package props

import (
	"context"
	"slices"
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
	for i := 0; len(list) < 200; i++ {
		c := Generate(RandomSource(1, i), d)
		if op := c.Ops[0]; op.MaxSize != 8 || len(op.LeftPadding) != 2 {
			continue
		}
		c.Shape = corpus.Shape{KVHeads: 2, KeyDim: 8, ValueDim: 8, DType: ring.BFloat16}
		c.Step, c.Fill, c.Quant = corpus.DefaultStep, corpus.Grid, nil
		if !slices.ContainsFunc(c.Ops, func(op corpus.Op) bool { return op.Verb == corpus.ToQuantized || op.Verb == corpus.Save }) {
			list = append(list, c)
		}
	}
	return list
}

// BenchmarkStepwise judges the reference by the properties that share one run
// of a case. The figure to look at is ops/s.
func BenchmarkStepwise(b *testing.B) {
	cases, t := measured(b), ReferenceTarget()
	list := slices.DeleteFunc(Properties(), func(p Property) bool { return p.look == nil })
	b.ReportAllocs()
	ops := 0
	for i := 0; b.Loop(); i++ {
		c := cases[i%len(cases)]
		ops += len(c.Ops)
		if f, err := Check(context.Background(), t, c, list); err != nil || f != nil {
			b.Fatal(f, err)
		}
	}
	b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
}
