package accelerated_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// TestLeaseCopies: copies of a lease are released with it, and by the cache that
// takes it, so that no copy frees what others hold.
func TestLeaseCopies(t *testing.T) {
	dev := cpu.Open(cpu.Options{Workers: 1})
	defer dev.Close()
	cfg := sceneConfig(false)
	cfg.Masks = accelerated.NewMasks(dev)
	none := accelerated.MaskView{}

	c := written(dev, cfg, false, 3)
	l := must(c.Mask(2, nil))
	held, duplicate := l.View(), l
	l.Release()
	duplicate.Release()
	if !dev.Owns(held.Buffer) {
		t.Fatal("a copy's release freed the mask that the memory holds")
	}
	stale := duplicate
	again := must(c.Mask(2, nil))
	stale.Release()
	if again.View() != held {
		t.Error("the memory forgot a mask")
	}
	for range 2 {
		old := again
		old.Release()
		if again.View() != none {
			t.Error("a lease outlives its copy")
		}
	}

	k, v := numbered(cfg, 3, 2)
	mine := must(c.Mask(2, nil))
	spare := mine
	read := must(c.AppendWindowUnder(k, v, mine, false))
	want := bytesOf(read.Mask())
	mine.Release()
	spare.Release()
	if got := read.Mask(); got == none || !slices.Equal(bytesOf(got), want) {
		t.Error("the caller's copy released the read's mask")
	}
	read.Close()

	k1, v1 := numbered(cfg, 3, 1)
	mine = must(c.Mask(2, nil))
	held = mine.View()
	if _, err := c.AppendWindowUnder(k1, v1, mine, false); ring.CodeOf(err) != "shape" {
		t.Errorf("a mask of another width: %v", err)
	}
	mine.Release()
	if !dev.Owns(held.Buffer) {
		t.Error("a refused append and its caller released one lease twice")
	}
	mine = must(c.Mask(2, nil))
	spare = mine
	mine.Release()
	if _, err := c.AppendWindowUnder(k, v, spare, false); ring.CodeOf(err) != "shape" {
		t.Errorf("a released mask: %v", err)
	}

	check(c.Close())
	cfg.Masks.Close()
	if n := dev.Stats().Live; n != 0 {
		t.Errorf("%d live buffers", n)
	}
}

// TestOwnMemory: a cache refuses its own memory as tokens, and its own and its
// masks' as the output of attention.
func TestOwnMemory(t *testing.T) {
	dev := cpu.Open(cpu.Options{Workers: 1})
	defer dev.Close()
	cfg := sceneConfig(false)
	cfg.DType, cfg.ValueDim = ring.Float32, cfg.KeyDim
	c := written(dev, cfg, false, 6)
	defer c.Close()
	k, v := numbered(cfg, 3, 1)
	kv := must(c.Update(k, v))
	own := kv.Keys[0]
	own.Shape[2] = 1
	before := image(c)
	refused := func(what string, err error) {
		t.Helper()
		var buffer *accelerated.BufferError
		if !errors.As(err, &buffer) || !buffer.Own {
			t.Errorf("%s: %v, want a BufferError", what, err)
		}
		if after := image(c); after != before {
			t.Errorf("%s changed the cache", what)
		}
	}
	_, err := c.Update(own, v)
	refused("own keys", err)
	_, err = c.Update(k, own)
	refused("own values", err)
	_, err = c.AppendDecode(own, v)
	refused("own keys of a decode", err)
	_, err = c.AppendWindow(k, own)
	refused("own values of a window", err)

	// into is a dense output at the front of a buffer, if it has the room.
	into := func(b accelerated.Buffer) accelerated.View {
		out := accelerated.HostView(ring.Array{DType: ring.Float32, Shape: [4]int{3, cfg.KVHeads, 1, cfg.ValueDim}})
		if b.Size() < out.Bytes() {
			t.Fatalf("%d bytes hold no output", b.Size())
		}
		out.Buffer = b
		return out
	}
	refused("own output", c.Attend(into(own.Buffer), k, 1))
	// A wide mask, so that an output fits.
	lease := must(c.Mask(50, nil))
	defer lease.Release()
	refused("output in a mask", c.Attend(into(lease.View().Buffer), k, 1))
	free := must(dev.Alloc(1 << 12))
	defer dev.Free(free)
	check(c.Attend(into(free), k, 1))
}

