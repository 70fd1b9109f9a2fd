package kernels

import (
	"errors"
	"slices"
	"sync"
	"unsafe"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference/ring"
)

// New makes a device of a backend, which is the device's from here on.
func New(b Backend) accelerated.Device {
	addresser, _ := b.(Addresser)
	return &engine{backend: b, addresser: addresser, live: map[accelerated.Buffer]struct{}{}}
}

// engine turns the calls of a device into launches. It holds no memory of the
// device between calls: what a call needs besides its arguments is allocated,
// and given back behind the call's launches.
type engine struct {
	backend   Backend
	addresser Addresser // the backend, if it is one

	mu     sync.Mutex
	closed bool
	failed error // what surfaced at a call that synchronized
	live   map[accelerated.Buffer]struct{}

	// Of the call that is being prepared; all is reused.
	batch    []Launch
	bindings []Binding // the launches'
	args     []byte    // the launches'
	staging  []byte    // becomes a temporary buffer
	temps    []accelerated.Buffer
}

// begin starts a call, which ends with end.
func (e *engine) begin(call string) error {
	e.mu.Lock()
	var err error
	switch {
	case e.closed:
		err = &ring.ClosedError{Op: call}
	case e.failed != nil:
		err = e.failed
	default:
		return nil
	}
	e.mu.Unlock()
	return err
}

func (e *engine) end() {
	for _, b := range e.temps {
		e.backend.Free(b)
	}
	clear(e.temps)
	clear(e.batch)
	clear(e.bindings)
	e.batch, e.bindings, e.args, e.staging, e.temps = e.batch[:0], e.bindings[:0], e.args[:0], e.staging[:0], e.temps[:0]
	if cap(e.staging) > keepStaging {
		e.staging = nil
	}
	e.mu.Unlock()
}

// keepStaging is how much host memory is kept from call to call.
const keepStaging = 1 << 20

func (e *engine) fail(call string, err error) error {
	var memory *accelerated.MemoryError
	if err == nil || errors.As(err, &memory) {
		return err
	}
	return &accelerated.DeviceError{Device: e.backend.Name(), Call: call, Err: err}
}

// synced is the end of a call that synchronizes.
func (e *engine) synced(call string, err error) error {
	if err != nil {
		e.failed = e.fail(call, err)
	}
	return e.failed
}

func (e *engine) Name() string { return e.backend.Name() }

func (e *engine) Alloc(size int) (accelerated.Buffer, error) {
	const call = "alloc"
	if err := e.begin(call); err != nil {
		return nil, err
	}
	defer e.end()
	b, err := e.backend.Alloc(size)
	if err != nil {
		return nil, e.fail(call, err)
	}
	e.live[b] = struct{}{}
	return b, nil
}

func (e *engine) Free(b accelerated.Buffer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, live := e.live[b]; live {
		delete(e.live, b)
		e.backend.Free(b)
	}
}

func (e *engine) Owns(b accelerated.Buffer) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, live := e.live[b]
	return live
}

func (e *engine) Upload(dst accelerated.Buffer, offset int, src []byte) error {
	const call = "upload"
	if err := e.begin(call); err != nil {
		return err
	}
	defer e.end()
	if len(src) == 0 {
		return nil
	}
	return e.fail(call, e.backend.Upload(dst, offset, src))
}

func (e *engine) Sync() error {
	const call = "sync"
	if err := e.begin(call); err != nil {
		return err
	}
	defer e.end()
	return e.synced(call, e.backend.Sync())
}

func (e *engine) Stats() accelerated.Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return accelerated.Stats{}
	}
	return e.backend.Stats()
}

func (e *engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	clear(e.live)
	return e.fail("close", e.backend.Close())
}

