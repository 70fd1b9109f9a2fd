package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/kernels"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

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

func random(n int) []byte {
	r, b := rand.New(rand.NewPCG(3, uint64(n))), make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

var sample = random(6<<20 - 100)

// scenario uses everything, and returns the first error. It always closes.
func scenario(f *fake) (err error) {
	b, err := open(&f.driver, Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close(), b.Close()) }()
	x, err := b.Alloc(6 << 20)
	if err != nil {
		return err
	}
	data := sample
	if err := b.Upload(x, 100, data); err != nil {
		return err
	}
	if err := b.Launch(
		kernels.Launch{Kernel: "one", Groups: 3, Threads: 128, Buffers: []kernels.Binding{{Buffer: x, Offset: 64}}, Args: make([]byte, 24)},
		kernels.Launch{Kernel: "none", Groups: 1, Threads: 32, Args: make([]byte, 8)},
	); err != nil {
		return err
	}
	back := make([]byte, len(data))
	if err := b.Download(back, x, 100); err != nil {
		return err
	}
	if !bytes.Equal(back, data) {
		return errors.New("other bytes come back")
	}
	y, err := b.Alloc(100 << 20)
	if err != nil {
		return err
	}
	b.Free(x)
	b.Free(y)
	return b.Sync()
}

// TestFailures lets each call of the driver fail in turn: the error names the
// call, and everything is given back but what the call itself keeps.
func TestFailures(t *testing.T) {
	whole := newFake(t)
	if err := scenario(whole); err != nil {
		t.Fatal(err)
	}
	if whole.left() != 0 || whole.current != 0 {
		t.Fatalf("not given back: %v, %d of memory, %d of host memory", whole.objects, len(whole.memory), len(whole.host))
	}
	keeps := []string{"cuModuleUnload", "cuEventDestroy", "cuMemFreeHost", "cuStreamDestroy", "cuDevicePrimaryCtxRelease", "cuMemFree"}
	opened := slices.Index(whole.calls, "cuMemAlloc")
	for i, call := range whole.calls {
		f := newFake(t)
		f.failAt = i + 1
		err := scenario(f)
		if f.failed != call {
			t.Fatalf("call %d was %s, now %s", i, call, f.failed)
		}
		if err == nil || !strings.Contains(err.Error(), call) {
			t.Errorf("%s, call %d: %v", call, i, err)
			continue
		}
		var failed *Error
		var absent *accelerated.UnavailableError
		switch {
		case errors.As(err, &absent):
			if i >= opened {
				t.Errorf("%s, call %d: %v after Open", call, i, err)
			}
		case !errors.As(err, &failed):
			t.Errorf("%s, call %d: %T", call, i, err)
		case failed.Call != call || failed.Code != 999 || failed.Name != "CUDA_ERROR_UNKNOWN":
			t.Errorf("%s, call %d: %#v", call, i, failed)
		case i < opened-1: // the call before is that of Alloc's own thread
			t.Errorf("%s, call %d: Open's error is %T", call, i, err)
		}
		left := f.left()
		if call == "cuCtxSetCurrent" && left > 0 {
			continue // the way into the context failed as it was to be left
		}
		if want := slices.Contains(keeps, call); (left == 1) != want && (left != 0 || want) {
			t.Errorf("%s, call %d: %d are not given back: %v", call, i, left, f.objects)
		}
	}
}

// TestUnavailable: what cannot run the kernels is said to be unavailable.
func TestUnavailable(t *testing.T) {
	for _, c := range []struct {
		why     string
		ordinal int
		change  func(*fake)
	}{
		{"CUDA_ERROR_UNKNOWN", 0, func(f *fake) { f.failAt = 1 }},
		{"is for CUDA 12.3; install one for 12.4", 0, func(f *fake) { f.version = 12030 }},
		{"there is no device 2; the driver has 2", 2, func(f *fake) {}},
		{"there is no device -1", -1, func(f *fake) {}},
		{"there is no device 0; the driver has 0", 0, func(f *fake) { f.devices = 0 }},
		{"the Fake 9000 has compute capability 7.5; 8.0", 0, func(f *fake) { f.major = 7 }},
	} {
		f := newFake(t)
		c.change(f)
		_, err := open(&f.driver, Options{Ordinal: c.ordinal})
		var absent *accelerated.UnavailableError
		if !errors.As(err, &absent) || absent.Device != "cuda" || !strings.Contains(absent.Why, c.why) || f.left() != 0 {
			t.Errorf("%v, not %q", err, c.why)
		}
	}
}

