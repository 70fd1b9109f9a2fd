package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
	"example.com/ringcheck/reference/ring"
)

// target shows Ring to ringcheck: a whole case in, an observation an operation
// out.
type target struct{}

// Info claims what Ring has. Only cases that need nothing else are asked.
func (target) Info() props.Info {
	return props.Info{
		Name: "engine", Version: "example",
		Kinds:     []corpus.Kind{corpus.Rotating},
		Ops:       []corpus.Verb{corpus.New, corpus.Update, corpus.MaskOp, corpus.Trim},
		DTypes:    []ring.DType{ring.Float32},
		Semantics: []ring.Semantics{ring.Exact},
		Fills:     []corpus.Fill{corpus.Grid},
		Level:     props.Visible, // its columns lie where it likes
	}
}

func (target) Run(_ context.Context, c corpus.Case, _ string) ([]corpus.Step, error) {
	rings := map[string]*Ring{}
	steps := make([]corpus.Step, len(c.Ops))
	for i := range c.Ops {
		op, step := &c.Ops[i], &steps[i]
		err := do(&c, op, rings, step)
		if step.Error = ring.CodeOf(err); err != nil {
			if step.Error == "" {
				return nil, fmt.Errorf("operation %d: %w", i, err) // not a refusal
			}
			step.Message = err.Error()
		}
		if r := rings[op.Cache+op.Out]; r != nil && op.Verb != corpus.MaskOp {
			step.State = corpus.State{
				corpus.IntField(corpus.FOffset, r.Offset()),
				corpus.IntField(corpus.FSize, r.Size()),
				corpus.BoolField(corpus.FTrimmable, r.Trimmable()),
			}
		}
	}
	return steps, nil
}

// do runs one operation.
func do(c *corpus.Case, op *corpus.Op, rings map[string]*Ring, step *corpus.Step) (err error) {
	if op.Verb == corpus.New {
		if rings[op.Out], err = NewRing(op.MaxSize, c.Shape.KVHeads, c.Shape.KeyDim, c.Shape.ValueDim); err == nil && op.Keep != 0 {
			err = &ring.KeepError{Op: "new", Keep: op.Keep}
		}
		if err != nil {
			delete(rings, op.Out)
		}
		return err
	}
	r := rings[op.Cache]
	if r == nil {
		return &ring.RaisesError{Op: string(op.Verb), Why: "the ring could not be made"}
	}
	switch op.Verb {
	case corpus.Update:
		if n := len(op.Tokens); n != 1 {
			return &ring.RowsError{Op: "update", What: "keys", Got: n, Want: 1}
		}
		keys := corpus.TokenArray(c.Shape, c.Fill, corpus.KeyPlane, op.Tokens)
		values := corpus.TokenArray(c.Shape, c.Fill, corpus.ValuePlane, op.Tokens)
		view, err := r.Append(floats(keys.Data), floats(values.Data), keys.Columns())
		if err != nil {
			return err
		}
		step.Returned = []corpus.Plane{
			{Name: "keys", Array: array(c, view.Keys, view.N, c.Shape.KeyDim)},
			{Name: "values", Array: array(c, view.Values, view.N, c.Shape.ValueDim)},
		}
	case corpus.MaskOp:
		window := r.window
		if op.Window != nil {
			window = *op.Window
		}
		mask, err := r.Mask(op.N, window)
		if err != nil {
			return err
		}
		step.Mask = &ring.Mask{B: 1, N: op.N, S: len(mask[0])}
		for _, query := range mask {
			step.Mask.Data = append(step.Mask.Data, query...)
		}
	case corpus.Trim:
		step.Trimmed = &op.N
		return r.Trim(op.N)
	}
	return nil
}

// floats and array turn ringcheck's bytes into the ring's numbers and back.
func floats(data []byte) []float32 {
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

func array(c *corpus.Case, values []float32, n, dim int) ring.Array {
	a := ring.Array{DType: ring.Float32, Shape: [4]int{1, c.Shape.KVHeads, n, dim}}
	for _, v := range values {
		a.Data = binary.LittleEndian.AppendUint32(a.Data, math.Float32bits(v))
	}
	return a
}
