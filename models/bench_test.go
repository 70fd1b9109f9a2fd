package models

import (
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// roundOps is a padded prompt in two chunks, decodes until the ring has wrapped, a
// block, and a filter, for 2 rows and a window of 8, masks included.
func roundOps() []corpus.Op {
	next := 0
	feed := func(reals ...int) corpus.Op {
		op := corpus.Op{Verb: corpus.Update, Cache: "b"}
		for _, real := range reals {
			row := make([]int, reals[0])
			for j := range row {
				next++
				row[j] = next
				if j >= real {
					row[j] = -next
				}
			}
			op.Tokens = append(op.Tokens, row)
		}
		return op
	}
	mask := func(n int) corpus.Op { return corpus.Op{Verb: corpus.MaskOp, Cache: "b", N: n} }
	ops := []corpus.Op{
		{Verb: corpus.New, Out: "b", Kind: corpus.BatchRotating, MaxSize: 8, LeftPadding: []int{0, 0}},
		{Verb: corpus.Prepare, Cache: "b", Lengths: []int{6, 4}, RightPadding: []int{0, 2}},
		mask(3), feed(3, 3), mask(3), feed(3, 1),
		{Verb: corpus.Finalize, Cache: "b"},
	}
	for range 12 {
		ops = append(ops, mask(1), feed(1, 1))
	}
	return append(ops, mask(4), feed(4, 4),
		corpus.Op{Verb: corpus.Extract, Cache: "b", Row: 1, Out: "x"},
		corpus.Op{Verb: corpus.Filter, Cache: "b", Rows: []int{1, 0}})
}

func BenchmarkApply(b *testing.B) {
	for _, sem := range []ring.Semantics{ring.MLXLM, ring.Exact} {
		b.Run(sem.String(), func(b *testing.B) {
			ops := roundOps()
			b.ReportAllocs()
			for range b.N {
				m := New(sem, corpus.Shape{}, nil)
				for i := range ops {
					if e := m.Apply(&ops[i]); !e.Known || e.Error != "" {
						b.Fatalf("%s: known %v, error %q", ops[i].Verb, e.Known, e.Error)
					}
				}
			}
			b.ReportMetric(float64(b.N*len(ops))/b.Elapsed().Seconds(), "ops/s")
		})
	}
}

// BenchmarkJudge judges the corpus.
func BenchmarkJudge(b *testing.B) {
	all := files(b)
	n := 0
	for b.Loop() {
		for _, f := range all {
			j := NewJudge(&f.Case)
			for i := range f.Case.Ops {
				op := &f.Case.Ops[i]
				if op.Want == nil {
					continue
				}
				n++
				if v := j.Step(op, op.Want); v != nil {
					b.Fatal(v)
				}
			}
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "ops/s")
}
