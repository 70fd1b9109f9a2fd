package accelerated_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/reference/ring"
)

// failing is a device whose calls fail on demand: the one that brings left to
// zero. Such a call does nothing.
type failing struct {
	accelerated.Device
	left int
}

var errOnDemand = errors.New("failed on demand")

func (f *failing) fails() bool {
	f.left--
	return f.left == 0
}

func (f *failing) Alloc(size int) (accelerated.Buffer, error) {
	if f.fails() {
		return nil, &accelerated.MemoryError{Device: "failing", Bytes: size, Err: errOnDemand}
	}
	return f.Device.Alloc(size)
}

func (f *failing) Run(w *accelerated.Work) error {
	if f.fails() {
		return &accelerated.DeviceError{Device: "failing", Call: "run", Err: errOnDemand}
	}
	return f.Device.Run(w)
}

func (f *failing) Attend(a *accelerated.Attention) error {
	if f.fails() {
		return &accelerated.DeviceError{Device: "failing", Call: "attend", Err: errOnDemand}
	}
	return f.Device.Attend(a)
}

func (f *failing) Upload(dst accelerated.Buffer, offset int, src []byte) error {
	if f.fails() {
		return &accelerated.DeviceError{Device: "failing", Call: "upload", Err: errOnDemand}
	}
	return f.Device.Upload(dst, offset, src)
}

func (f *failing) Download(dst []byte, src accelerated.View) error {
	if f.fails() {
		return &accelerated.DeviceError{Device: "failing", Call: "download", Err: errOnDemand}
	}
	return f.Device.Download(dst, src)
}

// scene is a cache in some state, and one operation on it that needs a device.
type scene struct {
	name  string
	build func(dev accelerated.Device) *accelerated.Cache
	op    func(dev accelerated.Device, c *accelerated.Cache) (made closer, err error)
}

type closer interface{ Close() error }

func sceneConfig(quantized bool) accelerated.Config {
	cfg := accelerated.Config{Semantics: ring.Exact, MaxSize: 6, Step: 2, KVHeads: 2, KeyDim: 32, ValueDim: 64, DType: ring.BFloat16}
	if quantized {
		cfg.Quant = accelerated.Quant{GroupSize: 32, Bits: 4}
	}
	return cfg
}

// numbered makes n columns of keys and values.
func numbered(cfg accelerated.Config, rows, n int) (keys, values accelerated.View) {
	v := [2]accelerated.View{}
	for i, dim := range [2]int{cfg.KeyDim, cfg.ValueDim} {
		a := ring.Array{DType: cfg.DType, Shape: [4]int{rows, cfg.KVHeads, n, dim}, Data: make([]byte, rows*cfg.KVHeads*n*dim*cfg.DType.Size())}
		for j := range a.Data {
			a.Data[j] = byte(j*7+i) & 0x3F
		}
		v[i] = accelerated.HostView(a)
	}
	return v[0], v[1]
}

func written(dev accelerated.Device, cfg accelerated.Config, serial bool, writes ...int) *accelerated.Cache {
	var c *accelerated.Cache
	if serial {
		c = must(accelerated.NewRotating(dev, cfg))
	} else {
		c = must(accelerated.NewBatchRotating(dev, cfg, []int{0, 1, 0}))
	}
	for _, n := range writes {
		k, v := numbered(cfg, c.Rows(), n)
		must(c.Update(k, v))
	}
	return c
}

