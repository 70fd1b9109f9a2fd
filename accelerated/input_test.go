package accelerated_test

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

// TestBadInput gives each operation wrong arguments, and expects the typed
// error that names them, and a cache that is as it was.
func TestBadInput(t *testing.T) {
	dev := cpu.Open(cpu.Options{Workers: 1})
	defer dev.Close()
	cfg := sceneConfig(false)
	c := written(dev, cfg, false, 6, 1)
	defer c.Close()
	young := written(dev, cfg, false, 3)
	defer young.Close()
	waiting := written(dev, cfg, false, 2)
	defer waiting.Close()
	check(waiting.Prepare(accelerated.Padding{Lengths: []int{2, 1, 2}, RightPadding: []int{0, 1, 0}}))
	serial := written(dev, cfg, true, 3)
	defer serial.Close()
	fresh := written(dev, cfg, false)
	defer fresh.Close()
	other := func(change func(*accelerated.Config)) *accelerated.Cache {
		cfg := cfg
		change(&cfg)
		c := written(dev, cfg, false, 1)
		t.Cleanup(func() { c.Close() })
		return c
	}
	quantize := func(cfg *accelerated.Config) { cfg.Quant = accelerated.Quant{GroupSize: 32, Bits: 2} }
	packed, rowless := other(quantize), other(quantize)
	check(rowless.Filter(nil))
	wide := other(func(cfg *accelerated.Config) { cfg.MaxSize++ })
	merge := func(sources ...*accelerated.Cache) func() error {
		return func() error { _, err := accelerated.Merge(sources...); return err }
	}
	snapshot := must(other(func(cfg *accelerated.Config) { cfg.MaxSize = 7 }).Snapshot())
	defer snapshot.Close()

	k, v := numbered(cfg, 3, 2)
	k1, v1 := numbered(cfg, 3, 1)
	with := func(view accelerated.View, change func(*accelerated.View)) accelerated.View {
		change(&view)
		return view
	}
	update := func(c *accelerated.Cache, k, v accelerated.View) func() error {
		return func() error { _, err := c.Update(k, v); return err }
	}
	window := func(n int) *int { return &n }
	masks := accelerated.NewMasks(dev)
	defer masks.Close()
	elsewhere := cpu.Open(cpu.Options{Workers: 1})
	defer elsewhere.Close()
	foreignMasks := accelerated.NewMasks(elsewhere)
	freed := must(dev.Alloc(1 << 16))
	dev.Free(freed)
	out := accelerated.HostView(ring.Array{DType: ring.Float32, Shape: [4]int{3, 2, 1, 64}})
	out.Host = make([]byte, out.Bytes())
	q, _ := numbered(cfg, 3, 1)

	for _, test := range []struct {
		name, code string
		cache      *accelerated.Cache
		op         func() error
	}{
		{"no tokens", "no_tokens", c, update(c, with(k, func(v *accelerated.View) { v.Shape[2] = 0 }), v)},
		{"negative tokens", "shape", c, update(c, with(k, func(v *accelerated.View) { v.Shape[2] = -1 }), v)},
		{"rows of keys", "rows", c, update(c, with(k, func(v *accelerated.View) { v.Shape[0] = 2 }), v)},
		{"rows of values", "rows", c, update(c, k, with(v, func(v *accelerated.View) { v.Shape[0] = 4 }))},
		{"heads", "shape", c, update(c, with(k, func(v *accelerated.View) { v.Shape[1] = 1 }), v)},
		{"width of keys", "shape", c, update(c, with(k, func(v *accelerated.View) { v.Shape[3] = 31 }), v)},
		{"width of values", "shape", c, update(c, k, with(v, func(v *accelerated.View) { v.Shape[3] = 32 }))},
		{"columns differ", "shape", c, update(c, k, v1)},
		{"dtype", "dtype", c, update(c, with(k, func(v *accelerated.View) { v.DType = ring.Float16 }), v)},
		{"too few bytes", "shape", c, update(c, with(k, func(v *accelerated.View) { v.Host = v.Host[1:] }), v)},
		{"no bytes", "shape", c, update(c, k, with(v, func(v *accelerated.View) { v.Host = nil }))},
		{"offset", "shape", c, update(c, with(k, func(v *accelerated.View) { v.Offset = 2 }), v)},
		{"negative offset", "shape", c, update(c, with(k, func(v *accelerated.View) { v.Offset = -2 }), v)},
		{"huge offset", "shape", c, update(c, with(k, func(v *accelerated.View) { v.Offset = math.MaxInt }), v)},
		{"negative stride", "shape", c, update(c, with(k, func(v *accelerated.View) { v.Stride[1] = -64 }), v)},
		{"huge stride", "shape", c, update(c, with(k, func(v *accelerated.View) { v.Stride[0] = math.MaxInt }), v)},
		{"freed buffer", "", c, update(c, with(k, func(v *accelerated.View) { v.Buffer = freed }), v)},
		{"another's buffer", "", c, update(c, with(k, func(v *accelerated.View) { v.Buffer = foreign{} }), v)},
		{"decode of two", "shape", c, func() error { _, err := c.AppendDecode(k, v); return err }},
		{"decode while pending", "pending_padding", waiting, func() error { _, err := waiting.AppendDecode(k1, v1); return err }},
		{"serial decode", "not_supported", serial, func() error { _, err := serial.AppendDecode(k1, v1); return err }},
		{"serial window", "not_supported", serial, func() error { _, err := serial.AppendWindow(k1, v1); return err }},
		{"no mask", "shape", c, func() error { _, err := c.AppendWindowUnder(k, v, accelerated.Lease{}, true); return err }},
		{"mask of another width", "shape", c, func() error {
			l := must(masks.Upload(&ring.Mask{B: 3, N: 2, S: 3, Data: make([]bool, 18)}))
			_, err := c.AppendWindowUnder(k, v, l, false)
			return err
		}},
		{"mask of another device", "", c, func() error {
			l := must(foreignMasks.Upload(&ring.Mask{B: 3, N: 2, S: 7, Data: make([]bool, 42)}))
			_, err := c.AppendWindowUnder(k, v, l, false)
			return err
		}},
		{"mask without elements", "shape", c, func() error { _, err := masks.Upload(&ring.Mask{B: 1, N: 1, S: 3}); return err }},
		{"mask of none", "range", c, func() error { _, err := c.Mask(0, nil); return err }},
		{"mask of too many", "range", c, func() error { _, err := c.Mask(math.MaxInt, nil); return err }},
		{"window 0", "window", c, func() error { _, err := c.Mask(1, window(0)); return err }},
		{"lengths", "rows", young, func() error {
			return young.Prepare(accelerated.Padding{Lengths: []int{1}, RightPadding: []int{1}})
		}},
		{"no lengths", "rows", young, func() error { return young.Prepare(accelerated.Padding{RightPadding: []int{1, 0, 0}}) }},
		{"unequal widths", "shape", young, func() error {
			return young.Prepare(accelerated.Padding{Lengths: []int{1, 1, 1}, RightPadding: []int{1, 0, 0}})
		}},
		{"negative padding", "range", fresh, func() error { return fresh.Prepare(accelerated.Padding{LeftPadding: []int{0, -1, 0}}) }},
		{"huge padding", "range", fresh, func() error {
			return fresh.Prepare(accelerated.Padding{LeftPadding: []int{0, math.MaxInt, 0}})
		}},
		{"left padding", "left_padding_on_non_empty", young, func() error {
			return young.Prepare(accelerated.Padding{LeftPadding: []int{0, 1, 0}})
		}},
		{"prepared twice", "pending_padding", waiting, func() error { return waiting.Prepare(accelerated.Padding{}) }},
		{"filter beyond", "range", c, func() error { return c.Filter([]int{0, 3}) }},
		{"filter before", "range", c, func() error { return c.Filter([]int{-1}) }},
		{"extract beyond", "range", c, func() error { _, err := c.Extract(3); return err }},
		{"limit 0", "range", c, func() error { _, err := c.ExtractLimit(0, 0); return err }},
		{"extract while pending", "pending_padding", waiting, func() error { _, err := waiting.Extract(0); return err }},
		{"serial extract", "not_supported", serial, func() error { _, err := serial.Extract(0); return err }},
		{"extend across windows", "max_size", c, func() error {
			return c.Extend(other(func(cfg *accelerated.Config) { cfg.MaxSize++ }))
		}},
		{"extend across heads", "shape", c, func() error {
			return c.Extend(other(func(cfg *accelerated.Config) { cfg.KVHeads++ }))
		}},
		{"extend across types", "dtype", c, func() error {
			return c.Extend(other(func(cfg *accelerated.Config) { cfg.DType = ring.Float16 }))
		}},
		{"extend across storage", "quant", c, func() error {
			return c.Extend(other(quantize))
		}},
		{"extend across semantics", "not_supported", c, func() error {
			return c.Extend(other(func(cfg *accelerated.Config) { cfg.Semantics = ring.MLXLM }))
		}},
		{"extend by what waits", "pending_padding", c, func() error { return c.Extend(waiting) }},
		{"extend by a serial ring", "not_supported", c, func() error { return c.Extend(serial) }},
		{"extend by nothing", "closed", c, func() error { return c.Extend(nil) }},
		{"merge of nothing", "rows", c, func() error { _, err := accelerated.Merge(); return err }},
		{"merge across windows", "max_size", c, func() error {
			_, err := accelerated.Merge(c, other(func(cfg *accelerated.Config) { cfg.MaxSize++ }))
			return err
		}},
		{"merge across windows and storage", "max_size", c, merge(c, packed, wide)},
		{"merge across windows and storage of no rows", "max_size", c, merge(c, wide, rowless)},
		{"merge of no rows across windows and storage", "max_size", c, merge(rowless, c, wide)},
		{"merge across storage of no rows", "quant", c, merge(c, rowless)},
		{"merge of what waits", "pending_padding", c, func() error { _, err := accelerated.Merge(c, waiting); return err }},
		{"trim after the window filled", "not_trimmable", c, func() error { _, err := c.Trim(1); return err }},
		{"trim of more than is held", "over_trim", young, func() error { _, err := young.Trim(3); return err }},
		{"trim below 0", "range", young, func() error { _, err := young.Trim(-1); return err }},
		{"trim while pending", "pending_padding", waiting, func() error { _, err := waiting.Trim(1); return err }},
		{"rollback rows", "rows", c, func() error { return c.Rollback([]int{0}, []int{0}, false) }},
		{"rollback keeps too many", "range", c, func() error { return c.Rollback([]int{6, 5, 6}, []int{2, 1, 1}, false) }},
		{"rollback keeps below 0", "range", c, func() error { return c.Rollback([]int{6, 5, 6}, []int{-1, 1, 1}, false) }},
		{"rollback from the future", "range", c, func() error { return c.Rollback([]int{9, 5, 6}, []int{0, 0, 0}, false) }},
		{"rollback from nowhere", "range", c, func() error { return c.Rollback([]int{math.MinInt, 5, 6}, []int{0, 0, 0}, false) }},
		{"valid offset beyond", "range", c, func() error { _, err := c.ValidOffset(3); return err }},
		{"temporal view of nothing", "empty", fresh, func() error { _, err := fresh.TemporalView(); return err }},
		{"projected below 0", "range", c, func() error { _, err := c.ProjectedBytes(-1); return err }},
		{"restore of another window", "max_size", c, func() error { return c.Restore(snapshot) }},
		{"restore of another kind", "not_supported", serial, func() error { return serial.Restore(snapshot) }},
		{"attend to nothing", "empty", fresh, func() error { return fresh.Attend(out, q, 1) }},
		{"queries of another width", "shape", c, func() error {
			return c.Attend(out, with(q, func(v *accelerated.View) { v.Shape[3] = 31 }), 1)
		}},
		{"query heads", "shape", c, func() error {
			return c.Attend(out, with(q, func(v *accelerated.View) { v.Shape[1] = 3 }), 1)
		}},
		{"rows of queries", "rows", c, func() error {
			return c.Attend(out, with(q, func(v *accelerated.View) { v.Shape[0] = 1 }), 1)
		}},
		{"more queries than columns", "range", c, func() error {
			return c.Attend(out, with(q, func(v *accelerated.View) { v.Shape[2] = 7 }), 1)
		}},
		{"type of queries", "dtype", c, func() error {
			return c.Attend(out, with(q, func(v *accelerated.View) { v.DType = ring.Float32 }), 1)
		}},
		{"output", "shape", c, func() error {
			return c.Attend(with(out, func(v *accelerated.View) { v.Host = v.Host[4:] }), q, 1)
		}},
		{"strided output", "shape", c, func() error {
			return c.Attend(with(out, func(v *accelerated.View) { v.Stride[1]++ }), q, 1)
		}},
		{"quantize a batch", "not_supported", c, func() error {
			_, err := c.ToQuantized(accelerated.Quant{GroupSize: 32, Bits: 4})
			return err
		}},
		{"quantize to 7 bits", "quant", serial, func() error {
			_, err := serial.ToQuantized(accelerated.Quant{GroupSize: 32, Bits: 7})
			return err
		}},
		{"quantize to nothing", "quant", serial, func() error { _, err := serial.ToQuantized(accelerated.Quant{}); return err }},
	} {
		before, live := image(test.cache), dev.Stats().Live
		err := test.op()
		if err == nil || ring.CodeOf(err) != test.code {
			t.Errorf("%s: error %v, want code %q", test.name, err, test.code)
		}
		var buffer *accelerated.BufferError
		if test.code == "" && !errors.As(err, &buffer) {
			t.Errorf("%s: error %v, want a BufferError", test.name, err)
		}
		if after := image(test.cache); after != before {
			t.Errorf("%s: the cache is\n%s\nit was\n%s", test.name, after, before)
		}
		// Caches that the test itself made stay.
		if n := dev.Stats().Live; n > live+1 {
			t.Errorf("%s: %d buffers are live, before %d", test.name, n, live)
		}
	}
}

