package accelerated_test

import (
	"fmt"
	"sync"
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// TestLarge runs each operation once on rings so large that moves bypass the
// cache and are spread over workers, against the reference.
func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("moves hundreds of megabytes")
	}
	for _, o := range []cpu.Options{{Workers: 3}, {Workers: 2, PlainGo: true}} {
		for _, bits := range []int{0, 3} {
			dev := cpu.Open(o)
			t.Run(fmt.Sprintf("%s, bits %d", dev.Name(), bits), func(t *testing.T) {
				const rows, heads, window = 4, 4, 1024
				cfg := accelerated.Config{Semantics: ring.Exact, MaxSize: window, KVHeads: heads, KeyDim: 320, ValueDim: 288, DType: ring.BFloat16}
				var ref *reference.BatchRotatingKVCache
				if bits > 0 {
					cfg.Quant = accelerated.Quant{GroupSize: 32, Bits: bits}
					ref = must(reference.NewBatchRotatingQuantizedKVCache(ring.Exact, window, make([]int, rows), reference.Format(cfg.Quant)))
				} else {
					ref = must(reference.NewBatchRotatingKVCache(ring.Exact, window, make([]int, rows)))
				}
				c := must(accelerated.NewBatchRotating(dev, cfg, make([]int, rows)))
				same := func(what string) {
					t.Helper()
					if got, want := fmt.Sprint(c.Position()), fmt.Sprint(ref.Position()); got != want {
						t.Fatalf("%s: %s, want %s", what, got, want)
					}
					got, want := must(c.Download()), ref.Columns()
					for i, planes := range [2][2]ring.Planes{{got.Keys, want.Keys}, {got.Values, want.Values}} {
						for p := range planes[1] {
							if string(planes[0][p].Data) != string(planes[1][p].Data) {
								t.Fatalf("%s: side %d, plane %d differs", what, i, p)
							}
						}
					}
				}
				serial := byte(0)
				update := func(n int) {
					t.Helper()
					serial++
					k, v := tokens(cfg.DType, c.Rows(), heads, n, cfg.KeyDim), tokens(cfg.DType, c.Rows(), heads, n, cfg.ValueDim)
					for i := range k.Host {
						k.Host[i] ^= serial & 0x0F
					}
					must(ref.Update(ring.Array{DType: cfg.DType, Shape: k.Shape, Data: k.Host}, ring.Array{DType: cfg.DType, Shape: v.Shape, Data: v.Host}))
					must(c.Update(k, v))
					same(fmt.Sprintf("update of %d", n))
				}
				update(window)
				update(1)
				update(300) // behind, with what was decoded
				update(700) // to the front
				update(1)
				update(1)
				check(c.Prepare(accelerated.Padding{Lengths: []int{8, 5, 8, 1}, RightPadding: []int{0, 3, 0, 7}}))
				check(ref.Prepare(reference.Padding{Lengths: []int{8, 5, 8, 1}, RightPadding: []int{0, 3, 0, 7}}))
				update(8)
				check(c.Finalize())
				check(ref.Finalize())
				same("finalize")
				before := c.Position().Offset
				update(9)
				check(c.Rollback(before, []int{9, 1, 4, 0}, false))
				check(ref.Rollback(before, []int{9, 1, 4, 0}, false))
				same("rollback")
				update(1)
				update(1)

				view := must(c.TemporalView())
				got, want := must(view.Download(dev)), must(ref.TemporalView())
				for i := range want.Keys {
					if string(got.Keys[i].Data) != string(want.Keys[i].Data) {
						t.Fatal("the temporal view differs")
					}
				}
				q := tokens(cfg.DType, rows, 2*heads, 3, cfg.KeyDim)
				out := accelerated.HostView(ring.Array{DType: ring.Float32, Shape: [4]int{rows, 2 * heads, 3, cfg.ValueDim}})
				out.Host = make([]byte, out.Bytes())
				check(c.Attend(out, q, 0.06))
				attended := must(ref.Attend(ring.Array{DType: cfg.DType, Shape: q.Shape, Data: q.Host}, 0.06))
				floats := must(reference.Floats(ring.Array{DType: ring.Float32, Shape: out.Shape, Data: out.Host}))
				for i := range attended {
					if d := floats[i] - attended[i]; !(d < 1e-5 && d > -1e-5) {
						t.Fatalf("attended %v, want %v", floats[i], attended[i])
					}
				}

				check(c.Filter([]int{0, 2, 3}))
				check(ref.Filter([]int{0, 2, 3}))
				same("filter in place")
				check(c.Filter([]int{1, 0}))
				check(ref.Filter([]int{1, 0}))
				same("filter")
				row := must(c.Extract(1))
				merged := must(accelerated.Merge(c, row, c))
				refMerged := must(reference.MergeRows([]reference.Cache{ref, must(ref.Extract(1)), ref}))
				check(row.Close())
				check(c.Close())
				c, ref = merged, refMerged
				same("merge")
				check(c.Close())
				if n := dev.Stats().Live; n != 0 {
					t.Fatalf("%d live buffers", n)
				}
			})
			check(dev.Close())
		}
	}
}

// TestTogether runs caches of several goroutines on one device, with masks in
// common, and expects of each what it does alone.
func TestTogether(t *testing.T) {
	cfg := sceneConfig(false)
	cfg.KVHeads, cfg.MaxSize = 4, 200
	run := func(dev accelerated.Device, masks *accelerated.Masks, n int) string {
		cfg := cfg
		cfg.Masks = masks
		c := must(accelerated.NewBatchRotating(dev, cfg, []int{0, n % 3}))
		defer c.Close()
		for i := range 60 {
			k, v := numbered(cfg, 2, 1)
			if i%10 == n {
				k, v = numbered(cfg, 2, 40+n)
			}
			m := must(c.Mask(k.Shape[2], nil))
			must(c.Update(k, v))
			m.Release()
			read := must(c.AppendWindow(k, v))
			read.Close()
			if i%20 == n {
				e := must(c.Extract(0))
				check(must(accelerated.Merge(c, e)).Close())
				check(e.Close())
			}
		}
		return image(c)
	}
	alone := cpu.Open(cpu.Options{Workers: 1})
	defer alone.Close()
	dev := cpu.Open(cpu.Options{Workers: 3})
	masks := accelerated.NewMasks(dev)
	var want, got [4]string
	var all sync.WaitGroup
	for i := range got {
		want[i] = run(alone, nil, i)
		all.Go(func() { got[i] = run(dev, masks, i) })
	}
	all.Wait()
	if got != want {
		t.Error("caches that ran together differ from those that ran alone")
	}
	masks.Close()
	if n := dev.Stats().Live; n != 0 {
		t.Errorf("%d live buffers", n)
	}
	check(dev.Close())
}
