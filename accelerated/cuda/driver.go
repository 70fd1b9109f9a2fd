package cuda

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// result is CUresult.
type result int32

// The results that mean something here.
const (
	success      result = 0
	invalidValue result = 1
	outOfMemory  result = 2
)

// Values of the driver's enumerations.
const (
	attributeMajor    = 75 // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
	attributeMinor    = 76
	streamNonBlocking = 1 // CU_STREAM_NON_BLOCKING
	eventNoTiming     = 2 // CU_EVENT_DISABLE_TIMING
	jitErrorLog       = 5 // CU_JIT_ERROR_LOG_BUFFER
	jitErrorLogSize   = 6
)

// driver is libcuda's functions, as its header cuda.h declares them. Handles
// are uintptr; a device pointer is uint64; what the driver writes to is a Go
// pointer, for the time of the call. A table belongs to one device at a time,
// whose calls come one at a time.
type driver struct {
	init            func(flags uint32) result
	version         func(version *int32) result
	errorName       func(code result, name *unsafe.Pointer) result
	errorString     func(code result, text *unsafe.Pointer) result
	deviceCount     func(n *int32) result
	deviceGet       func(device *int32, ordinal int32) result
	deviceName      func(name *byte, size int32, device int32) result
	deviceAttribute func(value *int32, attribute, device int32) result
	contextRetain   func(context *uintptr, device int32) result
	contextRelease  func(device int32) result
	contextSet      func(context uintptr) result
	streamCreate    func(stream *uintptr, flags uint32) result
	streamWait      func(stream uintptr) result
	streamDestroy   func(stream uintptr) result
	moduleLoad      func(module *uintptr, image *byte, n uint32, options *uint32, values *uintptr) result
	moduleUnload    func(module uintptr) result
	moduleFunction  func(function *uintptr, module uintptr, name string) result
	launch          func(function uintptr, groups, threads uint32, stream uintptr, parameters *unsafe.Pointer) result
	memoryAlloc     func(pointer *uint64, bytes uint64) result
	memoryFree      func(pointer uint64) result
	memoryInfo      func(free, total *uint64) result
	hostAlloc       func(memory *unsafe.Pointer, bytes uint64, flags uint32) result
	hostFree        func(memory unsafe.Pointer) result
	copyToDevice    func(dst uint64, src unsafe.Pointer, bytes uint64, stream uintptr) result
	copyFromDevice  func(dst unsafe.Pointer, src uint64, bytes uint64, stream uintptr) result
	copyDevice      func(dst, src uint64, bytes uint64, stream uintptr) result
	eventCreate     func(event *uintptr, flags uint32) result
	eventRecord     func(event, stream uintptr) result
	eventWait       func(event uintptr) result
	eventElapsed    func(milliseconds *float32, from, to uintptr) result
	eventDestroy    func(event uintptr) result
}

// symbol is a function of the library and where it goes.
type symbol struct {
	name  string
	field any // pointer to a field of driver
}

// symbols lists all but those that are called in each step, see [driver.bind].
func (d *driver) symbols() []symbol {
	return []symbol{
		{"cuInit", &d.init},
		{"cuDriverGetVersion", &d.version},
		{"cuGetErrorName", &d.errorName},
		{"cuGetErrorString", &d.errorString},
		{"cuDeviceGetCount", &d.deviceCount},
		{"cuDeviceGet", &d.deviceGet},
		{"cuDeviceGetName", &d.deviceName},
		{"cuDeviceGetAttribute", &d.deviceAttribute},
		{"cuDevicePrimaryCtxRetain", &d.contextRetain},
		{"cuDevicePrimaryCtxRelease_v2", &d.contextRelease},
		{"cuStreamCreate", &d.streamCreate},
		{"cuStreamSynchronize", &d.streamWait},
		{"cuStreamDestroy_v2", &d.streamDestroy},
		{"cuModuleLoadDataEx", &d.moduleLoad},
		{"cuModuleUnload", &d.moduleUnload},
		{"cuModuleGetFunction", &d.moduleFunction},
		{"cuMemAlloc_v2", &d.memoryAlloc},
		{"cuMemFree_v2", &d.memoryFree},
		{"cuMemGetInfo_v2", &d.memoryInfo},
		{"cuMemHostAlloc", &d.hostAlloc},
		{"cuMemFreeHost", &d.hostFree},
		{"cuMemcpyDtoHAsync_v2", &d.copyFromDevice},
		{"cuMemcpyDtoDAsync_v2", &d.copyDevice},
		{"cuEventCreate", &d.eventCreate},
		{"cuEventSynchronize", &d.eventWait},
		{"cuEventElapsedTime", &d.eventElapsed},
		{"cuEventDestroy_v2", &d.eventDestroy},
	}
}

