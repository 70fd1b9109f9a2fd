package metal

import (
	"runtime"
	"unsafe"
)

// id is an object of Objective-C; 0 is nil.
type id uintptr

// size is MTLSize.
type size struct{ Width, Height, Depth uint }

// Values of Metal's enumerations.
const (
	storageShared    = 0 // MTLResourceStorageModeShared
	mathSafe         = 0 // MTLMathModeSafe
	functionsPrecise = 1 // MTLMathFloatingPointFunctionsPrecise
	statusCompleted  = 4 // MTLCommandBufferStatusCompleted; all above are final, too
	statusError      = 5 // MTLCommandBufferStatusError
	encodingUTF8     = 4 // NSUTF8StringEncoding
)

// maxArgs is how many bytes setBytes takes.
const maxArgs = 4096

// api is all that is called of Metal, Foundation and the runtime of
// Objective-C, one message a method; the first argument receives it. Argument
// and result types are those of Apple's C++ headers, metal-cpp: NSUInteger is
// uint, NSInteger int, BOOL bool. An object that a method called new... or
// create... returns is the caller's to release; others belong to the
// autorelease pool in force.
type api interface {
	// https://developer.apple.com/documentation/metal/mtlcreatesystemdefaultdevice()
	createDevice() id

	// https://developer.apple.com/documentation/foundation/nsautoreleasepool
	newPool() id
	// https://developer.apple.com/documentation/foundation/nsautoreleasepool/drain()
	drain(pool id)
	// https://developer.apple.com/documentation/objectivec/1418956-nsobject/1571946-retain
	retain(object id)
	// https://developer.apple.com/documentation/objectivec/1418956-nsobject/1571957-release
	release(object id)

	// https://developer.apple.com/documentation/foundation/nsstring/1411950-initwithcstring
	newString(text string) id
	// https://developer.apple.com/documentation/foundation/nsstring/utf8string
	text(s id) string

	// https://developer.apple.com/documentation/foundation/nserror/domain
	errorDomain(err id) id
	// https://developer.apple.com/documentation/foundation/nserror/code
	errorCode(err id) int
	// https://developer.apple.com/documentation/foundation/nserror/localizeddescription
	errorDescription(err id) id

	// https://developer.apple.com/documentation/metal/mtldevice/name
	deviceName(device id) id
	// https://developer.apple.com/documentation/metal/mtldevice/maxbufferlength
	maxBufferLength(device id) uint
	// https://developer.apple.com/documentation/metal/mtldevice/recommendedmaxworkingsetsize
	workingSetSize(device id) uint64
	// https://developer.apple.com/documentation/metal/mtldevice/makecommandqueue()
	newQueue(device id) id

	// https://developer.apple.com/documentation/metal/mtlcompileoptions
	newOptions() id
	// hasMathMode reports whether options have a math mode and functions: macOS 15.
	// https://developer.apple.com/documentation/objectivec/1418956-nsobject/1418583-respondstoselector
	hasMathMode(options id) bool
	// https://developer.apple.com/documentation/metal/mtlcompileoptions/mathmode
	setMathMode(options id, mode int)
	// https://developer.apple.com/documentation/metal/mtlcompileoptions/mathfloatingpointfunctions
	setMathFunctions(options id, functions int)
	// https://developer.apple.com/documentation/metal/mtlcompileoptions/fastmathenabled
	setFastMath(options id, enabled bool)

	// https://developer.apple.com/documentation/metal/mtldevice/makelibrary(source:options:)
	newLibrary(device, source, options id, err *id) id
	// https://developer.apple.com/documentation/metal/mtllibrary/makefunction(name:)
	newFunction(library, name id) id
	// https://developer.apple.com/documentation/metal/mtldevice/makecomputepipelinestate(function:)
	newPipeline(device, function id, err *id) id
	// https://developer.apple.com/documentation/metal/mtlcomputepipelinestate/maxtotalthreadsperthreadgroup
	maxThreads(pipeline id) uint
	// https://developer.apple.com/documentation/metal/mtlcomputepipelinestate/threadexecutionwidth
	executionWidth(pipeline id) uint

	// https://developer.apple.com/documentation/metal/mtldevice/makebuffer(length:options:)
	newBuffer(device id, length, options uint) id
	// https://developer.apple.com/documentation/metal/mtlbuffer/contents()
	contents(buffer id) unsafe.Pointer

	// https://developer.apple.com/documentation/metal/mtlcommandqueue/makecommandbuffer()
	commandBuffer(queue id) id
	// https://developer.apple.com/documentation/metal/mtlcommandbuffer/makecomputecommandencoder()
	encoder(commands id) id
	// https://developer.apple.com/documentation/metal/mtlcommandbuffer/commit()
	commit(commands id)
	// https://developer.apple.com/documentation/metal/mtlcommandbuffer/waituntilcompleted()
	waitUntilCompleted(commands id)
	// https://developer.apple.com/documentation/metal/mtlcommandbuffer/status
	status(commands id) uint
	// https://developer.apple.com/documentation/metal/mtlcommandbuffer/error
	commandsError(commands id) id

	// https://developer.apple.com/documentation/metal/mtlcomputecommandencoder/setcomputepipelinestate(_:)
	setPipeline(encoder, pipeline id)
	// https://developer.apple.com/documentation/metal/mtlcomputecommandencoder/setbuffer(_:offset:index:)
	setBuffer(encoder, buffer id, offset, index uint)
	// https://developer.apple.com/documentation/metal/mtlcomputecommandencoder/setbytes(_:length:index:)
	setBytes(encoder id, bytes unsafe.Pointer, length, index uint)
	// https://developer.apple.com/documentation/metal/mtlcomputecommandencoder/dispatchthreadgroups(_:threadsperthreadgroup:)
	dispatch(encoder id, groups, threads size)
	// https://developer.apple.com/documentation/metal/mtlcommandencoder/endencoding()
	endEncoding(encoder id)
}

// withPool does f on one thread, in an autorelease pool of that thread.
func withPool(a api, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pool := a.newPool()
	defer a.drain(pool)
	f()
}

// withString does f with a string that lasts as long.
func withString(a api, text string, f func(s id)) {
	s := a.newString(text)
	defer a.release(s)
	f(s)
}
