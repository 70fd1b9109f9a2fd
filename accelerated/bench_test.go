package accelerated_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/reference/ring"
)

// The shapes of the benchmarks: full rings of a common sliding-window layer.
const (
	benchRows   = 8
	benchHeads  = 8
	benchDim    = 128
	benchWindow = 1024
)

var benchConfig = accelerated.Config{
	Semantics: ring.Exact, MaxSize: benchWindow, KVHeads: benchHeads, KeyDim: benchDim, ValueDim: benchDim, DType: ring.BFloat16,
}

func quantizedConfig(group, bits int) accelerated.Config {
	cfg := benchConfig
	cfg.Quant = accelerated.Quant{GroupSize: group, Bits: bits}
	return cfg
}

// onEach runs a benchmark with the best instructions and without assembly.
func onEach(b *testing.B, f func(b *testing.B, dev accelerated.Device)) {
	for _, o := range []cpu.Options{{}, {PlainGo: true}} {
		dev := cpu.Open(o)
		b.Run(dev.Name(), func(b *testing.B) {
			b.ReportAllocs()
			f(b, dev)
		})
		if n := dev.Stats().Live; n != 0 {
			b.Fatalf("%d buffers are live", n)
		}
		dev.Close()
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// tokens are normally distributed; some thousands of them, over and over.
func tokens(t ring.DType, rows, heads, n, dim int) accelerated.View {
	r := rand.New(rand.NewPCG(1, 2))
	a := ring.Array{DType: t, Shape: [4]int{rows, heads, n, dim}, Data: make([]byte, rows*heads*n*dim*t.Size())}
	some := a.Data[:min(len(a.Data), 1<<13)]
	for i := 0; i < len(some); i += 2 {
		bits := math.Float32bits(float32(r.NormFloat64()))
		some[i], some[i+1] = byte(bits>>16), byte(bits>>24)
	}
	for done := len(some); done < len(a.Data); done *= 2 {
		copy(a.Data[done:], a.Data[:done])
	}
	return accelerated.HostView(a)
}

func block(n int) accelerated.View {
	return tokens(ring.BFloat16, benchRows, benchHeads, n, benchDim)
}

// full is a batch whose window is full, which has begun to wrap.
func full(dev accelerated.Device, cfg accelerated.Config, rows int) *accelerated.Cache {
	c := must(accelerated.NewBatchRotating(dev, cfg, make([]int, rows)))
	k := tokens(ring.BFloat16, rows, cfg.KVHeads, cfg.MaxSize, cfg.KeyDim)
	must(c.Update(k, k))
	one := tokens(ring.BFloat16, rows, cfg.KVHeads, 1, cfg.KeyDim)
	must(c.Update(one, one))
	return c
}

func BenchmarkDecode(b *testing.B) {
	onEach(b, func(b *testing.B, dev accelerated.Device) {
		for _, cfg := range []accelerated.Config{benchConfig, quantizedConfig(64, 4)} {
			b.Run(fmt.Sprintf("bits=%d", cfg.Quant.Bits), func(b *testing.B) {
				c := full(dev, cfg, benchRows)
				defer c.Close()
				k := block(1)
				for b.Loop() {
					m := must(c.Mask(1, nil))
					must(c.Update(k, k))
					m.Release()
				}
			})
		}
	})
}

// BenchmarkDecodeRagged has padding in a row, so that each step's mask differs.
func BenchmarkDecodeRagged(b *testing.B) {
	onEach(b, func(b *testing.B, dev accelerated.Device) {
		c := must(accelerated.NewBatchRotating(dev, benchConfig, make([]int, benchRows)))
		defer c.Close()
		k, half := block(1), block(benchWindow/2)
		lengths, right := make([]int, benchRows), make([]int, benchRows)
		for i := range right {
			lengths[i], right[i] = benchWindow/2-i, i
		}
		check(c.Prepare(accelerated.Padding{Lengths: lengths, RightPadding: right}))
		must(c.Update(half, half))
		check(c.Finalize())
		before := must(c.Snapshot())
		defer before.Close()
		for b.Loop() {
			m := must(c.Mask(1, nil))
			must(c.Update(k, k))
			m.Release()
			if !c.Trimmable() { // the window is full
				b.StopTimer()
				check(c.Restore(before))
				b.StartTimer()
			}
		}
	})
}

func BenchmarkBlock(b *testing.B) {
	onEach(b, func(b *testing.B, dev accelerated.Device) {
		for _, n := range []int{9, 512, 2048} {
			b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
				c := full(dev, benchConfig, benchRows)
				defer c.Close()
				k := block(n)
				b.SetBytes(int64(2 * k.Bytes()))
				for b.Loop() {
					m := must(c.Mask(n, nil))
					must(c.Update(k, k))
					m.Release()
				}
			})
		}
	})
}

