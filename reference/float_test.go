package reference_test

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

var floatTypes = []ring.DType{ring.BFloat16, ring.Float16, ring.Float32}

// floatType describes an IEEE type by its number of exponent and fraction bits.
type floatType struct {
	t                  ring.DType
	exponent, fraction int
	nan                uint32
}

var narrow = []floatType{{ring.BFloat16, 8, 7, 0x7FC0}, {ring.Float16, 5, 10, 0x7E00}}

func (f floatType) inf() uint32 { return (1<<f.exponent - 1) << f.fraction }

// value is what a positive finite pattern means by IEEE 754's definition. The
// pattern of infinity gives the number that would follow the largest one.
func (f floatType) value(u uint32) float64 {
	e, m := int(u>>f.fraction), float64(u&(1<<f.fraction-1))
	bias := 1<<(f.exponent-1) - 1
	if e == 0 {
		return math.Ldexp(m, 1-bias-f.fraction)
	}
	return math.Ldexp(m+float64(int(1)<<f.fraction), e-bias-f.fraction)
}

func TestFloatFromBitsOfEveryPattern(t *testing.T) {
	for _, f := range narrow {
		for u := range uint32(1 << 15) {
			got, negative := reference.FloatFromBits(f.t, u), reference.FloatFromBits(f.t, u|0x8000)
			want := f.value(u)
			switch {
			case u > f.inf():
				want = math.NaN()
			case u == f.inf():
				want = math.Inf(1)
			}
			same := float64(got) == want && math.Float32bits(negative) == math.Float32bits(got)|1<<31
			if math.IsNaN(want) {
				same = got != got && negative != negative
			}
			if !same {
				t.Fatalf("%v %04x is %v, and %v with the sign bit, want ±%v", f.t, u, got, negative, want)
			}
		}
	}
}

// Rounding can change its mind at the patterns' values and half way between
// them only, so these and their neighbours are all there is to try.
func TestFloatBitsAtEveryBoundary(t *testing.T) {
	for _, f := range narrow {
		for u := range f.inf() {
			half := float32((f.value(u) + f.value(u+1)) / 2) // exact: float32 has more bits
			if f.t == ring.BFloat16 && u == 0 {
				half = math.Float32frombits(0x8000) // a subnormal
			}
			even := u + u&1
			tries := []struct {
				f    float32
				want uint32
			}{
				{float32(f.value(u)), u},
				{math.Nextafter32(half, 0), u},
				{half, even},
				{math.Nextafter32(half, float32(math.Inf(1))), u + 1},
			}
			for _, try := range tries {
				if got := reference.FloatBits(f.t, try.f); got != try.want {
					t.Fatalf("%v(%g) is %04x, want %04x", f.t, try.f, got, try.want)
				}
				if got := reference.FloatBits(f.t, -try.f); got != try.want|0x8000 {
					t.Fatalf("%v(%g) is %04x, want %04x", f.t, -try.f, got, try.want|0x8000)
				}
			}
		}
		for _, huge := range []float64{math.MaxFloat32, math.Inf(1)} {
			if got := reference.FloatBits(f.t, float32(huge)); got != f.inf() {
				t.Errorf("%v(%g) is %04x, want infinity, %04x", f.t, huge, got, f.inf())
			}
		}
	}
}

func TestFloatBitsOfNaN(t *testing.T) {
	want := map[ring.DType]uint32{ring.BFloat16: 0x7FC0, ring.Float16: 0x7E00, ring.Float32: 0x7FC00000}
	for _, dtype := range floatTypes {
		for _, nan := range []uint32{0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF, 0xFF800001, 0xFFC00000, 0xFFFFFFFF} {
			if got := reference.FloatBits(dtype, math.Float32frombits(nan)); got != want[dtype] {
				t.Errorf("%v(NaN %08x) is %x, want %x", dtype, nan, got, want[dtype])
			}
		}
	}
}

func TestFloat32BitsAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.Uint32().Draw(t, "bits")
		f := reference.FloatFromBits(ring.Float32, u)
		if got := reference.FloatBits(ring.Float32, f); got != u && f == f {
			t.Fatalf("%08x became %08x", u, got)
		}
	})
}

func TestFloatBitsOfNoFloatType(t *testing.T) {
	for name, call := range map[string]func(){
		"FloatBits":     func() { reference.FloatBits(ring.Uint32, 1) },
		"FloatFromBits": func() { reference.FloatFromBits(ring.Uint32, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of uint32 did not panic", name)
				}
			}()
			call()
		}()
	}
}

func TestFloats(t *testing.T) {
	values := []float32{1.5, -2, 0, 0x1p-14}
	for _, dtype := range floatTypes {
		got, err := reference.Floats(array(dtype, [4]int{1, 2, 1, 2}, values))
		if err != nil || !slices.Equal(got, values) {
			t.Errorf("%v: %v, %v, want %v", dtype, got, err, values)
		}
	}
}

func TestFloatsRefuses(t *testing.T) {
	for name, a := range map[string]ring.Array{
		"no array":             {},
		"words":                {DType: ring.Uint32, Shape: [4]int{1, 1, 1, 1}, Data: make([]byte, 4)},
		"a byte too few":       {DType: ring.BFloat16, Shape: [4]int{1, 1, 1, 2}, Data: make([]byte, 3)},
		"a byte too many":      {DType: ring.Float32, Shape: [4]int{1, 1, 1, 1}, Data: make([]byte, 5)},
		"bytes without axis":   {DType: ring.Float32, Shape: [4]int{1, 0, 1, 1}, Data: make([]byte, 4)},
		"a negative extent":    {DType: ring.Float16, Shape: [4]int{-1, 1, 1, -1}, Data: make([]byte, 2)},
		"a product too large":  {DType: ring.Float16, Shape: [4]int{1 << 30, 1 << 30, 1 << 30, 1 << 30}},
		"extents beyond int32": {DType: ring.Float16, Shape: [4]int{1 << 31, 0, 1, 1}},
	} {
		_, err := reference.Floats(a)
		var dtype *ring.DTypeError
		var shape *ring.ShapeError
		wantDType := a.DType == 0 || a.DType == ring.Uint32
		if errors.As(err, &dtype) != wantDType || errors.As(err, &shape) == wantDType {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// array makes an array of values, each rounded to t.
func array(t ring.DType, shape [4]int, values []float32) ring.Array {
	a := ring.Array{DType: t, Shape: shape}
	for _, v := range values {
		u := reference.FloatBits(t, v)
		if t.Size() == 2 {
			a.Data = binary.LittleEndian.AppendUint16(a.Data, uint16(u))
		} else {
			a.Data = binary.LittleEndian.AppendUint32(a.Data, u)
		}
	}
	return a
}