type foreign struct{}

func (foreign) Size() int { return 1 << 20 }

// TestBadConfig makes caches that cannot be. The error says what would do.
func TestBadConfig(t *testing.T) {
	dev := cpu.Open(cpu.Options{Workers: 1})
	defer dev.Close()
	for _, test := range []struct {
		name, code, says string
		change           func(*accelerated.Config)
	}{
		{"semantics", "not_supported", "", func(c *accelerated.Config) { c.Semantics = 0 }},
		{"window", "max_size", "max size is 0, want at least 1", func(c *accelerated.Config) { c.MaxSize = 0 }},
		{"huge window", "range", "max size is 268435456, want 1 to 268435455", func(c *accelerated.Config) { c.MaxSize = 1 << 28 }},
		{"step", "range", "step is -1, want 0 to 268435455", func(c *accelerated.Config) { c.Step = -1 }},
		{"huge step", "range", "step is", func(c *accelerated.Config) { c.Step = math.MaxInt }},
		{"heads", "range", "heads is 0, want 1 to", func(c *accelerated.Config) { c.KVHeads = 0 }},
		{"key width", "range", "key width is -1, want 1 to", func(c *accelerated.Config) { c.KeyDim = -1 }},
		{"value width", "range", "value width is", func(c *accelerated.Config) { c.ValueDim = math.MaxInt }},
		{"dtype", "dtype", "data type is uint32, want bfloat16, float16 or float32", func(c *accelerated.Config) { c.DType = ring.Uint32 }},
		{"masks", "not_supported", "", func(c *accelerated.Config) { c.Masks = accelerated.NewMasks(nil) }},
		{"sinks", "keep", "", func(c *accelerated.Config) { c.Keep = 1 }},
		{"sinks over the window", "keep", "", func(c *accelerated.Config) { c.Semantics, c.Keep = ring.MLXLM, 6 }},
		{"group", "quant", "", func(c *accelerated.Config) { c.Quant = accelerated.Quant{GroupSize: 16, Bits: 4} }},
		{"group over the width", "quant", "", func(c *accelerated.Config) { c.Quant = accelerated.Quant{GroupSize: 64, Bits: 4} }},
		{"bits", "quant", "", func(c *accelerated.Config) { c.Quant = accelerated.Quant{GroupSize: 32, Bits: 1} }},
	} {
		cfg := sceneConfig(false)
		test.change(&cfg)
		if c, err := accelerated.NewRotating(dev, cfg); c != nil || ring.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want code %s and %q", test.name, err, test.code, test.says)
		}
	}
	if _, err := accelerated.NewBatchRotating(dev, sceneConfig(false), []int{0, -1}); ring.CodeOf(err) != "range" {
		t.Errorf("negative left padding: %v", err)
	}
	cfg := sceneConfig(false)
	cfg.KVHeads, cfg.MaxSize = math.MaxInt32/8, math.MaxInt32/8
	c := must(accelerated.NewBatchRotating(dev, cfg, make([]int, 3)))
	defer c.Close()
	if _, err := accelerated.Open("abacus"); err == nil {
		t.Error("a device that does not exist opens")
	}
}