// TestAdoptBounds: bookkeeping that cannot be counted on from is refused, the
// first such list in a fixed order.
func TestAdoptBounds(t *testing.T) {
	dev := cpu.Open(cpu.Options{Workers: 1})
	defer dev.Close()
	for _, semantics := range []ring.Semantics{ring.MLXLM, ring.Exact} {
		cfg := sceneConfig(false)
		cfg.Semantics = semantics
		c := written(dev, cfg, false, 3)
		kv := must(c.Download())
		for _, n := range []int{math.MinInt, math.MaxInt, math.MinInt32, math.MaxInt32, -1} {
			for _, test := range []struct {
				what    string
				refused bool
				change  func(*ring.Position)
			}{
				{"offset", n != -1, func(p *ring.Position) { p.Offset[1] = n; p.Total = n }},
				{"left padding", n != -1 || semantics == ring.Exact, func(p *ring.Position) { p.LeftPadding[1] = n; p.Ends = []int{n, n, n} }},
				{"ends", n != -1, func(p *ring.Position) { p.Ends = []int{0, n, 0} }},
				{"total", true, func(p *ring.Position) { p.Total = n }},
			} {
				p := c.Position()
				test.change(&p)
				if test.what != "total" && n == -1 {
					p.Total = c.Position().Total
				}
				adopted, err := accelerated.Adopt(dev, cfg, false, p, kv)
				var out *ring.RangeError
				switch {
				case !test.refused && err != nil:
					t.Errorf("%v: %s %d: %v", semantics, test.what, n, err)
				case test.refused && (!errors.As(err, &out) || out.What != test.what || out.Got != n):
					t.Errorf("%v: %s %d: %v", semantics, test.what, n, err)
				}
				closeIf(adopted)
			}
		}
		check(c.Close())
	}
	if n := dev.Stats().Live; n != 0 {
		t.Errorf("%d live buffers", n)
	}
}

// TestRollbackBounds: a round may begin before the columns that are held, but
// takes back none but those.
func TestRollbackBounds(t *testing.T) {
	dev := cpu.Open(cpu.Options{Workers: 1})
	defer dev.Close()
	c := written(dev, sceneConfig(false), false, 3)
	defer c.Close()
	offset := c.Position().Offset
	image0 := image(c)
	for _, n := range []int{offset[0] - 4, -1000, math.MinInt32, math.MinInt, offset[0] + 1, math.MaxInt} {
		before := slices.Clone(offset)
		before[0] = n
		what := "before"
		if n > -1<<20 && n <= offset[0] {
			what = "keep"
		}
		var out *ring.RangeError
		err := c.Rollback(before, make([]int, 3), true)
		if !errors.As(err, &out) || out.What != what || what == "before" && out.High != offset[0] || what == "keep" && (out.Low != offset[0]-3-n || out.High != offset[0]-n) {
			t.Errorf("from %d: %v", n, err)
		}
		if image(c) != image0 {
			t.Errorf("from %d: the cache changed", n)
		}
	}
	before := slices.Clone(offset)
	before[0] -= 3
	check(c.Rollback(before, make([]int, 3), true))
}

