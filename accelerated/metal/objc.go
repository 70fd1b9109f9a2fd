package metal

import "unsafe"

// selector is SEL.
type selector uintptr

// message is a selector, and the function objc_msgSend with the types that
// the selector's method has: the receiver, the selector, then its arguments.
type message[F any] struct {
	selector selector
	send     F
}

func (m *message[F]) bind(s selector, register func(function any)) {
	m.selector = s
	register(&m.send)
}

// messages are all that are sent.
type messages struct {
	alloc, init, retain                 message[func(id, selector) id]
	release, drain                      message[func(id, selector)]
	respondsToSelector                  message[func(id, selector, selector) bool]
	initWithCString                     message[func(id, selector, string, uint) id]
	utf8String                          message[func(id, selector) string]
	domain, localizedDescription        message[func(id, selector) id]
	code                                message[func(id, selector) int]
	name, newCommandQueue               message[func(id, selector) id]
	maxBufferLength                     message[func(id, selector) uint]
	recommendedMaxWorkingSetSize        message[func(id, selector) uint64]
	setMathMode                         message[func(id, selector, int)]
	setMathFloatingPointFunctions       message[func(id, selector, int)]
	setFastMathEnabled                  message[func(id, selector, bool)]
	newLibraryWithSource                message[func(id, selector, id, id, *id) id]
	newFunctionWithName                 message[func(id, selector, id) id]
	newComputePipelineStateWithFunction message[func(id, selector, id, *id) id]
	maxTotalThreadsPerThreadgroup       message[func(id, selector) uint]
	threadExecutionWidth                message[func(id, selector) uint]
	newBufferWithLength                 message[func(id, selector, uint, uint) id]
	contents                            message[func(id, selector) unsafe.Pointer]
	commandBuffer                       message[func(id, selector) id]
	computeCommandEncoder               message[func(id, selector) id]
	commit, waitUntilCompleted          message[func(id, selector)]
	status                              message[func(id, selector) uint]
	error                               message[func(id, selector) id]
	setComputePipelineState             message[func(id, selector, id)]
	setBuffer                           message[func(id, selector, id, uint, uint)]
	setBytes                            message[func(id, selector, unsafe.Pointer, uint, uint)]
	dispatchThreadgroups                message[func(id, selector, size, size)]
	endEncoding                         message[func(id, selector)]
}

// selected is a selector's name and the message that has it.
type selected struct {
	name    string
	message interface {
		bind(s selector, register func(function any))
	}
}

// selectors lists all messages.
func (m *messages) selectors() []selected {
	return []selected{
		{"alloc", &m.alloc},
		{"init", &m.init},
		{"retain", &m.retain},
		{"release", &m.release},
		{"drain", &m.drain},
		{"respondsToSelector:", &m.respondsToSelector},
		{"initWithCString:encoding:", &m.initWithCString},
		{"UTF8String", &m.utf8String},
		{"domain", &m.domain},
		{"code", &m.code},
		{"localizedDescription", &m.localizedDescription},
		{"name", &m.name},
		{"maxBufferLength", &m.maxBufferLength},
		{"recommendedMaxWorkingSetSize", &m.recommendedMaxWorkingSetSize},
		{"newCommandQueue", &m.newCommandQueue},
		{"setMathMode:", &m.setMathMode},
		{"setMathFloatingPointFunctions:", &m.setMathFloatingPointFunctions},
		{"setFastMathEnabled:", &m.setFastMathEnabled},
		{"newLibraryWithSource:options:error:", &m.newLibraryWithSource},
		{"newFunctionWithName:", &m.newFunctionWithName},
		{"newComputePipelineStateWithFunction:error:", &m.newComputePipelineStateWithFunction},
		{"maxTotalThreadsPerThreadgroup", &m.maxTotalThreadsPerThreadgroup},
		{"threadExecutionWidth", &m.threadExecutionWidth},
		{"newBufferWithLength:options:", &m.newBufferWithLength},
		{"contents", &m.contents},
		{"commandBuffer", &m.commandBuffer},
		{"computeCommandEncoder", &m.computeCommandEncoder},
		{"commit", &m.commit},
		{"waitUntilCompleted", &m.waitUntilCompleted},
		{"status", &m.status},
		{"error", &m.error},
		{"setComputePipelineState:", &m.setComputePipelineState},
		{"setBuffer:offset:atIndex:", &m.setBuffer},
		{"setBytes:length:atIndex:", &m.setBytes},
		{"dispatchThreadgroups:threadsPerThreadgroup:", &m.dispatchThreadgroups},
		{"endEncoding", &m.endEncoding},
	}
}

// system is what runs below, as an api. It has no build tag, so that the types and the
// order of what it sends are tested everywhere.
type system struct {
	messages
	device       func() id // MTLCreateSystemDefaultDevice
	poolClass    id        // NSAutoreleasePool
	stringClass  id        // NSString
	optionsClass id        // MTLCompileOptions
}

var _ api = (*system)(nil)

func (o *system) createDevice() id { return o.device() }

func (o *system) new(class id) id {
	return o.init.send(o.alloc.send(class, o.alloc.selector), o.init.selector)
}