// TestTooLarge asks for more memory than there can be.
func TestTooLarge(t *testing.T) {
	dev := cpu.Open(cpu.Options{Workers: 1})
	defer dev.Close()
	cfg := sceneConfig(false)
	cfg.MaxSize, cfg.Step = 1<<27, 1<<27
	cfg.KeyDim, cfg.ValueDim = 1<<20, 1<<20
	c := must(accelerated.NewRotating(dev, cfg))
	defer c.Close()
	k, v := numbered(cfg, 1, 1)
	_, err := c.Update(k, v)
	var memory *accelerated.MemoryError
	if !errors.As(err, &memory) || dev.Stats().Live != 0 || c.Position().Total != 0 {
		t.Fatalf("%v, %+v", err, dev.Stats())
	}
}

// writes are the operations that an open Read forbids, and all that a closed
// cache refuses.
func everyOp(c *accelerated.Cache, s *accelerated.Snapshot) (writes, reads map[string]func() error) {
	k, v := numbered(c.Config(), c.Rows(), 1)
	out := accelerated.HostView(ring.Array{DType: ring.Float32, Shape: [4]int{c.Rows(), 2, 1, 64}})
	out.Host = make([]byte, out.Bytes())
	n := make([]int, c.Rows())
	writes = map[string]func() error{
		"update":              func() error { _, err := c.Update(k, v); return err },
		"append_decode":       func() error { _, err := c.AppendDecode(k, v); return err },
		"append_window":       func() error { _, err := c.AppendWindow(k, v); return err },
		"append_window_under": func() error { _, err := c.AppendWindowUnder(k, v, accelerated.Lease{}, true); return err },
		"prepare":             func() error { return c.Prepare(accelerated.Padding{}) },
		"finalize":            func() error { return c.Finalize() },
		"filter":              func() error { return c.Filter([]int{0}) },
		"extend":              func() error { return c.Extend(c) },
		"trim":                func() error { _, err := c.Trim(0); return err },
		"rollback":            func() error { return c.Rollback(n, n, false) },
		"restore":             func() error { return c.Restore(s) },
	}
	reads = map[string]func() error{
		"mask":            func() error { l, err := c.Mask(1, nil); l.Release(); return err },
		"extract":         func() error { e, err := c.Extract(0); closeIf(e); return err },
		"merge":           func() error { m, err := accelerated.Merge(c); closeIf(m); return err },
		"snapshot":        func() error { s, err := c.Snapshot(); closeSnapshot(s); return err },
		"attend":          func() error { return c.Attend(out, k, 1) },
		"temporal_view":   func() error { _, err := c.TemporalView(); return err },
		"valid_offset":    func() error { _, err := c.ValidOffset(0); return err },
		"projected_bytes": func() error { _, err := c.ProjectedBytes(1); return err },
		"release":         func() error { return c.Release() },
		"download":        func() error { _, err := c.Download(); return err },
	}
	return writes, reads
}

