package reference_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"example.com/ringcheck/models/attention"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

// attend is one call of Attend.
type attend struct {
	queries ring.Array
	kv      ring.KV
	mask    *ring.Mask
	scale   float64
	format  reference.Format
}

func (a attend) run() ([]float32, error) {
	return reference.Attend(a.queries, a.kv, a.mask, a.scale, a.format)
}

// stored returns keys and values as Attend is to read them.
func (a attend) stored() (keys, values ring.Array) {
	read := func(p ring.Planes) ring.Array {
		if len(p) == 1 {
			return p[0]
		}
		plain, err := reference.Dequantize(p, a.format.GroupSize, a.format.Bits)
		if err != nil {
			panic(err)
		}
		return plain
	}
	return read(a.kv.Keys), read(a.kv.Values)
}

// selects reports whether query q of a row selects column c.
func (a attend) selects(row, q, c int) bool {
	switch {
	case a.mask == nil || a.mask.N == 0:
		return true
	case a.mask.B == 1:
		return a.mask.At(0, q, c)
	}
	return a.mask.At(row, q, c)
}

// want is what the model of attention says, in Attend's order.
func (a attend) want(t *rapid.T) []float64 {
	k, v := a.stored()
	queries, keys, values := floats(a.queries), floats(k), floats(v)
	rows, heads, n, d := a.queries.Shape[0], a.queries.Shape[1], a.queries.Shape[2], a.queries.Shape[3]
	kvHeads, columns, dv := k.Shape[1], k.Shape[2], v.Shape[3]
	want := make([]float64, rows*heads*n*dv)
	for row := range rows {
		model := make([]attention.Head, kvHeads)
		for h := range model {
			for c := range columns {
				at := (row*kvHeads+h)*columns + c
				model[h].Keys = append(model[h].Keys, wide(keys[at*d:(at+1)*d]))
				model[h].Values = append(model[h].Values, wide(values[at*dv:(at+1)*dv]))
			}
		}
		for q := range n {
			var all [][]float64
			for h := range heads {
				at := (row*heads+h)*n + q
				all = append(all, wide(queries[at*d:(at+1)*d]))
			}
			visible := make([]bool, columns)
			for c := range visible {
				visible[c] = a.selects(row, q, c)
			}
			out, err := attention.Attend(all, model, visible, a.scale)
			if err != nil {
				t.Fatal(err)
			}
			for h := range heads {
				copy(want[((row*heads+h)*n+q)*dv:], out[h])
			}
		}
	}
	return want
}

func wide(values []float32) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}

// drawAttend draws a call: any type, plain or quantized, any mask.
func drawAttend(t *rapid.T) attend {
	dtype := rapid.SampledFrom(floatTypes).Draw(t, "dtype")
	rows, kvHeads := rapid.IntRange(0, 3).Draw(t, "rows"), rapid.IntRange(1, 3).Draw(t, "kv heads")
	heads := kvHeads * rapid.IntRange(1, 3).Draw(t, "query heads a kv head")
	n, columns := rapid.IntRange(0, 3).Draw(t, "queries"), rapid.IntRange(1, 7).Draw(t, "columns")
	d, dv := rapid.IntRange(1, 5).Draw(t, "d"), rapid.IntRange(1, 5).Draw(t, "dv")
	a := attend{scale: rapid.SampledFrom([]float64{1, 0.125, 4}).Draw(t, "scale")}
	if rapid.Bool().Draw(t, "quantized") {
		a.format = reference.Format{GroupSize: rapid.SampledFrom(groupSizes).Draw(t, "group size"), Bits: rapid.SampledFrom(bitWidths).Draw(t, "bits")}
		d, dv = a.format.GroupSize, 2*a.format.GroupSize
	}
	values := rapid.Float32Range(-3, 3)
	draw := func(what string, h, s, d int) ring.Array {
		shape := [4]int{rows, h, s, d}
		size := rows * h * s * d
		some := rapid.SliceOfN(values, 1, 20).Draw(t, what) // repeated: 20 numbers shrink faster than thousands
		return array(dtype, shape, slices.Repeat(some, size/len(some)+1)[:size])
	}
	a.queries = draw("query numbers", heads, n, d)
	a.kv = ring.KV{Keys: ring.Planes{draw("key numbers", kvHeads, columns, d)}, Values: ring.Planes{draw("value numbers", kvHeads, columns, dv)}}
	if a.format != (reference.Format{}) {
		for _, side := range []*ring.Planes{&a.kv.Keys, &a.kv.Values} {
			p, err := reference.Quantize((*side)[0], a.format.GroupSize, a.format.Bits)
			if err != nil {
				t.Fatal(err)
			}
			*side = p
		}
	}
	switch rapid.SampledFrom([]string{"none", "null", "one row", "a row each"}).Draw(t, "mask") {
	case "null":
		a.mask = &ring.Mask{}
	case "one row":
		a.mask = drawMask(t, 1, n, columns)
	case "a row each":
		a.mask = drawMask(t, rows, n, columns)
	}
	return a
}