// TestLongRound: a round longer than the ring is taken back as the reference
// does it, to the byte.
func TestLongRound(t *testing.T) {
	dev := cpu.Open(cpu.Options{Workers: 1})
	defer dev.Close()
	cfg := sceneConfig(false)
	for rejected := range cfg.MaxSize + 3 {
		acc := must(accelerated.NewBatchRotating(dev, cfg, make([]int, 3)))
		ref := must(reference.NewBatchRotatingKVCache(cfg.Semantics, cfg.MaxSize, make([]int, 3)))
		round := 0
		for _, n := range []int{2, cfg.MaxSize, 3} {
			keys, values := numbered(cfg, 3, n)
			must(acc.Update(keys, values))
			must(ref.Update(ring.Array{DType: keys.DType, Shape: keys.Shape, Data: keys.Host}, ring.Array{DType: values.DType, Shape: values.Shape, Data: values.Host}))
			round += n
		}
		keep := slices.Repeat([]int{round - rejected}, 3)
		check(acc.Rollback(make([]int, 3), keep, false))
		check(ref.Rollback(make([]int, 3), keep, false))
		if got, want := fmt.Sprint(acc.Position()), fmt.Sprint(ref.Position()); got != want {
			t.Errorf("%d of %d columns taken back: at %s, the reference at %s", rejected, round, got, want)
		}
		got, want := must(acc.Download()), ref.Columns()
		if !bytes.Equal(got.Keys[0].Data, want.Keys[0].Data) || !bytes.Equal(got.Values[0].Data, want.Values[0].Data) {
			t.Errorf("%d of %d columns taken back: the columns are not the reference's", rejected, round)
		}
		check(acc.Close())
	}
}

// meanwhile is a device that calls a function within Attend.
type meanwhile struct {
	accelerated.Device
	attend func()
}

func (m *meanwhile) Attend(a *accelerated.Attention) error {
	m.attend()
	return m.Device.Attend(a)
}

// TestCloseReadWaits: a Read that is closed during its Attend, and what else
// returns no error, waits for that to end.
func TestCloseReadWaits(t *testing.T) {
	inner := cpu.Open(cpu.Options{Workers: 1})
	defer inner.Close()
	dev := &meanwhile{Device: inner}
	cfg := sceneConfig(false)
	c := written(dev, cfg, false, 3)
	masks := accelerated.NewMasks(dev)
	k, v := numbered(cfg, 3, 1)
	lease := must(masks.Upload(&ring.Mask{B: 3, N: 1, S: 4, Data: make([]bool, 12)}))
	mask := lease.View().Buffer
	read := must(c.AppendWindowUnder(k, v, lease, false))
	var others sync.WaitGroup
	dev.attend = func() {
		others.Go(read.Close)
		others.Go(func() {
			read.KV()
			read.Mask()
			if p := c.Position(); p.Total != c.Size() || c.Rows() != 3 || c.Length() < 4 || c.NBytes() == 0 || !c.Trimmable() ||
				len(c.RowPositions(nil)) != 3 || c.Kind() != "batch_rotating" || c.Config().MaxSize != cfg.MaxSize {
				t.Errorf("a cache of 4 columns is at %+v", p)
			}
		})
		for range 10000 {
			runtime.Gosched()
		}
		if !inner.Owns(mask) {
			t.Error("the mask was freed while it was read")
		}
	}
	out := accelerated.HostView(ring.Array{DType: ring.Float32, Shape: [4]int{3, cfg.KVHeads, 1, cfg.ValueDim}})
	out.Host = make([]byte, out.Bytes())
	check(read.Attend(out, k, 1))
	others.Wait()
	if inner.Owns(mask) {
		t.Error("the read was not closed")
	}
	check(c.Close())
}

