package cpu

import (
	"math"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference/ring"
)

// kernels are the loops that assembly can take over. Each has a plain Go twin
// that computes the same bytes.
type kernels struct {
	name string

	// stream copies src to dst, of one length, past the cache. They do not
	// overlap, unless dst begins 32 bytes or more before src.
	stream func(dst, src []byte)
	// scatter is stream for count strips of width bytes, whose beginnings are
	// the strides apart.
	scatter func(dst, src []byte, dstStride, srcStride, width, count int)
	// fence ends a series of streams: what another goroutine is told afterwards,
	// it is told after their bytes.
	fence func()

	// quantize turns tokens of a data type, whole groups, into codes, scales
	// and biases.
	quantize func(q accelerated.Quant, t ring.DType, codes, scales, biases, src []byte)
	// dequantize turns codes back into the float32 values of elements of the
	// data type: len(dst) of them, whole groups.
	dequantize func(q accelerated.Quant, t ring.DType, dst []float32, codes, scales, biases []byte)
	// widen turns len(dst) elements of a data type into float32.
	widen func(dst []float32, t ring.DType, src []byte)

	// dots sets scores[c] to the product of query and row c of tile, whose rows
	// are as long as query, a multiple of 8. Element i is summed into lane i mod
	// 8; then lanes 4 to 7 are added to 0 to 3, 2 and 3 to 0 and 1, 1 to 0.
	dots func(scores, query, tile []float32)
	// exps replaces each element by exp(x - most).
	exps func(x []float32, most float32)
	// accumulate adds weights[c] * row c of tile to sums, in the order of c. Rows
	// are as long as sums, a multiple of 8.
	accumulate func(sums, weights, tile []float32)
	// dotsBFloat16 and accumulateBFloat16 are dots and accumulate over rows as
	// they are stored, without a tile; nil where that is not faster. Their twins
	// are widen and then those.
	dotsBFloat16       func(scores, query []float32, rows []byte)
	accumulateBFloat16 func(sums, weights []float32, rows []byte)
}

var plainGo = kernels{
	name: "plain Go", stream: copyBytes, scatter: scatterGo, fence: func() {},
	quantize: quantizeGo, dequantize: dequantizeGo, widen: widen,
	dots: dotsGo, exps: expsGo, accumulate: accumulateGo,
}

func copyBytes(dst, src []byte) { copy(dst, src) }

func scatterGo(dst, src []byte, dstStride, srcStride, width, count int) {
	if width == 4 { // the scales of a decode: a call of copy costs more
		for i := range count {
			*(*[4]byte)(dst[i*dstStride:]) = [4]byte(src[i*srcStride:])
		}
		return
	}
	for i := range count {
		copy(dst[i*dstStride:][:width], src[i*srcStride:])
	}
}

func dotsGo(scores, query, tile []float32) {
	size := len(query)
	for c := range scores {
		row := tile[c*size:][:size]
		var l0, l1, l2, l3, l4, l5, l6, l7 float32
		for i := 0; i < size; i += 8 {
			q, k := (*[8]float32)(query[i:]), (*[8]float32)(row[i:])
			l0 += float32(q[0] * k[0])
			l1 += float32(q[1] * k[1])
			l2 += float32(q[2] * k[2])
			l3 += float32(q[3] * k[3])
			l4 += float32(q[4] * k[4])
			l5 += float32(q[5] * k[5])
			l6 += float32(q[6] * k[6])
			l7 += float32(q[7] * k[7])
		}
		l0, l1, l2, l3 = l0+l4, l1+l5, l2+l6, l3+l7
		l0, l1 = l0+l2, l1+l3
		scores[c] = l0 + l1
	}
}

func accumulateGo(sums, weights, tile []float32) {
	size := len(sums)
	for ; len(weights) >= 4; weights, tile = weights[4:], tile[4*size:] {
		w0, w1, w2, w3 := weights[0], weights[1], weights[2], weights[3]
		r0, r1, r2, r3 := tile[:size], tile[size:2*size], tile[2*size:3*size], tile[3*size:4*size]
		for i := range sums {
			s := sums[i] + float32(w0*r0[i])
			s += float32(w1 * r1[i])
			s += float32(w2 * r2[i])
			sums[i] = s + float32(w3*r3[i])
		}
	}
	for c, w := range weights {
		row := tile[c*size:][:size]
		for i := range sums {
			sums[i] += float32(w * row[i])
		}
	}
}

func expsGo(x []float32, most float32) {
	for i := range x {
		x[i] = exp(x[i] - most)
	}
}

// exp is e to the x for x of at most 0, to about one unit in the last place;
// below -87 it is that of -87, which no sum with a 1 in it notices. NaN stays.
func exp(x float32) float32 {
	if x < -87 {
		x = -87
	}
	// x = n ln 2 + r with |r| <= ln 2 / 2. The first part of ln 2 is so short
	// that its product with n is exact.
	n := float32(float32(x*math.Log2E)+round) - round
	r := float32(x-float32(n*ln2High)) - float32(n*ln2Low)
	p := float32(expTerms[0])
	for _, c := range expTerms[1:] {
		p = float32(p*r) + c
	}
	p = float32(float32(p*r)*r) + r + 1
	return math.Float32frombits(math.Float32bits(p) + uint32(int32(n))<<23)
}

const (
	round   = 0x1.8p23 // adding and taking it away rounds to an integer, ties to even
	ln2High = 0x1.63p-1
	ln2Low  = math.Ln2 - ln2High
)

// expTerms are the coefficients of (exp(r) - 1 - r) / r², highest power first.
var expTerms = [...]float32{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1}

// dequantizeGo is the canonical arithmetic: product and sum are each rounded to
// the data type.
func dequantizeGo(q accelerated.Quant, t ring.DType, dst []float32, codes, scales, biases []byte) {
	// What each code of a group stands for, if a group has more elements than
	// there are codes.
	var values [128]float32
	table := values[:0]
	if 1<<q.Bits <= q.GroupSize {
		table = values[:1<<q.Bits]
	}
	mask := uint64(1)<<q.Bits - 1
	for ; len(dst) > 0; scales, biases = scales[t.Size():], biases[t.Size():] {
		scale, bias := loadFloat(t, scales), loadFloat(t, biases)
		value := func(code float32) float32 { return rounded(t, rounded(t, float32(code*scale))+bias) }
		for code := range table {
			table[code] = value(float32(code))
		}
		for range q.GroupSize / 8 {
			var stream uint64
			for i := range q.Bits {
				stream |= uint64(codes[i]) << (8 * i)
			}
			eight := (*[8]float32)(dst)
			for i := range eight {
				if len(table) > 0 {
					eight[i] = values[stream&mask&127]
				} else {
					eight[i] = value(float32(stream & mask))
				}
				stream >>= q.Bits & 63
			}
			codes, dst = codes[q.Bits:], dst[8:]
		}
	}
}

// rounded rounds to the data type.
func rounded(t ring.DType, f float32) float32 {
	switch t {
	case ring.BFloat16:
		return math.Float32frombits(toBFloat16(f) << 16)
	case ring.Float16:
		return fromFloat16(toFloat16(f))
	}
	return f
}
