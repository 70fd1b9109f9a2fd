package accelerated_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/reference/ring"
)

// TestOpen: devices by name; absence is an ordinary error.
func TestOpen(t *testing.T) {
	dev := must(accelerated.Open("cpu"))
	if !strings.HasPrefix(dev.Name(), "cpu (") {
		t.Errorf("a device named %q", dev.Name())
	}
	check(dev.Sync())
	check(dev.Close())
	if err := dev.Sync(); ring.CodeOf(err) != "closed" {
		t.Errorf("sync after Close: %v", err)
	}
	best := must(accelerated.Open("auto"))
	check(best.Close())
	for _, name := range []string{"abacus", ""} {
		_, err := accelerated.Open(name)
		var absent *accelerated.UnavailableError
		if !errors.As(err, &absent) || absent.Device != name || absent.Why == "" {
			t.Errorf("Open(%q): %v", name, err)
		}
	}
}

// TestDeviceErrors: each error names what it is about, and unwraps.
func TestDeviceErrors(t *testing.T) {
	cause := errors.New("cause")
	for want, err := range map[string]error{
		"gpu: run: cause":                     &accelerated.DeviceError{Device: "gpu", Call: "run", Err: cause},
		"gpu: no memory for 7 bytes":          &accelerated.MemoryError{Device: "gpu", Bytes: 7, Err: cause},
		"device gpu is not available: it":     &accelerated.UnavailableError{Device: "gpu", Why: "it is away"},
		"update: the memory of the keys is n": &accelerated.BufferError{Op: "update", What: "keys"},
	} {
		if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%T says %q", err, err)
		}
		if u := errors.Unwrap(err); u != nil && u != cause {
			t.Errorf("%T unwraps to %v", err, u)
		}
	}
}

// TestDeviceViews: tokens and queries may come from the device's memory, with
// strides of their own, and results go there.
func TestDeviceViews(t *testing.T) {
	dev := cpu.Open(cpu.Options{Workers: 1})
	defer dev.Close()
	for _, quantized := range []bool{false, true} {
		cfg := sceneConfig(quantized)
		k, v := numbered(cfg, 3, 2)
		want := written(dev, cfg, false)
		must(want.Update(k, v))

		// The same tokens, heads and columns exchanged in memory.
		moved := func(v accelerated.View) accelerated.View {
			size := v.Shape[3] * v.DType.Size()
			out := accelerated.View{Buffer: must(dev.Alloc(v.Bytes() + 64)), Offset: 64, DType: v.DType, Shape: v.Shape}
			out.Stride = [3]int{v.Stride[0], size, v.Shape[1] * size}
			for b := range v.Shape[0] {
				for h := range v.Shape[1] {
					for s := range v.Shape[2] {
						from := v.Host[b*v.Stride[0]+h*v.Stride[1]+s*v.Stride[2]:][:size]
						check(dev.Upload(out.Buffer, 64+b*out.Stride[0]+h*out.Stride[1]+s*out.Stride[2], from))
					}
				}
			}
			return out
		}
		dk, dv := moved(k), moved(v)
		got := written(dev, cfg, false)
		must(got.Update(dk, dv))
		if image(got) != image(want) {
			t.Error("tokens from the device's memory make another cache")
		}

		out := accelerated.HostView(ring.Array{DType: ring.Float32, Shape: [4]int{3, 2, 2, cfg.ValueDim}})
		out.Host = make([]byte, out.Bytes())
		check(want.Attend(out, k, 0.2))
		there := out
		there.Host, there.Buffer = nil, must(dev.Alloc(out.Bytes()))
		check(got.Attend(there, dk, 0.2))
		back := make([]byte, out.Bytes())
		check(dev.Download(back, there))
		if !bytes.Equal(back, out.Host) {
			t.Error("attention differs by where its arguments are")
		}

		// A plain causal mask need not be read.
		masks := accelerated.NewMasks(dev)
		m := &ring.Mask{B: 3, N: 2, S: 4, Data: []bool{true, true, true, false, true, true, true, true}}
		m.Data = append(append(m.Data, m.Data...), m.Data...)
		results := [2][]byte{make([]byte, out.Bytes()), make([]byte, out.Bytes())}
		for i, c := range []*accelerated.Cache{want, got} {
			read := must(c.AppendWindowUnder(k, v, must(masks.Upload(m)), i == 1))
			out.Host = results[i]
			check(read.Attend(out, k, 0.2))
			read.Close()
			check(c.Close())
		}
		if !bytes.Equal(results[0], results[1]) {
			t.Error("a causal mask that is not read is not causal")
		}
		masks.Close()
		for _, b := range []accelerated.Buffer{dk.Buffer, dv.Buffer, there.Buffer} {
			dev.Free(b)
			dev.Free(b)
		}
	}
	if n := dev.Stats().Live; n != 0 {
		t.Errorf("%d live buffers", n)
	}
}
