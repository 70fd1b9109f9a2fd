package cuda

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"unsafe"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/kernels"
	"example.com/ringcheck/reference/ring"
)

// Options choose a device and its memory. The zero Options are the first
// device, and as much memory as it has.
type Options struct {
	Ordinal int // of the device, as the driver counts them
	Limit   int // most bytes of the device's memory that are held at once; 0: no limit
}

func init() {
	accelerated.Register("cuda", func() (accelerated.Device, error) { return Open(Options{}) })
}

// Open starts a device. Where there is no driver, no device, or one that cannot
// run the kernels, the error is an [*accelerated.UnavailableError].
func Open(o Options) (accelerated.Device, error) {
	d, err := load()
	if err != nil {
		return nil, unavailable(err)
	}
	b, err := open(d, o)
	if err != nil {
		return nil, err
	}
	return kernels.New(b), nil
}

func unavailable(err error) error {
	return &accelerated.UnavailableError{Device: "cuda", Why: err.Error()}
}

// What a launch's parameters may amount to.
const (
	maxBuffers   = 24
	maxArgsBytes = 4096 - 8*maxBuffers
)

// backend is a device as the engine of package kernels wants it.
type backend struct {
	driver    *driver
	name      string
	device    int32
	ordinal   int
	context   uintptr
	stream    uintptr
	module    uintptr
	functions map[string]uintptr
	pool      pool
	staging   staging
	closed    bool

	// A launch's parameters, the pointers of the buffers and then the words of
	// the arguments, and a pointer to each word, which is what the driver takes:
	// parameters[i] is &words[i] for good. Pinned, since the driver follows them.
	words      [maxBuffers + maxArgsBytes/8]uint64
	parameters [maxBuffers + 1]unsafe.Pointer
	pins       runtime.Pinner
}

// What the kernels' PTX needs.
const (
	minVersion = 12040 // of CUDA, for the version of PTX
	minMajor   = 8     // compute capability
)

// open takes a device and loads the kernels. An error leaves nothing behind.
func open(d *driver, o Options) (b *backend, err error) {
	if err := d.check("cuInit", d.init(0)); err != nil {
		return nil, unavailable(err)
	}
	b = &backend{driver: d, ordinal: o.Ordinal, functions: map[string]uintptr{}}
	b.pool = pool{limit: o.Limit, live: map[*Buffer]struct{}{}, free: map[int][]*Buffer{}}
	if o.Limit <= 0 {
		b.pool.limit = math.MaxInt
	}
	if err := b.choose(); err != nil {
		return nil, unavailable(err)
	}
	if err := d.check("cuDevicePrimaryCtxRetain", d.contextRetain(&b.context, b.device)); err != nil {
		return nil, unavailable(err)
	}
	if err := b.start(); err != nil {
		return nil, unavailable(errors.Join(err, b.Close()))
	}
	return b, nil
}

// choose finds the device and what it is called.
func (b *backend) choose() error {
	d := b.driver
	var version, n, major, minor int32
	if err := d.check("cuDriverGetVersion", d.version(&version)); err != nil {
		return err
	}
	if version < minVersion {
		return fmt.Errorf("the driver is for CUDA %d.%d; install one for %d.%d or later",
			version/1000, version%1000/10, minVersion/1000, minVersion%1000/10)
	}
	if err := d.check("cuDeviceGetCount", d.deviceCount(&n)); err != nil {
		return err
	}
	if b.ordinal < 0 || b.ordinal >= int(n) {
		return fmt.Errorf("there is no device %d; the driver has %d", b.ordinal, n)
	}
	if err := d.check("cuDeviceGet", d.deviceGet(&b.device, int32(b.ordinal))); err != nil {
		return err
	}
	var name [128]byte
	if err := d.check("cuDeviceGetName", d.deviceName(&name[0], int32(len(name)), b.device)); err != nil {
		return err
	}
	label, _, _ := strings.Cut(string(name[:]), "\x00")
	b.name = "cuda (" + label + ")"
	if err := d.check("cuDeviceGetAttribute", d.deviceAttribute(&major, attributeMajor, b.device)); err != nil {
		return err
	}
	if err := d.check("cuDeviceGetAttribute", d.deviceAttribute(&minor, attributeMinor, b.device)); err != nil {
		return err
	}
	if major < minMajor {
		return fmt.Errorf("the %s has compute capability %d.%d; %d.0 or higher is needed", label, major, minor, minMajor)
	}
	return nil
}

// start makes what lives in the context.
func (b *backend) start() error {
	if err := b.enter("open"); err != nil {
		return err
	}
	defer b.leave()
	d := b.driver
	if err := d.check("cuStreamCreate", d.streamCreate(&b.stream, streamNonBlocking)); err != nil {
		return err
	}
	if err := d.check("cuMemHostAlloc", d.hostAlloc(&b.staging.memory, stagingSize, 0)); err != nil {
		return err
	}
	for i := range b.staging.events {
		if err := d.check("cuEventCreate", d.eventCreate(&b.staging.events[i], eventNoTiming)); err != nil {
			return err
		}
	}
	b.pins.Pin(b)
	for i := range b.parameters {
		b.parameters[i] = unsafe.Pointer(&b.words[i])
	}
	return b.compile(kernels.PTX())
}