func closeIf(c *accelerated.Cache) {
	if c != nil {
		c.Close()
	}
}

func closeSnapshot(s *accelerated.Snapshot) {
	if s != nil {
		s.Close()
	}
}

// TestOpenRead: a read forbids writes and nothing else; closing it ends that.
func TestOpenRead(t *testing.T) {
	dev := cpu.Open(cpu.Options{Workers: 1})
	defer dev.Close()
	c := written(dev, sceneConfig(false), false, 3)
	s := must(c.Snapshot())
	k, v := numbered(c.Config(), 3, 1)
	read := must(c.AppendDecode(k, v))
	writes, reads := everyOp(c, s)
	for name, op := range writes {
		if err := op(); ring.CodeOf(err) != "read_open" {
			t.Errorf("%s under an open read: %v", name, err)
		}
	}
	for name, op := range reads {
		if err := op(); err != nil {
			t.Errorf("%s under an open read: %v", name, err)
		}
	}
	stale := read
	read.Close()
	next := must(c.AppendDecode(k, v))
	stale.Close() // it must not close the next one
	if err := stale.Attend(k, k, 1); ring.CodeOf(err) != "closed" {
		t.Errorf("attend on a closed read: %v", err)
	}
	if _, err := c.Trim(0); ring.CodeOf(err) != "read_open" {
		t.Errorf("a stale read closed its successor: %v", err)
	}
	if (accelerated.Read{}).Mask().Buffer != nil || stale.KV().Keys[0].DType != 0 || stale.Mask().Buffer != nil {
		t.Error("a closed read shows something")
	}
	check(c.Close()) // closes the read, too
	next.Close()
	check(s.Close())
	if n := dev.Stats().Live; n != 0 {
		t.Errorf("%d live buffers", n)
	}
}

