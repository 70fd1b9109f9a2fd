package accelerated_test

import (
	"runtime"
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/reference/ring"
)

// TestDecodeAllocatesNothing runs steady-state decodes, of large rings and of
// small ones, plain and quantized, through each verb, and counts what they
// allocate and the goroutines that they start.
func TestDecodeAllocatesNothing(t *testing.T) {
	for _, o := range []cpu.Options{{}, {PlainGo: true}} {
		dev := cpu.Open(o)
		for _, cfg := range []accelerated.Config{benchConfig, quantizedConfig(64, 4)} {
			for _, window := range []int{16, benchWindow} {
				cfg.MaxSize = window
				c := full(dev, cfg, benchRows)
				k, q := block(1), block(1)
				out := accelerated.HostView(ring.Array{DType: ring.Float32, Shape: q.Shape})
				out.Host = make([]byte, out.Bytes())
				goroutines := runtime.NumGoroutine()
				steps := map[string]func(){
					"Mask and Update": func() {
						m := must(c.Mask(1, nil))
						must(c.Update(k, k))
						m.Release()
					},
					"AppendDecode and Attend": func() {
						r := must(c.AppendDecode(k, k))
						check(r.Attend(out, q, 0.1))
						r.Close()
						check(c.Release())
					},
				}
				for name, step := range steps {
					if n := testing.AllocsPerRun(10, step); n != 0 {
						t.Errorf("%s, %s, window %d: %v allocations a step", dev.Name(), name, window, n)
					}
				}
				// Fewer is a goroutine of an earlier test that has come to its end.
				if n := runtime.NumGoroutine(); n > goroutines {
					t.Errorf("%s, window %d: %d goroutines, before %d", dev.Name(), window, n, goroutines)
				}
				check(c.Close())
			}
		}
		check(dev.Close())
	}
}