func BenchmarkMerge(b *testing.B) {
	onEach(b, func(b *testing.B, dev accelerated.Device) {
		var rows []*accelerated.Cache
		for range benchRows {
			c := must(accelerated.NewRotating(dev, benchConfig))
			defer c.Close()
			k := tokens(ring.BFloat16, 1, benchHeads, benchWindow, benchDim)
			must(c.Update(k, k))
			must(c.Update(block1(1), block1(1)))
			rows = append(rows, c)
		}
		b.SetBytes(ringBytes)
		for b.Loop() {
			check(must(accelerated.Merge(rows...)).Close())
		}
	})
}

const ringBytes = 2 * benchRows * benchHeads * benchWindow * benchDim * 2

func block1(n int) accelerated.View { return tokens(ring.BFloat16, 1, benchHeads, n, benchDim) }

func BenchmarkExtract(b *testing.B) {
	onEach(b, func(b *testing.B, dev accelerated.Device) {
		c := full(dev, benchConfig, benchRows)
		defer c.Close()
		b.SetBytes(ringBytes / benchRows)
		i := 0
		for b.Loop() {
			check(must(c.Extract(i % benchRows)).Close())
			i++
		}
	})
}

func BenchmarkFilter(b *testing.B) {
	onEach(b, func(b *testing.B, dev accelerated.Device) {
		c := full(dev, benchConfig, benchRows)
		defer c.Close()
		before := must(c.Snapshot())
		defer before.Close()
		b.SetBytes(ringBytes / benchRows * 5) // the rows that move
		for b.Loop() {
			b.StopTimer()
			d := must(before.Adopt())
			b.StartTimer()
			check(d.Filter([]int{0, 2, 3, 4, 5, 6}))
			b.StopTimer()
			check(d.Close())
			b.StartTimer()
		}
	})
}

func BenchmarkFinalize(b *testing.B) {
	onEach(b, func(b *testing.B, dev accelerated.Device) {
		c := full(dev, benchConfig, benchRows)
		defer c.Close()
		lengths, right := make([]int, benchRows), make([]int, benchRows)
		for i := range right {
			lengths[i], right[i] = benchRows-i, i
		}
		k := block(benchRows)
		b.SetBytes(2 * benchHeads * benchDim * 2 * (benchWindow - 1 + benchRows) * (benchRows - 1))
		for b.Loop() {
			b.StopTimer()
			check(c.Prepare(accelerated.Padding{Lengths: lengths, RightPadding: right}))
			must(c.Update(k, k))
			b.StartTimer()
			check(c.Finalize())
		}
	})
}

func BenchmarkRollback(b *testing.B) {
	onEach(b, func(b *testing.B, dev accelerated.Device) {
		c := full(dev, benchConfig, benchRows)
		defer c.Close()
		k, keep := block(8), make([]int, benchRows)
		for i := range keep {
			keep[i] = 1 + i%8
		}
		var before []int
		for b.Loop() {
			b.StopTimer()
			before = append(before[:0], c.Position().Offset...)
			must(c.Update(k, k))
			b.StartTimer()
			check(c.Rollback(before, keep, false))
		}
	})
}

func BenchmarkQuantize(b *testing.B) {
	onEach(b, func(b *testing.B, dev accelerated.Device) {
		for _, bits := range []int{2, 3, 4, 5, 6, 8} {
			b.Run(fmt.Sprintf("bits=%d", bits), func(b *testing.B) {
				c := must(accelerated.NewBatchRotating(dev, quantizedConfig(64, bits), make([]int, benchRows)))
				defer c.Close()
				k := block(benchWindow)
				b.SetBytes(ringBytes)
				for b.Loop() {
					must(c.Update(k, k))
				}
			})
		}
	})
}

func BenchmarkAttend(b *testing.B) {
	onEach(b, func(b *testing.B, dev accelerated.Device) {
		for _, group := range []int{1, 4} {
			for _, cfg := range []accelerated.Config{benchConfig, quantizedConfig(64, 4)} {
				b.Run(fmt.Sprintf("group=%d/bits=%d", group, cfg.Quant.Bits), func(b *testing.B) {
					c := full(dev, cfg, benchRows)
					defer c.Close()
					q := tokens(ring.BFloat16, benchRows, group*benchHeads, 1, benchDim)
					out := accelerated.HostView(ring.Array{DType: ring.Float32, Shape: q.Shape})
					out.Host = make([]byte, out.Bytes())
					b.SetBytes(ringBytes)
					for b.Loop() {
						check(c.Attend(out, q, 0.088))
					}
				})
			}
		}
	})
}

// BenchmarkCopy is the machine's own copy, of as many bytes as a full ring.
func BenchmarkCopy(b *testing.B) {
	src, dst := make([]byte, ringBytes), make([]byte, ringBytes)
	b.SetBytes(ringBytes)
	b.Run("cores=1", func(b *testing.B) {
		b.SetBytes(ringBytes)
		for b.Loop() {
			copy(dst, src)
		}
	})
	b.Run("cores=2", func(b *testing.B) {
		b.SetBytes(ringBytes)
		for b.Loop() {
			done := make(chan bool)
			go func() {
				copy(dst[:ringBytes/2], src)
				done <- true
			}()
			copy(dst[ringBytes/2:], src[ringBytes/2:])
			<-done
		}
	})
}
