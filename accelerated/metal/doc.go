// Package metal is Apple's accelerators as an [accelerated.Device]: Metal and
// Foundation called through purego without cgo, under the engine and the
// kernels of package kernels, whose text Metal compiles when the device is
// opened. Where there is no Metal, [Open] says so with an
// [*accelerated.UnavailableError].
//
// Nothing here has run on Apple hardware. It builds and vets for darwin on
// amd64 and arm64. All that lies above the messages to Objective-C runs under
// the tests on any system, against a stand-in that executes the host's build of
// the same kernels and refuses what Metal would refuse; what the messages are
// sent with is tested too. What is not: that Metal's compiler takes the text,
// that its arithmetic is as it should be (a self-test at the start refuses the
// device where quantizing is not), and how fast it is.
//
// api.go is all that is called of the system, with its types. objc.go turns
// that into messages, objc_darwin.go finds where they go. backend.go is
// launches and transfers, pool.go memory, selftest.go the self-test.
//
// Invariant: each object that a call returns retained is released once, and
// all others die with the autorelease pool of the call that got them. Pools
// belong to operating system threads and goroutines wander, so each call holds
// its thread. Memory is shared with the processor: the order that the device's
// queue keeps by itself is kept here for the processor's reads and writes, which
// wait for what was begun before and uses the same buffer.
//
// Caches, plans and kernels do not belong here.
package metal
