package cpu

import (
	"errors"
	"runtime"
	"sync"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference/ring"
)

// Options choose how a [Device] works. The zero Options are the right ones.
type Options struct {
	PlainGo bool // do not use assembly
	Workers int  // goroutines that large work is spread over; 0: one a core
}

// Device is the processor as an [accelerated.Device]. All its calls are done
// when they return.
type Device struct {
	name    string
	kernels kernels
	workers workers
	pool    pool

	mu     sync.RWMutex // held for reading by calls, for writing by Close
	closed bool
	tasks  sync.Pool // of *tasks
}

var errTooLarge = errors.New("the size is beyond what can be addressed")

func init() {
	accelerated.Register("cpu", func() (accelerated.Device, error) { return Open(Options{}), nil })
}

// Open starts a device.
func Open(o Options) *Device {
	d := &Device{kernels: plainGo}
	if !o.PlainGo {
		d.kernels = best()
	}
	d.name = "cpu (" + d.kernels.name + ")"
	d.tasks.New = func() any { return new(tasks) }
	n := o.Workers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	d.workers.start(n-1, d.kernels.fence)
	return d
}

// tasks is what one call needs; it is reused, so that calls do not allocate.
type tasks struct {
	move   moveTask
	write  writeTask
	mask   maskTask
	attend attendTask
}

// Name is "cpu" and the instructions in use.
func (d *Device) Name() string { return d.name }

// Alloc returns a buffer from the pool.
func (d *Device) Alloc(size int) (accelerated.Buffer, error) {
	if err := d.enter("alloc"); err != nil {
		return nil, err
	}
	defer d.mu.RUnlock()
	b, err := d.pool.take(size)
	if err != nil {
		return nil, &accelerated.MemoryError{Device: d.name, Bytes: size, Err: err}
	}
	return b, nil
}

// Free gives a buffer back to the pool.
func (d *Device) Free(b accelerated.Buffer) {
	if b, ok := b.(*Buffer); ok {
		d.pool.give(b)
	}
}

// Owns reports whether b is live.
func (d *Device) Owns(b accelerated.Buffer) bool {
	own, ok := b.(*Buffer)
	return ok && d.pool.owns(own)
}

// Run does the work before it returns.
func (d *Device) Run(w *accelerated.Work) error {
	if err := d.enter("run"); err != nil {
		return err
	}
	defer d.mu.RUnlock()
	t := d.tasks.Get().(*tasks)
	defer d.tasks.Put(t)
	if w.Move != nil {
		t.move.run(d, w.Store, w.Move)
	}
	if w.Write != nil {
		t.write.run(d, w.Store, w.Write)
	}
	if w.Mask != nil {
		t.mask.run(d, w.Mask)
	}
	return nil
}

// Attend does the work before it returns.
func (d *Device) Attend(a *accelerated.Attention) error {
	if err := d.enter("attend"); err != nil {
		return err
	}
	defer d.mu.RUnlock()
	t := d.tasks.Get().(*tasks)
	defer d.tasks.Put(t)
	t.attend.run(d, a)
	return nil
}

// Upload copies src into dst.
func (d *Device) Upload(dst accelerated.Buffer, offset int, src []byte) error {
	if err := d.enter("upload"); err != nil {
		return err
	}
	defer d.mu.RUnlock()
	copy(dst.(*Buffer).bytes[offset:], src)
	return nil
}

// Download copies a view to dst.
func (d *Device) Download(dst []byte, src accelerated.View) error {
	if err := d.enter("download"); err != nil {
		return err
	}
	defer d.mu.RUnlock()
	from, n := memory(&src), src.Shape[3]*src.DType.Size()
	for b := range src.Shape[0] {
		for h := range src.Shape[1] {
			at := src.Offset + b*src.Stride[0] + h*src.Stride[1]
			for range src.Shape[2] {
				copy(dst[:n], from[at:])
				dst = dst[n:]
				at += src.Stride[2]
			}
		}
	}
	return nil
}

// Sync has nothing to wait for.
func (d *Device) Sync() error {
	if err := d.enter("sync"); err != nil {
		return err
	}
	d.mu.RUnlock()
	return nil
}

// Stats counts the memory in use.
func (d *Device) Stats() accelerated.Stats {
	d.pool.mu.Lock()
	defer d.pool.mu.Unlock()
	return d.pool.stats
}

// Close ends the workers and gives all memory back to the system.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		d.workers.stop()
		d.pool.empty()
	}
	return nil
}

// enter begins a call, which ends with d.mu.RUnlock.
func (d *Device) enter(op string) error {
	d.mu.RLock()
	if d.closed {
		d.mu.RUnlock()
		return &ring.ClosedError{Op: op}
	}
	return nil
}

// memory is what a view's offsets count from.
func memory(v *accelerated.View) []byte {
	if v.Buffer == nil {
		return v.Host
	}
	return v.Buffer.(*Buffer).bytes
}