func scenes(cfg accelerated.Config) []scene {
	type op = func(dev accelerated.Device, c *accelerated.Cache) (closer, error)
	state := func(writes ...int) func(accelerated.Device) *accelerated.Cache {
		return func(dev accelerated.Device) *accelerated.Cache { return written(dev, cfg, false, writes...) }
	}
	serial := func(writes ...int) func(accelerated.Device) *accelerated.Cache {
		return func(dev accelerated.Device) *accelerated.Cache { return written(dev, cfg, true, writes...) }
	}
	pending := func(dev accelerated.Device) *accelerated.Cache {
		c := written(dev, cfg, false, 4)
		check(c.Prepare(accelerated.Padding{Lengths: []int{3, 1, 2}, RightPadding: []int{0, 2, 1}}))
		k, v := numbered(cfg, 3, 3)
		must(c.Update(k, v))
		return c
	}
	update := func(n int) op {
		return func(_ accelerated.Device, c *accelerated.Cache) (closer, error) {
			k, v := numbered(cfg, c.Rows(), n)
			_, err := c.Update(k, v)
			return nil, err
		}
	}
	read := func(r accelerated.Read, c *accelerated.Cache, n int, err error) (closer, error) {
		if err != nil {
			return nil, err
		}
		defer r.Close()
		q, _ := numbered(cfg, c.Rows(), n)
		out := accelerated.HostView(ring.Array{DType: ring.Float32, Shape: [4]int{c.Rows(), cfg.KVHeads, n, cfg.ValueDim}})
		out.Host = make([]byte, out.Bytes())
		check(r.Attend(out, q, 1))
		return nil, nil
	}
	under := func(dev accelerated.Device, c *accelerated.Cache) (closer, error) {
		k, v := numbered(cfg, c.Rows(), 2)
		m := &ring.Mask{B: c.Rows(), N: 2, S: min(c.Size(), cfg.MaxSize-1) + 2}
		m.Data = make([]bool, m.B*m.N*m.S)
		masks := accelerated.NewMasks(dev)
		defer masks.Close()
		lease, err := masks.Upload(m)
		if err != nil {
			return nil, err
		}
		r, err := c.AppendWindowUnder(k, v, lease, false)
		if err == nil {
			r.Close()
		}
		return nil, err
	}
	made := func(c *accelerated.Cache, err error) (closer, error) {
		if err != nil {
			return nil, err
		}
		return c, nil
	}
	all := []scene{
		{"first decode", state(), update(1)},
		{"first block", state(), update(5)},
		{"growing decode", state(2), update(1)},
		{"wrapping decode", state(6), update(1)},
		{"decode after an overshoot", state(9), update(1)},
		{"block behind", state(6), update(2)},
		{"block on a wrapped ring", state(6, 1, 1), update(3)},
		{"block that needs room", state(6), update(40)},
		{"block while pending", pending, update(4)},
		{"mask", state(4), func(_ accelerated.Device, c *accelerated.Cache) (closer, error) {
			l, err := c.Mask(3, nil)
			l.Release()
			return nil, err
		}},
		{"append_decode", state(6, 1), func(_ accelerated.Device, c *accelerated.Cache) (closer, error) {
			k, v := numbered(cfg, c.Rows(), 1)
			r, err := c.AppendDecode(k, v)
			if err == nil {
				r.Close()
			}
			return nil, err
		}},
		{"append_window", state(6, 1), func(_ accelerated.Device, c *accelerated.Cache) (closer, error) {
			k, v := numbered(cfg, c.Rows(), 2)
			r, err := c.AppendWindow(k, v)
			if err == nil {
				r.Close()
			}
			return nil, err
		}},
		{"append_window_under", state(6, 1), under},
		{"attend", state(6, 1), func(_ accelerated.Device, c *accelerated.Cache) (closer, error) {
			q, _ := numbered(cfg, c.Rows(), 2)
			out := accelerated.HostView(ring.Array{DType: ring.Float32, Shape: [4]int{c.Rows(), cfg.KVHeads, 2, cfg.ValueDim}})
			out.Host = make([]byte, out.Bytes())
			return nil, c.Attend(out, q, 1)
		}},
		{"temporal view", state(6, 1), func(_ accelerated.Device, c *accelerated.Cache) (closer, error) {
			_, err := c.TemporalView()
			return nil, err
		}},
		{"finalize", pending, func(_ accelerated.Device, c *accelerated.Cache) (closer, error) { return nil, c.Finalize() }},
		{"filter to a new store", state(6, 1), func(_ accelerated.Device, c *accelerated.Cache) (closer, error) {
			return nil, c.Filter([]int{2, 0})
		}},
		{"filter in place", state(6, 1), func(dev accelerated.Device, c *accelerated.Cache) (closer, error) {
			return nil, c.Filter([]int{1, 1, 2})
		}},
		{"extend", state(6, 1), func(dev accelerated.Device, c *accelerated.Cache) (closer, error) {
			return nil, c.Extend(c)
		}},
		{"extract", state(6, 1), func(_ accelerated.Device, c *accelerated.Cache) (closer, error) { return made(c.Extract(1)) }},
		{"merge", state(6, 1), func(_ accelerated.Device, c *accelerated.Cache) (closer, error) {
			return made(accelerated.Merge(c, c))
		}},
		{"rollback", func(dev accelerated.Device) *accelerated.Cache {
			c := written(dev, cfg, false, 6, 1)
			r, err := c.AppendWindow(numbered(cfg, 3, 3))
			if _, err := read(r, c, 3, err); err != nil {
				panic(err)
			}
			return c
		}, func(_ accelerated.Device, c *accelerated.Cache) (closer, error) {
			return nil, c.Rollback([]int{7, 6, 7}, []int{1, 3, 2}, false)
		}},
		{"snapshot", state(6, 1), func(_ accelerated.Device, c *accelerated.Cache) (closer, error) {
			s, err := c.Snapshot()
			if err != nil {
				return nil, err
			}
			return s, nil
		}},
		{"restore", state(6, 1), func(_ accelerated.Device, c *accelerated.Cache) (closer, error) {
			s, err := c.Snapshot()
			if err != nil {
				return nil, err
			}
			defer s.Close()
			return nil, c.Restore(s)
		}},
		{"adopt", state(6, 1), func(_ accelerated.Device, c *accelerated.Cache) (closer, error) {
			s, err := c.Snapshot()
			if err != nil {
				return nil, err
			}
			defer s.Close()
			return made(s.Adopt())
		}},
		{"download and adopt", state(6, 1), func(dev accelerated.Device, c *accelerated.Cache) (closer, error) {
			kv, err := c.Download()
			if err != nil {
				return nil, err
			}
			return made(accelerated.Adopt(dev, cfg, false, c.Position(), kv))
		}},
		{"serial decode", serial(6), update(1)},
		{"serial block", serial(6, 1), update(4)},
	}
	if cfg.Quant.Bits == 0 {
		all = append(all, scene{"to_quantized", serial(3), func(_ accelerated.Device, c *accelerated.Cache) (closer, error) {
			return made(c.ToQuantized(accelerated.Quant{GroupSize: 32, Bits: 4}))
		}})
	}
	return all
}

