package cpu

import (
	"unsafe"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference/ring"
	"golang.org/x/sys/cpu"
)

//go:generate go run ./asm -out kernels_amd64.s -stubs stubs_amd64.go -pkg cpu

// best is the fastest kernels that this processor can run.
func best() kernels {
	if cpu.X86.HasAVX2 && cpu.X86.HasBMI2 && cpu.X86.HasF16C {
		return avx2
	}
	return plainGo
}

var avx2 = kernels{
	name: "avx2", stream: streamBytes, scatter: scatterBytes, fence: fenceAVX2,
	quantize: quantizeAssembly, dequantize: dequantizeAssembly, widen: widenAssembly,
	dots: dotsAssembly, exps: expsAssembly, accumulate: accumulateAssembly,
	dotsBFloat16: dotsBFloat16, accumulateBFloat16: accumulateBFloat16,
}

// The functions below check what assembly does not, and leave to plain Go what
// is too short for it.

func streamBytes(dst, src []byte) {
	if len(dst) < 64 {
		copy(dst, src)
		return
	}
	src = src[:len(dst)]
	streamAVX2(&dst[0], &src[0], len(dst))
}

func scatterBytes(dst, src []byte, dstStride, srcStride, width, count int) {
	if width < 64 {
		scatterGo(dst, src, dstStride, srcStride, width, count)
		return
	}
	_, _ = dst[(count-1)*dstStride+width-1], src[(count-1)*srcStride+width-1]
	scatterAVX2(&dst[0], &src[0], dstStride, srcStride, width, count)
}

func widenAssembly(dst []float32, t ring.DType, src []byte) {
	if n := len(dst) &^ 7; n > 0 {
		_ = src[n*t.Size()-1]
		switch t {
		case ring.BFloat16:
			widenBFloat16AVX2(&dst[0], &src[0], n)
		case ring.Float16:
			widenFloat16AVX2(&dst[0], &src[0], n)
		default:
			widenFloat32AVX2(&dst[0], &src[0], n)
		}
		dst, src = dst[n:], src[n*t.Size():]
	}
	widen(dst, t, src)
}

// batch is how many groups are worked on at once, a multiple of 8: the
// divisions of eight groups are one.
const batch = 16

// spreads has the lowest bits of each byte set, as many as a code has.
func spreads(bits int) uint64 { return 0x0101010101010101 * uint64(1<<bits-1) }

func quantizeAssembly(q accelerated.Quant, t ring.DType, codes, scales, biases, src []byte) {
	var s, b [batch]float32
	size, groupBytes := t.Size(), q.GroupSize*q.Bits/8
	for len(src) > 0 {
		n := min(batch, len(src)/(q.GroupSize*size))
		groupScales(q, t, &s, &b, src, n)
		packGroups(q, t, codes[:n*groupBytes], &s, &b, src, n)
		narrow(t, scales[:n*size], &s)
		narrow(t, biases[:n*size], &b)
		codes, scales, biases, src = codes[n*groupBytes:], scales[n*size:], biases[n*size:], src[n*q.GroupSize*size:]
	}
}

func groupScales(q accelerated.Quant, t ring.DType, scales, biases *[batch]float32, src []byte, n int) {
	largest := float32(int(1)<<q.Bits - 1)
	switch t {
	case ring.BFloat16:
		scalesBFloat16AVX2(&scales[0], &biases[0], &src[0], q.GroupSize, n, largest)
	case ring.Float16:
		scalesFloat16AVX2(&scales[0], &biases[0], &src[0], q.GroupSize, n, largest)
	default:
		scalesFloat32AVX2(&scales[0], &biases[0], &src[0], q.GroupSize, n, largest)
	}
}

