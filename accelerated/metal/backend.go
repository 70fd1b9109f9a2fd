package metal

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/kernels"
)

// Options choose a device's memory. The zero Options are as much as the system
// recommends.
type Options struct {
	Limit int // most bytes that are held at once; 0: the recommended working set
}

func init() {
	accelerated.Register("metal", func() (accelerated.Device, error) { return Open(Options{}) })
}

// Open starts the system's default device. Where there is none, or one that
// cannot run the kernels or quantizes otherwise than it should, the error is an
// [*accelerated.UnavailableError].
func Open(o Options) (accelerated.Device, error) {
	a, err := load()
	if err != nil {
		return nil, err
	}
	return start(a, o)
}

// start opens a device and tests it.
func start(a api, o Options) (accelerated.Device, error) {
	b, err := open(a, o)
	if err != nil {
		return nil, unavailable(err)
	}
	dev := kernels.New(b)
	if err := selfTest(dev); err != nil {
		return nil, unavailable(errors.Join(err, dev.Close()))
	}
	return dev, nil
}

func unavailable(err error) error {
	return &accelerated.UnavailableError{Device: "metal", Why: err.Error()}
}

// Error is what Metal said: of a call, or of a command buffer that was not
// completed.
type Error struct {
	Call   string // "newLibraryWithSource"
	Domain string // of the NSError; empty where there is none
	Code   int
	Text   string
}

func (e *Error) Error() string {
	switch {
	case e.Domain == "":
		return e.Call + ": " + e.Text
	case e.Text == "":
		return fmt.Sprintf("%s: %s %d", e.Call, e.Domain, e.Code)
	}
	return fmt.Sprintf("%s: %s %d: %s", e.Call, e.Domain, e.Code, e.Text)
}

// failure is what an NSError, which may be nil, says of a call.
func failure(a api, call string, err id) error {
	if err == 0 {
		return &Error{Call: call, Text: "Metal did not do it and did not say why"}
	}
	return &Error{
		Call: call, Domain: a.text(a.errorDomain(err)), Code: a.errorCode(err), Text: a.text(a.errorDescription(err)),
	}
}

// backend is a device as the engine of package kernels wants it.
type backend struct {
	api       api
	name      string
	device    id
	queue     id
	library   id
	pipelines map[string]pipeline
	pool      pool
	closed    bool

	// Command buffers that are committed have numbers, from 1 on. Those after
	// done, in order, are under way, and retained here.
	underWay []id
	done     uint64
	failed   error // of the first that failed
}

type pipeline struct {
	object  id
	threads int // most that a group may have
}

// open takes the default device and has it compile the kernels. An error leaves
// nothing behind.
func open(a api, o Options) (b *backend, err error) {
	withPool(a, func() {
		b = &backend{api: a, pipelines: map[string]pipeline{}}
		b.pool = pool{live: map[*Buffer]struct{}{}, free: map[int][]*Buffer{}}
		if err = b.start(o); err != nil {
			b.release()
		}
	})
	return b, err
}

func (b *backend) start(o Options) error {
	a := b.api
	if b.device = a.createDevice(); b.device == 0 {
		return errors.New("the system has no device with Metal; use cpu")
	}
	b.name = "metal (" + a.text(a.deviceName(b.device)) + ")"
	b.pool.maxLength = int(min(a.maxBufferLength(b.device), math.MaxInt/2))
	b.pool.limit = o.Limit
	if o.Limit <= 0 {
		b.pool.limit = int(min(a.workingSetSize(b.device), math.MaxInt/2))
	}
	if b.queue = a.newQueue(b.device); b.queue == 0 {
		return failure(a, "newCommandQueue", 0)
	}
	return b.compile(kernels.MetalSource())
}

// compile makes a library whose floating point is IEEE's.
func (b *backend) compile(source string) error {
	a := b.api
	options := a.newOptions()
	defer a.release(options)
	if a.hasMathMode(options) {
		a.setMathMode(options, mathSafe)
		a.setMathFunctions(options, functionsPrecise)
	} else {
		a.setFastMath(options, false)
	}
	var err id
	withString(a, source, func(s id) { b.library = a.newLibrary(b.device, s, options, &err) })
	if b.library == 0 {
		return failure(a, "newLibraryWithSource", err)
	}
	return nil
}

// pipeline is the one of a kernel, made when it is first used.
func (b *backend) pipeline(kernel string) (pipeline, error) {
	if p, made := b.pipelines[kernel]; made {
		return p, nil
	}
	a := b.api
	var function, err id
	withString(a, kernel, func(s id) { function = a.newFunction(b.library, s) })
	if function == 0 {
		return pipeline{}, &Error{Call: "newFunctionWithName", Text: "the library has no kernel " + kernel}
	}
	defer a.release(function)
	object := a.newPipeline(b.device, function, &err)
	if object == 0 {
		return pipeline{}, failure(a, "newComputePipelineStateWithFunction: "+kernel, err)
	}
	if width := a.executionWidth(object); width != kernels.Warp {
		a.release(object)
		return pipeline{}, fmt.Errorf("%s: a SIMD-group has %d threads; the kernels need %d", kernel, width, kernels.Warp)
	}
	p := pipeline{object, int(min(a.maxThreads(object), math.MaxInt32))}
	b.pipelines[kernel] = p
	return p, nil
}