// TestClosed: everything is refused after Close, also of the device.
func TestClosed(t *testing.T) {
	dev := cpu.Open(cpu.Options{Workers: 1})
	c := written(dev, sceneConfig(false), false, 3)
	s := must(c.Snapshot())
	writes, reads := everyOp(c, s)
	check(s.Close())
	check(c.Close())
	check(c.Close())
	for _, ops := range []map[string]func() error{writes, reads} {
		for name, op := range ops {
			if err := op(); ring.CodeOf(err) != "closed" {
				t.Errorf("%s after Close: %v", name, err)
			}
		}
	}
	if _, err := s.Adopt(); ring.CodeOf(err) != "closed" {
		t.Errorf("adopt of a closed snapshot: %v", err)
	}
	orphan := written(dev, sceneConfig(false), false, 3)
	check(dev.Close())
	check(dev.Close())
	k, v := numbered(orphan.Config(), 3, 1)
	recurrent := must(accelerated.NewRecurrent(dev, 1))
	for name, op := range map[string]func() error{
		"update":   func() error { _, err := orphan.Update(k, v); return err },
		"mask":     func() error { _, err := orphan.Mask(2, nil); return err },
		"download": func() error { _, err := orphan.Download(); return err },
		"snapshot": func() error { _, err := orphan.Snapshot(); return err },
		"write":    func() error { return recurrent.Write(0, k) },
		"upload": func() error {
			_, err := accelerated.NewMasks(dev).Upload(&ring.Mask{B: 1, N: 1, S: 1, Data: []bool{true}})
			return err
		},
	} {
		err := op()
		var closed *accelerated.ClosedDeviceError
		if ring.CodeOf(err) != "closed" || !errors.As(err, &closed) || !strings.Contains(err.Error(), "the device "+dev.Name()+" is closed") {
			t.Errorf("%s on a closed device: %v", name, err)
		}
	}
	check(recurrent.Close())
	check(orphan.Close())
	if s := dev.Stats(); s != (accelerated.Stats{}) {
		t.Errorf("a closed device holds %+v", s)
	}
}

