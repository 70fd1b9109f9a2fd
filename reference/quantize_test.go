package reference_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"example.com/ringcheck/ci/quantize/groups"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

var (
	groupSizes = []int{32, 64, 128}
	bitWidths  = []int{2, 3, 4, 5, 6, 8}
	inf        = float32(math.Inf(1))
	nan        = float32(math.NaN())
)

// The bytes are what MLX 0.32.4 makes on the CPU, but that a NaN is the one
// NaN of its type. D1 to D11 are the groups on which MLX's own implementations
// part: on a GPU it makes other bytes of most of them.
var vectors = []struct {
	name   string
	t      ring.DType
	bits   int
	values []float32 // repeated, to make a group of 32
	scale  uint32
	bias   uint32
	packed string // repeated
}{
	{"D1 element ties", ring.BFloat16, 2, []float32{-3, -2.5, -0.5, 0}, 0x3F80, 0xC040, "e0"},
	{"D2 a tie of zero", ring.BFloat16, 4, []float32{-5, 1, -2, 0}, 0x3ED5, 0xC0A0, "e0c7"},
	{"D2 at 2 bits", ring.BFloat16, 2, []float32{-5, 1, -2, 0}, 0x4020, 0xC0A0, "98"},
	{"D2 at 8 bits", ring.BFloat16, 8, []float32{-5, 1, -2, 0}, 0x3CC1, 0xC0A0, "00fe7fd4"},
	{"D3 all negative", ring.BFloat16, 4, []float32{-1, -2, -1.5, -1.25}, 0x3D89, 0xC000, "0fb7"},
	{"D4 all equal, negative", ring.BFloat16, 8, []float32{-1}, 0xB3D7, 0xBF80, "00"},
	{"D5 a NaN", ring.BFloat16, 8, []float32{nan, 1, -2, 0.5}, 0x3C41, 0xC000, "00ff00d4"},
	{"D6 all NaN, bfloat16", ring.BFloat16, 8, []float32{nan}, 0x7FC0, 0xFF80, "00"},
	{"D6 all NaN, float16", ring.Float16, 8, []float32{nan}, 0x7E00, 0xFC00, "00"},
	{"D6 all NaN, float32", ring.Float32, 8, []float32{nan}, 0x7FC00000, 0xFF800000, "00"},
	{"D7 infinite, bfloat16", ring.BFloat16, 8, []float32{inf, 1, -2, 0.5}, 0x7FC0, 0x7F80, "00"},
	{"D7 infinite, float16", ring.Float16, 8, []float32{inf, 1, -2, 0.5}, 0x7E00, 0x7C00, "00"},
	{"D7 infinite, float32", ring.Float32, 8, []float32{inf, 1, -2, 0.5}, 0x7FC00000, 0x7F800000, "00"},
	{"D8 huge, all equal", ring.BFloat16, 8, []float32{1e33}, 0x8000, 0x7645, "00"},
	{"D8 huge, negative", ring.Float32, 8, []float32{-1e33}, 0x80000000, 0xF6453719, "00"},
	{"D9 subnormal, float32", ring.Float32, 8, []float32{-2e-40, 1e-40}, 0x33D6BF95, 0, "00"},
	{"D9 subnormal, bfloat16", ring.BFloat16, 8, []float32{-2e-40, 1e-40}, 0x33D7, 0, "00"},
	{"D9 subnormal, float16", ring.Float16, 8, []float32{-2e-7, 1e-7}, 0x0002, 0x8003, "0003"},
	{"D10 half epsilon", ring.Float32, 8, []float32{0.5 * float32(1e-7), 0, -0.5 * float32(1e-7), 0}, 0xB3D6BF95, 0, "00"},
	{"D11 symmetric, bfloat16", ring.BFloat16, 8, []float32{1, -1, 0.5, -0.5}, 0xBC01, 0x3F80, "00fe40be"},
	{"D11 symmetric, float16", ring.Float16, 8, []float32{1, -1, 0.5, -0.5}, 0xA008, 0x3C00, "00fe40be"},
	{"D11 symmetric, float32", ring.Float32, 8, []float32{1, -1, 0.5, -0.5}, 0xBC010204, 0x3F800000, "00fe40be"},
	{"zeros, bfloat16", ring.BFloat16, 4, []float32{0}, 0xB3D7, 0, "00"},
	{"zeros, float16", ring.Float16, 4, []float32{0}, 0x8002, 0, "00"},
	{"zeros, float32", ring.Float32, 4, []float32{0}, 0xB3D6BF95, 0, "00"},
	{"zeros of both signs", ring.BFloat16, 4, []float32{float32(math.Copysign(0, -1)), 0}, 0xB3D7, 0, "00"},
	{"all equal, positive", ring.BFloat16, 5, []float32{1.5}, 0xB3D7, 0x3FC0, "00"},
	{"the range overflows, float32", ring.Float32, 4, []float32{3e38, -3e38, 0, 1}, 0xFF800000, 0, "00"},
	{"the range overflows, bfloat16", ring.BFloat16, 4, []float32{3e38, -3e38, 0, 1}, 0xFF80, 0, "00"},
	{"the largest float16", ring.Float16, 6, []float32{65504, -65504, 1, 0}, 0xE7FF, 0x7BFF, "c00f82"},
	{"packing 3 bits", ring.BFloat16, 3, []float32{-7, 0, 0, -1, -2, -3, -4, -5}, 0x3F80, 0xC0E0, "f85d4e"},
	{"packing 5 bits", ring.BFloat16, 5, []float32{-31, 0, -16, -9, -2, -27, -20, -13}, 0x3F80, 0xC1F8, "e03fdbc992"},
	{"packing 6 bits", ring.BFloat16, 6, []float32{-63, 0, -48, -41, -34, -27, -20, -13}, 0x3F80, 0xC27C, "c0ff581db9ca"},
}

