package cuda

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/kernels"
	"example.com/ringcheck/reference/ring"
)

// present takes the device itself, or skips the test where there is none.
func present(t testing.TB) *backend {
	d, err := load()
	if err != nil {
		t.Skip(err)
	}
	b, err := open(d, Options{})
	var absent *accelerated.UnavailableError
	if errors.As(err, &absent) {
		t.Skip(err)
	}
	check(err)
	t.Cleanup(func() { check(b.Close()) })
	return b
}

// TestMemoryReturned: after Close, the device has the memory that it had.
func TestMemoryReturned(t *testing.T) {
	holder := present(t) // keeps the context, and what it takes once, alive
	free := func() (free uint64) {
		var total uint64
		check(holder.enter("count"))
		defer holder.leave()
		check(holder.driver.check("cuMemGetInfo", holder.driver.memoryInfo(&free, &total)))
		return free
	}
	use := func(closeCaches bool) {
		dev := kernels.New(must(open(holder.driver, Options{})))
		cfg := accelerated.Config{Semantics: ring.Exact, MaxSize: 64, KVHeads: 2, KeyDim: 64, ValueDim: 64, DType: ring.BFloat16}
		for _, cfg.Quant.Bits = range []int{0, 4} {
			cfg.Quant.GroupSize = 16 * cfg.Quant.Bits
			c := must(accelerated.NewBatchRotating(dev, cfg, make([]int, 300)))
			k := accelerated.HostView(ring.Array{DType: ring.BFloat16, Shape: [4]int{300, 2, 100, 64}, Data: random(300 * 2 * 100 * 64 * 2)})
			must(c.Update(k, k))
			check(c.Filter([]int{5, 7, 9}))
			out := accelerated.HostView(ring.Array{DType: ring.Float32, Shape: [4]int{3, 2, 1, 64}})
			q := accelerated.HostView(ring.Array{DType: ring.BFloat16, Shape: [4]int{3, 2, 1, 64}, Data: make([]byte, 3*2*64*2)})
			out.Host = make([]byte, out.Bytes())
			check(c.Attend(out, q, 1))
			if closeCaches {
				check(c.Close())
			}
		}
		check(dev.Close())
	}
	use(true)
	before := free()
	for _, closeCaches := range []bool{true, false} {
		use(closeCaches)
		if after := free(); after != before {
			t.Errorf("%d bytes are free, %d were before (caches closed: %v)", after, before, closeCaches)
		}
	}
}

// TestTransfers: large and small ones, on the device.
func TestTransfers(t *testing.T) {
	b := present(t)
	data := random(9<<20 + 5)
	x := must(b.Alloc(len(data) + 3))
	check(b.Upload(x, 3, data))
	check(b.Upload(x, 7, data[:100]))
	copy(data[4:], bytes.Clone(data[:100]))
	got := make([]byte, len(data))
	check(b.Download(got, x, 3))
	if !bytes.Equal(got, data) {
		t.Error("other bytes come back")
	}
}

// TestThreads: a call may come from any thread of the system, also from one
// that has never seen the context.
func TestThreads(t *testing.T) {
	b := present(t)
	x := must(b.Alloc(64))
	for i := range 8 {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			got := make([]byte, 1)
			err := b.Upload(x, i, []byte{byte(i)})
			if err == nil {
				err = b.Download(got, x, i)
			}
			if err == nil && got[0] != byte(i) {
				err = errors.New("another byte comes back")
			}
			done <- err
		}()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