// Name is "metal" and what the device is called.
func (b *backend) Name() string { return b.name }

// Launch commits one command buffer with all kernels of the batch.
func (b *backend) Launch(batch ...kernels.Launch) (err error) {
	withPool(b.api, func() { err = b.launch(batch) })
	return err
}

func (b *backend) launch(batch []kernels.Launch) error {
	// An encoder must not be left half done, so all that can fail comes first.
	for i := range batch {
		l := &batch[i]
		p, err := b.pipeline(l.Kernel)
		if err != nil {
			return err
		}
		if l.Threads > p.threads {
			return &Error{Call: "dispatchThreadgroups", Text: fmt.Sprintf(
				"%s: %d threads a group; the device has at most %d", l.Kernel, l.Threads, p.threads)}
		}
	}
	a := b.api
	commands := a.commandBuffer(b.queue)
	if commands == 0 {
		return failure(a, "commandBuffer", 0)
	}
	encoder := a.encoder(commands)
	if encoder == 0 {
		return failure(a, "computeCommandEncoder", 0)
	}
	a.retain(commands)
	b.underWay = append(b.underWay, commands)
	number := b.done + uint64(len(b.underWay))
	for i := range batch {
		l := &batch[i]
		a.setPipeline(encoder, b.pipelines[l.Kernel].object)
		for j, at := range l.Buffers {
			buf := at.Buffer.(*Buffer)
			buf.last = number
			a.setBuffer(encoder, buf.object, uint(at.Offset), uint(j))
		}
		a.setBytes(encoder, unsafe.Pointer(unsafe.SliceData(l.Args)), uint(len(l.Args)), uint(len(l.Buffers)))
		a.dispatch(encoder, size{uint(l.Groups), 1, 1}, size{uint(l.Threads), 1, 1})
	}
	a.endEncoding(encoder)
	a.commit(commands)
	b.settle()
	return nil
}

// settle takes note of what is done, and does not wait.
func (b *backend) settle() {
	for len(b.underWay) > 0 && b.api.status(b.underWay[0]) >= statusCompleted {
		b.finish()
	}
}

// wait waits for the command buffers up to a number.
func (b *backend) wait(number uint64) {
	for b.done < number {
		b.api.waitUntilCompleted(b.underWay[0])
		b.finish()
	}
}

// finish is the end of the oldest command buffer under way.
func (b *backend) finish() {
	commands := b.underWay[0]
	if b.api.status(commands) == statusError && b.failed == nil {
		b.failed = failure(b.api, "commandBuffer", b.api.commandsError(commands))
	}
	b.api.release(commands)
	b.underWay = b.underWay[1:]
	b.done++
}

// waitAll waits for all work and returns what went wrong.
func (b *backend) waitAll() error {
	b.wait(b.done + uint64(len(b.underWay)))
	return b.failed
}

// bytes is a buffer's memory, for the time until the next launch.
func (b *backend) bytes(buf *Buffer) []byte {
	return unsafe.Slice((*byte)(b.api.contents(buf.object)), buf.size)
}

// Upload waits for work that uses the buffer, if there is any, and copies.
func (b *backend) Upload(dst accelerated.Buffer, offset int, src []byte) error {
	withPool(b.api, func() {
		buf := dst.(*Buffer)
		b.wait(buf.last)
		copy(b.bytes(buf)[offset:], src)
	})
	return nil
}

// Download waits for all work and copies.
func (b *backend) Download(dst []byte, src accelerated.Buffer, offset int) (err error) {
	withPool(b.api, func() {
		if err = b.waitAll(); err == nil {
			copy(dst, b.bytes(src.(*Buffer))[offset:])
		}
	})
	return err
}

// Sync waits for all work.
func (b *backend) Sync() (err error) {
	withPool(b.api, func() { err = b.waitAll() })
	return err
}

// Close gives everything back, whatever failed.
func (b *backend) Close() (err error) {
	if b.closed {
		return nil
	}
	b.closed = true
	withPool(b.api, func() {
		err = b.waitAll()
		for buf := range b.pool.live {
			b.Free(buf)
		}
		b.drain()
		b.release()
	})
	return err
}

// release gives the objects of the device back.
func (b *backend) release() {
	objects := []id{b.library, b.queue, b.device}
	for _, p := range b.pipelines {
		objects = append(objects, p.object)
	}
	for _, o := range objects {
		if o != 0 {
			b.api.release(o)
		}
	}
}