func TestQuantizeVectors(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			group := slices.Repeat(v.values, 32/len(v.values))
			p, err := reference.Quantize(array(v.t, [4]int{1, 1, 1, 32}, group), 32, v.bits)
			if err != nil {
				t.Fatal(err)
			}
			unit, _ := hex.DecodeString(v.packed)
			packed := bytes.Repeat(unit, 4*v.bits/len(unit))
			if !bytes.Equal(p[0].Data, packed) {
				t.Errorf("packed %x, want %x", p[0].Data, packed)
			}
			if scale := bits(p[1])[0]; scale != v.scale {
				t.Errorf("scale %x, want %x", scale, v.scale)
			}
			if bias := bits(p[2])[0]; bias != v.bias {
				t.Errorf("bias %x, want %x", bias, v.bias)
			}
		})
	}
}

// Of 3·(1 + 1 ulp) the last place is a tie: rounded, it is 3 + 4 ulp.
func TestDequantizeRoundsTwice(t *testing.T) {
	for _, v := range []struct {
		t                 ring.DType
		scale, bias, want uint32
	}{
		{ring.BFloat16, 0x3F81, 0xC040, 0x3D00},
		{ring.Float16, 0x3C01, 0xC200, 0x1C00},
		{ring.Float32, 0x3F800001, 0xC0400000, 0x35000000},
	} {
		one := func(u uint32) ring.Array {
			return array(v.t, [4]int{1, 1, 1, 1}, []float32{reference.FloatFromBits(v.t, u)})
		}
		codes := ring.Array{DType: ring.Uint32, Shape: [4]int{1, 1, 1, 2}, Data: bytes.Repeat([]byte{0xFF}, 8)} // 32 threes
		a, err := reference.Dequantize(ring.Planes{codes, one(v.scale), one(v.bias)}, 32, 2)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := bits(a), slices.Repeat([]uint32{v.want}, 32); !slices.Equal(got, want) {
			t.Errorf("%v: %x, want %x", v.t, got, want)
		}
	}
}

// Values of which each is a whole number of steps of a power of two, with both
// ends of the range among them, lose nothing.
func TestDequantizeIsTheInverseOnAGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dtype, groupSize, width := drawFormat(t)
		top := 1<<width - 1
		zero := rapid.IntRange(0, top).Draw(t, "code of zero")
		step := math.Ldexp(1, rapid.IntRange(-20, 7).Draw(t, "exponent"))
		codes := rapid.SliceOfN(rapid.IntRange(0, top), groupSize-2, groupSize-2).Draw(t, "codes")
		codes = rapid.Permutation(append(codes, 0, top)).Draw(t, "order")
		values := make([]float32, groupSize)
		for i, c := range codes {
			values[i] = float32(step * float64(c-zero))
		}
		a := array(dtype, [4]int{1, 1, 1, groupSize}, values)
		p, back, again := roundTrip(t, a, groupSize, width)
		if !bytes.Equal(back.Data, a.Data) || !equal(p, again) {
			t.Fatalf("%v became %v, and its planes\n%x became\n%x", values, floats(back), p, again)
		}
	})
}