// image is everything that a cache holds and says of itself.
func image(c *accelerated.Cache) string {
	kv := must(c.Download())
	var b bytes.Buffer
	fmt.Fprintln(&b, c.Kind(), c.Rows(), c.Size(), c.Length(), c.Trimmable(), c.Position(), c.RowPositions(nil))
	for _, planes := range [2]ring.Planes{kv.Keys, kv.Values} {
		for _, a := range planes {
			fmt.Fprintf(&b, "%v %v %x\n", a.DType, a.Shape, a.Data)
		}
	}
	return b.String()
}

// TestFailingDevice lets each call of each operation fail in turn: the cache is
// as it was, nothing stays allocated, and the operation then succeeds as if
// nothing had happened.
func TestFailingDevice(t *testing.T) {
	inner := cpu.Open(cpu.Options{Workers: 1})
	defer inner.Close()
	dev := &failing{Device: inner}
	for _, quantized := range []bool{false, true} {
		for _, s := range scenes(sceneConfig(quantized)) {
			t.Run(fmt.Sprintf("%s, quantized %v", s.name, quantized), func(t *testing.T) {
				dev.left = 0
				control := s.build(dev)
				made, err := s.op(dev, control)
				if err != nil {
					t.Fatal(err)
				}
				if made != nil {
					check(made.Close())
				}
				want := image(control)
				check(control.Close())

				c := s.build(dev)
				before, live := image(c), inner.Stats().Live
				failures := 0
				for call := 1; ; call++ {
					dev.left = call
					made, err := s.op(dev, c)
					failed := dev.left <= 0
					dev.left = 0
					if !failed {
						if err != nil {
							t.Fatal(err)
						}
						if made != nil {
							check(made.Close())
						}
						break
					}
					failures++
					if !errors.Is(err, errOnDemand) {
						t.Fatalf("call %d failed, but the error is %v", call, err)
					}
					if got := image(c); got != before {
						t.Fatalf("call %d failed, and the cache is\n%s\nit was\n%s", call, got, before)
					}
					if s.name == "attend" && call == 3 {
						live++ // the mask, which was built, is remembered
					}
					if n := inner.Stats().Live; n != live {
						t.Fatalf("call %d failed, and %d buffers are live, before %d", call, n, live)
					}
				}
				if failures == 0 {
					t.Fatal("the operation made no call that could fail")
				}
				if got := image(c); got != want {
					t.Fatalf("after failures the cache is\n%s\nwant\n%s", got, want)
				}
				check(c.Close())
				check(c.Close())
				if n := inner.Stats().Live; n != 0 {
					t.Fatalf("%d buffers are live after Close", n)
				}
			})
		}
	}
}