// gate is a device that holds a call until it is let go.
type gate struct {
	accelerated.Device
	in, out chan bool
}

func (g gate) Run(w *accelerated.Work) error {
	g.in <- true
	<-g.out
	return g.Device.Run(w)
}

// TestBusy: a call that begins while another runs is refused.
func TestBusy(t *testing.T) {
	inner := cpu.Open(cpu.Options{Workers: 1})
	defer inner.Close()
	dev := gate{inner, make(chan bool), make(chan bool)}
	c := must(accelerated.NewBatchRotating(dev, sceneConfig(false), make([]int, 3)))
	snapshot := must(c.Snapshot()) // of nothing: no call of the device
	writes, reads := everyOp(c, snapshot)
	k, v := numbered(c.Config(), 3, 1)
	var done sync.WaitGroup
	done.Go(func() { must(c.Update(k, v)) })
	<-dev.in
	for _, ops := range []map[string]func() error{writes, reads, {"close": c.Close}} {
		for name, op := range ops {
			if err := op(); ring.CodeOf(err) != "busy" {
				t.Errorf("%s during an update: %v", name, err)
			}
		}
	}
	dev.out <- true
	done.Wait()
	if c.Position().Total != 1 {
		t.Errorf("the update was disturbed: %+v", c.Position())
	}
	check(c.Close())
	check(snapshot.Close())
}