// The end of the range that is farther from zero comes back unchanged; a group
// of one value has no other.
func TestDequantizeKeepsAGroupOfOneValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dtype, groupSize, width := drawFormat(t)
		value := float32(rapid.Float32Range(1e-6, 3e4).Draw(t, "value"))
		if rapid.Bool().Draw(t, "negative") {
			value = -value
		}
		a := array(dtype, [4]int{1, 1, 1, groupSize}, slices.Repeat([]float32{value}, groupSize))
		p, back, again := roundTrip(t, a, groupSize, width)
		if !bytes.Equal(back.Data, a.Data) || !equal(p, again) {
			t.Fatalf("%v became %v, and its planes\n%x became\n%x", value, floats(back), p, again)
		}
	})
}

// Each column, and each group in it, is quantized on its own.
func TestQuantizeGroupsAreIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dtype, groupSize, width := drawFormat(t)
		shape := [4]int{rapid.IntRange(0, 2).Draw(t, "b"), rapid.IntRange(0, 2).Draw(t, "h"), rapid.IntRange(0, 3).Draw(t, "s"), groupSize * rapid.IntRange(1, 2).Draw(t, "groups a column")}
		n := shape[0] * shape[1] * shape[2] * shape[3] / groupSize
		a := drawGroups(t, dtype, groupSize, width, n)
		single, _, _ := roundTrip(t, a, groupSize, width)
		a.Shape = shape
		p, back, _ := roundTrip(t, a, groupSize, width)
		wantShapes := [][4]int{shape, shape, shape, shape}
		wantShapes[0][3] = shape[3] * width / 32
		wantShapes[1][3], wantShapes[2][3] = shape[3]/groupSize, shape[3]/groupSize
		got := [][4]int{p[0].Shape, p[1].Shape, p[2].Shape, back.Shape}
		types := []ring.DType{p[0].DType, p[1].DType, p[2].DType, back.DType}
		message := ""
		switch {
		case !slices.Equal(got, wantShapes):
			message = fmt.Sprintf("shapes are %v, want %v", got, wantShapes)
		case !slices.Equal(types, []ring.DType{ring.Uint32, dtype, dtype, dtype}):
			message = fmt.Sprintf("types are %v", types)
		case !equal(p, single):
			message = fmt.Sprintf("planes are\n%x, group by group\n%x", p, single)
		}
		if message != "" {
			t.Fatal(message)
		}
	})
}

// The order of a group's elements is the order of its codes and nothing else.
func TestQuantizeElementsAreExchangeable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dtype, groupSize, width := drawFormat(t)
		a := drawGroups(t, dtype, groupSize, width, len(groups.Kinds))
		turn := rapid.IntRange(1, groupSize-1).Draw(t, "turn")
		turned := ring.Array{DType: a.DType, Shape: a.Shape}
		rowBytes := groupSize * dtype.Size()
		for row := range slices.Chunk(a.Data, rowBytes) {
			turned.Data = append(turned.Data, row[turn*dtype.Size():]...)
			turned.Data = append(turned.Data, row[:turn*dtype.Size()]...)
		}
		p, _, _ := roundTrip(t, a, groupSize, width)
		q, _, _ := roundTrip(t, turned, groupSize, width)
		var want []uint32
		for codes := range slices.Chunk(unpack(p[0], width), groupSize) {
			want = append(append(want, codes[turn:]...), codes[:turn]...)
		}
		if got := unpack(q[0], width); !equal(p[1:], q[1:]) || !slices.Equal(got, want) {
			t.Fatalf("planes of %x\n%x, turned by %d\n%x", a.Data, p, turn, q)
		}
	})
}

