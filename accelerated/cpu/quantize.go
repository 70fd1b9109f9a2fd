package cpu

import (
	"encoding/binary"
	"math"
	"unsafe"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference/ring"
)

// quantizeGo is the canonical arithmetic: float32 throughout, scale and bias
// rounded to the data type last.
func quantizeGo(q accelerated.Quant, t ring.DType, codes, scales, biases, src []byte) {
	size := t.Size()
	groups, groupBytes := len(src)/(q.GroupSize*size), q.GroupSize*q.Bits/8
	var group [128]float32
	g := group[:q.GroupSize]
	largest := float32(int(1)<<q.Bits - 1)
	for i := range groups {
		widen(g, t, src[i*q.GroupSize*size:])
		scale, bias := groupScale(g, largest)
		packGroup(codes[i*groupBytes:][:groupBytes], g, scale, bias, q.Bits)
		storeFloat(t, scales[i*size:], scale)
		storeFloat(t, biases[i*size:], bias)
	}
}

// groupScale gives the end of a group's range that is farther from zero a code
// of its own, exactly, and adjusts the scale so that zero gets one too.
func groupScale(group []float32, largest float32) (scale, bias float32) {
	low, high := groupRange(group)
	scale = (high - low) / largest
	if scale < 1e-7 {
		scale = 1e-7
	}
	edge := low
	if !(abs(low) > abs(high)) {
		edge, scale = high, -scale
	}
	if zero := roundToEven(edge / scale); zero != 0 { // NaN is not 0 either
		scale, bias = edge/zero, edge
	}
	return scale, bias
}

// groupRange is the least and the greatest element; NaNs count for neither. It
// compares integers that are ordered as the floats are, which needs no branch
// that data can surprise.
func groupRange(group []float32) (low, high float32) {
	const infinity = 0x7F800000
	first, last := int32(math.MaxInt32), int32(math.MinInt32)
	for _, b := range unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(group))), len(group)) {
		b ^= b >> 31 & math.MaxInt32
		first, last = min(first, b), max(last, b)
	}
	if first >= ^infinity && last <= infinity {
		return math.Float32frombits(uint32(first ^ first>>31&math.MaxInt32)), math.Float32frombits(uint32(last ^ last>>31&math.MaxInt32))
	}
	low, high = float32(math.Inf(1)), float32(math.Inf(-1))
	for _, v := range group { // there are NaNs
		if v < low {
			low = v
		}
		if high < v {
			high = v
		}
	}
	return low, high
}

// packGroup writes the codes of a group, the low bit of the first code first.
func packGroup(packed []byte, group []float32, scale, bias float32, bits int) {
	largest := math.Float32bits(float32(int(1)<<bits - 1))
	for ; len(group) >= 8; group = group[8:] {
		v := (*[8]float32)(group)
		x := code(v[0], scale, bias, largest) | code(v[1], scale, bias, largest)<<8 |
			code(v[2], scale, bias, largest)<<16 | code(v[3], scale, bias, largest)<<24 |
			code(v[4], scale, bias, largest)<<32 | code(v[5], scale, bias, largest)<<40 |
			code(v[6], scale, bias, largest)<<48 | code(v[7], scale, bias, largest)<<56
		// From a byte a code to bits a code, by pairs, fours and eights.
		n := uint(bits)
		x = x&0x00FF00FF00FF00FF | x&0xFF00FF00FF00FF00>>((8-n)&63)
		x = x&0x0000FFFF0000FFFF | x&0xFFFF0000FFFF0000>>((16-2*n)&63)
		x = x&0x00000000FFFFFFFF | x&0xFFFFFFFF00000000>>((32-4*n)&63)
		if len(packed) >= 8 {
			binary.LittleEndian.PutUint64(packed, x) // the next codes overwrite the rest
		} else {
			for i := range packed {
				packed[i] = byte(x >> (8 * i & 63))
			}
		}
		packed = packed[bits:]
	}
}

// code is the code of an element. The order of positive floats is that of their
// bits, so that the limit needs no branch. Adding 2^23 rounds to an integer,
// ties to even, and leaves it in the lowest bits.
func code(v, scale, bias float32, largest uint32) uint64 {
	c := (v - bias) / scale
	if !(c > 0) { // NaN, too
		return 0
	}
	c = math.Float32frombits(min(math.Float32bits(c), largest))
	return uint64(uint8(math.Float32bits(c + 1<<23)))
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

func roundToEven(x float32) float32 { return float32(math.RoundToEven(float64(x))) }

// widen turns the elements of src into float32, which is exact.
func widen(dst []float32, t ring.DType, src []byte) {
	switch t {
	case ring.BFloat16:
		n := len(dst) &^ 3
		widenFours(dst[:n], src)
		for i := n; i < len(dst); i++ {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
		}
	case ring.Float16:
		for i := range dst {
			dst[i] = fromFloat16(uint32(binary.LittleEndian.Uint16(src[2*i:])))
		}
	default:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	}
}

// widenFours widens bfloat16 four at a time, as integers.
func widenFours(dst []float32, src []byte) {
	const high = 0xFFFF0000
	n := len(dst) / 4
	if n == 0 {
		return
	}
	from := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(src[:8*n]))), n)
	to := unsafe.Slice((*[2]uint64)(unsafe.Pointer(unsafe.SliceData(dst))), n)
	for i, u := range from {
		to[i] = [2]uint64{u<<16&high | (u&high)<<32, u>>16&high | u&(high<<32)}
	}
}

func loadFloat(t ring.DType, src []byte) float32 {
	var f [1]float32
	widen(f[:], t, src)
	return f[0]
}

// storeFloat rounds f to the data type, ties to even; every NaN becomes the one
// quiet NaN 7FC0, 7E00 or 7FC00000.
func storeFloat(t ring.DType, dst []byte, f float32) {
	switch t {
	case ring.BFloat16:
		binary.LittleEndian.PutUint16(dst, uint16(toBFloat16(f)))
	case ring.Float16:
		binary.LittleEndian.PutUint16(dst, uint16(toFloat16(f)))
	default:
		if f != f {
			f = math.Float32frombits(0x7FC00000)
		}
		binary.LittleEndian.PutUint32(dst, math.Float32bits(f))
	}
}

func toBFloat16(f float32) uint32 {
	if f != f {
		return 0x7FC0
	}
	u := math.Float32bits(f)
	return (u + 0x7FFF + u>>16&1) >> 16
}

func toFloat16(f float32) uint32 {
	u := math.Float32bits(f)
	sign, magnitude := u>>16&0x8000, u&^(1<<31)
	switch {
	case f != f:
		return 0x7E00
	case magnitude >= 0x47800000: // 65536 and above
		return sign | 0x7C00
	case magnitude < 0x38800000: // a multiple of 2^-24
		return sign | uint32(math.RoundToEven(float64(math.Float32frombits(magnitude))*0x1p24))
	}
	magnitude -= (127 - 15) << 23
	return sign | (magnitude+0xFFF+magnitude>>13&1)>>13
}

func fromFloat16(u uint32) float32 {
	sign, magnitude := u>>15<<31, u&0x7FFF
	switch {
	case magnitude < 0x0400: // zero or a multiple of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(magnitude)*0x1p-24))
	case magnitude >= 0x7C00:
		return math.Float32frombits(sign | 0x7F800000 | magnitude<<13)
	}
	return math.Float32frombits(sign | (magnitude<<13 + (127-15)<<23))
}
