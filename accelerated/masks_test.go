package accelerated_test

import (
	"bytes"
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/reference/ring"
)

// counting is a device that counts the calls that do work, and those of them
// that build a mask.
type counting struct {
	accelerated.Device
	runs, masks int
}

func (c *counting) Run(w *accelerated.Work) error {
	c.runs++
	if w.Mask != nil {
		c.masks++
	}
	return c.Device.Run(w)
}

func bytesOf(v accelerated.MaskView) []byte {
	return bytes.Clone(v.Buffer.(*cpu.Buffer).Bytes()[v.Offset:][:v.B*v.N*v.S])
}

// TestMaskOnce: the layers of a model build one mask for each step, as part of
// a write; in a full ring without padding, none.
func TestMaskOnce(t *testing.T) {
	inner := cpu.Open(cpu.Options{Workers: 1})
	defer inner.Close()
	dev := &counting{Device: inner}
	cfg := sceneConfig(false)
	cfg.Masks = accelerated.NewMasks(dev)
	var layers []*accelerated.Cache
	for range 3 {
		layers = append(layers, must(accelerated.NewBatchRotating(dev, cfg, []int{0, 2})))
	}
	step := func(n int) (runs, masks int) {
		dev.runs, dev.masks = 0, 0
		k, v := numbered(cfg, 2, n)
		for _, c := range layers {
			var r accelerated.Read
			if n == 1 {
				r = must(c.AppendDecode(k, v))
			} else {
				r = must(c.AppendWindow(k, v))
			}
			if r.Mask().Buffer == nil {
				t.Fatal("a read has no mask")
			}
			r.Close()
		}
		return dev.runs, dev.masks
	}
	for i, n := range []int{4, 1, 3, 1} {
		if runs, masks := step(n); runs != len(layers) || masks != 1 {
			t.Errorf("step %d: %d calls built %d masks, want %d and 1", i, runs, masks, len(layers))
		}
	}
	for range 8 {
		step(1)
	}
	if runs, masks := step(1); runs != len(layers) || masks != 0 {
		t.Errorf("a full ring: %d calls built %d masks, want %d and 0", runs, masks, len(layers))
	}
	for _, c := range layers {
		check(c.Close())
	}
	cfg.Masks.Close()
	if n := dev.Stats().Live; n != 0 {
		t.Errorf("%d live buffers", n)
	}
}

// TestLease: a mask that is held outlives its successor in the memory, its
// cache, and the memory itself, and is released once.
func TestLease(t *testing.T) {
	dev := cpu.Open(cpu.Options{Workers: 1})
	defer dev.Close()
	cfg := sceneConfig(false)
	c := written(dev, cfg, false, 3)
	first := must(c.Mask(2, nil))
	want := bytesOf(first.View())
	again := must(c.Mask(2, nil))
	if again.View() != first.View() {
		t.Error("equal masks were built twice")
	}
	second := must(c.Mask(3, nil))
	if second.View().Buffer == first.View().Buffer {
		t.Error("a mask was built over one that is held")
	}
	again.Release()
	check(c.Close())
	if got := bytesOf(first.View()); !bytes.Equal(got, want) {
		t.Errorf("a held mask changed from %v to %v", want, got)
	}
	if n := dev.Stats().Live; n != 2 {
		t.Errorf("%d live buffers while two masks are held", n)
	}
	for range 2 {
		first.Release()
		second.Release()
	}
	if n := dev.Stats().Live; n != 0 {
		t.Errorf("%d live buffers", n)
	}
	if v := first.View(); v != (accelerated.MaskView{}) {
		t.Errorf("a released mask is %+v", v)
	}
}

// TestNoMask: mlx-lm has no mask for one token of a serial ring.
func TestNoMask(t *testing.T) {
	dev := cpu.Open(cpu.Options{Workers: 1})
	defer dev.Close()
	cfg := sceneConfig(false)
	cfg.Semantics = ring.MLXLM
	c := written(dev, cfg, true, 3)
	defer c.Close()
	if l := must(c.Mask(1, nil)); l.View().Buffer != nil {
		t.Errorf("a mask: %+v", l.View())
	}
}
