package reference

import (
	"encoding/binary"
	"fmt"
	"math"

	"example.com/ringcheck/reference/ring"
)

// FloatBits rounds f to the float type t, to nearest with ties to even, and
// returns the bits of the result. Subnormal results are kept, what is too
// large becomes infinity, and every NaN becomes the one quiet NaN of t: 7FC0,
// 7E00 or 7FC00000. It panics where t is no float type.
func FloatBits(t ring.DType, f float32) uint32 {
	switch t {
	case ring.BFloat16:
		return float32ToBFloat16(f)
	case ring.Float16:
		return float32ToFloat16(f)
	case ring.Float32:
		if f != f {
			return 0x7FC00000
		}
		return math.Float32bits(f)
	}
	panic("no float type: " + t.String())
}

// FloatFromBits returns the value of the bits u in the float type t, which
// float32 holds exactly; upper bits that t does not have are ignored. It
// panics where t is no float type.
func FloatFromBits(t ring.DType, u uint32) float32 {
	switch t {
	case ring.BFloat16:
		return math.Float32frombits(u << 16)
	case ring.Float16:
		return float16ToFloat32(u & 0xFFFF)
	case ring.Float32:
		return math.Float32frombits(u)
	}
	panic("no float type: " + t.String())
}

func float32ToBFloat16(f float32) uint32 {
	u := math.Float32bits(f)
	if f != f {
		return 0x7FC0
	}
	// A carry out of the fraction moves to the next exponent, from the largest
	// finite number to infinity: both are what rounding asks for.
	return (u + 0x7FFF + u>>16&1) >> 16
}

func float32ToFloat16(f float32) uint32 {
	u := math.Float32bits(f)
	sign, magnitude := u>>16&0x8000, u&0x7FFFFFFF
	switch {
	case f != f:
		return 0x7E00
	case magnitude >= 0x47800000: // 65536 and above
		return sign | 0x7C00
	case magnitude < 0x38800000: // below 2^-14: a multiple of 2^-24
		units := math.RoundToEven(float64(math.Float32frombits(magnitude)) * 0x1p24)
		return sign | uint32(units)
	}
	magnitude -= (127 - 15) << 23
	return sign | (magnitude+0xFFF+magnitude>>13&1)>>13
}

func float16ToFloat32(u uint32) float32 {
	sign, magnitude := u>>15<<31, u&0x7FFF
	switch {
	case magnitude < 0x0400: // zero or subnormal: a multiple of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(magnitude)*0x1p-24))
	case magnitude >= 0x7C00: // infinity or NaN
		return math.Float32frombits(sign | 0x7F800000 | magnitude<<13)
	}
	return math.Float32frombits(sign | (magnitude<<13 + (127-15)<<23))
}

// loadFloat reads the first element of data.
func loadFloat(t ring.DType, data []byte) float32 {
	if t == ring.Float32 {
		return math.Float32frombits(binary.LittleEndian.Uint32(data))
	}
	return FloatFromBits(t, uint32(binary.LittleEndian.Uint16(data)))
}

// storeFloat writes f as the first element of data.
func storeFloat(t ring.DType, data []byte, f float32) {
	if t == ring.Float32 {
		binary.LittleEndian.PutUint32(data, FloatBits(t, f))
	} else {
		binary.LittleEndian.PutUint16(data, uint16(FloatBits(t, f)))
	}
}

// Floats returns the elements of a, in order, which float32 holds exactly.
// The errors are a [ring.DTypeError] where a is no array of floats and a
// [ring.ShapeError] where its bytes are not those of its shape.
func Floats(a ring.Array) ([]float32, error) {
	if err := checkFloats("floats", a); err != nil {
		return nil, err
	}
	return floats(a), nil
}

// floats is [Floats] of an array that has been checked.
func floats(a ring.Array) []float32 {
	size := a.DType.Size()
	values := make([]float32, len(a.Data)/size)
	for i := range values {
		values[i] = loadFloat(a.DType, a.Data[i*size:])
	}
	return values
}

// checkFloats refuses an array that is not one of floats, or not whole.
func checkFloats(op string, a ring.Array) error {
	switch a.DType {
	case ring.BFloat16, ring.Float16, ring.Float32:
		return checkBytes(op, a)
	}
	return &ring.DTypeError{Op: op, Got: a.DType}
}

// checkBytes refuses an array whose bytes are not those of its shape.
func checkBytes(op string, a ring.Array) error {
	if want := sizeOf(a.DType, a.Shape[:]); want != len(a.Data) {
		what := fmt.Sprintf("number of bytes of %v of shape %v", a.DType, a.Shape)
		return &ring.ShapeError{Op: op, What: what, Got: []int{len(a.Data)}, Want: []int{want}}
	}
	return nil
}

// sizeOf returns the bytes that an array of that type and shape has, or
// math.MaxInt where there can be no such array; mlx's extents are int32.
func sizeOf(t ring.DType, shape []int) int {
	size, empty := t.Size(), false
	for _, extent := range shape {
		switch {
		case extent < 0 || extent > math.MaxInt32:
			return math.MaxInt
		case extent == 0:
			empty = true
		case size > math.MaxInt/extent:
			size = math.MaxInt
		default:
			size *= extent
		}
	}
	if empty {
		return 0
	}
	return size
}