// A group of the other sign has the same codes, and scale and bias of the other
// sign: unless both ends are equally far from zero, where the upper one counts.
func TestQuantizeIsSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dtype, groupSize, width := drawFormat(t)
		a := drawGroups(t, dtype, groupSize, width, len(groups.Kinds))
		negated := ring.Array{DType: dtype, Shape: a.Shape, Data: bytes.Clone(a.Data)}
		for i := dtype.Size() - 1; i < len(a.Data); i += dtype.Size() {
			negated.Data[i] ^= 0x80
		}
		p, _, _ := roundTrip(t, a, groupSize, width)
		q, _, _ := roundTrip(t, negated, groupSize, width)
		message := ""
		groupBytes := groupSize * width / 8
		for g, group := range slices.Collect(slices.Chunk(floats(a), groupSize)) {
			group = slices.DeleteFunc(group, func(f float32) bool { return f != f })
			if len(group) == 0 {
				continue
			}
			if low, high := slices.Min(group), slices.Max(group); low == high || low == -high {
				continue
			}
			codes, negatedCodes := p[0].Data[g*groupBytes:][:groupBytes], q[0].Data[g*groupBytes:][:groupBytes]
			scale, negatedScale := floats(p[1])[g], floats(q[1])[g]
			bias, negatedBias := floats(p[2])[g], floats(q[2])[g]
			opposite := func(a, b float32) bool { return a == -b || a != a && b != b }
			if !bytes.Equal(codes, negatedCodes) || !opposite(scale, negatedScale) || !opposite(bias, negatedBias) {
				message = fmt.Sprintf("%v: codes %x, scale %v, bias %v; negated codes %x, scale %v, bias %v", group, codes, scale, bias, negatedCodes, negatedScale, negatedBias)
			}
		}
		if message != "" {
			t.Fatal(message)
		}
	})
}

