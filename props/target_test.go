package props

import (
	"strings"
	"testing"

	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// TestLacksCorruption: only in mlx-lm's semantics is there what nobody but
// mlx-lm can answer. In exact the same operation is refused, by the accelerated
// cache as by the reference.
func TestLacksCorruption(t *testing.T) {
	dev := cpu.Open(cpu.Options{Workers: 1})
	defer dev.Close()
	target := AcceleratedTarget("cpu", dev)
	c := corpus.Case{
		Name: "refused", Source: "made for a test", Semantics: ring.Exact, Step: corpus.DefaultStep,
		Shape: corpus.Shape{KVHeads: 1, KeyDim: 4, ValueDim: 4, DType: ring.Float32},
		Ops: []corpus.Op{
			{Verb: corpus.New, Out: "c1", Kind: corpus.BatchRotating, MaxSize: 4, LeftPadding: []int{-1}},
			{Verb: corpus.New, Out: "c2", Kind: corpus.BatchRotating, MaxSize: 4, LeftPadding: []int{0}},
			{Verb: corpus.MaskOp, Cache: "c2", N: 0},
			{Verb: corpus.MaskOp, Cache: "c2", N: -1},
		},
	}
	if lacks := target.Info().Lacks(c); lacks != "" {
		t.Errorf("exact: the target lacks %q", lacks)
	}
	list, err := Named([]string{"reference"})
	if err != nil {
		t.Fatal(err)
	}
	if f, err := Check(t.Context(), target, c, list); f != nil || err != nil {
		t.Errorf("%v, %v", f, err)
	}
	steps, err := target.Run(t.Context(), c, "")
	for i, want := range []string{"range", "", "range", "range"} {
		if err != nil || len(steps) != 4 || steps[i].Error != want {
			t.Fatalf("#%d: %+v, %v, want %q", i, steps, err, want)
		}
	}
	c.Semantics = ring.MLXLM
	if lacks := target.Info().Lacks(c); !strings.Contains(lacks, "layout, and only a target that does is asked for sequences that mlx-lm corrupts") {
		t.Errorf("mlxlm: the target lacks %q", lacks)
	}
}