// packGroups writes the last group by way of a copy: the assembly writes up to
// 6 bytes behind the last code, which may be another goroutine's.
func packGroups(q accelerated.Quant, t ring.DType, codes []byte, scales, biases *[batch]float32, src []byte, n int) {
	var tail [128 + 8]byte
	last := n - 1
	to, group := &tail[0], src[last*q.GroupSize*t.Size():]
	largest, spread := float32(int(1)<<q.Bits-1), spreads(q.Bits)
	switch t {
	case ring.BFloat16:
		packBFloat16AVX2(&codes[0], &src[0], &scales[0], &biases[0], q.GroupSize, last, q.Bits, spread, largest)
		packBFloat16AVX2(to, &group[0], &scales[last], &biases[last], q.GroupSize, 1, q.Bits, spread, largest)
	case ring.Float16:
		packFloat16AVX2(&codes[0], &src[0], &scales[0], &biases[0], q.GroupSize, last, q.Bits, spread, largest)
		packFloat16AVX2(to, &group[0], &scales[last], &biases[last], q.GroupSize, 1, q.Bits, spread, largest)
	default:
		packFloat32AVX2(&codes[0], &src[0], &scales[0], &biases[0], q.GroupSize, last, q.Bits, spread, largest)
		packFloat32AVX2(to, &group[0], &scales[last], &biases[last], q.GroupSize, 1, q.Bits, spread, largest)
	}
	copy(codes[len(codes)/n*last:], tail[:])
}

// narrow rounds as many numbers to the data type as dst has room for.
func narrow(t ring.DType, dst []byte, src *[batch]float32) {
	var eight [32]byte
	for i := 0; len(dst) > 0; i += 8 {
		switch t {
		case ring.BFloat16:
			narrowBFloat16AVX2(&eight[0], &src[i])
		case ring.Float16:
			narrowFloat16AVX2(&eight[0], &src[i])
		default:
			narrowFloat32AVX2(&eight[0], &src[i])
		}
		dst = dst[copy(dst, eight[:8*t.Size()]):]
	}
}

// dequantizeAssembly reads up to 7 bytes behind the last code, which are slack
// where the buffer ends.
func dequantizeAssembly(q accelerated.Quant, t ring.DType, dst []float32, codes, scales, biases []byte) {
	var s, b [batch]float32
	size, spread := t.Size(), spreads(q.Bits)
	for len(dst) > 0 {
		n := min(batch, len(dst)/q.GroupSize)
		widenAssembly(s[:n], t, scales)
		widenAssembly(b[:n], t, biases)
		_ = codes[n*q.GroupSize*q.Bits/8-1]
		switch t {
		case ring.BFloat16:
			dequantizeBFloat16AVX2(&dst[0], &codes[0], &s[0], &b[0], q.GroupSize, n, q.Bits, spread)
		case ring.Float16:
			dequantizeFloat16AVX2(&dst[0], &codes[0], &s[0], &b[0], q.GroupSize, n, q.Bits, spread)
		default:
			dequantizeFloat32AVX2(&dst[0], &codes[0], &s[0], &b[0], q.GroupSize, n, q.Bits, spread)
		}
		codes, scales, biases, dst = codes[n*q.GroupSize*q.Bits/8:], scales[n*size:], biases[n*size:], dst[n*q.GroupSize:]
	}
}

func dotsAssembly(scores, query, tile []float32) {
	_ = tile[len(scores)*len(query)-1]
	dotsFloat32AVX2(&scores[0], &query[0], bytesOf(tile), len(query), len(scores))
}

func dotsBFloat16(scores, query []float32, rows []byte) {
	_ = rows[2*len(scores)*len(query)-1]
	dotsBFloat16AVX2(&scores[0], &query[0], &rows[0], len(query), len(scores))
}

func expsAssembly(x []float32, most float32) {
	if n := len(x) &^ 7; n > 0 {
		expsAVX2(&x[0], n, most)
		x = x[n:]
	}
	expsGo(x, most)
}

func accumulateAssembly(sums, weights, tile []float32) {
	_ = tile[len(weights)*len(sums)-1]
	accumulateFloat32AVX2(&sums[0], &weights[0], bytesOf(tile), len(sums), len(weights))
}

func accumulateBFloat16(sums, weights []float32, rows []byte) {
	_ = rows[2*len(weights)*len(sums)-1]
	accumulateBFloat16AVX2(&sums[0], &weights[0], &rows[0], len(sums), len(weights))
}

func bytesOf(x []float32) *byte { return (*byte)(unsafe.Pointer(unsafe.SliceData(x))) }
