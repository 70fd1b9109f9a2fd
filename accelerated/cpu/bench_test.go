package cpu

import (
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference/ring"
)

// BenchmarkKernels runs each kernel over one tile of 32 columns of 128, which
// stays in the cache.
func BenchmarkKernels(b *testing.B) {
	const columns, dim = tileColumns, 128
	tile, query, scores, sums := make([]float32, columns*dim), make([]float32, dim), make([]float32, columns), make([]float32, dim)
	src := make([]byte, columns*dim*2+slack)
	for i := range src {
		src[i] = byte(mix(uint64(i))) & 0xBF // no NaN, nothing large
	}
	for i := range scores {
		scores[i] = float32(i) / 32
	}
	q := accelerated.Quant{GroupSize: 64, Bits: 4}
	codes, scales, biases := make([]byte, columns*dim/2+slack), make([]byte, columns*4), make([]byte, columns*4)
	for _, k := range []kernels{best(), plainGo} {
		list := map[string]func(){
			"widen":      func() { k.widen(tile, ring.BFloat16, src) },
			"dots":       func() { k.dots(scores, query, tile) },
			"exps":       func() { k.exps(scores, 1) },
			"accumulate": func() { k.accumulate(sums, scores, tile) },
			"quantize":   func() { k.quantize(q, ring.BFloat16, codes, scales, biases, src[:columns*dim*2]) },
			"dequantize": func() { k.dequantize(q, ring.BFloat16, tile, codes, scales, biases) },
		}
		if k.dotsBFloat16 != nil {
			list["dots of bfloat16"] = func() { k.dotsBFloat16(scores, query, src) }
			list["accumulate of bfloat16"] = func() { k.accumulateBFloat16(sums, scores, src) }
		}
		for name, f := range list {
			b.Run(name+"/"+k.name, func(b *testing.B) {
				b.SetBytes(columns * dim * 2)
				for b.Loop() {
					f()
				}
			})
		}
	}
}
