package cuda

import (
	"slices"
	"testing"
	"unsafe"
)

// fake is a driver that does nothing but remember, and that can fail.
type fake struct {
	t      *testing.T
	driver driver
	calls  []string
	failAt int    // which call fails, counting from 1; 0: none
	code   result // with which it does
	failed string // the call that did

	room    int // bytes of memory; 0: no limit
	memory  map[uint64][]byte
	host    map[unsafe.Pointer][]byte
	objects map[string]int // contexts, streams, modules, events
	current uintptr
	next    uint64
	copies  []pending // uploads that are not yet done
	lag     bool      // uploads wait for the stream, or an event, to be waited for
	ptx     int       // bytes of the image
	log     string    // what the compiler says

	version, devices, major int32
	launches                []launched
}

type pending struct {
	dst, src []byte
	segment  uintptr // recorded event behind it
}

type launched struct {
	kernel          string
	groups, threads uint32
	pointers        []uint64
	args            []byte
}

// The kernels of the fake, and how many buffers and bytes of arguments they take.
var fakeKernels = []struct {
	name          string
	buffers, args int
}{{"none", 0, 8}, {"one", 1, 24}, {"many", maxBuffers, maxArgsBytes}}

const fakeContext = 77

func cString(s string) unsafe.Pointer { return unsafe.Pointer(&append([]byte(s), 0)[0]) }

// hit counts a call and says whether it fails. Calls that need the context
// insist on it.
func (f *fake) hit(name string, inContext bool) result {
	f.t.Helper()
	f.calls = append(f.calls, name)
	if inContext && f.current != fakeContext {
		f.t.Errorf("%s without the context", name)
	}
	if len(f.calls) == f.failAt {
		f.failed = name
		return f.code
	}
	return success
}

func (f *fake) make(kind string, handle *uintptr) {
	f.objects[kind]++
	f.next++
	*handle = uintptr(f.next)
}

func (f *fake) deliver(until uintptr) {
	last := len(f.copies)
	if until != 0 {
		last = 1 + slices.IndexFunc(f.copies, func(p pending) bool { return p.segment == until })
	}
	for _, p := range f.copies[:last] {
		copy(p.dst, p.src)
	}
	f.copies = f.copies[last:]
}

// at is the memory from a device pointer on.
func (f *fake) at(pointer uint64, n uint64) []byte {
	for base, m := range f.memory {
		if pointer >= base && pointer+n <= base+uint64(len(m)) {
			return m[pointer-base:][:n]
		}
	}
	f.t.Fatalf("no memory at %#x for %d bytes", pointer, n)
	return nil
}