// TestCompiler: the whole text is compiled, and what the compiler says is said.
func TestCompiler(t *testing.T) {
	f := newFake(t)
	check(must(open(&f.driver, Options{})).Close())
	if f.ptx != len(kernels.PTX()) {
		t.Errorf("%d bytes of %d were compiled", f.ptx, len(kernels.PTX()))
	}
	f.failAt, f.log = len(f.calls)+1+slices.Index(f.calls, "cuModuleLoadDataEx"), "ptxas: line 7: no\n"
	_, err := open(&f.driver, Options{})
	if want := "cuModuleLoadDataEx: CUDA_ERROR_UNKNOWN (999): unknown error\nptxas: line 7: no"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, not %q", err, want)
	}
}

// TestLaunch: parameters arrive as the driver wants them, without allocation.
func TestLaunch(t *testing.T) {
	f := newFake(t)
	b := must(open(&f.driver, Options{}))
	defer b.Close()
	x := must(b.Alloc(1 << 20)).(*Buffer)
	var batch []kernels.Launch
	for i, k := range fakeKernels {
		l := kernels.Launch{Kernel: k.name, Groups: 100 + i, Threads: 32 * (i + 1), Args: random(k.args)}
		for j := range k.buffers {
			l.Buffers = append(l.Buffers, kernels.Binding{Buffer: x, Offset: 16 * j})
		}
		batch = append(batch, l)
	}
	check(b.Launch(batch...))
	for i, l := range f.launches {
		want := batch[i]
		if l.kernel != want.Kernel || int(l.groups) != want.Groups || int(l.threads) != want.Threads || !bytes.Equal(l.args, want.Args) {
			t.Errorf("launch %d became %+v", i, l)
		}
		for j, p := range l.pointers {
			if p != x.pointer+uint64(16*j) {
				t.Errorf("launch %d: buffer %d is at %#x", i, j, p)
			}
		}
	}
	if len(f.launches) != len(batch) {
		t.Errorf("%d launches", len(f.launches))
	}
	b.driver.launch = nil
	for _, l := range []kernels.Launch{
		{Kernel: "many", Buffers: make([]kernels.Binding, maxBuffers+1)},
		{Kernel: "one", Args: make([]byte, maxArgsBytes+1)},
		{Kernel: "fold_paper"},
	} {
		var failed *Error
		if err := b.Launch(l); !errors.As(err, &failed) || failed.Code == 0 || !strings.Contains(err.Error(), l.Kernel) {
			t.Errorf("launch of %s: %v", l.Kernel, err)
		}
	}
}

func TestLaunchAllocates(t *testing.T) {
	f := newFake(t)
	b := must(open(&f.driver, Options{}))
	defer b.Close()
	x := must(b.Alloc(1))
	batch := []kernels.Launch{{Kernel: "one", Buffers: []kernels.Binding{{Buffer: x}}, Args: make([]byte, 24)}}
	check(b.Launch(batch...))
	b.driver.contextSet = func(uintptr) result { return success }
	b.driver.launch = func(uintptr, uint32, uint32, uintptr, *unsafe.Pointer) result { return success }
	if n := testing.AllocsPerRun(100, func() {
		check(b.Launch(batch...))
		y := must(b.Alloc(1))
		b.Free(y)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	b.driver.contextSet = f.driver.contextSet
}

// TestUploads: what is uploaded arrives although copies are done late, and the
// source may change at once.
func TestUploads(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newFake(t)
		f.lag = true
		b := must(open(&f.driver, Options{}))
		defer b.Close()
		x := must(b.Alloc(8 << 20))
		want := make([]byte, x.Size())
		check(b.Upload(x, 0, want))
		data := random(3 << 20)
		for range rapid.IntRange(1, 12).Draw(rt, "uploads") {
			n := rapid.IntRange(0, len(data)).Draw(rt, "bytes")
			if rapid.Bool().Draw(rt, "small") {
				n %= 1000
			}
			at := rapid.IntRange(0, len(want)-n).Draw(rt, "at")
			src := data[:n]
			for i := range min(n, 100) {
				src[i]++
			}
			copy(want[at:], src)
			check(b.Upload(x, at, src))
		}
		if rapid.Bool().Draw(rt, "sync") {
			check(b.Sync())
		}
		at := rapid.IntRange(0, len(want)-1).Draw(rt, "from")
		got := make([]byte, len(want)-at)
		check(b.Download(got, x, at))
		if !bytes.Equal(got, want[at:]) {
			rt.Error("other bytes arrive")
		}
	})
}