func drawMask(t *rapid.T, b, n, s int) *ring.Mask {
	return &ring.Mask{B: b, N: n, S: s, Data: rapid.SliceOfN(rapid.Bool(), b*n*s, b*n*s).Draw(t, "selected")}
}

// Attend rounds once, to float32: far closer than the 1e-5 that is asked for.
func TestAttendAgainstTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawAttend(t)
		got, err := a.run()
		want := a.want(t)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d elements, %v; want %d", len(got), err, len(want))
		}
		_, values := a.stored()
		largest := 0.0
		for _, v := range floats(values) {
			largest = max(largest, math.Abs(float64(v)))
		}
		worst := -1
		for i := range want {
			if !(math.Abs(float64(got[i])-want[i]) <= 1e-7*largest) {
				worst = i
			}
		}
		if worst >= 0 {
			t.Fatalf("element %d is %v, want %v (largest value %v)", worst, got[worst], want[worst], largest)
		}
	})
}

// What a column holds that no query selects has no influence on any bit.
func TestAttendIgnoresWhatIsNotSelected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawAttend(t)
		before, err := a.run()
		if err != nil {
			t.Fatal(err)
		}
		poison := rapid.SampledFrom([]float32{nan, inf, -inf}).Draw(t, "poison")
		rows, columns := a.kv.Keys[0].Shape[0], a.kv.Keys[0].Columns()
		for _, side := range []ring.Planes{a.kv.Keys, a.kv.Values} {
			for _, p := range side {
				if p.DType == ring.Uint32 {
					continue // scales and biases are enough
				}
				head := p.Shape[1]
				bytesPerColumn := p.Shape[3] * p.DType.Size()
				for row := range rows {
					for c := range columns {
						seen := slices.ContainsFunc(slices.Collect(count(a.queries.Shape[2])), func(q int) bool { return a.selects(row, q, c) })
						for h := 0; h < head && !seen; h++ {
							at := ((row*head+h)*columns + c) * bytesPerColumn
							copy(p.Data[at:], array(p.DType, [4]int{}, slices.Repeat([]float32{poison}, p.Shape[3])).Data)
						}
					}
				}
			}
		}
		after, err := a.run()
		if err != nil || !slices.Equal(before, after) {
			t.Fatalf("%v became %v, %v", before, after, err)
		}
	})
}

// count yields 0 to n-1.
func count(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := 0; i < n && yield(i); i++ {
		}
	}
}

// Two query heads share a key/value head. Scores of 0 and ln 3 weigh 1 and 3.
func TestAttendByHand(t *testing.T) {
	ln3 := float32(math.Log(3))
	a := attend{
		queries: array(ring.Float32, [4]int{1, 4, 1, 1}, []float32{0, 1, 0, 2}),
		kv: ring.KV{
			Keys:   ring.Planes{array(ring.Float32, [4]int{1, 2, 3, 1}, []float32{0, ln3, nan, 0, ln3 / 2, inf})},
			Values: ring.Planes{array(ring.Float32, [4]int{1, 2, 3, 2}, []float32{4, 8, 0, 0, nan, nan, 16, 0, 32, 4, inf, inf})},
		},
		mask:  &ring.Mask{B: 1, N: 1, S: 3, Data: []bool{true, true, false}},
		scale: 1,
	}
	got, err := a.run()
	want := []float32{2, 4, 1, 2, 24, 2, 28, 3}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v, %v", got, err)
	}
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 1e-6*float64(want[i]) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