func newFake(t *testing.T) *fake {
	f := &fake{
		t: t, code: 999, memory: map[uint64][]byte{}, host: map[unsafe.Pointer][]byte{}, objects: map[string]int{},
		next: 1 << 20, version: 13000, devices: 2, major: 9,
	}
	simple := func(name, kind string) func(uintptr) result {
		return func(uintptr) result {
			r := f.hit(name, true)
			if r == success && kind != "" {
				f.objects[kind]--
			}
			return r
		}
	}
	creator := func(name, kind string) func(*uintptr, uint32) result {
		return func(handle *uintptr, _ uint32) result {
			r := f.hit(name, true)
			if r == success {
				f.make(kind, handle)
			}
			return r
		}
	}
	number := func(name string, n *int32) func(*int32) result {
		return func(to *int32) result {
			*to = *n
			return f.hit(name, false)
		}
	}
	f.driver = driver{
		init:        func(uint32) result { return f.hit("cuInit", false) },
		version:     number("cuDriverGetVersion", &f.version),
		deviceCount: number("cuDeviceGetCount", &f.devices),
		errorName: func(code result, name *unsafe.Pointer) result {
			if code != 999 && code != outOfMemory {
				return invalidValue
			}
			*name = cString(map[result]string{999: "CUDA_ERROR_UNKNOWN", outOfMemory: "CUDA_ERROR_OUT_OF_MEMORY"}[code])
			return success
		},
		errorString: func(code result, text *unsafe.Pointer) result {
			if code != 999 {
				return invalidValue
			}
			*text = cString("unknown error")
			return success
		},
		deviceGet: func(device *int32, ordinal int32) result {
			*device = 10 + ordinal
			return f.hit("cuDeviceGet", false)
		},
		deviceName: func(name *byte, size, device int32) result {
			copy(unsafe.Slice(name, size), "Fake 9000")
			return f.hit("cuDeviceGetName", false)
		},
		deviceAttribute: func(value *int32, attribute, device int32) result {
			*value = f.major
			if attribute == attributeMinor {
				*value = 5
			}
			return f.hit("cuDeviceGetAttribute", false)
		},
		contextRetain: func(context *uintptr, device int32) result {
			r := f.hit("cuDevicePrimaryCtxRetain", false)
			if r == success {
				f.objects["context"]++
				*context = fakeContext
			}
			return r
		},
		contextRelease: func(device int32) result {
			r := f.hit("cuDevicePrimaryCtxRelease", false)
			if r == success {
				f.objects["context"]--
			}
			return r
		},
		contextSet: func(context uintptr) result {
			r := f.hit("cuCtxSetCurrent", false)
			if r == success {
				f.current = context
			}
			return r
		},
		streamCreate:  creator("cuStreamCreate", "stream"),
		streamDestroy: simple("cuStreamDestroy", "stream"),
		streamWait: func(uintptr) result {
			f.deliver(0)
			return f.hit("cuStreamSynchronize", true)
		},
		moduleLoad: func(module *uintptr, image *byte, n uint32, options *uint32, values *uintptr) result {
			r := f.hit("cuModuleLoadDataEx", true)
			for *image != 0 {
				f.ptx++
				image = (*byte)(unsafe.Add(unsafe.Pointer(image), 1))
			}
			if r != success && n == 2 && unsafe.Slice(options, 2)[0] == jitErrorLog {
				log := *(*unsafe.Pointer)(unsafe.Pointer(values))
				copy(unsafe.Slice((*byte)(log), unsafe.Slice(values, 2)[1]), f.log)
			}
			if r == success {
				f.make("module", module)
			}
			return r
		},
		moduleUnload: simple("cuModuleUnload", "module"),
		moduleFunction: func(function *uintptr, module uintptr, name string) result {
			for i, k := range fakeKernels {
				if k.name == name {
					*function = uintptr(i + 1)
					return f.hit("cuModuleGetFunction", true)
				}
			}
			return 500
		},
		launch: func(function uintptr, groups, threads uint32, stream uintptr, parameters *unsafe.Pointer) result {
			k := fakeKernels[function-1]
			l := launched{kernel: k.name, groups: groups, threads: threads}
			p := unsafe.Slice(parameters, k.buffers+1)
			for i := range k.buffers {
				l.pointers = append(l.pointers, *(*uint64)(p[i]))
			}
			l.args = slices.Clone(unsafe.Slice((*byte)(p[k.buffers]), k.args))
			f.launches = append(f.launches, l)
			return f.hit("cuLaunchKernel", true)
		},
		memoryAlloc: func(pointer *uint64, bytes uint64) result {
			r := f.hit("cuMemAlloc", true)
			held := 0
			for _, m := range f.memory {
				held += len(m)
			}
			if r == success && f.room > 0 && held+int(bytes) > f.room {
				r = outOfMemory
			}
			if r == success {
				f.next = (f.next + 511) &^ 511
				*pointer = f.next
				f.next += bytes
				f.memory[*pointer] = make([]byte, bytes)
			}
			return r
		},
		memoryFree: func(pointer uint64) result {
			r := f.hit("cuMemFree", true)
			if r == success {
				if f.memory[pointer] == nil {
					f.t.Errorf("free of %#x, which is not memory", pointer)
				}
				delete(f.memory, pointer)
			}
			return r
		},
		hostAlloc: func(memory *unsafe.Pointer, bytes uint64, _ uint32) result {
			r := f.hit("cuMemHostAlloc", true)
			if r == success {
				m := make([]byte, bytes)
				*memory = unsafe.Pointer(&m[0])
				f.host[*memory] = m
			}
			return r
		},
		hostFree: func(memory unsafe.Pointer) result {
			r := f.hit("cuMemFreeHost", true)
			if r == success {
				delete(f.host, memory)
			}
			return r
		},
		copyToDevice: func(dst uint64, src unsafe.Pointer, bytes uint64, stream uintptr) result {
			r := f.hit("cuMemcpyHtoDAsync", true)
			if r == success {
				f.copies = append(f.copies, pending{dst: f.at(dst, bytes), src: unsafe.Slice((*byte)(src), bytes)})
				if !f.lag {
					f.deliver(0)
				}
			}
			return r
		},
		copyFromDevice: func(dst unsafe.Pointer, src uint64, bytes uint64, stream uintptr) result {
			r := f.hit("cuMemcpyDtoHAsync", true)
			if r == success {
				copy(unsafe.Slice((*byte)(dst), bytes), f.at(src, bytes))
			}
			return r
		},
		eventCreate:  creator("cuEventCreate", "event"),
		eventDestroy: simple("cuEventDestroy", "event"),
		eventRecord: func(event, stream uintptr) result {
			if n := len(f.copies); n > 0 {
				f.copies[n-1].segment = event
			}
			return f.hit("cuEventRecord", true)
		},
		eventWait: func(event uintptr) result {
			f.deliver(event)
			return f.hit("cuEventSynchronize", true)
		},
	}
	return f
}

// left says what was not given back.
func (f *fake) left() (n int) {
	for _, count := range f.objects {
		n += count
	}
	return n + len(f.memory) + len(f.host)
}
