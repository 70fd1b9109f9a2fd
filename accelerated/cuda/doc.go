// Package cuda is NVIDIA's accelerators as an [accelerated.Device]: the driver,
// libcuda, called through purego without cgo, under the engine and the PTX of
// package kernels. No CUDA toolkit is needed to build it or to run it. Where the
// library, its driver or a device is missing, [Open] says so with an
// [*accelerated.UnavailableError].
//
// driver.go is the one table of the driver's functions; all else calls through
// it, and the tests put a stand-in there. backend.go is memory, transfers and
// launches; pool.go and staging.go serve it.
//
// Invariant: everything happens in the order of one stream, so memory that is
// freed may be given out again at once. A context belongs to operating system
// threads and goroutines wander, so each call holds its thread and makes the
// context current there: 0.2 microseconds, where handing the call to a thread of
// its own and back took 14 (BenchmarkCall). What the driver reads or fills later
// than a call is page-locked memory of its own, never Go's.
//
// Caches, plans and kernels do not belong here.
package cuda