func (e *engine) Download(dst []byte, src accelerated.View) error {
	const call = "download"
	if err := e.begin(call); err != nil {
		return err
	}
	defer e.end()
	switch {
	case src.Bytes() == 0:
		return e.synced(call, e.backend.Sync())
	case src.Buffer == nil:
		gather(dst[:0], &src)
		return e.synced(call, e.backend.Sync())
	case dense(&src):
		return e.synced(call, e.backend.Download(dst[:src.Bytes()], src.Buffer, src.Offset))
	}
	temp, err := e.temp(src.Bytes())
	if err != nil {
		return e.fail(call, err)
	}
	e.copyTo(temp, 0, &src)
	if err := e.submit(); err != nil {
		return e.fail(call, err)
	}
	return e.synced(call, e.backend.Download(dst[:src.Bytes()], temp, 0))
}

func (e *engine) Run(w *accelerated.Work) error {
	const call = "run"
	if err := e.begin(call); err != nil {
		return err
	}
	defer e.end()
	err := e.run(w)
	return e.fail(call, err)
}

func (e *engine) run(w *accelerated.Work) error {
	if w.Move != nil {
		if err := e.move(w.Store, w.Move); err != nil {
			return err
		}
	}
	if w.Write != nil || w.Mask != nil {
		if err := e.write(w); err != nil {
			return err
		}
	}
	return e.submit()
}

// temp allocates memory that lasts until the end of the call.
func (e *engine) temp(size int) (accelerated.Buffer, error) {
	b, err := e.backend.Alloc(max(size, 1))
	if err == nil {
		e.temps = append(e.temps, b)
	}
	return b, err
}

// staged stands in a launch for the buffer that staging becomes.
type staged struct{}

func (staged) Size() int { return 0 }

// stage puts bytes into the staging memory.
func (e *engine) stage(data []byte) Binding {
	b := Binding{staged{}, e.stageRoom(len(data))}
	copy(e.staging[b.Offset:], data)
	return b
}

// stageRoom makes room for n bytes in the staging memory.
func (e *engine) stageRoom(n int) int {
	at := (len(e.staging) + 15) &^ 15
	if need := at + n; cap(e.staging) < need {
		e.staging = append(make([]byte, 0, max(need, 2*cap(e.staging))), e.staging...)
	}
	e.staging = e.staging[:at+n]
	return at
}

// submit uploads what was staged and launches the batch.
func (e *engine) submit() error {
	if len(e.batch) == 0 {
		return nil
	}
	var staging accelerated.Buffer
	if len(e.staging) > 0 {
		var err error
		if staging, err = e.temp(len(e.staging)); err != nil {
			return err
		}
		if err := e.backend.Upload(staging, 0, e.staging); err != nil {
			return err
		}
	}
	for i := range e.batch {
		bindings := e.batch[i].Buffers
		for j, b := range bindings {
			if b.Buffer == (staged{}) {
				bindings[j].Buffer = staging
			}
		}
		// What a kernel does not use is bound to something that it uses.
		used := slices.IndexFunc(bindings, func(b Binding) bool { return b.Buffer != nil })
		for j, b := range bindings {
			if b.Buffer == nil {
				bindings[j] = Binding{bindings[used].Buffer, 0}
			}
		}
	}
	return e.backend.Launch(e.batch...)
}

// launch adds a launch of some warps to the batch, in groups of groupWarps.
func launch[T any](e *engine, kernel string, warps uint32, args *T, buffers ...Binding) {
	launchGroups(e, kernel, warps, groupWarps, args, buffers...)
}

func launchGroups[T any](e *engine, kernel string, warps uint32, group int, args *T, buffers ...Binding) {
	if warps == 0 {
		return
	}
	size, at := int(unsafe.Sizeof(*args)), len(e.bindings)
	e.args = append(e.args, unsafe.Slice((*byte)(unsafe.Pointer(args)), size)...)
	e.bindings = append(e.bindings, buffers...)
	e.batch = append(e.batch, Launch{
		Kernel: kernel, Threads: group * Warp, Groups: (int(warps) + group - 1) / group,
		Buffers: e.bindings[at:len(e.bindings):len(e.bindings)],
		Args:    e.args[len(e.args)-size : len(e.args) : len(e.args)],
	})
}