func (o *system) newPool() id       { return o.new(o.poolClass) }
func (o *system) drain(pool id)     { o.messages.drain.send(pool, o.messages.drain.selector) }
func (o *system) retain(object id)  { o.messages.retain.send(object, o.messages.retain.selector) }
func (o *system) release(object id) { o.messages.release.send(object, o.messages.release.selector) }

func (o *system) newString(text string) id {
	s := o.alloc.send(o.stringClass, o.alloc.selector)
	return o.initWithCString.send(s, o.initWithCString.selector, text, encodingUTF8)
}

func (o *system) text(s id) string {
	if s == 0 {
		return ""
	}
	return o.utf8String.send(s, o.utf8String.selector)
}

func (o *system) errorDomain(err id) id { return o.domain.send(err, o.domain.selector) }
func (o *system) errorCode(err id) int  { return o.code.send(err, o.code.selector) }
func (o *system) errorDescription(err id) id {
	return o.localizedDescription.send(err, o.localizedDescription.selector)
}

func (o *system) deviceName(device id) id { return o.name.send(device, o.name.selector) }
func (o *system) maxBufferLength(device id) uint {
	return o.messages.maxBufferLength.send(device, o.messages.maxBufferLength.selector)
}
func (o *system) workingSetSize(device id) uint64 {
	return o.recommendedMaxWorkingSetSize.send(device, o.recommendedMaxWorkingSetSize.selector)
}
func (o *system) newQueue(device id) id {
	return o.newCommandQueue.send(device, o.newCommandQueue.selector)
}

func (o *system) newOptions() id { return o.new(o.optionsClass) }
func (o *system) hasMathMode(options id) bool {
	has := func(s selector) bool {
		return o.respondsToSelector.send(options, o.respondsToSelector.selector, s)
	}
	return has(o.messages.setMathMode.selector) && has(o.setMathFloatingPointFunctions.selector)
}
func (o *system) setMathMode(options id, mode int) {
	o.messages.setMathMode.send(options, o.messages.setMathMode.selector, mode)
}
func (o *system) setMathFunctions(options id, functions int) {
	o.setMathFloatingPointFunctions.send(options, o.setMathFloatingPointFunctions.selector, functions)
}
func (o *system) setFastMath(options id, enabled bool) {
	o.setFastMathEnabled.send(options, o.setFastMathEnabled.selector, enabled)
}

func (o *system) newLibrary(device, source, options id, err *id) id {
	return o.newLibraryWithSource.send(device, o.newLibraryWithSource.selector, source, options, err)
}
func (o *system) newFunction(library, name id) id {
	return o.newFunctionWithName.send(library, o.newFunctionWithName.selector, name)
}
func (o *system) newPipeline(device, function id, err *id) id {
	return o.newComputePipelineStateWithFunction.send(device, o.newComputePipelineStateWithFunction.selector, function, err)
}
func (o *system) maxThreads(pipeline id) uint {
	return o.maxTotalThreadsPerThreadgroup.send(pipeline, o.maxTotalThreadsPerThreadgroup.selector)
}
func (o *system) executionWidth(pipeline id) uint {
	return o.threadExecutionWidth.send(pipeline, o.threadExecutionWidth.selector)
}

func (o *system) newBuffer(device id, length, options uint) id {
	return o.newBufferWithLength.send(device, o.newBufferWithLength.selector, length, options)
}
func (o *system) contents(buffer id) unsafe.Pointer {
	return o.messages.contents.send(buffer, o.messages.contents.selector)
}

func (o *system) commandBuffer(queue id) id {
	return o.messages.commandBuffer.send(queue, o.messages.commandBuffer.selector)
}
func (o *system) encoder(commands id) id {
	return o.computeCommandEncoder.send(commands, o.computeCommandEncoder.selector)
}
func (o *system) commit(commands id) { o.messages.commit.send(commands, o.messages.commit.selector) }
func (o *system) waitUntilCompleted(commands id) {
	o.messages.waitUntilCompleted.send(commands, o.messages.waitUntilCompleted.selector)
}
func (o *system) status(commands id) uint {
	return o.messages.status.send(commands, o.messages.status.selector)
}
func (o *system) commandsError(commands id) id { return o.error.send(commands, o.error.selector) }

func (o *system) setPipeline(encoder, pipeline id) {
	o.setComputePipelineState.send(encoder, o.setComputePipelineState.selector, pipeline)
}
func (o *system) setBuffer(encoder, buffer id, offset, index uint) {
	o.messages.setBuffer.send(encoder, o.messages.setBuffer.selector, buffer, offset, index)
}
func (o *system) setBytes(encoder id, bytes unsafe.Pointer, length, index uint) {
	o.messages.setBytes.send(encoder, o.messages.setBytes.selector, bytes, length, index)
}
func (o *system) dispatch(encoder id, groups, threads size) {
	o.dispatchThreadgroups.send(encoder, o.dispatchThreadgroups.selector, groups, threads)
}
func (o *system) endEncoding(encoder id) {
	o.messages.endEncoding.send(encoder, o.messages.endEncoding.selector)
}
