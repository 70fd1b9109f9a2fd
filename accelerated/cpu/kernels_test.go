package cpu

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

var (
	anyType  = rapid.SampledFrom([]ring.DType{ring.BFloat16, ring.Float16, ring.Float32})
	anyQuant = rapid.Custom(func(t *rapid.T) accelerated.Quant {
		return accelerated.Quant{
			GroupSize: rapid.SampledFrom([]int{32, 64, 128}).Draw(t, "group"),
			Bits:      rapid.SampledFrom([]int{2, 3, 4, 5, 6, 8}).Draw(t, "bits"),
		}
	})
)

// eachKernels runs a test for the assembly, if this processor can run it, and
// for plain Go, whose name says so in the output either way.
func eachKernels(t *testing.T, f func(t *testing.T, k kernels)) {
	t.Run(plainGo.name, func(t *testing.T) { f(t, plainGo) })
	if k := best(); k.name != plainGo.name {
		t.Run(k.name, func(t *testing.T) { f(t, k) })
	} else {
		t.Log("this processor has no assembly here")
	}
}

// element draws the kinds of numbers on which roundings, ties, signs and
// limits depend.
func element(t *rapid.T) float32 {
	switch rapid.IntRange(0, 7).Draw(t, "class") {
	case 0:
		return math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
	case 1, 2:
		return float32(rapid.IntRange(-64, 64).Draw(t, "half")) / 2 // ties
	case 3:
		return float32(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1e-7, 5e-8, 1e33, -1e33, 3e38, -3e38, 1e-40, -2e-40, math.Inf(1), math.Inf(-1), math.NaN(), 65504, 65520}).Draw(t, "special"))
	case 4:
		return -float32(rapid.IntRange(1, 9).Draw(t, "negative"))
	}
	return float32(rapid.IntRange(-1<<20, 1<<20).Draw(t, "grid")) / (1 << 18)
}

// tokens draws whole groups of elements of a data type: independent ones, few
// different ones, or all one.
func tokens(t *rapid.T, dtype ring.DType, n int) []byte {
	some := rapid.SliceOfN(rapid.Custom(element), 1, rapid.SampledFrom([]int{1, 2, 5, n}).Draw(t, "kinds")).Draw(t, "elements")
	out := make([]byte, n*dtype.Size())
	for i := range n {
		v := some[int(mix(uint64(i)))%len(some)]
		storeFloat(dtype, out[i*dtype.Size():], v)
	}
	return out
}

func mix(x uint64) uint64 {
	x = (x + 0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9
	return (x ^ x>>27) >> 8
}

// TestQuantizeReference holds the quantizing kernels to the reference, bit for
// bit, and to writing nothing behind their planes.
func TestQuantizeReference(t *testing.T) {
	eachKernels(t, func(t *testing.T, k kernels) {
		rapid.Check(t, func(t *rapid.T) {
			q, dtype := anyQuant.Draw(t, "quant"), anyType.Draw(t, "dtype")
			groups := rapid.IntRange(1, 40).Draw(t, "groups")
			src := tokens(t, dtype, groups*q.GroupSize)
			want, err := reference.Quantize(ring.Array{DType: dtype, Shape: [4]int{1, 1, 1, groups * q.GroupSize}, Data: src}, q.GroupSize, q.Bits)
			if err != nil {
				t.Fatal(err)
			}
			var got [3][]byte
			for i, p := range want {
				got[i] = bytes.Repeat([]byte{0xA5}, len(p.Data)+16)
			}
			k.quantize(q, dtype, got[0][:len(want[0].Data)], got[1][:len(want[1].Data)], got[2][:len(want[2].Data)], src)
			bad := -1
			for i, p := range want {
				if !bytes.Equal(got[i][:len(p.Data)], p.Data) || !bytes.Equal(got[i][len(p.Data):], bytes.Repeat([]byte{0xA5}, 16)) {
					bad = i
				}
			}
			if bad >= 0 {
				t.Fatalf("%v %+v: plane %d\ngot  %x\nwant %x\nof   %x", dtype, q, bad, got[bad], want[bad].Data, src)
			}
		})
	})
}

// TestDequantizeReference holds the dequantizing kernels to the reference.
func TestDequantizeReference(t *testing.T) {
	eachKernels(t, func(t *testing.T, k kernels) {
		rapid.Check(t, func(t *rapid.T) {
			q, dtype := anyQuant.Draw(t, "quant"), anyType.Draw(t, "dtype")
			groups := rapid.IntRange(1, 40).Draw(t, "groups")
			shape := [4]int{1, 1, 1, groups * q.GroupSize}
			planes, err := reference.Quantize(ring.Array{DType: dtype, Shape: shape, Data: tokens(t, dtype, shape[3])}, q.GroupSize, q.Bits)
			if err != nil {
				t.Fatal(err)
			}
			a, err := reference.Dequantize(planes, q.GroupSize, q.Bits)
			if err != nil {
				t.Fatal(err)
			}
			want, err := reference.Floats(a)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]float32, shape[3])
			codes := append(append([]byte{}, planes[0].Data...), make([]byte, slack)...)
			k.dequantize(q, dtype, got, codes, planes[1].Data, planes[2].Data)
			if i := differ(got, want); i >= 0 {
				t.Fatalf("%v %+v: element %d is %x, want %x", dtype, q, i, math.Float32bits(got[i]), math.Float32bits(want[i]))
			}
		})
	})
}

// differ is the first place where two lists differ in a bit, NaNs apart: which
// NaN comes of two depends on the order of operands. It is -1 where none is.
func differ(got, want []float32) int {
	for i := range want {
		g, w := got[i], want[i]
		if math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
			return i
		}
	}
	return -1
}