func TestQuantizeRefuses(t *testing.T) {
	a := array(ring.BFloat16, [4]int{1, 1, 2, 64}, make([]float32, 128))
	with := func(change func(a *ring.Array)) ring.Array {
		a := a
		change(&a)
		return a
	}
	for _, c := range []struct {
		name            string
		a               ring.Array
		groupSize, bits int
		want            error
	}{
		{"no array", ring.Array{}, 64, 4, &ring.DTypeError{Op: "quantize"}},
		{"words", with(func(a *ring.Array) { a.DType = ring.Uint32 }), 64, 4, &ring.DTypeError{Op: "quantize", Got: ring.Uint32}},
		{"bytes missing", with(func(a *ring.Array) { a.Data = a.Data[1:] }), 64, 4,
			&ring.ShapeError{Op: "quantize", What: "number of bytes of bfloat16 of shape [1 1 2 64]", Got: []int{255}, Want: []int{256}}},
		{"group of 16", a, 16, 4, &ring.QuantError{Op: "quantize", GroupSize: 16, Bits: 4, Dim: 64}},
		{"group of 0", a, 0, 4, &ring.QuantError{Op: "quantize", GroupSize: 0, Bits: 4, Dim: 64}},
		{"7 bits", a, 32, 7, &ring.QuantError{Op: "quantize", GroupSize: 32, Bits: 7, Dim: 64}},
		{"group wider than a column", a, 128, 4, &ring.QuantError{Op: "quantize", GroupSize: 128, Bits: 4, Dim: 64}},
	} {
		p, err := reference.Quantize(c.a, c.groupSize, c.bits)
		if p != nil || !sameError(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestDequantizeRefuses(t *testing.T) {
	good, err := reference.Quantize(array(ring.BFloat16, [4]int{1, 1, 2, 64}, make([]float32, 128)), 32, 4)
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(p ring.Planes)) ring.Planes {
		p := slices.Clone(good)
		change(p)
		return p
	}
	const op = "dequantize"
	for _, c := range []struct {
		name            string
		p               ring.Planes
		groupSize, bits int
		want            error
	}{
		{"two planes", good[:2], 32, 4, &ring.ShapeError{Op: op, What: "number of planes", Got: []int{2}, Want: []int{3}}},
		{"codes that are floats", with(func(p ring.Planes) { p[0] = p[1] }), 32, 4, &ring.DTypeError{Op: op, Got: ring.BFloat16, Want: ring.Uint32}},
		{"codes missing", with(func(p ring.Planes) { p[0].Data = p[0].Data[4:] }), 32, 4,
			&ring.ShapeError{Op: op, What: "number of bytes of uint32 of shape [1 1 2 8]", Got: []int{60}, Want: []int{64}}},
		{"scales that are words", with(func(p ring.Planes) { p[1] = p[0] }), 32, 4, &ring.DTypeError{Op: op, Got: ring.Uint32}},
		{"biases of another type", with(func(p ring.Planes) { p[2].DType = ring.Float16 }), 32, 4, &ring.DTypeError{Op: op, Got: ring.Float16, Want: ring.BFloat16}},
		{"biases missing", with(func(p ring.Planes) { p[2].Data = nil }), 32, 4,
			&ring.ShapeError{Op: op, What: "number of bytes of bfloat16 of shape [1 1 2 2]", Got: []int{0}, Want: []int{8}}},
		{"7 bits", good, 32, 7, &ring.QuantError{Op: op, GroupSize: 32, Bits: 7, Dim: 64}},
		{"group of 1", good, 1, 4, &ring.QuantError{Op: op, GroupSize: 1, Bits: 4, Dim: 2}},
		{"biases of another shape", with(func(p ring.Planes) { p[2].Shape = [4]int{2, 1, 1, 2} }), 32, 4,
			&ring.ShapeError{Op: op, What: "shape of the biases", Got: []int{2, 1, 1, 2}, Want: []int{1, 1, 2, 2}}},
		{"another width in bits", good, 32, 8, &ring.ShapeError{Op: op, What: "shape of the packed codes", Got: []int{1, 1, 2, 8}, Want: []int{1, 1, 2, 16}}},
	} {
		a, err := reference.Dequantize(c.p, c.groupSize, c.bits)
		if !a.IsZero() || !sameError(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// One core of a small machine makes well over 50 MB of bfloat16 a second.
func BenchmarkQuantize(b *testing.B) { benchmark(b, false) }

func BenchmarkDequantize(b *testing.B) { benchmark(b, true) }

func benchmark(b *testing.B, back bool) {
	values := make([]float32, 1<<20)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range values {
		values[i] = float32(rng.NormFloat64())
	}
	a := array(ring.BFloat16, [4]int{1, 8, 1024, 128}, values)
	for _, width := range bitWidths {
		b.Run(fmt.Sprintf("%d bits", width), func(b *testing.B) {
			p, err := reference.Quantize(a, 64, width)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(a.Data)))
			b.ReportAllocs()
			for b.Loop() {
				if back {
					_, err = reference.Dequantize(p, 64, width)
				} else {
					_, err = reference.Quantize(a, 64, width)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// drawFormat draws a data type, a group size and a width in bits.
func drawFormat(t *rapid.T) (dtype ring.DType, groupSize, width int) {
	return rapid.SampledFrom(floatTypes).Draw(t, "dtype"), rapid.SampledFrom(groupSizes).Draw(t, "group size"), rapid.SampledFrom(bitWidths).Draw(t, "bits")
}

// drawGroups draws groups of every kind, one a column.
func drawGroups(t *rapid.T, dtype ring.DType, groupSize, width, n int) ring.Array {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	return groups.Make(rng, dtype, groupSize, width, n)
}

// roundTrip quantizes a, dequantizes the planes and quantizes the result.
func roundTrip(t *rapid.T, a ring.Array, groupSize, width int) (p ring.Planes, back ring.Array, again ring.Planes) {
	p, err := reference.Quantize(a, groupSize, width)
	if err == nil {
		back, err = reference.Dequantize(p, groupSize, width)
	}
	if err == nil {
		again, err = reference.Quantize(back, groupSize, width)
	}
	if err != nil {
		panic(err)
	}
	return p, back, again
}

// unpack returns the codes of a packed plane, by the definition of the stream:
// bit k of code i is bit i·width + k of the bytes.
func unpack(packed ring.Array, width int) []uint32 {
	codes := make([]uint32, len(packed.Data)*8/width)
	for i := range codes {
		for k := range width {
			at := i*width + k
			codes[i] |= uint32(packed.Data[at/8]>>(at%8)&1) << k
		}
	}
	return codes
}

// floats returns the elements of an array that is known to hold floats.
func floats(a ring.Array) []float32 {
	values, err := reference.Floats(a)
	if err != nil {
		panic(err)
	}
	return values
}

// bits returns the bits of an array's elements.
func bits(a ring.Array) []uint32 {
	all := make([]uint32, len(a.Data)/a.DType.Size())
	for i := range all {
		for k := range a.DType.Size() {
			all[i] |= uint32(a.Data[i*a.DType.Size()+k]) << (8 * k)
		}
	}
	return all
}

// equal compares planes of one shape.
func equal(p, q ring.Planes) bool {
	return slices.EqualFunc(p, q, func(a, b ring.Array) bool { return bytes.Equal(a.Data, b.Data) })
}

// sameError reports whether err is of want's type and says the same.
func sameError(err, want error) bool {
	return err != nil && fmt.Sprintf("%T", err) == fmt.Sprintf("%T", want) && err.Error() == want.Error()
}