// bind fills the table from a library. The functions that a decode step calls
// are called directly: going through reflection, as the others do, costs more
// than they take, and allocates.
func (d *driver) bind(lookup func(name string) (uintptr, error)) error {
	var missing []string
	address := func(name string) uintptr {
		a, err := lookup(name)
		if err != nil || a == 0 {
			missing = append(missing, name)
		}
		return a
	}
	contextSet := address("cuCtxSetCurrent")
	launch := address("cuLaunchKernel")
	copyToDevice := address("cuMemcpyHtoDAsync_v2")
	eventRecord := address("cuEventRecord")
	symbols := d.symbols()
	addresses := make([]uintptr, len(symbols))
	for i, s := range symbols {
		addresses[i] = address(s.name)
	}
	if len(missing) > 0 {
		return fmt.Errorf("it has no %s; install a driver of CUDA 12.4 or later", strings.Join(missing, ", "))
	}
	for i, s := range symbols {
		purego.RegisterFunc(s.field, addresses[i])
	}
	set := direct{contextSet, make([]uintptr, 1)}
	d.contextSet = func(context uintptr) result {
		set.args[0] = context
		return set.call()
	}
	run := direct{launch, []uintptr{0, 0, 1, 1, 0, 1, 1, 0, 0, 0, 0}}
	d.launch = func(function uintptr, groups, threads uint32, stream uintptr, parameters *unsafe.Pointer) result {
		run.args[0], run.args[1], run.args[4] = function, uintptr(groups), uintptr(threads)
		run.args[8], run.args[9] = stream, uintptr(unsafe.Pointer(parameters))
		return run.call()
	}
	up := direct{copyToDevice, make([]uintptr, 4)}
	d.copyToDevice = func(dst uint64, src unsafe.Pointer, bytes uint64, stream uintptr) result {
		up.args[0], up.args[1], up.args[2], up.args[3] = uintptr(dst), uintptr(src), uintptr(bytes), stream
		return up.call()
	}
	record := direct{eventRecord, make([]uintptr, 2)}
	d.eventRecord = func(event, stream uintptr) result {
		record.args[0], record.args[1] = event, stream
		return record.call()
	}
	return nil
}

// direct is a function and its arguments, which are kept from call to call, so
// that one does not allocate. What they point to is pinned, or not Go's.
type direct struct {
	address uintptr
	args    []uintptr
}

func (f direct) call() result {
	r, _, _ := purego.SyscallN(f.address, f.args...)
	return result(r)
}

// Error is a call of the driver that failed.
type Error struct {
	Call string // "cuMemAlloc"
	Code int    // CUresult
	Name string // "CUDA_ERROR_OUT_OF_MEMORY"; empty where the driver has none
	Text string // what the driver says of it, and the compiler's log if it was that
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: error %d", e.Call, e.Code)
	if e.Name != "" {
		s = fmt.Sprintf("%s: %s (%d)", e.Call, e.Name, e.Code)
	}
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// check is the error of a call that returned r, nil if it succeeded.
func (d *driver) check(call string, r result) error {
	if r == success {
		return nil
	}
	e := &Error{Call: call, Code: int(r)}
	var p unsafe.Pointer
	if d.errorName(r, &p) == success {
		e.Name = text(p)
	}
	if d.errorString(r, &p) == success {
		e.Text = text(p)
	}
	return e
}

// text copies a C string.
func text(p unsafe.Pointer) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}