func floats(t *rapid.T, n int, label string) []float32 {
	seed := rapid.Uint64().Draw(t, label)
	some := rapid.SliceOfN(rapid.Custom(element), 0, 3).Draw(t, label+" special")
	out := make([]float32, n)
	for i := range out {
		x := mix(seed + uint64(i))
		if out[i] = float32(int32(x))/(1<<30) + 0.1; len(some) > 0 && x>>40&31 == 0 {
			out[i] = some[x>>50%uint64(len(some))]
		}
	}
	return out
}

// TestTwins holds each kernel of attention to its twin in plain Go, bit for bit.
func TestTwins(t *testing.T) {
	k := best()
	rapid.Check(t, func(t *rapid.T) {
		size := 8 * rapid.IntRange(1, 20).Draw(t, "vectors")
		rows := rapid.IntRange(1, 40).Draw(t, "rows")
		query, tile, weights := floats(t, size, "query"), floats(t, size*rows, "tile"), floats(t, rows, "weights")

		got, want := make([]float32, rows), make([]float32, rows)
		k.dots(got, query, tile)
		plainGo.dots(want, query, tile)
		what, at := "dots", differ(got, want)

		if at < 0 {
			got, want = append([]float32{}, query...), append([]float32{}, query...)
			k.accumulate(got, weights, tile)
			plainGo.accumulate(want, weights, tile)
			what, at = "accumulate", differ(got, want)
		}
		if at < 0 && k.dotsBFloat16 != nil {
			stored := make([]byte, 2*len(tile))
			for i, v := range tile {
				storeFloat(ring.BFloat16, stored[2*i:], v)
			}
			plainGo.widen(tile, ring.BFloat16, stored)
			got, want = make([]float32, rows), make([]float32, rows)
			k.dotsBFloat16(got, query, stored)
			plainGo.dots(want, query, tile)
			if what, at = "dots of bfloat16", differ(got, want); at < 0 {
				got, want = append([]float32{}, query...), append([]float32{}, query...)
				k.accumulateBFloat16(got, weights, stored)
				plainGo.accumulate(want, weights, tile)
				what, at = "accumulate of bfloat16", differ(got, want)
			}
		}
		if at < 0 {
			got, want = append([]float32{}, tile...), append([]float32{}, tile...)
			for i := range tile {
				got[i], want[i] = got[i]*20, want[i]*20
			}
			most := rapid.Float32Range(20, 60).Draw(t, "most")
			k.exps(got, most)
			plainGo.exps(want, most)
			what, at = "exps", differ(got, want)
		}
		if at < 0 {
			dtype := anyType.Draw(t, "dtype")
			n := rapid.IntRange(0, 50).Draw(t, "n")
			src := make([]byte, 4*n)
			for i := range n {
				binary.LittleEndian.PutUint32(src[4*i:], uint32(mix(uint64(i)*uint64(size+rows))))
			}
			got, want = make([]float32, n), make([]float32, n)
			k.widen(got, dtype, src)
			plainGo.widen(want, dtype, src)
			what, at = "widen", differ(got, want)
		}
		if at >= 0 {
			t.Fatalf("%s: element %d is %x, want %x", what, at, math.Float32bits(got[at]), math.Float32bits(want[at]))
		}
	})
}

// TestExp compares the exponential with the library's.
func TestExp(t *testing.T) {
	for x := 0.0; x > -86; x -= 0.0007 {
		if got, want := float64(exp(float32(x))), math.Exp(float64(float32(x))); math.Abs(got/want-1) > 3e-7 {
			t.Fatalf("exp(%v) is %v, want %v", x, got, want)
		}
	}
	if exp(0) != 1 || exp(float32(math.Inf(-1))) > 1e-37 || exp(float32(math.NaN())) == exp(float32(math.NaN())) {
		t.Fatal(exp(0), exp(float32(math.Inf(-1))), exp(float32(math.NaN())))
	}
}

// TestStream holds the copies past the cache to copy, at every alignment, and
// to writing nothing else.
func TestStream(t *testing.T) {
	k := best()
	rapid.Check(t, func(t *rapid.T) {
		buffer := make([]byte, 4096)
		for i := range buffer {
			buffer[i] = byte(mix(uint64(i)))
		}
		want := append([]byte{}, buffer...)
		n := rapid.IntRange(0, 700).Draw(t, "n")
		src := rapid.IntRange(1024, 2000).Draw(t, "src")
		dst := rapid.IntRange(0, src-32).Draw(t, "dst")
		if rapid.Bool().Draw(t, "above") {
			dst = rapid.IntRange(src+n, len(buffer)-n).Draw(t, "dst")
		}
		copy(want[dst:dst+n], want[src:])
		k.stream(buffer[dst:dst+n], buffer[src:src+n])
		width, count := rapid.IntRange(1, 200).Draw(t, "width"), rapid.IntRange(1, 5).Draw(t, "count")
		stride, from := rapid.IntRange(width, 250).Draw(t, "stride"), rapid.IntRange(width, 300).Draw(t, "from")
		to, source := make([]byte, 1300), buffer[:1500]
		other := append([]byte{}, to...)
		k.scatter(to, source, stride, from, width, count)
		scatterGo(other, source, stride, from, width, count)
		k.fence()
		if !bytes.Equal(buffer, want) || !bytes.Equal(to, other) {
			t.Fatalf("stream of %d from %d to %d, or scatter, differs from copy", n, src, dst)
		}
	})
}
