package props

import (
	"context"
	"fmt"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// fake is a Target with one kind of cache, named batch_rotating (or
// batch_rotating_quantized, the same over quantized columns): rows of tokens
// that only grow, and can be trimmed.
type fake struct {
	reversed bool // holds and shows its columns newest first: another layout
	level    Level
}

func (f fake) Info() Info {
	level := f.level
	if !f.reversed {
		level = Layout
	}
	return Info{
		Name: "fake", Version: "1",
		Kinds:     []corpus.Kind{corpus.BatchRotating, corpus.BatchRotatingQuantized},
		Ops:       []corpus.Verb{corpus.New, corpus.Update, corpus.MaskOp, corpus.Extract, corpus.Trim},
		DTypes:    []ring.DType{ring.BFloat16, ring.Float16, ring.Float32},
		Semantics: []ring.Semantics{ring.MLXLM, ring.Exact},
		Quant:     []corpus.Quant{{GroupSize: 32, Bits: 4}},
		Fills:     []corpus.Fill{corpus.Grid, corpus.Bits},
		Level:     level,
	}
}

type fakeCache struct {
	quantized bool
	rows      [][]int
}

func (f fake) Run(_ context.Context, c corpus.Case, _ string) ([]corpus.Step, error) {
	caches := map[string]*fakeCache{}
	var steps []corpus.Step
	for _, op := range c.Ops {
		var s corpus.Step
		k := caches[op.Cache]
		switch op.Verb {
		case corpus.New:
			k = &fakeCache{op.Kind == corpus.BatchRotatingQuantized, make([][]int, len(op.LeftPadding))}
			caches[op.Out] = k
		case corpus.Update:
			for b, row := range op.Tokens {
				k.rows[b] = append(k.rows[b], row...)
			}
			s.Returned = f.planes(c, k)
		case corpus.MaskOp:
			s.Mask = f.mask(len(k.rows), k.columns(), op.N)
		case corpus.Extract:
			k = &fakeCache{k.quantized, [][]int{append([]int(nil), k.rows[op.Row]...)}}
			caches[op.Out] = k
			s.Stored = f.planes(c, k)
		case corpus.Trim:
			if op.N > k.columns() {
				s.Error, s.Message = "over_trim", fmt.Sprintf("%d is too much", op.N)
				break
			}
			for b := range k.rows {
				k.rows[b] = k.rows[b][:len(k.rows[b])-op.N]
			}
			s.Trimmed = &op.N
		default:
			return append(steps, corpus.Step{Unsupported: string(op.Verb)}), nil
		}
		if op.Verb != corpus.MaskOp {
			s.State = corpus.State{
				corpus.IntField(corpus.FOffset, k.columns()), corpus.IntField(corpus.FSize, k.columns()),
				corpus.BoolField(corpus.FTrimmable, true), corpus.IntField(corpus.FBuffer, k.columns()),
			}
		}
		steps = append(steps, s)
	}
	return steps, nil
}

func (k *fakeCache) columns() int {
	if len(k.rows) == 0 {
		return 0
	}
	return len(k.rows[0])
}

func (f fake) planes(c corpus.Case, k *fakeCache) []corpus.Plane {
	rows := k.rows
	if f.reversed {
		rows = make([][]int, len(k.rows))
		for b := range rows {
			for s := k.columns() - 1; s >= 0; s-- {
				rows[b] = append(rows[b], k.rows[b][s])
			}
		}
	}
	if k.quantized {
		return quantizedPlanes(c, rows)
	}
	return plainPlanes(c, rows)
}

// mask is causal: the last of n queries sees all columns.
func (f fake) mask(rows, held, n int) *ring.Mask {
	m := &ring.Mask{B: rows, N: n, S: held + n}
	m.Data = make([]bool, m.B*m.N*m.S)
	for b := range m.B {
		for q := range n {
			for s := range held + q + 1 {
				column := s
				if f.reversed {
					column = m.S - 1 - s
				}
				m.Data[(b*m.N+q)*m.S+column] = true
			}
		}
	}
	return m
}

// plainPlanes are the columns of the tokens ids, 0 for a column of zero bytes.
func plainPlanes(c corpus.Case, ids [][]int) []corpus.Plane {
	planes := []corpus.Plane{{Name: "keys"}, {Name: "values"}}
	for p := range planes {
		planes[p].Array = columnsOf(c, p, ids)
	}
	return planes
}

func quantizedPlanes(c corpus.Case, ids [][]int) []corpus.Plane {
	var planes []corpus.Plane
	for p, side := range []string{"keys", "values"} {
		a := columnsOf(c, p, ids)
		q, err := reference.Quantize(a, c.Quant.GroupSize, c.Quant.Bits)
		if err != nil {
			panic(err)
		}
		for k, name := range []string{".packed", ".scales", ".biases"} {
			blank(q[k], ids)
			planes = append(planes, corpus.Plane{Name: side + name, Array: q[k]})
		}
	}
	return planes
}

func columnsOf(c corpus.Case, plane int, ids [][]int) ring.Array {
	a := corpus.TokenArray(c.Shape, c.Fill, plane, ids)
	blank(a, ids)
	return a
}

// blank zeroes the columns whose id is 0.
func blank(a ring.Array, ids [][]int) {
	width := a.Shape[3] * a.DType.Size()
	for b, row := range ids {
		for s, id := range row {
			for h := range a.Shape[1] {
				if at := ((b*a.Shape[1]+h)*a.Shape[2] + s) * width; id == 0 {
					clear(a.Data[at : at+width])
				}
			}
		}
	}
}

// fakeCase begins with a new cache "a" of two rows.
func fakeCase(name string, kind corpus.Kind, ops ...corpus.Op) corpus.Case {
	c := corpus.Case{
		Name: name, Source: "made for a test", Semantics: ring.Exact, Step: corpus.DefaultStep,
		Shape: corpus.Shape{KVHeads: 2, KeyDim: 4, ValueDim: 6, DType: ring.BFloat16},
		Ops: append([]corpus.Op{
			{Verb: corpus.New, Out: "a", Kind: kind, MaxSize: 64, LeftPadding: []int{0, 0}},
		}, ops...),
	}
	if kind == corpus.BatchRotatingQuantized {
		c.Shape.KeyDim, c.Shape.ValueDim = 32, 64
		c.Quant = &corpus.Quant{GroupSize: 32, Bits: 4}
	}
	return c
}

func update(tokens ...[]int) corpus.Op {
	return corpus.Op{Verb: corpus.Update, Cache: "a", Tokens: tokens}
}

func mask(n int) corpus.Op { return corpus.Op{Verb: corpus.MaskOp, Cache: "a", N: n} }

func trim(n int) corpus.Op { return corpus.Op{Verb: corpus.Trim, Cache: "a", N: n} }

func extract(row int, out string) corpus.Op {
	return corpus.Op{Verb: corpus.Extract, Cache: "a", Row: row, Out: out}
}

// fakeCases are cases that fake can run, over plain and quantized columns.
var fakeCases = func() (cases []corpus.Case) {
	for _, kind := range []corpus.Kind{corpus.BatchRotating, corpus.BatchRotatingQuantized} {
		cases = append(cases, fakeCase("case-of-"+string(kind), kind,
			mask(3), update([]int{1, 2, 3}, []int{4, -1, -2}), trim(1), trim(7), update([]int{-3}, []int{5}),
			mask(1), update([]int{6}, []int{7}), extract(1, "b")))
	}
	return cases
}()