// TestPool: what is free is given out again, within the limit; what was
// promised of statistics holds.
func TestPool(t *testing.T) {
	f := newFake(t)
	b := must(open(&f.driver, Options{Limit: 10 << 20}))
	x, y := must(b.Alloc(1000)).(*Buffer), must(b.Alloc(1001)).(*Buffer)
	if x.pointer == y.pointer || x.Size() != 1000 || y.Size() != 1001 || x.pointer%accelerated.Align != 0 {
		t.Error("two live buffers are not apart")
	}
	if s := b.Stats(); s != (accelerated.Stats{Live: 2, LiveBytes: 2048}) {
		t.Errorf("two live buffers: %+v", s)
	}
	freed := x.pointer
	b.Free(x)
	b.Free(x)
	b.Free(nil)
	if s := b.Stats(); s != (accelerated.Stats{Live: 1, LiveBytes: 1024, PoolBytes: 1024}) {
		t.Errorf("one freed: %+v", s)
	}
	if z := must(b.Alloc(999)).(*Buffer); z.pointer != freed {
		t.Error("the pool does not give out what was freed")
	}
	var memory *accelerated.MemoryError
	if _, err := b.Alloc(10 << 20); !errors.As(err, &memory) || memory.Bytes != 10<<20 || memory.Device != b.Name() {
		t.Errorf("over the limit: %v", err)
	}
	if _, err := b.Alloc(math.MaxInt); !errors.As(err, &memory) {
		t.Errorf("over everything: %v", err)
	}
	b.Free(must(b.Alloc(6 << 20)))
	must(b.Alloc(7 << 20)) // room only without what the pool keeps
	if s := b.Stats(); s.PoolBytes != 0 || s.Live != 3 {
		t.Errorf("after making room: %+v", s)
	}
	check(b.Close())
	if f.left() != 0 || b.Stats() != (accelerated.Stats{}) {
		t.Errorf("after Close: %d left, %+v", f.left(), b.Stats())
	}
	var closed *ring.ClosedError
	_, err := b.Alloc(1)
	for _, err := range []error{err, b.Sync(), b.Upload(y, 0, []byte{1}), b.Download([]byte{1}, y, 0), b.Launch()} {
		if !errors.As(err, &closed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

// TestMemory: where the device has no room, the pool gives way first.
func TestMemory(t *testing.T) {
	f := newFake(t)
	f.room = 10 << 20
	b := must(open(&f.driver, Options{}))
	defer b.Close()
	b.Free(must(b.Alloc(6 << 20)))
	x := must(b.Alloc(8 << 20))
	var memory *accelerated.MemoryError
	if _, err := b.Alloc(3 << 20); !errors.As(err, &memory) || !strings.Contains(err.Error(), "CUDA_ERROR_OUT_OF_MEMORY") {
		t.Errorf("without room: %v", err)
	}
	b.Free(x)
	if n := b.Stats().PoolBytes; n != 8<<20 {
		t.Errorf("the pool keeps %d bytes", n)
	}
}

// TestPoolKeeps: no more than was live at once, or 64 MiB.
func TestPoolKeeps(t *testing.T) {
	f := newFake(t)
	b := must(open(&f.driver, Options{}))
	defer b.Close()
	for i := range 9 {
		b.Free(must(b.Alloc((5 + i) << 20)))
	}
	if n := b.Stats().PoolBytes; n > keepFree {
		t.Errorf("the pool keeps %d bytes", n)
	}
}

func TestCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1<<40).Draw(t, "size")
		c := capacityOf(n)
		if c < n || c%accelerated.Align != 0 || c-n >= max(accelerated.Align, n/8+1) || capacityOf(c) != c {
			t.Errorf("%d becomes %d", n, c)
		}
	})
}