// TestGarbage calls operations with random arguments, sensible and not: nothing
// panics, and what errs changes nothing.
func TestGarbage(t *testing.T) {
	dev := cpu.Open(cpu.Options{Workers: 1})
	defer dev.Close()
	number := rapid.OneOf(rapid.IntRange(-1, 4), rapid.SampledFrom([]int{math.MinInt, math.MaxInt, math.MaxInt32, math.MaxInt32 / 8, 31, 32, 64, 1 << 40}))
	rapid.Check(t, func(t *rapid.T) {
		n := func(label string) int { return number.Draw(t, label) }
		list := func(label string) []int { return rapid.SliceOfN(number, 0, 4).Draw(t, label) }
		cfg := sceneConfig(rapid.Bool().Draw(t, "quantized"))
		cfg.Semantics = rapid.SampledFrom([]ring.Semantics{ring.MLXLM, ring.Exact}).Draw(t, "semantics")
		serial := rapid.Bool().Draw(t, "serial")
		c := written(dev, cfg, serial, rapid.SliceOfN(rapid.IntRange(1, 9), 0, 3).Draw(t, "writes")...)
		defer c.Close()
		view := func(label string, good accelerated.View) accelerated.View {
			if rapid.IntRange(0, 3).Draw(t, label) == 0 {
				good.Shape[rapid.IntRange(0, 3).Draw(t, label)] = n(label)
			}
			if rapid.IntRange(0, 3).Draw(t, label) == 0 {
				good.Stride[rapid.IntRange(0, 2).Draw(t, label)] = n(label)
			}
			if rapid.IntRange(0, 5).Draw(t, label) == 0 {
				good.Offset = n(label)
			}
			return good
		}
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			k, v := numbered(cfg, c.Rows(), rapid.IntRange(1, 8).Draw(t, "n"))
			k, v = view("keys", k), view("values", v)
			out := accelerated.HostView(ring.Array{DType: ring.Float32, Shape: [4]int{c.Rows(), 2, k.Shape[2] & 7, 64}})
			out.Host = make([]byte, out.Bytes())
			before := image(c)
			var err error
			var made *accelerated.Cache
			op := rapid.IntRange(0, 13).Draw(t, "op")
			switch op {
			case 0, 1:
				_, err = c.Update(k, v)
			case 2:
				var r accelerated.Read
				if r, err = c.AppendWindow(k, v); err == nil {
					_ = r.Attend(out, view("queries", k), 1)
					r.Close()
				}
			case 3:
				err = c.Prepare(accelerated.Padding{LeftPadding: list("left"), Lengths: list("lengths"), RightPadding: list("right")})
			case 4:
				err = c.Finalize()
			case 5:
				err = c.Filter(list("rows"))
			case 6:
				if c.Rows() < 20 {
					err = c.Extend(c)
				}
			case 7:
				made, err = c.ExtractLimit(n("row"), n("limit"))
			case 8:
				made, err = accelerated.Merge(c)
			case 9:
				_, err = c.Trim(n("n"))
			case 10:
				err = c.Rollback(list("before"), list("keep"), rapid.Bool().Draw(t, "preserve"))
			case 11:
				var l accelerated.Lease
				w := n("window")
				if m := n("n"); m < 1<<10 {
					l, err = c.Mask(m, &w)
				}
				l.Release()
			case 12:
				err = c.Attend(out, k, 1)
			case 13:
				p := c.Position()
				p.Idx, p.Total, p.Rotated = n("idx"), n("total"), rapid.Bool().Draw(t, "rotated")
				kv := must(c.Download())
				if made, err = accelerated.Adopt(dev, cfg, serial, p, kv); err == nil {
					_, _ = made.Update(k, v)
					k1, v1 := numbered(cfg, c.Rows(), 1)
					_, _ = made.Update(k1, v1)
				}
			}
			closeIf(made)
			if after := image(c); err != nil && after != before {
				t.Fatalf("operation %d: %v, and the cache is\n%s\nit was\n%s", op, err, after, before)
			}
		}
	})
	if n := dev.Stats().Live; n != 0 {
		t.Fatalf("%d live buffers", n)
	}
}

// A mask of more bytes than there can be is refused, and nothing overflows.
func TestMaskOfTooManyQueries(t *testing.T) {
	dev := cpu.Open(cpu.Options{})
	defer dev.Close()
	c, err := accelerated.NewBatchRotating(dev, accelerated.Config{Semantics: ring.Exact, MaxSize: 1, KVHeads: 1, KeyDim: 1, ValueDim: 1, DType: ring.Float32}, make([]int, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var memory *accelerated.MemoryError
	if _, err := c.Mask(1<<27, nil); !errors.As(err, &memory) {
		t.Errorf("%v, want a MemoryError", err)
	}
}
