package reference

import (
	"math"

	"example.com/ringcheck/reference/ring"
)

// smallestScale is the least magnitude that the scale of a group starts from.
const smallestScale float32 = 1e-7

// Quantize is mx.quantize in mode "affine", as MLX computes it on the CPU: it
// turns a, floats of shape [b, h, s, d], into three planes, the packed codes
// (uint32 [b, h, s, d·bits/32]), the scales and the biases (of a's data type,
// [b, h, s, d/groupSize]). Each run of groupSize elements of the d axis is a
// group; code c of a group stands for c·scale + bias.
//
// All arithmetic is float32; scale and bias are rounded to a's data type last,
// and the codes come from them unrounded. A NaN element has code 0 and counts
// for neither end of its group's range, and a scale or bias that is NaN is
// stored as the one NaN of [FloatBits].
//
// The errors are a [ring.DTypeError] where a holds no floats, a
// [ring.ShapeError] where its bytes are not those of its shape, and a
// [ring.QuantError] where groupSize, bits and d do not go together.
func Quantize(a ring.Array, groupSize, bits int) (ring.Planes, error) {
	const op = "quantize"
	if err := checkFloats(op, a); err != nil {
		return nil, err
	}
	if err := checkQuant(op, groupSize, bits, a.Shape[3]); err != nil {
		return nil, err
	}
	b, h, s, d := a.Shape[0], a.Shape[1], a.Shape[2], a.Shape[3]
	codes := zeros(ring.Uint32, b, h, s, d*bits/32)
	scales := zeros(a.DType, b, h, s, d/groupSize)
	biases := zeros(a.DType, b, h, s, d/groupSize)

	size, groupBytes := a.DType.Size(), groupSize*bits/8
	group := make([]float32, groupSize)
	for g := range len(scales.Data) / size {
		for i := range group {
			group[i] = loadFloat(a.DType, a.Data[(g*groupSize+i)*size:])
		}
		scale, bias := groupScale(group, bits)
		packGroup(codes.Data[g*groupBytes:(g+1)*groupBytes], group, scale, bias, bits)
		storeFloat(a.DType, scales.Data[g*size:], scale)
		storeFloat(a.DType, biases.Data[g*size:], bias)
	}
	return ring.Planes{codes, scales, biases}, nil
}

// groupScale chooses the scale and the bias of a group. The end of the range
// that is farther from zero, the edge, gets a code of its own, exactly; the
// scale is adjusted so that zero gets one too.
func groupScale(group []float32, bits int) (scale, bias float32) {
	low, high := float32(math.Inf(1)), float32(math.Inf(-1))
	for _, v := range group { // a NaN fails both comparisons
		if v < low {
			low = v
		}
		if high < v {
			high = v
		}
	}
	scale = (high - low) / largestCode(bits)
	if scale < smallestScale {
		scale = smallestScale
	}
	edge := low
	if !(abs(low) > abs(high)) {
		edge, scale = high, -scale
	}
	if zero := roundToEven(edge / scale); zero != 0 { // a NaN is not 0 either
		scale, bias = edge/zero, edge
	}
	return scale, bias
}

// packGroup writes the codes of a group into packed, which they fill: a stream
// of bits, the low bit of the first code first.
func packGroup(packed []byte, group []float32, scale, bias float32, bits int) {
	largest := largestCode(bits)
	var stream uint32
	held := 0
	for _, v := range group {
		code := roundToEven((v - bias) / scale)
		switch {
		case !(code > 0): // NaN, too
			code = 0
		case code > largest:
			code = largest
		}
		stream |= uint32(code) << held
		for held += bits; held >= 8; held -= 8 {
			packed[0] = byte(stream)
			packed, stream = packed[1:], stream>>8
		}
	}
}

// Dequantize is mx.dequantize in mode "affine", as MLX computes it on the CPU:
// the inverse of [Quantize], up to rounding. Product and sum are each rounded
// to the data type of the scales, which is the result's; a NaN comes out as
// the one NaN of [FloatBits].
//
// The errors are a [ring.DTypeError] or a [ring.ShapeError] where p is not the
// three planes of one quantized array, and a [ring.QuantError] where
// groupSize, bits and the width do not go together.
func Dequantize(p ring.Planes, groupSize, bits int) (ring.Array, error) {
	const op = "dequantize"
	if len(p) != 3 {
		return ring.Array{}, &ring.ShapeError{Op: op, What: "number of planes", Got: []int{len(p)}, Want: []int{3}}
	}
	codes, scales, biases := p[0], p[1], p[2]
	if codes.DType != ring.Uint32 {
		return ring.Array{}, &ring.DTypeError{Op: op, Got: codes.DType, Want: ring.Uint32}
	}
	if err := checkBytes(op, codes); err != nil {
		return ring.Array{}, err
	}
	if err := checkFloats(op, scales); err != nil {
		return ring.Array{}, err
	}
	if biases.DType != scales.DType {
		return ring.Array{}, &ring.DTypeError{Op: op, Got: biases.DType, Want: scales.DType}
	}
	if err := checkBytes(op, biases); err != nil {
		return ring.Array{}, err
	}
	groups := scales.Shape[3]
	if err := checkQuant(op, groupSize, bits, groups*groupSize); err != nil {
		return ring.Array{}, err
	}
	want := scales.Shape
	if biases.Shape != want {
		return ring.Array{}, &ring.ShapeError{Op: op, What: "shape of the biases", Got: biases.Shape[:], Want: want[:]}
	}
	want[3] = groups * groupSize * bits / 32
	if codes.Shape != want {
		return ring.Array{}, &ring.ShapeError{Op: op, What: "shape of the packed codes", Got: codes.Shape[:], Want: want[:]}
	}
	a := zeros(scales.DType, want[0], want[1], want[2], groups*groupSize)

	t, size, groupBytes := a.DType, a.DType.Size(), groupSize*bits/8
	for g := range len(scales.Data) / size {
		packed := codes.Data[g*groupBytes : (g+1)*groupBytes]
		scale, bias := loadFloat(t, scales.Data[g*size:]), loadFloat(t, biases.Data[g*size:])
		unpackGroup(t, a.Data[g*groupSize*size:(g+1)*groupSize*size], packed, scale, bias, bits)
	}
	return a, nil
}

// unpackGroup writes the values of a group's codes into data, in type t.
func unpackGroup(t ring.DType, data, packed []byte, scale, bias float32, bits int) {
	var stream uint32
	held := 0
	for ; len(data) > 0; data = data[t.Size():] {
		for ; held < bits; held += 8 {
			stream |= uint32(packed[0]) << held
			packed = packed[1:]
		}
		code := float32(stream & (1<<bits - 1))
		stream, held = stream>>bits, held-bits
		// The conversions keep Go from fusing product and sum where t is float32.
		product := FloatFromBits(t, FloatBits(t, float32(code*scale)))
		storeFloat(t, data, float32(product+bias))
	}
}

// checkQuant refuses what cannot be quantized. Groups of 32 and more make
// whole 32-bit words at every width.
func checkQuant(op string, groupSize, bits, dim int) error {
	switch groupSize {
	case 32, 64, 128:
		switch bits {
		case 2, 3, 4, 5, 6, 8:
			if dim%groupSize == 0 {
				return nil
			}
		}
	}
	return &ring.QuantError{Op: op, GroupSize: groupSize, Bits: bits, Dim: dim}
}

func largestCode(bits int) float32 { return float32(int(1)<<bits - 1) }

func abs(x float32) float32 { return float32(math.Abs(float64(x))) }

func roundToEven(x float32) float32 { return float32(math.RoundToEven(float64(x))) }