// TestNothing: what is nil or zero is refused.
func TestNothing(t *testing.T) {
	var unavailable *accelerated.UnavailableError
	for name, op := range map[string]func() error{
		"recurrent":   func() error { _, err := accelerated.NewRecurrent(nil, 1); return err },
		"upload":      func() error { _, err := accelerated.NewMasks(nil).Upload(&ring.Mask{}); return err },
		"masks":       func() error { _, err := (*accelerated.Masks)(nil).Upload(&ring.Mask{}); return err },
		"rotating":    func() error { _, err := accelerated.NewRotating(nil, sceneConfig(false)); return err },
		"nil and nil": func() error { _, err := accelerated.NewMasks(nil).Upload(nil); return err },
		"adopt a ring": func() error {
			_, err := accelerated.Adopt(nil, sceneConfig(false), true, ring.Position{}, ring.KV{})
			return err
		},
	} {
		if err := op(); !errors.As(err, &unavailable) {
			t.Errorf("%s without a device: %v", name, err)
		}
	}
	dev := cpu.Open(cpu.Options{Workers: 1})
	defer dev.Close()
	if _, err := accelerated.NewMasks(dev).Upload(nil); ring.CodeOf(err) != "shape" {
		t.Errorf("upload of nil: %v", err)
	}
	(*accelerated.Masks)(nil).Close()
	accelerated.Read{}.Close()
	c := written(dev, sceneConfig(false), false, 1)
	defer c.Close()
	for _, s := range []*accelerated.Snapshot{nil, {}} {
		if _, err := s.Adopt(); ring.CodeOf(err) != "closed" {
			t.Errorf("adopt of nothing: %v", err)
		}
		if err := c.Restore(s); ring.CodeOf(err) != "closed" {
			t.Errorf("restore of nothing: %v", err)
		}
		if err := s.Close(); ring.CodeOf(err) != "closed" {
			t.Errorf("close of nothing: %v", err)
		}
		if s.Serial() || s.Position().Total != 0 {
			t.Error("nothing holds something")
		}
	}
	for _, c := range []*accelerated.Cache{nil, {}} {
		if c.Position().Total != 0 || c.Rows()+c.Size()+c.Length()+c.NBytes()+len(c.RowPositions(nil)) != 0 {
			t.Error("nothing holds something")
		}
		writes, reads := everyOp(c, nil)
		for _, ops := range []map[string]func() error{writes, reads} {
			for name, op := range ops {
				if err := op(); ring.CodeOf(err) != "closed" {
					t.Errorf("%s of nothing: %v", name, err)
				}
			}
		}
	}
	if err := (*accelerated.Cache)(nil).Close(); ring.CodeOf(err) != "closed" {
		t.Errorf("close of nil: %v", err)
	}
	check((&accelerated.Cache{}).Close())
	for _, r := range []*accelerated.Recurrent{nil, {}} {
		for name, op := range map[string]func() error{
			"finalize":        r.Finalize,
			"prepare":         func() error { return r.Prepare(accelerated.Padding{}) },
			"write":           func() error { return r.Write(0, accelerated.View{}) },
			"advance":         func() error { return r.Advance(1) },
			"filter":          func() error { return r.Filter(nil) },
			"trim":            func() error { _, err := r.Trim(1); return err },
			"slot":            func() error { _, err := r.Slot(0); return err },
			"mask":            func() error { _, err := r.Mask(1); return err },
			"extract":         func() error { _, err := r.Extract(0); return err },
			"merge":           func() error { _, err := accelerated.MergeRecurrent(r); return err },
			"projected bytes": func() error { _, err := r.ProjectedBytes(1); return err },
		} {
			if err := op(); ring.CodeOf(err) != "closed" {
				t.Errorf("%s of nothing: %v", name, err)
			}
		}
		left, lengths := r.Padding()
		if r.Rows()+r.Slots()+len(r.Offsets(nil))+len(left)+len(lengths)+len(r.ConvolutionLengths(3)) != 0 || r.Trimmable() || r.Kind() != "batch_recurrent" {
			t.Error("nothing holds something")
		}
	}
	if err := (*accelerated.Recurrent)(nil).Close(); ring.CodeOf(err) != "closed" {
		t.Errorf("close of nil: %v", err)
	}
	check((&accelerated.Recurrent{}).Close())
}

// TestRecurrentWaits: what returns no error waits for a call that runs.
func TestRecurrentWaits(t *testing.T) {
	inner := cpu.Open(cpu.Options{Workers: 1})
	defer inner.Close()
	dev := gate{inner, make(chan bool), make(chan bool)}
	c := must(accelerated.NewRecurrent(dev, 1))
	keys, _ := numbered(sceneConfig(false), 3, 1)
	var calls sync.WaitGroup
	calls.Go(func() { check(c.Write(0, keys)) })
	<-dev.in
	calls.Go(func() {
		if c.Rows() != 3 || len(c.Offsets(nil)) != 3 {
			t.Error("an accessor saw the state before the write that ran")
		}
	})
	for range 10000 {
		runtime.Gosched()
	}
	dev.out <- true
	calls.Wait()
	check(c.Close())
}
