package promptfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
	"example.com/ringcheck/reference/ring"
)

// TestLive holds both directions against the real mlx-lm, in a child: each side
// saves the same caches at every stage of their lives, and each loads its own
// and the other's file and goes on with it. All four must answer the same.
func TestLive(t *testing.T) {
	python, err := filepath.Abs("../../ci/mlxlm/.venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		t.Skip("the real mlx-lm is not installed in ci/mlxlm/.venv: run make mlx-lm")
	}
	child, err := props.StartChild(t.Context(), []string{python, filepath.FromSlash("../../ci/mlxlm/target.py")}, props.ChildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	sides := []props.Target{child, props.ReferenceTarget()}

	for name, life := range lives {
		t.Run(name, func(t *testing.T) {
			saved := live(life.make...)
			var files []string
			for i, op := range append([]corpus.Op{{}}, life.ops...) {
				file := fmt.Sprintf("stage%d", i)
				files = append(files, file)
				if i > 0 {
					saved.Ops = append(saved.Ops, op)
				}
				saved.Ops = append(saved.Ops, corpus.Op{Verb: corpus.Save, Caches: []string{"c"}, File: file})
			}
			dirs := []string{t.TempDir(), t.TempDir()}
			answers := [2][]corpus.Step{}
			for i, side := range sides {
				answers[i] = run(t, side, saved, dirs[i])
			}
			if d := props.CompareRuns(saved, answers[0], answers[1], props.Layout); d != nil {
				t.Fatalf("while saving: %v", d)
			}
			for _, file := range files {
				for n, more := range goOn(life.rows) {
					again := live(append([]corpus.Op{{Verb: corpus.Load, Outs: []string{"c"}, File: file}}, more...)...)
					want := run(t, child, again, dirs[0])
					for _, side := range sides {
						for i, dir := range dirs {
							if d := props.CompareRuns(again, want, run(t, side, again, dir), props.Layout); d != nil {
								t.Errorf("%s loads %s of %s and goes on in way %d: %v", side.Info().Name, file, sides[i].Info().Name, n, d)
							}
						}
					}
				}
			}
		})
	}

	t.Run("mlx-lm refuses our classes", func(t *testing.T) {
		dir := t.TempDir()
		exact := live(
			corpus.Op{Verb: corpus.New, Out: "c", Kind: corpus.Rotating, MaxSize: 4},
			corpus.Op{Verb: corpus.Save, Caches: []string{"c"}, File: "f"})
		exact.Semantics = ring.Exact
		for _, s := range run(t, sides[1], exact, dir) {
			if s.Error != "" {
				t.Fatal(s.Message)
			}
		}
		load := live(corpus.Op{Verb: corpus.Load, Outs: []string{"c"}, File: "f"})
		if s := run(t, child, load, dir)[0]; s.Error != "raises" {
			t.Errorf("mlx-lm loaded it: %+v", s)
		}
	})
}

func run(t *testing.T, side props.Target, c corpus.Case, dir string) []corpus.Step {
	t.Helper()
	steps, err := side.Run(t.Context(), c, dir)
	if err != nil {
		t.Fatalf("%s: %v", side.Info().Name, err)
	}
	return steps
}

func live(ops ...corpus.Op) corpus.Case {
	return corpus.Case{
		Name: "live", Source: "promptfile", Semantics: ring.MLXLM, Step: 3, Ops: ops,
		Shape: corpus.Shape{KVHeads: 2, KeyDim: 32, ValueDim: 64, DType: ring.BFloat16},
		Quant: &corpus.Quant{GroupSize: 32, Bits: 4},
	}
}

// lives are what happens to a cache of each kind; rows is how many it then has.
var lives = map[string]struct {
	make, ops []corpus.Op
	rows      int
}{
	"kv":             {make: one(corpus.Op{Kind: corpus.KV}), rows: 1, ops: []corpus.Op{update(1, 2), update(1, 1), update(1, 4), trim(2)}},
	"rotating":       {make: one(corpus.Op{Kind: corpus.Rotating, MaxSize: 4}), rows: 1, ops: []corpus.Op{update(1, 1), update(1, 2), trim(1), update(1, 3), update(1, 1), update(1, 1)}},
	"rotating keep":  {make: one(corpus.Op{Kind: corpus.Rotating, MaxSize: 4, Keep: 2}), rows: 1, ops: []corpus.Op{update(1, 6), update(1, 1), update(1, 1), trim(1)}},
	"batch_kv":       {make: one(corpus.Op{Kind: corpus.BatchKV, LeftPadding: []int{1, 0}}), rows: 2, ops: []corpus.Op{update(2, 2), pad(2, 1, 0), update(2, 3), {Verb: corpus.Finalize, Cache: "c"}, trim(1)}},
	"batch_rotating": {make: one(corpus.Op{Kind: corpus.BatchRotating, MaxSize: 4, LeftPadding: []int{1, 0}}), rows: 2, ops: []corpus.Op{update(2, 2), update(2, 1), pad(2, 0, 1), update(2, 3), {Verb: corpus.Finalize, Cache: "c"}, update(2, 1), update(2, 1)}},
	"quantized":      {make: one(corpus.Op{Kind: corpus.Quantized}), rows: 1, ops: []corpus.Op{update(1, 2), update(1, 1), update(1, 4), trim(2)}},
	"chunked":        {make: one(corpus.Op{Kind: corpus.Chunked, ChunkSize: 2}), rows: 1, ops: []corpus.Op{update(1, 3), {Verb: corpus.TrimFront, Cache: "c"}, update(1, 1)}},
	"concatenate":    {make: one(corpus.Op{Kind: corpus.Concatenate}), rows: 1, ops: []corpus.Op{update(1, 3), trim(2), update(1, 1)}},
	"arrays": {make: one(corpus.Op{Kind: corpus.Arrays, Slots: 2, LeftPadding: []int{0, 2}}), rows: 2, ops: []corpus.Op{
		{Verb: corpus.Write, Cache: "c", Slot: 1, Tokens: tokens(2, 1)}, pad(2, 0, 1), {Verb: corpus.Advance, Cache: "c", N: 2}, {Verb: corpus.Write, Cache: "c", Slot: 0, Tokens: tokens(2, 1)}, {Verb: corpus.Finalize, Cache: "c"}}},
	"list": {make: []corpus.Op{
		{Verb: corpus.New, Out: "a", Kind: corpus.Arrays, Slots: 0}, {Verb: corpus.New, Out: "k", Kind: corpus.KV}, {Verb: corpus.New, Out: "r", Kind: corpus.Rotating, MaxSize: 4},
		{Verb: corpus.New, Out: "inner", Kind: corpus.List, Caches: []string{"r"}}, {Verb: corpus.New, Out: "c", Kind: corpus.List, Caches: []string{"k", "inner"}}},
		rows: 1, ops: []corpus.Op{{Verb: corpus.Update, Cache: "k", Tokens: tokens(1, 3)}, {Verb: corpus.Update, Cache: "r", Tokens: tokens(1, 2)}, trim(1)}},
}

// goOn is what happens to a cache of rows rows after it was loaded.
func goOn(rows int) [][]corpus.Op {
	mask := func(n int) corpus.Op { return corpus.Op{Verb: corpus.MaskOp, Cache: "c", N: n} }
	return [][]corpus.Op{
		{mask(1), update(rows, 1), mask(2), update(rows, 2), trim(1), update(rows, 1)},
		{mask(2), update(rows, 2), mask(1), update(rows, 1), trim(1)},
		{pad(rows, 0, 1), mask(3), update(rows, 3), {Verb: corpus.Finalize, Cache: "c"}, update(rows, 1), {Verb: corpus.Extract, Cache: "c", Row: rows - 1, Out: "e"}},
		{{Verb: corpus.Advance, Cache: "c", N: 1}, {Verb: corpus.Write, Cache: "c", Slot: 1, Tokens: tokens(rows, 1)}, mask(3), trim(1), {Verb: corpus.Finalize, Cache: "c"}},
	}
}

func one(op corpus.Op) []corpus.Op {
	op.Verb, op.Out = corpus.New, "c"
	return []corpus.Op{op}
}

var lastToken int

// tokens are rows of new tokens.
func tokens(rows, n int) [][]int {
	out := make([][]int, rows)
	for i := range out {
		for range n {
			lastToken++
			out[i] = append(out[i], lastToken)
		}
	}
	return out
}

func update(rows, n int) corpus.Op {
	return corpus.Op{Verb: corpus.Update, Cache: "c", Tokens: tokens(rows, n)}
}

func trim(n int) corpus.Op { return corpus.Op{Verb: corpus.Trim, Cache: "c", N: n} }

// pad announces right padding for a block of 3: right for the first row, and
// rest for the others.
func pad(rows, right, rest int) corpus.Op {
	op := corpus.Op{Verb: corpus.Prepare, Cache: "c", RightPadding: []int{right}}
	for len(op.RightPadding) < rows {
		op.RightPadding = append(op.RightPadding, rest)
	}
	for _, n := range op.RightPadding {
		op.Lengths = append(op.Lengths, 3-n)
	}
	return op
}
