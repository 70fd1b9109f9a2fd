package kernels_test

import (
	"errors"
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/kernels"
	"example.com/ringcheck/reference/ring"
)

// fake is a backend that has memory but does nothing, and fails when told to.
type fake struct {
	launches [][]kernels.Launch
	uploads  int
	live     map[accelerated.Buffer]bool
	closed   int
	fail     map[string]error
}

type fakeBuffer struct{ size int }

func (b *fakeBuffer) Size() int { return b.size }

var errFake = errors.New("it broke")

func newFake() (*fake, accelerated.Device) {
	f := &fake{live: map[accelerated.Buffer]bool{}, fail: map[string]error{}}
	return f, kernels.New(f)
}

func (f *fake) Name() string { return "fake" }

func (f *fake) Alloc(size int) (accelerated.Buffer, error) {
	if err := f.fail["alloc"]; err != nil {
		return nil, err
	}
	b := &fakeBuffer{size}
	f.live[b] = true
	return b, nil
}

func (f *fake) Free(b accelerated.Buffer) { delete(f.live, b) }

func (f *fake) Launch(batch ...kernels.Launch) error {
	f.launches = append(f.launches, append([]kernels.Launch(nil), batch...))
	return f.fail["launch"]
}

func (f *fake) Upload(accelerated.Buffer, int, []byte) error {
	f.uploads++
	return f.fail["upload"]
}

func (f *fake) Download([]byte, accelerated.Buffer, int) error { return f.fail["download"] }

func (f *fake) Sync() error { return f.fail["sync"] }

func (f *fake) Stats() accelerated.Stats { return accelerated.Stats{Live: len(f.live)} }

func (f *fake) Close() error {
	f.closed++
	return nil
}

// small is a store with room for two planes of 16-byte columns.
func small(t *testing.T, dev accelerated.Device, q accelerated.Quant) *accelerated.Store {
	s := &accelerated.Store{Rows: 2, Heads: 2, Columns: 8, DType: ring.BFloat16, KeyDim: 64, ValueDim: 64, Quant: q}
	for i := range s.Planes {
		s.Planes[i] = accelerated.Plane{Offset: i * 4096, Width: 128}
		if q.Bits > 0 {
			s.Planes[i].Width = [3]int{32, 2, 2}[i%3]
		} else if i%3 > 0 {
			s.Planes[i] = accelerated.Plane{}
		}
	}
	var err error
	if s.Buffer, err = dev.Alloc(6 * 4096); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDecodeIsOneLaunch counts what a decode step with tokens on the device
// asks of a backend: keys, values and mask in one launch and nothing else.
func TestDecodeIsOneLaunch(t *testing.T) {
	for _, q := range []accelerated.Quant{{}, {GroupSize: 64, Bits: 4}} {
		f, dev := newFake()
		s := small(t, dev, q)
		v := accelerated.HostView(ring.Array{DType: ring.BFloat16, Shape: [4]int{2, 2, 1, 64}})
		v.Buffer = s.Buffer
		err := dev.Run(&accelerated.Work{
			Store: s, Write: &accelerated.Write{Keys: v, Values: v, At: 3},
			Mask: &accelerated.Mask{Buffer: s.Buffer, B: 2, N: 1, S: 8, Past: 7, Window: 8, First: []int32{0, 0}},
		})
		if err != nil || f.uploads != 0 || len(f.launches) != 1 || len(f.launches[0]) != 1 {
			t.Errorf("%+v: %d uploads and launches %v, %v", q, f.uploads, f.launches, err)
		}
	}
}

// TestErrors follows what a backend says to the caller.
func TestErrors(t *testing.T) {
	f, dev := newFake()
	s := small(t, dev, accelerated.Quant{})
	tokens := accelerated.HostView(ring.Array{DType: ring.BFloat16, Shape: [4]int{2, 2, 1, 64}, Data: make([]byte, 512)})
	work := &accelerated.Work{Store: s, Write: &accelerated.Write{Keys: tokens, Values: tokens}}
	memory := &accelerated.MemoryError{Device: "fake", Bytes: 1}

	f.fail["alloc"] = memory
	if _, err := dev.Alloc(1); err != memory {
		t.Errorf("alloc: %v", err)
	}
	if err := dev.Run(work); err != memory || len(f.launches) != 0 {
		t.Errorf("run without memory: %v", err)
	}
	delete(f.fail, "alloc")

	var failed *accelerated.DeviceError
	f.fail["launch"] = errFake
	if err := dev.Run(work); !errors.As(err, &failed) || failed.Call != "run" || !errors.Is(err, errFake) {
		t.Errorf("run: %v", err)
	}
	delete(f.fail, "launch")
	if err := dev.Run(work); err != nil {
		t.Errorf("run: %v", err)
	}
	if len(f.live) != 1 {
		t.Errorf("%d buffers are live, want the store's", len(f.live))
	}

	f.fail["sync"] = errFake
	if err := dev.Sync(); !errors.As(err, &failed) || failed.Call != "sync" {
		t.Errorf("sync: %v", err)
	}
	delete(f.fail, "sync")
	if err := dev.Run(work); !errors.As(err, &failed) || failed.Call != "sync" {
		t.Errorf("run after a failed sync: %v", err)
	}
}

// TestClose is idempotent, and ends all that could fail.
func TestClose(t *testing.T) {
	f, dev := newFake()
	s := small(t, dev, accelerated.Quant{})
	for range 2 {
		if err := dev.Close(); err != nil || f.closed != 1 {
			t.Fatalf("closed %d times, %v", f.closed, err)
		}
	}
	var closed *ring.ClosedError
	_, err := dev.Alloc(1)
	for call, err := range map[string]error{
		"alloc": err, "run": dev.Run(&accelerated.Work{Store: s}), "attend": dev.Attend(&accelerated.Attention{Store: s}),
		"upload": dev.Upload(s.Buffer, 0, []byte{1}), "download": dev.Download(nil, accelerated.View{}), "sync": dev.Sync(),
	} {
		if !errors.As(err, &closed) || closed.Op != call {
			t.Errorf("%s: %v", call, err)
		}
	}
	dev.Free(s.Buffer)
	if dev.Owns(s.Buffer) || dev.Stats() != (accelerated.Stats{}) {
		t.Error("something is live")
	}
}
