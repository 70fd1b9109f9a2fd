package models

import (
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// TestLegal: at each border of what is legal, an operation on one side and one
// on the other.
func TestLegal(t *testing.T) {
	const yes, no = "legal", "outside"
	type list = []corpus.Op
	mlxlm, exact := ring.MLXLM, ring.Exact
	op := func(v corpus.Verb, o corpus.Op) corpus.Op { o.Verb = v; return o }
	open := func(name string, kind corpus.Kind, o corpus.Op) corpus.Op {
		o.Verb, o.Out, o.Kind = corpus.New, name, kind
		return o
	}
	batch := func(name string, w int, left ...int) corpus.Op {
		return open(name, corpus.BatchRotating, corpus.Op{MaxSize: w, LeftPadding: left})
	}
	batchKV := func(left ...int) corpus.Op { return open("a", corpus.BatchKV, corpus.Op{LeftPadding: left}) }
	slots := func(name string, kind corpus.Kind, n int) corpus.Op { return open(name, kind, corpus.Op{Slots: n}) }
	kids := func(name string, names ...string) corpus.Op {
		return open(name, corpus.List, corpus.Op{Caches: names})
	}
	prepare := func(left, lengths, right []int) corpus.Op {
		return op(corpus.Prepare, corpus.Op{Cache: "a", LeftPadding: left, Lengths: lengths, RightPadding: right})
	}
	write := func(name string, slot int, ids ...int) corpus.Op {
		o := op(corpus.Write, corpus.Op{Cache: name, Slot: slot})
		for _, id := range ids {
			o.Tokens = append(o.Tokens, []int{id})
		}
		return o
	}
	filter := func(rows ...int) corpus.Op { return op(corpus.Filter, corpus.Op{Cache: "a", Rows: rows}) }
	extend := op(corpus.Extend, corpus.Op{Cache: "a", Other: "b"})
	merge := op(corpus.Merge, corpus.Op{Caches: []string{"a", "b"}, Out: "m"})
	mask := func(n int) corpus.Op { return op(corpus.MaskOp, corpus.Op{Cache: "a", N: n}) }
	trim := func(n int) corpus.Op { return op(corpus.Trim, corpus.Op{Cache: "a", N: n}) }
	attend := func(queries int) corpus.Op { return op(corpus.Attend, corpus.Op{Cache: "a", Queries: queries}) }
	advance := func(n int) corpus.Op { return op(corpus.Advance, corpus.Op{Cache: "a", N: n}) }
	extract := func(row int, limit *int) corpus.Op {
		return op(corpus.Extract, corpus.Op{Cache: "a", Row: row, Limit: limit, Out: "x"})
	}
	recurrent, arrays := slots("a", corpus.BatchRecurrent, 2), slots("a", corpus.Arrays, 2)
	renamed := func(o corpus.Op) corpus.Op {
		if o.Verb == corpus.New {
			o.Out = "b"
		} else {
			o.Cache = "b"
		}
		return o
	}
	pending := prepare(nil, []int{1}, []int{1})
	tokens := update("a", []int{1})

	for _, test := range []struct {
		name      string
		semantics ring.Semantics
		before    list
		op        corpus.Op
		want      string
	}{
		{"advance", exact, list{recurrent}, advance(0), yes},
		{"advance", exact, list{recurrent}, advance(-1), "range"},
		{"advance", mlxlm, list{arrays}, advance(0), yes},
		{"advance", mlxlm, list{arrays}, advance(-1), no},
		{"attend", exact, list{batch("a", 4, 0), tokens}, attend(1), yes},
		{"attend", exact, list{batch("a", 4, 0), tokens}, attend(0), no},
		{"attend", exact, list{batch("a", 4, 0), tokens, filter()}, attend(1), no},
		{"attend", exact, list{batch("a", 4, 0)}, attend(1), "empty"},
		{"projected bytes", exact, list{batch("a", 4, 0)}, op(corpus.ProjectedBytes, corpus.Op{Cache: "a"}), yes},
		{"projected bytes", exact, list{batch("a", 4, 0)}, op(corpus.ProjectedBytes, corpus.Op{Cache: "a", N: -1}), "range"},

		{"recurrent", exact, nil, slots("a", corpus.BatchRecurrent, 1), yes},
		{"recurrent", exact, nil, slots("a", corpus.BatchRecurrent, 0), no},
		{"arrays", mlxlm, nil, slots("a", corpus.Arrays, 1), yes},
		{"arrays", mlxlm, nil, slots("a", corpus.Arrays, 0), no},
		{"rotating quantized", mlxlm, nil, open("a", corpus.RotatingQuantized, corpus.Op{MaxSize: 1}), yes},
		{"rotating quantized", mlxlm, nil, open("a", corpus.RotatingQuantized, corpus.Op{MaxSize: 0}), no},
		{"rotating quantized", mlxlm, nil, open("a", corpus.RotatingQuantized, corpus.Op{MaxSize: 2, Keep: 1}), no},
		{"batch kv", mlxlm, nil, batchKV(0), yes},
		{"batch kv", mlxlm, nil, batchKV(), no},
		{"chunked", mlxlm, nil, open("a", corpus.Chunked, corpus.Op{ChunkSize: 1}), yes},
		{"chunked", mlxlm, nil, open("a", corpus.Chunked, corpus.Op{ChunkSize: 0}), no},
		{"list", mlxlm, list{batchKV(0)}, kids("l", "a"), yes},
		{"list", mlxlm, nil, kids("l"), no},
		{"list", mlxlm, nil, kids("l", "a"), no},

		{"mask of none", exact, list{batch("a", 4, 0)}, mask(0), "range"},
		{"mask of none", exact, list{recurrent}, mask(0), "range"},
		{"mask of none", mlxlm, list{batch("a", 4, 0)}, mask(0), no},
		{"mask of none", mlxlm, list{batchKV(0)}, mask(0), no},

		{"negative padding", exact, list{batch("a", 4, 0)}, prepare([]int{-1}, nil, nil), no},
		{"negative padding", exact, list{batch("a", 4, 0)}, prepare(nil, []int{-1}, nil), no},
		{"negative padding", exact, list{batch("a", 4, 0)}, prepare(nil, nil, []int{-1}), no},
		{"lengths of arrays", mlxlm, list{arrays, write("a", 0, 1, 2)}, prepare(nil, []int{1, 2}, nil), yes},
		{"lengths of arrays", mlxlm, list{arrays, write("a", 0, 1, 2)}, prepare(nil, []int{1}, nil), no},
		{"uneven", mlxlm, list{batchKV(0, 0)}, prepare(nil, []int{1, 2}, []int{1, 0}), yes},
		{"uneven", mlxlm, list{batchKV(0, 0)}, prepare(nil, []int{1, 2}, []int{0, 0}), no},
		{"uneven", exact, list{recurrent}, prepare(nil, []int{1, 2}, []int{1, 0}), yes},
		{"uneven", exact, list{recurrent}, prepare(nil, []int{1, 2}, []int{0, 0}), "shape"},
		{"another number of rows", mlxlm, list{batchKV(0, 0)}, prepare([]int{1}, nil, nil), no},
		{"another number of rows", mlxlm, list{batchKV(0, 0)}, prepare(nil, []int{1}, nil), no},
		{"another number of rows", mlxlm, list{batchKV(0, 0)}, prepare(nil, nil, []int{0}), no},
		{"recurrent without lengths", exact, list{recurrent}, prepare([]int{1}, nil, nil), no},
		{"recurrent twice", exact, list{recurrent, pending}, prepare(nil, []int{1}, []int{0}), yes},
		{"while padding is pending", mlxlm, list{batchKV(0), pending}, prepare(nil, []int{1}, nil), yes},
		{"while padding is pending", mlxlm, list{batchKV(0), pending}, prepare(nil, []int{1}, []int{1}), no},
		{"while padding is pending", mlxlm, list{batchKV(0), pending}, prepare([]int{1}, nil, nil), no},
		{"while padding is pending", mlxlm, list{batch("a", 4, 0), pending}, prepare(nil, []int{1}, nil), no},
		{"lengths below left padding", mlxlm, list{batch("a", 4, 2)}, prepare(nil, []int{2}, []int{1}), yes},
		{"lengths below left padding", mlxlm, list{batch("a", 4, 2)}, prepare(nil, []int{1}, []int{1}), no},

		{"a filter of a list", mlxlm, list{batch("a", 4, 0), kids("l", "a")}, op(corpus.Filter, corpus.Op{Cache: "l", Rows: []int{0}}), yes},
		{"a filter of a list", mlxlm, list{batch("a", 4, 0), kids("l", "a")}, op(corpus.Filter, corpus.Op{Cache: "l", Rows: []int{1}}), no},
		{"a filter to none", mlxlm, list{batchKV(0)}, filter(), "raises"},
		{"a filter to none", mlxlm, list{arrays, write("a", 0, 1)}, filter(), no},
		{"shared padding", mlxlm, list{batchKV(0, 1)}, filter(0, 1), yes},
		{"shared padding", mlxlm, list{batchKV(2, 1)}, filter(0, 1), no},
		{"shared padding", mlxlm, list{batchKV(2), update("a", []int{-1, -2})}, filter(0), yes},
		{"shared padding", mlxlm, list{batchKV(3), update("a", []int{-1, -2})}, filter(0), no},

		{"lists", mlxlm, list{batch("a1", 4, 0), kids("a", "a1"), batch("b1", 4, 0), kids("b", "b1")}, extend, yes},
		{"lists", mlxlm, list{batch("a1", 4, 0), kids("a", "a1"), batch("b1", 4, 0), batch("b2", 4, 0), kids("b", "b1", "b2")}, extend, no},
		{"arrays", mlxlm, list{arrays, renamed(arrays)}, extend, yes},
		{"arrays", mlxlm, list{arrays, slots("b", corpus.Arrays, 3)}, extend, no},
		{"arrays with lengths", mlxlm, list{arrays, renamed(arrays), prepare(nil, []int{1}, nil)}, extend, yes},
		{"recurrent", exact, list{recurrent, renamed(recurrent)}, extend, "not_supported"},
		{"the first pending", exact, list{batch("a", 4, 0), batch("b", 4, 0), pending}, extend, "pending_padding"},
		{"the second pending", exact, list{batch("a", 4, 0), batch("b", 4, 0), renamed(pending)}, extend, "pending_padding"},
		{"windows", exact, list{batch("a", 4, 0), batch("b", 5, 0)}, extend, "max_size"},
		{"windows", mlxlm, list{batch("a", 4, 0), batch("b", 4, 0)}, extend, yes},
		{"windows", mlxlm, list{batch("a", 4, 0), batch("b", 5, 0)}, extend, no},
		{"the first pending", mlxlm, list{batch("a", 4, 0), batch("b", 4, 0), pending}, extend, no},
		{"the second pending", mlxlm, list{batch("a", 4, 0), batch("b", 4, 0), renamed(pending)}, extend, no},

		{"lists", mlxlm, list{open("a1", corpus.KV, corpus.Op{}), kids("a", "a1"), open("b1", corpus.KV, corpus.Op{}), kids("b", "b1")}, merge, yes},
		{"lists", mlxlm, list{open("a1", corpus.KV, corpus.Op{}), open("a2", corpus.KV, corpus.Op{}), kids("a", "a1", "a2"), open("b1", corpus.KV, corpus.Op{}), kids("b", "b1")}, merge, no},
		{"lists", mlxlm, list{open("a1", corpus.KV, corpus.Op{}), kids("a", "a1"), open("b1", corpus.Rotating, corpus.Op{MaxSize: 4}), kids("b", "b1")}, merge, no},
		{"no rows", exact, list{batch("a", 4, 0), filter(), batch("b", 4, 0)}, merge, yes},
		{"no rows", exact, list{batch("a", 4, 0), filter(), batch("b", 4, 0), renamed(filter())}, merge, no},
		{"arrays of none", mlxlm, list{arrays, renamed(arrays)}, merge, yes},
		{"arrays of all", mlxlm, list{slots("a", corpus.Arrays, 1), slots("b", corpus.Arrays, 1), write("a", 0, 1), write("b", 0, 2)}, merge, yes},
		{"arrays of one", mlxlm, list{slots("a", corpus.Arrays, 2), slots("b", corpus.Arrays, 2), write("a", 0, 1), write("b", 0, 2)}, merge, no},
		{"arrays of two rows", mlxlm, list{slots("a", corpus.Arrays, 1), slots("b", corpus.Arrays, 1), write("a", 0, 1, 3), write("b", 0, 2)}, merge, no},
		{"arrays of all and of one", mlxlm, list{arrays, renamed(arrays), write("a", 0, 1), write("a", 1, 2), write("b", 0, 3)}, merge, yes},
		{"numbers of slots", mlxlm, list{slots("a", corpus.Arrays, 1), slots("b", corpus.Arrays, 2)}, merge, no},

		{"a full ring", mlxlm, list{open("a", corpus.Rotating, corpus.Op{MaxSize: 2}), tokens}, trim(1), yes},
		{"a full ring", mlxlm, list{open("a", corpus.Rotating, corpus.Op{MaxSize: 2}), update("a", []int{1, 2})}, trim(1), no},
		{"concatenate", mlxlm, list{open("a", corpus.Concatenate, corpus.Op{}), tokens}, trim(0), yes},
		{"concatenate", mlxlm, list{open("a", corpus.Concatenate, corpus.Op{}), tokens}, trim(1), no},
		{"no rows", exact, list{batch("a", 4, 0), filter()}, op(corpus.Rollback, corpus.Op{Cache: "a"}), no},
		{"rows", exact, list{recurrent, write("a", 0, 1)}, write("a", 1, 2), yes},
		{"rows", exact, list{recurrent, write("a", 0, 1)}, write("a", 1, 2, 3), "rows"},
		{"slots", exact, list{recurrent, write("a", 0, 1)}, write("a", 2, 2), "range"},
		{"slots", exact, list{recurrent}, write("a", 2, 2), "range"},
		{"no rows", exact, list{recurrent}, write("a", 0), no},
		{"no rows", exact, list{recurrent}, write("a", 2), no},
		{"rows", mlxlm, list{arrays, write("a", 0, 1)}, write("a", 1, 2, 3), no},

		{"a file that is not there", mlxlm, nil, op(corpus.Load, corpus.Op{File: "f"}), no},

		{"recurrent", exact, list{recurrent, write("a", 0, 1)}, extract(0, nil), yes},
		{"recurrent", exact, list{recurrent, write("a", 0, 1)}, extract(0, new(1)), no},
		{"recurrent of no slots", exact, list{recurrent, prepare(nil, []int{1}, nil)}, extract(0, nil), no},
		{"arrays", mlxlm, list{slots("a", corpus.Arrays, 1), write("a", 0, 1)}, extract(0, nil), yes},
		{"arrays", mlxlm, list{slots("a", corpus.Arrays, 1), write("a", 0, 1)}, extract(1, nil), no},
		{"arrays with an empty slot", mlxlm, list{slots("a", corpus.Arrays, 2), write("a", 0, 1)}, extract(0, nil), no},
		{"left padding to come", mlxlm, list{batchKV(0, 3), update("a", []int{1, 2}, []int{-1, -2})}, extract(1, nil), yes},
		{"left padding to come", exact, list{batch("a", 4, 0, 3), update("a", []int{1, 2}, []int{-1, -2})}, extract(1, nil), no},
	} {
		t.Run(test.semantics.String()+"/"+string(test.op.Verb)+"/"+test.name+"/"+test.want, func(t *testing.T) {
			s := newScript(t, test.semantics)
			for _, o := range test.before {
				s.do(o)
			}
			switch test.want {
			case yes:
				s.do(test.op)
			case no:
				s.refuse("", test.op)
			default:
				s.refuse(test.want, test.op)
			}
		})
	}
}

// TestLegalQuantized: what can be quantized, by the width of keys and values.
func TestLegalQuantized(t *testing.T) {
	quant := func(group, bits int) *corpus.Quant { return &corpus.Quant{GroupSize: group, Bits: bits} }
	for _, test := range []struct {
		key, value int
		quant      *corpus.Quant
		ok         bool
	}{
		{32, 64, quant(32, 4), true}, {32, 48, quant(32, 4), false}, {48, 32, quant(32, 4), false}, {64, 64, quant(64, 8), true},
		{32, 64, quant(64, 4), false}, {32, 32, quant(16, 4), false}, {32, 32, quant(32, 7), false}, {32, 32, nil, false},
	} {
		for _, sem := range []ring.Semantics{ring.MLXLM, ring.Exact} {
			m := New(sem, corpus.Shape{KVHeads: 1, KeyDim: test.key, ValueDim: test.value, DType: ring.Float16}, test.quant)
			kind, plain := corpus.Quantized, corpus.KV
			want := ""
			if sem == ring.Exact {
				kind, plain = corpus.RotatingQuantized, corpus.Rotating
				if test.quant != nil && !test.ok {
					want = "quant"
				}
			}
			m.Apply(&corpus.Op{Verb: corpus.New, Out: "p", Kind: plain, MaxSize: 4})
			for _, op := range []corpus.Op{
				{Verb: corpus.New, Out: "q", Kind: kind, MaxSize: 4}, {Verb: corpus.ToQuantized, Cache: "p", Out: "t"},
			} {
				if ok, code := m.Legal(&op); ok != test.ok || code != want {
					t.Errorf("%v, %s of %+v: legal %v, code %q", sem, op.Verb, test, ok, code)
				}
			}
		}
	}
	// Q31: mlx-lm allocates the wrong width for 128 elements of 5 bits.
	for _, test := range []struct {
		key, value int
		code       string
	}{{64, 64, ""}, {64, 128, "raises"}, {128, 64, "raises"}} {
		m := New(ring.MLXLM, corpus.Shape{KVHeads: 1, KeyDim: test.key, ValueDim: test.value, DType: ring.Float16}, quant(64, 5))
		m.Apply(&corpus.Op{Verb: corpus.New, Out: "q", Kind: corpus.Quantized})
		op := update("q", []int{1})
		if ok, code := m.Legal(&op); ok != (test.code == "") || code != test.code {
			t.Errorf("%+v: legal %v, code %q", test, ok, code)
		}
	}
}