// TestDescribe: views in the terms of another library.
func TestDescribe(t *testing.T) {
	f := newFake(t)
	b := must(open(&f.driver, Options{Ordinal: 1}))
	defer b.Close()
	x := must(b.Alloc(4096)).(*Buffer)
	for dtype, want := range map[ring.DType][2]uint8{
		ring.BFloat16: {4, 16}, ring.Float16: {2, 16}, ring.Float32: {2, 32}, ring.Uint32: {1, 32}, ring.Bool: {6, 8},
	} {
		v := accelerated.View{Buffer: x, Offset: 64, DType: dtype, Shape: [4]int{2, 3, 4, 5}, Stride: [3]int{1200, 400, 40}}
		e := must(Describe(v))
		got := fmt.Sprint(e.Pointer-x.pointer, e.Device, e.Code, e.Bits, e.Shape, e.Strides, e.Stream == b.stream)
		size := dtype.Size()
		if s := fmt.Sprint(64, 1, want[0], want[1], []int{2, 3, 4, 5}, []int{1200 / size, 400 / size, 40 / size, 1}, true); got != s {
			t.Errorf("%v: %s, not %s", dtype, got, s)
		}
	}
	m := must(DescribeMask(accelerated.MaskView{Buffer: x, Offset: 9, B: 2, N: 3, S: 4}))
	if got := fmt.Sprint(m.Pointer-x.pointer, m.Device, m.Code, m.Bits, m.Shape, m.Strides); got != "9 1 6 8 [2 1 3 4] [12 12 4 1]" {
		t.Errorf("a mask: %s", got)
	}
	var stride *StrideError
	if _, err := Describe(accelerated.View{Buffer: x, DType: ring.Float32, Stride: [3]int{16, 8, 6}}); !errors.As(err, &stride) || stride.Stride != 6 {
		t.Errorf("a stride between elements: %v", err)
	}
	b.Free(x)
	var foreign *accelerated.BufferError
	for _, v := range []accelerated.View{{DType: ring.Float32}, {Buffer: x, DType: ring.Float32}} {
		if _, err := Describe(v); !errors.As(err, &foreign) {
			t.Errorf("no live buffer: %v", err)
		}
	}
	if _, err := DescribeMask(accelerated.MaskView{Buffer: x}); !errors.As(err, &foreign) {
		t.Errorf("no live mask: %v", err)
	}
}

// TestBind: every function has a place and a type that can be called, and what
// is missing is named.
func TestBind(t *testing.T) {
	var asked []string
	d := new(driver)
	check(d.bind(func(name string) (uintptr, error) {
		asked = append(asked, name)
		return 1, nil
	}))
	for _, s := range d.symbols() {
		if reflect.ValueOf(s.field).Elem().IsNil() {
			t.Errorf("%s is not bound", s.name)
		}
	}
	if d.contextSet == nil || d.launch == nil || d.copyToDevice == nil || d.eventRecord == nil {
		t.Error("a function is not bound")
	}
	for _, name := range asked {
		err := new(driver).bind(func(s string) (uintptr, error) {
			if s == name {
				return 0, errors.New("no")
			}
			return 1, nil
		})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// TestOpen: without a device, Open says why; with one, it works.
func TestOpen(t *testing.T) {
	dev, err := accelerated.Open("cuda")
	var absent *accelerated.UnavailableError
	if errors.As(err, &absent) {
		if absent.Device != "cuda" || absent.Why == "" {
			t.Errorf("%#v", absent)
		}
		t.Log(err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(dev.Name(), "cuda (") {
		t.Errorf("a device named %q", dev.Name())
	}
	check(dev.Close())
}
