package props

import (
	"context"
	"fmt"
	"slices"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// Target is an implementation under test.
type Target interface {
	// Info says what the target claims to implement.
	Info() Info
	// Run executes c and returns one observation an operation, in order. A
	// refusal is an observation. After an unsupported operation the answer
	// ends. Planes come in the order keys, values; or keys.packed, keys.scales,
	// keys.biases and the same of values; or slot.0, slot.1 and so on; a plane
	// that holds no array is left out. dir is the absolute path of the folder
	// that save writes to and load reads from; a case without either may be
	// given "". The error is for a case that could not be run at all (a child
	// that crashed, hung or answered garbage): a [*Fault] where the target is
	// to blame.
	Run(ctx context.Context, c corpus.Case, dir string) ([]corpus.Step, error)
}

// Info is what a target claims.
type Info struct {
	Name      string
	Version   string
	Kinds     []corpus.Kind
	Ops       []corpus.Verb
	DTypes    []ring.DType
	Semantics []ring.Semantics
	Quant     []corpus.Quant
	Fills     []corpus.Fill
	Level     Level
}

// Lacks returns the first thing that c needs and the target does not claim,
// such as "operation extend"; "" if it claims everything. Who does not claim
// mlx-lm's layout does not claim to corrupt what mlx-lm corrupts.
func (i Info) Lacks(c corpus.Case) string {
	switch {
	case !slices.Contains(i.Semantics, c.Semantics):
		return fmt.Sprintf("semantics %v", c.Semantics)
	case !slices.Contains(i.DTypes, c.Shape.DType):
		return fmt.Sprintf("data type %v", c.Shape.DType)
	case !slices.Contains(i.Fills, c.Fill):
		return fmt.Sprintf("fill %v", c.Fill)
	case c.Quant != nil && !slices.Contains(i.Quant, *c.Quant):
		return fmt.Sprintf("quantization in groups of %d to %d bits", c.Quant.GroupSize, c.Quant.Bits)
	}
	for k := range c.Ops {
		op := &c.Ops[k]
		if !slices.Contains(i.Ops, op.Verb) {
			return fmt.Sprintf("operation %s", op.Verb)
		}
		if op.Kind != "" && !slices.Contains(i.Kinds, op.Kind) {
			return fmt.Sprintf("kind %s", op.Kind)
		}
	}
	if i.Level < Layout && Corrupts(c) {
		return "layout, and only a target that does is asked for sequences that mlx-lm corrupts"
	}
	return ""
}

// Level is how closely a target is compared; see docs/case-format.md.
type Level uint8

const (
	// Visible compares what a query of a real token can see.
	Visible Level = iota
	// Columns compares everything but the physical buffer (buffer, stored).
	Columns
	// Layout compares everything, every byte.
	Layout
)
