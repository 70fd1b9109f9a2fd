package metal

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/accelerated/kernels"
	"example.com/ringcheck/accelerated/kernels/conformance"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

// device opens a device over a stand-in. When the test ends, the device is
// closed, and then nothing may be left and nothing have been refused.
func device(t *testing.T, s *standIn) accelerated.Device {
	t.Helper()
	dev, err := start(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := dev.Stats().Live; n != 0 {
			t.Errorf("%d buffers are live", n)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		s.clean(t)
	})
	return dev
}

// clean fails the test if anything was refused or is left.
func (s *standIn) clean(t *testing.T) {
	t.Helper()
	for _, r := range s.refused {
		t.Error("refused:", r)
	}
	if n := s.left(); n != 0 {
		t.Errorf("%d objects are left", n)
	}
}

// lags are how late the stand-in's queue is, at the most.
var lags = map[string]int{"at once": 0, "late": 3, "when waited for": maxPending}

// TestConformance holds the device to cpu, in its plain Go.
func TestConformance(t *testing.T) {
	for name, lag := range lags {
		t.Run(name, func(t *testing.T) {
			s := newStandIn(t)
			s.lag = lag
			got := device(t, s)
			want := cpu.Open(cpu.Options{PlainGo: true, Workers: 1})
			defer want.Close()
			rapid.Check(t, func(t *rapid.T) {
				draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }
				property := conformance.Run
				if draw(2) == 0 {
					property = conformance.Attend
				}
				err := property(got, want, draw)
				if err == nil && len(s.refused) > 0 {
					err = errors.New(s.refused[0])
				}
				if err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestCompile holds the text and the floating point that Metal is given; on
// anything but IEEE's the stand-in's refusal fails the test.
func TestCompile(t *testing.T) {
	for name, old := range map[string]bool{"macOS 15": false, "before macOS 15": true} {
		t.Run(name, func(t *testing.T) {
			s := newStandIn(t)
			s.old = old
			dev := device(t, s)
			if dev.Name() != "metal (stand-in)" {
				t.Error(dev.Name())
			}
			if !slices.Equal(s.libraries, []string{kernels.MetalSource()}) {
				t.Errorf("%d libraries, or not of the kernels' text", len(s.libraries))
			}
		})
	}
}

// TestEntries: all kernels' buffers and arguments are within what Metal takes.
func TestEntries(t *testing.T) {
	for name, e := range kernels.Entries {
		if e.Buffers > maxIndex || e.ArgBytes > maxArgs {
			t.Errorf("%s has %d buffers and %d bytes of arguments", name, e.Buffers, e.ArgBytes)
		}
	}
}

// TestVectors holds the vectors of the self-test to the reference.
func TestVectors(t *testing.T) {
	named := map[string]bool{}
	for i := range vectors {
		v := &vectors[i]
		elements, packed, scale, bias := v.planes()
		p, err := reference.Quantize(ring.Array{DType: v.dtype, Shape: [4]int{1, 1, 1, group}, Data: elements}, group, v.bits)
		if err != nil {
			t.Fatal(err)
		}
		for j, want := range [...][]byte{packed, scale, bias} {
			if !bytes.Equal(p[j].Data, want) {
				t.Errorf("%s: plane %d is %x, the reference says %x", v.name, j, want, p[j].Data)
			}
		}
		d, _, _ := strings.Cut(v.name, " ")
		named[d] = true
	}
	if len(named) != 11 {
		t.Errorf("%d of D1 to D11", len(named))
	}
}

// TestSelfTest has each vector come out wrong by one bit of one plane in turn.
func TestSelfTest(t *testing.T) {
	for i, v := range vectors {
		for plane, what := range []string{"codes", "scale", "bias"} {
			s := newStandIn(t)
			writes := 0
			s.after = func(kernel string, buffers [][]byte) {
				if strings.HasPrefix(kernel, "write_quantized") {
					if writes == i {
						buffers[0][plane*accelerated.Align] ^= 1
					}
					writes++
				}
			}
			dev, err := start(s, Options{})
			var refused *accelerated.UnavailableError
			if !errors.As(err, &refused) || dev != nil || !strings.Contains(refused.Why, "self-test "+v.name+": the device makes "+what) {
				t.Errorf("%s, %s: %v", v.name, what, err)
			}
			s.clean(t)
		}
	}
}

// TestUnavailable holds every way in which a device does not open to its error
// and to leaving nothing behind.
func TestUnavailable(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *standIn)
		why    string
	}{
		"no device":        {func(s *standIn) { s.absent = true }, "no device with Metal"},
		"compiler":         {func(s *standIn) { s.refuseText = "error: use of undeclared identifier" }, "newLibraryWithSource: StandInDomain 3: error: use of undeclared identifier"},
		"another width":    {func(s *standIn) { s.width = 64 }, "a SIMD-group has 64 threads; the kernels need 32"},
		"too few threads":  {func(s *standIn) { s.threads = 64 }, "128 threads a group; the device has at most 64"},
		"no buffers":       {func(s *standIn) { s.noRoom = true }, "no memory for"},
		"first work fails": {func(s *standIn) { s.failAt = 1 }, "commandBuffer: StandInDomain 1: the stand-in was told to fail"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStandIn(t)
			c.change(s)
			dev, err := start(s, Options{})
			var refused *accelerated.UnavailableError
			if !errors.As(err, &refused) || dev != nil || refused.Device != "metal" || !strings.Contains(refused.Why, c.why) {
				t.Errorf("%v", err)
			}
			s.clean(t)
		})
	}
}

// TestElsewhere: without macOS, opening says so.
func TestElsewhere(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("this is macOS")
	}
	dev, err := accelerated.Open("metal")
	var refused *accelerated.UnavailableError
	if !errors.As(err, &refused) || dev != nil || !strings.Contains(refused.Why, "Metal exists on macOS only") {
		t.Errorf("%v", err)
	}
}

// copyTo has the device copy 256 bytes.
func copyTo(dev accelerated.Device, dst, src accelerated.Buffer) error {
	store := func(b accelerated.Buffer) *accelerated.Store {
		s := &accelerated.Store{Buffer: b, Rows: 1, Heads: 1, Columns: 1, DType: ring.Float32, KeyDim: 64}
		s.Planes[accelerated.KeyData].Width = 256
		return s
	}
	return dev.Run(&accelerated.Work{Store: store(dst), Move: &accelerated.Move{
		Sources: []*accelerated.Store{store(src)}, Runs: []accelerated.Run{{Cycle: 1, N: 1}},
	}})
}

func whole(b accelerated.Buffer) accelerated.View {
	return accelerated.View{Buffer: b, DType: ring.Bool, Shape: [4]int{1, 1, 1, 256}, Stride: [3]int{256, 256, 256}}
}

// TestOrder has uploads between launches, all under way together.
func TestOrder(t *testing.T) {
	for name, lag := range lags {
		t.Run(name, func(t *testing.T) {
			s := newStandIn(t)
			s.lag = lag
			dev := device(t, s)
			src, _ := dev.Alloc(256)
			defer dev.Free(src)
			var copies []accelerated.Buffer
			for i := range 100 {
				dst, err := dev.Alloc(256)
				if err != nil {
					t.Fatal(err)
				}
				defer dev.Free(dst)
				copies = append(copies, dst)
				if err := dev.Upload(src, 0, bytes.Repeat([]byte{byte(i)}, 256)); err != nil {
					t.Fatal(err)
				}
				if err := copyTo(dev, dst, src); err != nil {
					t.Fatal(err)
				}
			}
			for i, b := range copies {
				got := make([]byte, 256)
				if err := dev.Download(got, whole(b)); err != nil {
					t.Fatal(err)
				}
				if want := bytes.Repeat([]byte{byte(i)}, 256); !bytes.Equal(got, want) {
					t.Fatalf("copy %d is %x", i, got[:4])
				}
			}
		})
	}
}

// TestFailure has a command buffer fail: the error surfaces where that is
// waited for, and stays.
func TestFailure(t *testing.T) {
	s := newStandIn(t)
	s.lag = 8
	dev, err := start(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := dev.Alloc(256)
	b, _ := dev.Alloc(256)
	s.failAt = s.committed + len(s.queued) + 2
	for range 3 {
		if err := copyTo(dev, a, b); err != nil {
			t.Fatalf("before it is waited for: %v", err)
		}
	}
	for name, call := range map[string]func() error{
		"sync":     dev.Sync,
		"download": func() error { return dev.Download(make([]byte, 256), whole(a)) },
		"run":      func() error { return copyTo(dev, a, b) },
		"upload":   func() error { return dev.Upload(a, 0, []byte{1}) },
	} {
		if name != "sync" && name != "download" {
			_ = dev.Sync()
		}
		err := call()
		var failed *accelerated.DeviceError
		var said *Error
		if !errors.As(err, &failed) || !errors.As(err, &said) || failed.Device != "metal (stand-in)" ||
			said.Call != "commandBuffer" || said.Domain != "StandInDomain" || said.Code != 1 || said.Text != "the stand-in was told to fail" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := dev.Close(); err == nil {
		t.Error("close says nothing of it")
	}
	s.clean(t)
}

// TestClose: it waits, gives everything back, live buffers too, once.
func TestClose(t *testing.T) {
	s := newStandIn(t)
	s.lag = 8
	dev, err := start(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := dev.Alloc(256)
	b, _ := dev.Alloc(256)
	if err := copyTo(dev, a, b); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		s.clean(t)
	}
	dev.Free(a)
	var closed *ring.ClosedError
	if _, err := dev.Alloc(1); !errors.As(err, &closed) {
		t.Errorf("%v", err)
	}
}

// TestMemory: the pool keeps what is freed, within its limit, and says what it
// has no room for.
func TestMemory(t *testing.T) {
	s := newStandIn(t)
	b, err := open(s, Options{Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	refused := func(size int, why string) {
		t.Helper()
		var memory *accelerated.MemoryError
		before := b.Stats()
		if _, err := b.Alloc(size); !errors.As(err, &memory) || memory.Bytes != size || !strings.Contains(err.Error(), why) {
			t.Errorf("%v", err)
		}
		if b.Stats().Live != before.Live {
			t.Error("a refused buffer is live")
		}
	}
	one, err := b.Alloc(1000)
	if err != nil {
		t.Fatal(err)
	}
	if one.Size() != 1000 || b.Stats() != (accelerated.Stats{Live: 1, LiveBytes: 1024}) {
		t.Errorf("%d bytes, %+v", one.Size(), b.Stats())
	}
	b.Free(one)
	b.Free(one)
	if b.Stats() != (accelerated.Stats{PoolBytes: 1024}) {
		t.Errorf("%+v", b.Stats())
	}
	two, err := b.Alloc(900)
	if err != nil {
		t.Fatal(err)
	}
	if two != one || two.Size() != 900 {
		t.Error("the pool made another buffer")
	}
	refused(1<<20, "1024 bytes are in use of the 1048576")
	refused(maxLength+1, "a buffer has at most 1073741824 bytes")
	b.Free(two)
	three, err := b.Alloc(1 << 20) // in the place of what is free
	if err != nil {
		t.Fatal(err)
	}
	if b.Stats().PoolBytes != 0 {
		t.Errorf("%+v", b.Stats())
	}
	b.Free(three)
	s.noRoom = true
	refused(2000, "the device made no buffer")
	if b.Stats().PoolBytes != 0 {
		t.Error("the pool kept memory when there was no room")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	s.clean(t)
}

// TestKeep: beyond what it keeps, the pool gives back.
func TestKeep(t *testing.T) {
	s := newStandIn(t)
	b, err := open(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if b.pool.limit != 1<<32 {
		t.Errorf("the limit is %d; the recommended working set is %d", b.pool.limit, s.workingSet)
	}
	// One after another, so that never more than one is live.
	total, size := 0, keepFree/8
	for total <= keepFree {
		buf, err := b.Alloc(size)
		if err != nil {
			t.Fatal(err)
		}
		b.Free(buf)
		total += capacityOf(size)
		size += size / 7
	}
	if b.Stats().PoolBytes != 0 {
		t.Errorf("%+v", b.Stats())
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	s.clean(t)
}

// TestBusy: a small buffer that work under way uses is not given out again, so
// that its next upload need not wait.
func TestBusy(t *testing.T) {
	s := newStandIn(t)
	dev := device(t, s)
	s.lag = 8
	src, _ := dev.Alloc(5000)
	dst, _ := dev.Alloc(5000)
	defer dev.Free(src)
	if err := copyTo(dev, dst, src); err != nil {
		t.Fatal(err)
	}
	dev.Free(dst)
	next, _ := dev.Alloc(5000)
	if next == dst {
		t.Error("a busy buffer was given out")
	}
	dev.Free(next)
	if err := dev.Sync(); err != nil {
		t.Fatal(err)
	}
	again, _ := dev.Alloc(5000)
	if again != dst {
		t.Error("the oldest free buffer was not given out")
	}
	dev.Free(again)
}

// TestUnknownKernel: a kernel that the library does not have is an error, and
// nothing is encoded.
func TestUnknownKernel(t *testing.T) {
	s := newStandIn(t)
	b, err := open(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Launch(kernels.Launch{Kernel: "none", Groups: 1, Threads: 32}); err == nil || !strings.Contains(err.Error(), "no kernel none") {
		t.Errorf("%v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	s.clean(t)
}