// Scores whose exponentials no float64 can hold are as good as any other.
func TestAttendOfLargeScores(t *testing.T) {
	for _, large := range []float32{1000, -1000} {
		a := attend{
			queries: array(ring.Float32, [4]int{1, 1, 1, 1}, []float32{1}),
			kv: ring.KV{
				Keys:   ring.Planes{array(ring.Float32, [4]int{1, 1, 2, 1}, []float32{large, large + 1})},
				Values: ring.Planes{array(ring.Float32, [4]int{1, 1, 2, 1}, []float32{0, 1})},
			},
			scale: 1,
		}
		want := float32(math.E / (1 + math.E))
		if got, err := a.run(); err != nil || got[0] != want {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}
}

func TestAttendOfNothingSelectedIsZero(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawAttend(t)
		rows, n, columns := a.queries.Shape[0], a.queries.Shape[2], a.kv.Keys[0].Columns()
		a.mask = &ring.Mask{B: rows, N: n, S: columns, Data: make([]bool, rows*n*columns)}
		got, err := a.run()
		if err != nil || n > 0 && slices.ContainsFunc(got, func(f float32) bool { return math.Float32bits(f) != 0 }) {
			t.Fatalf("%v, %v, want zeros", got, err)
		}
	})
}

func TestAttendRefuses(t *testing.T) {
	of := func(t ring.DType, b, h, s, d int) ring.Array {
		return array(t, [4]int{b, h, s, d}, make([]float32, b*h*s*d))
	}
	one := func(b, h, s, d int) ring.Planes { return ring.Planes{of(ring.BFloat16, b, h, s, d)} }
	good := attend{
		queries: of(ring.BFloat16, 2, 4, 3, 32),
		kv:      ring.KV{Keys: one(2, 2, 5, 32), Values: one(2, 2, 5, 8)},
		mask:    &ring.Mask{B: 2, N: 3, S: 5, Data: make([]bool, 30)},
		scale:   1,
	}
	if _, err := good.run(); err != nil {
		t.Fatal(err)
	}
	const op = "attend"
	for _, c := range []struct {
		name   string
		change func(a *attend)
		want   error
	}{
		{"no planes", func(a *attend) { a.kv = ring.KV{} }, &ring.EmptyError{Op: op}},
		{"no columns", func(a *attend) { a.kv = ring.KV{Keys: one(2, 2, 0, 32), Values: one(2, 2, 0, 8)} }, &ring.EmptyError{Op: op}},
		{"two planes of keys", func(a *attend) { a.kv.Keys = append(a.kv.Keys, a.kv.Keys...) },
			&ring.ShapeError{Op: op, What: "number of planes of the keys", Got: []int{2}, Want: []int{1}}},
		{"no values", func(a *attend) { a.kv.Values = nil }, &ring.ShapeError{Op: op, What: "number of planes of the values", Got: []int{0}, Want: []int{1}}},
		{"plain planes of a quantized cache", func(a *attend) { a.format = reference.Format{GroupSize: 32, Bits: 4} },
			&ring.ShapeError{Op: "dequantize", What: "number of planes", Got: []int{1}, Want: []int{3}}},
		{"words for keys", func(a *attend) { a.kv.Keys = ring.Planes{{DType: ring.Uint32, Shape: [4]int{2, 2, 5, 32}}} }, &ring.DTypeError{Op: op, Got: ring.Uint32}},
		{"words for queries", func(a *attend) { a.queries.DType = ring.Uint32 }, &ring.DTypeError{Op: op, Got: ring.Uint32}},
		{"rows of queries", func(a *attend) { a.queries = of(ring.BFloat16, 1, 4, 3, 32) }, &ring.RowsError{Op: op, What: "the array of queries", Got: 1, Want: 2}},
		{"rows of values", func(a *attend) { a.kv.Values = one(1, 2, 5, 8) }, &ring.RowsError{Op: op, What: "the array of values", Got: 1, Want: 2}},
		{"no heads", func(a *attend) { a.kv = ring.KV{Keys: one(2, 0, 5, 32), Values: one(2, 0, 5, 8)} },
			&ring.ShapeError{Op: op, What: "shape of the keys", Got: []int{2, 0, 5, 32}, Want: []int{2, 1, 5, 32}}},
		{"no width", func(a *attend) { a.kv.Keys = one(2, 2, 5, 0) },
			&ring.ShapeError{Op: op, What: "shape of the keys", Got: []int{2, 2, 5, 0}, Want: []int{2, 2, 5, 1}}},
		{"columns of values", func(a *attend) { a.kv.Values = one(2, 2, 4, 8) },
			&ring.ShapeError{Op: op, What: "shape of the values", Got: []int{2, 2, 4, 8}, Want: []int{2, 2, 5, 8}}},
		{"width of queries", func(a *attend) { a.queries = of(ring.BFloat16, 2, 4, 3, 16) },
			&ring.ShapeError{Op: op, What: "shape of the queries", Got: []int{2, 4, 3, 16}, Want: []int{2, 4, 3, 32}}},
		{"three query heads", func(a *attend) { a.queries = of(ring.BFloat16, 2, 3, 3, 32) },
			&ring.ShapeError{Op: op, What: "number of query heads (any multiple will do)", Got: []int{3}, Want: []int{2}}},
		{"rows of the mask", func(a *attend) { a.mask = &ring.Mask{B: 3, N: 3, S: 5, Data: make([]bool, 45)} }, &ring.RowsError{Op: op, What: "the mask", Got: 3, Want: 2}},
		{"columns of the mask", func(a *attend) { a.mask = &ring.Mask{B: 2, N: 3, S: 4, Data: make([]bool, 24)} },
			&ring.ShapeError{Op: op, What: "shape of the mask", Got: []int{2, 1, 3, 4}, Want: []int{2, 1, 3, 5}}},
		{"elements of the mask", func(a *attend) { a.mask = &ring.Mask{B: 2, N: 3, S: 5} },
			&ring.ShapeError{Op: op, What: "number of elements of the mask", Got: []int{0}, Want: []int{30}}},
	} {
		a := good
		c.change(&a)
		out, err := a.run()
		if out != nil || !sameError(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// Whatever the arrays are, the answer is a whole result or an error.
func TestAnyArraysAreAnsweredOrRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string) ring.Array {
			a := ring.Array{DType: rapid.SampledFrom([]ring.DType{0, ring.BFloat16, ring.Float32, ring.Uint32, 9}).Draw(t, what+" type")}
			extents := rapid.SampledFrom([]int{1, 2, 0, -1, 4, 32, math.MaxInt, math.MinInt})
			size := a.DType.Size()
			for i := range a.Shape {
				a.Shape[i] = extents.Draw(t, what+" extent")
				size *= a.Shape[i]
			}
			if size >= 0 && size < 1<<20 {
				a.Data = make([]byte, size)
			}
			return a
		}
		planes := func(what string) ring.Planes {
			p := make(ring.Planes, rapid.IntRange(0, 3).Draw(t, what+" planes"))
			for i := range p {
				p[i] = draw(what)
			}
			return p
		}
		a := attend{queries: draw("queries"), kv: ring.KV{Keys: planes("keys"), Values: planes("values")}}
		a.format = rapid.SampledFrom([]reference.Format{{}, {GroupSize: 32, Bits: 2}, {GroupSize: -1, Bits: 9}}).Draw(t, "format")
		mask := rapid.SampledFrom([]int{-1, 0, 1, 2, math.MaxInt})
		a.mask = &ring.Mask{B: mask.Draw(t, "B"), N: mask.Draw(t, "N"), S: mask.Draw(t, "S"), Data: make([]bool, 1)}
		message := ""
		if out, err := a.run(); (out == nil) == (err == nil) {
			message = fmt.Sprintf("attend: %v, %v", out, err)
		}
		if back, err := reference.Dequantize(a.kv.Keys, a.format.GroupSize, a.format.Bits); back.IsZero() == (err == nil) {
			message = fmt.Sprintf("dequantize: %v, %v", back, err)
		}
		if p, err := reference.Quantize(a.queries, a.format.GroupSize, a.format.Bits); (p == nil) == (err == nil) {
			message = fmt.Sprintf("quantize: %v, %v", p, err)
		}
		if message != "" {
			t.Fatal(message)
		}
	})
}

func BenchmarkAttend(b *testing.B) {
	for _, format := range []reference.Format{{}, {GroupSize: 64, Bits: 4}} {
		b.Run(fmt.Sprint(format), func(b *testing.B) {
			side := func() ring.Planes {
				a := array(ring.BFloat16, [4]int{1, 8, 1024, 128}, slices.Repeat([]float32{1, -2, 0.5, 3}, 1<<18))
				if format == (reference.Format{}) {
					return ring.Planes{a}
				}
				p, err := reference.Quantize(a, format.GroupSize, format.Bits)
				if err != nil {
					b.Fatal(err)
				}
				return p
			}
			a := attend{queries: array(ring.BFloat16, [4]int{1, 16, 1, 128}, make([]float32, 16*128)), kv: ring.KV{Keys: side(), Values: side()}, scale: 0.1, format: format}
			for b.Loop() {
				if _, err := a.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