// compile has the driver translate the kernels for the device; it keeps the
// result for the next time.
func (b *backend) compile(ptx string) error {
	image, log := append([]byte(ptx), 0), make([]byte, 8<<10)
	options := [...]uint32{jitErrorLog, jitErrorLogSize}
	values := [...]uintptr{uintptr(unsafe.Pointer(&log[0])), uintptr(len(log) - 1)}
	var pins runtime.Pinner
	pins.Pin(&log[0])
	defer pins.Unpin()
	err := b.driver.check("cuModuleLoadDataEx", b.driver.moduleLoad(&b.module, &image[0], uint32(len(options)), &options[0], &values[0]))
	var failed *Error
	if said, _, _ := strings.Cut(string(log), "\x00"); errors.As(err, &failed) && said != "" {
		failed.Text += "\n" + strings.TrimSpace(said)
	}
	return err
}

// enter begins a call: the goroutine holds its thread, and the context is
// current there. The call ends with leave, except where there is an error.
func (b *backend) enter(op string) error {
	if b.closed {
		return &ring.ClosedError{Op: op}
	}
	runtime.LockOSThread()
	if err := b.driver.check("cuCtxSetCurrent", b.driver.contextSet(b.context)); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	return nil
}

// leave lets the thread go. The context stays current on it: it is the primary
// one, which other libraries of the process use as well.
func (b *backend) leave() { runtime.UnlockOSThread() }

// Name is "cuda" and what the device is called.
func (b *backend) Name() string { return b.name }

// Address is where a buffer begins, for kernels.
func (b *backend) Address(buffer accelerated.Buffer) uint64 { return buffer.(*Buffer).pointer }

// Launch puts kernels on the stream.
func (b *backend) Launch(batch ...kernels.Launch) error {
	if err := b.enter("launch"); err != nil {
		return err
	}
	defer b.leave()
	for i := range batch {
		if err := b.launch(&batch[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *backend) launch(l *kernels.Launch) error {
	const call = "cuLaunchKernel"
	if len(l.Buffers) > maxBuffers || len(l.Args) > maxArgsBytes {
		return &Error{Call: call, Code: int(invalidValue), Text: fmt.Sprintf(
			"%s has %d buffers and %d bytes of arguments; %d and %d are the most", l.Kernel, len(l.Buffers), len(l.Args), maxBuffers, maxArgsBytes)}
	}
	function, known := b.functions[l.Kernel]
	if !known {
		var err error
		if function, err = b.find(l.Kernel); err != nil {
			return err
		}
	}
	for i, at := range l.Buffers {
		b.words[i] = at.Buffer.(*Buffer).pointer + uint64(at.Offset)
	}
	args := b.words[len(l.Buffers):]
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&args[0])), maxArgsBytes), l.Args)
	err := b.driver.check(call, b.driver.launch(function, uint32(l.Groups), uint32(l.Threads), b.stream, &b.parameters[0]))
	if err != nil {
		err.(*Error).Text += ": " + l.Kernel
	}
	return err
}

// find looks a kernel up for the first time.
func (b *backend) find(kernel string) (function uintptr, err error) {
	err = b.driver.check("cuModuleGetFunction", b.driver.moduleFunction(&function, b.module, kernel))
	if err != nil {
		err.(*Error).Text += ": " + kernel
		return 0, err
	}
	b.functions[kernel] = function
	return function, nil
}

// Sync waits for all work.
func (b *backend) Sync() error {
	if err := b.enter("sync"); err != nil {
		return err
	}
	defer b.leave()
	return b.wait()
}

// Close gives everything back, whatever fails.
func (b *backend) Close() error {
	if b.closed {
		return nil
	}
	err := b.enter("close")
	b.closed = true
	if err != nil {
		// Without its context, nothing that lives there can be given back by itself.
		return errors.Join(err, b.release())
	}
	defer b.leave()
	d := b.driver
	join := func(call string, r result) { err = errors.Join(err, d.check(call, r)) }
	if b.stream != 0 {
		for buf := range b.pool.live {
			b.Free(buf)
		}
		err = b.drain()
	}
	if b.module != 0 {
		join("cuModuleUnload", d.moduleUnload(b.module))
	}
	for _, event := range b.staging.events {
		if event != 0 {
			join("cuEventDestroy", d.eventDestroy(event))
		}
	}
	if b.staging.memory != nil {
		join("cuMemFreeHost", d.hostFree(b.staging.memory))
	}
	if b.stream != 0 {
		join("cuStreamDestroy", d.streamDestroy(b.stream))
	}
	join("cuCtxSetCurrent", d.contextSet(0))
	return errors.Join(err, b.release())
}

// release gives up the context, which ends with its last user.
func (b *backend) release() error {
	b.pins.Unpin()
	return b.driver.check("cuDevicePrimaryCtxRelease", b.driver.contextRelease(b.device))
}
