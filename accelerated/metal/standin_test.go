package metal

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/kernels"
	"example.com/ringcheck/accelerated/kernels/host"
)

// standIn is an api without Metal: objects that count their owners, a queue
// that does its work late, and the kernels as the host's compiler makes them.
// What Metal would refuse, by an assertion or by undefined behaviour, it does
// not do, and says so in refused.
type standIn struct {
	library *host.Library
	objects map[id]*object // that somebody owns
	last    id
	open    []*object // command buffers that are not committed
	pools   []*object // the innermost last
	queued  []*object // command buffers that are committed and not done, in order
	refused []string

	// What kind of Metal it is.
	lag        int    // command buffers that may be under way
	old        bool   // before macOS 15
	absent     bool   // no device
	noRoom     bool   // no buffers
	threads    uint   // a group
	width      uint   // of a SIMD-group
	workingSet uint64 // bytes
	refuseText string // what the compiler says, where it refuses
	failAt     int    // number, from 1, of the command buffer that fails
	committed  int
	libraries  []string
	after      func(kernel string, buffers [][]byte) // is given the memory after a kernel
}

// object is one object of any class.
type object struct {
	self   id
	kind   string
	owners int

	text string // string: itself; function, pipeline: the kernel's name; error: its description
	code int    // error

	thread int       // pool
	held   []*object // pool, command buffer: what it releases in the end

	memory []byte // buffer, and a guard behind it
	length int

	fast, safe, precise bool // options

	encoder    *object // command buffer: the one that is not ended; 0 if none
	dispatches []dispatched
	state      uint

	commands *object // encoder
	ended    bool
	pipeline *object
	buffers  map[uint]bound
	bytes    map[uint][]byte
}

type bound struct {
	buffer *object
	offset uint
}

type dispatched struct {
	kernel  string
	buffers []bound
	args    []byte
	warps   int
}

const (
	guard      = 64
	fresh      = 0xA5
	maxLength  = 1 << 30
	maxIndex   = 30 // of a buffer in a kernel's arguments
	maxPending = 64 // command buffers of a queue
)

func newStandIn(t *testing.T) *standIn {
	library, err := host.Load()
	if errors.As(err, new(*accelerated.UnavailableError)) { // there is no compiler
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &standIn{
		library: library, objects: map[id]*object{}, threads: 1024, width: kernels.Warp, workingSet: 1 << 32,
	}
}

func (s *standIn) refuse(format string, args ...any) {
	s.refused = append(s.refused, fmt.Sprintf(format, args...))
}

func (s *standIn) make(o *object) id {
	s.last++
	o.self, o.owners = s.last, 1
	s.objects[s.last] = o
	return s.last
}

// autoreleased makes an object that the innermost pool owns.
func (s *standIn) autoreleased(o *object) id {
	n := s.make(o)
	s.checkThread(o.kind)
	if len(s.pools) == 0 {
		s.refuse("%s: no autorelease pool is in force, so it leaks", o.kind)
		return n
	}
	pool := s.pools[len(s.pools)-1]
	pool.held = append(pool.held, o)
	return n
}

func (s *standIn) checkThread(call string) {
	if len(s.pools) > 0 && s.pools[len(s.pools)-1].thread != thread() {
		s.refuse("%s: the autorelease pool in force is another thread's", call)
	}
}

// get is a live object of a kind.
func (s *standIn) get(n id, kind, call string) *object {
	s.checkThread(call)
	o := s.objects[n]
	switch {
	case o == nil && 0 < n && n <= s.last:
		s.refuse("%s: the %s has been released", call, kind)
	case o == nil:
		s.refuse("%s: %d is no object", call, n)
	case o.kind != kind:
		s.refuse("%s: a %s, not a %s", call, o.kind, kind)
	default:
		return o
	}
	return nil
}

// drop takes an owner from an object, which ends with its last.
func (s *standIn) drop(o *object) {
	if o.owners--; o.owners > 0 {
		return
	}
	delete(s.objects, o.self)
	switch o.kind {
	case "encoder":
		if !o.ended {
			s.refuse("release: the encoder was not ended")
		}
		s.drop(o.commands)
	case "command buffer":
		if o.state == 0 {
			s.refuse("release: the command buffer was not committed")
			s.open = slices.DeleteFunc(s.open, func(c *object) bool { return c == o })
		}
	case "buffer":
		for _, b := range o.memory[o.length:] {
			if b != fresh {
				s.refuse("release: a kernel wrote behind the end of the buffer")
				break
			}
		}
		o.memory = nil
	}
}

// left counts the objects that somebody owns.
func (s *standIn) left() int { return len(s.objects) }

func (s *standIn) createDevice() id {
	if s.absent {
		return 0
	}
	return s.make(&object{kind: "device"})
}

func (s *standIn) newPool() id {
	pool := &object{kind: "pool", thread: thread()}
	s.pools = append(s.pools, pool)
	return s.make(pool)
}

func (s *standIn) drain(n id) {
	pool := s.get(n, "pool", "drain")
	if pool == nil {
		return
	}
	if pool != s.pools[len(s.pools)-1] {
		s.refuse("drain: not the innermost pool")
		return
	}
	for _, o := range pool.held {
		s.drop(o)
	}
	s.pools = s.pools[:len(s.pools)-1]
	s.drop(pool)
}

func (s *standIn) retain(n id) {
	if o := s.any(n, "retain"); o != nil {
		o.owners++
	}
}

func (s *standIn) release(n id) {
	if o := s.any(n, "release"); o != nil {
		s.drop(o)
	}
}

// any is an object of whatever kind.
func (s *standIn) any(n id, call string) *object {
	kind := "object"
	if o := s.objects[n]; o != nil {
		kind = o.kind
	}
	return s.get(n, kind, call)
}

func (s *standIn) newString(text string) id { return s.make(&object{kind: "string", text: text}) }

func (s *standIn) text(n id) string {
	if o := s.get(n, "string", "UTF8String"); o != nil {
		return o.text
	}
	return ""
}

func (s *standIn) errorOf(code int, text string) id {
	return s.autoreleased(&object{kind: "error", code: code, text: text})
}

func (s *standIn) errorDomain(n id) id {
	s.get(n, "error", "domain")
	return s.autoreleased(&object{kind: "string", text: "StandInDomain"})
}

func (s *standIn) errorCode(n id) int {
	if o := s.get(n, "error", "code"); o != nil {
		return o.code
	}
	return 0
}

func (s *standIn) errorDescription(n id) id {
	o := s.get(n, "error", "localizedDescription")
	if o == nil {
		return 0
	}
	return s.autoreleased(&object{kind: "string", text: o.text})
}

func (s *standIn) deviceName(n id) id {
	s.get(n, "device", "name")
	return s.autoreleased(&object{kind: "string", text: "stand-in"})
}

func (s *standIn) maxBufferLength(n id) uint {
	s.get(n, "device", "maxBufferLength")
	return maxLength
}

func (s *standIn) workingSetSize(n id) uint64 {
	s.get(n, "device", "recommendedMaxWorkingSetSize")
	return s.workingSet
}

func (s *standIn) newQueue(n id) id {
	s.get(n, "device", "newCommandQueue")
	return s.make(&object{kind: "queue"})
}

func (s *standIn) newOptions() id { return s.make(&object{kind: "options", fast: true}) }

func (s *standIn) hasMathMode(n id) bool {
	s.get(n, "options", "respondsToSelector")
	return !s.old
}

func (s *standIn) setMathMode(n id, mode int) {
	if o := s.get(n, "options", "setMathMode"); o != nil && !s.unknown("setMathMode") {
		o.safe = mode == mathSafe
	}
}

func (s *standIn) setMathFunctions(n id, functions int) {
	if o := s.get(n, "options", "setMathFloatingPointFunctions"); o != nil && !s.unknown("setMathFloatingPointFunctions") {
		o.precise = functions == functionsPrecise
	}
}

// unknown refuses what came with macOS 15.
func (s *standIn) unknown(call string) bool {
	if s.old {
		s.refuse("%s: unrecognized selector", call)
	}
	return s.old
}

func (s *standIn) setFastMath(n id, enabled bool) {
	if o := s.get(n, "options", "setFastMathEnabled"); o != nil {
		o.fast = enabled
	}
}

func (s *standIn) newLibrary(device, source, options id, err *id) id {
	const call = "newLibraryWithSource"
	s.get(device, "device", call)
	text, o := s.get(source, "string", call), s.get(options, "options", call)
	if text == nil || o == nil {
		return 0
	}
	if o.fast && !(o.safe && o.precise) {
		s.refuse("%s: floating point would not be IEEE's", call)
	}
	if s.refuseText != "" {
		*err = s.errorOf(3, s.refuseText)
		return 0
	}
	s.libraries = append(s.libraries, text.text)
	return s.make(&object{kind: "library"})
}

func (s *standIn) newFunction(library, name id) id {
	const call = "newFunctionWithName"
	s.get(library, "library", call)
	n := s.get(name, "string", call)
	if n == nil || kernels.Entries[n.text].Buffers == 0 {
		return 0
	}
	return s.make(&object{kind: "function", text: n.text})
}

func (s *standIn) newPipeline(device, function id, err *id) id {
	const call = "newComputePipelineStateWithFunction"
	s.get(device, "device", call)
	f := s.get(function, "function", call)
	if f == nil {
		return 0
	}
	return s.make(&object{kind: "pipeline", text: f.text})
}

func (s *standIn) maxThreads(n id) uint {
	s.get(n, "pipeline", "maxTotalThreadsPerThreadgroup")
	return s.threads
}

func (s *standIn) executionWidth(n id) uint {
	s.get(n, "pipeline", "threadExecutionWidth")
	return s.width
}

func (s *standIn) newBuffer(device id, length, options uint) id {
	s.get(device, "device", "newBufferWithLength")
	if options != storageShared {
		s.refuse("newBufferWithLength: the processor cannot reach that storage")
	}
	if s.noRoom || length == 0 || length > maxLength {
		return 0
	}
	const align = 256
	m := make([]byte, length+guard+align)
	m = m[(align-uintptr(unsafe.Pointer(&m[0]))%align)%align:][:length+guard]
	for i := range m {
		m[i] = fresh
	}
	return s.make(&object{kind: "buffer", memory: m, length: int(length)})
}

func (s *standIn) contents(n id) unsafe.Pointer {
	b := s.get(n, "buffer", "contents")
	if b == nil {
		return nil
	}
	for _, c := range slices.Concat(s.open, s.queued) {
		if slices.Contains(c.held, b) {
			s.refuse("contents: work that is not completed uses the buffer")
			return nil
		}
	}
	return unsafe.Pointer(&b.memory[0])
}

func (s *standIn) commandBuffer(queue id) id {
	s.get(queue, "queue", "commandBuffer")
	for len(s.queued) >= maxPending {
		s.perform()
	}
	c := &object{kind: "command buffer"}
	s.open = append(s.open, c)
	return s.autoreleased(c)
}

func (s *standIn) encoder(commands id) id {
	const call = "computeCommandEncoder"
	c := s.get(commands, "command buffer", call)
	switch {
	case c == nil:
		return 0
	case c.state != 0:
		s.refuse("%s: the command buffer is committed", call)
		return 0
	case c.encoder != nil:
		s.refuse("%s: another encoder is not ended", call)
		return 0
	}
	c.owners++
	c.encoder = &object{kind: "encoder", commands: c, buffers: map[uint]bound{}, bytes: map[uint][]byte{}}
	return s.autoreleased(c.encoder)
}

func (s *standIn) commit(n id) {
	c := s.get(n, "command buffer", "commit")
	switch {
	case c == nil:
	case c.state != 0:
		s.refuse("commit: the command buffer is committed")
	case c.encoder != nil:
		s.refuse("commit: an encoder is not ended")
	default:
		c.state = 2
		c.owners++
		s.open = slices.DeleteFunc(s.open, func(o *object) bool { return o == c })
		s.queued = append(s.queued, c)
		for len(s.queued) > s.lag {
			s.perform()
		}
	}
}

// perform does the oldest command buffer.
func (s *standIn) perform() {
	c := s.queued[0]
	s.queued = s.queued[1:]
	s.committed++
	c.state = statusCompleted
	if s.committed == s.failAt {
		c.state = statusError
		c.dispatches = nil
	}
	for _, d := range c.dispatches {
		pointers, memories := make([]unsafe.Pointer, len(d.buffers)), make([][]byte, len(d.buffers))
		for i, b := range d.buffers {
			memories[i] = b.buffer.memory[b.offset:b.buffer.length]
			pointers[i] = unsafe.Pointer(&memories[i][0])
		}
		if err := s.library.Call(d.kernel, pointers, d.args, d.warps); err != nil {
			s.refuse("%v", err)
		}
		if s.after != nil {
			s.after(d.kernel, memories)
		}
	}
	for _, o := range c.held {
		s.drop(o)
	}
	s.drop(c)
}

func (s *standIn) waitUntilCompleted(n id) {
	const call = "waitUntilCompleted"
	c := s.get(n, "command buffer", call)
	if c != nil && c.state == 0 {
		s.refuse("%s: the command buffer is not committed", call)
		return
	}
	for c != nil && c.state < statusCompleted {
		s.perform()
	}
}

func (s *standIn) status(n id) uint {
	if c := s.get(n, "command buffer", "status"); c != nil {
		return c.state
	}
	return 0
}

func (s *standIn) commandsError(n id) id {
	if c := s.get(n, "command buffer", "error"); c != nil && c.state == statusError {
		return s.errorOf(1, "the stand-in was told to fail")
	}
	return 0
}

// encoding is an encoder that is not ended.
func (s *standIn) encoding(n id, call string) *object {
	e := s.get(n, "encoder", call)
	if e != nil && e.ended {
		s.refuse("%s: the encoder is ended", call)
		return nil
	}
	return e
}

func (s *standIn) setPipeline(encoder, pipeline id) {
	const call = "setComputePipelineState"
	e, p := s.encoding(encoder, call), s.get(pipeline, "pipeline", call)
	if e != nil && p != nil {
		e.pipeline = p
	}
}

func (s *standIn) setBuffer(encoder, buffer id, offset, index uint) {
	const call = "setBuffer"
	e, b := s.encoding(encoder, call), s.get(buffer, "buffer", call)
	switch {
	case e == nil || b == nil:
	case index > maxIndex:
		s.refuse("%s: there is no index %d", call, index)
	case offset >= uint(b.length):
		s.refuse("%s: offset %d of %d bytes", call, offset, b.length)
	case offset%4 != 0:
		s.refuse("%s: offset %d is not a multiple of 4", call, offset)
	default:
		b.owners++
		e.commands.held = append(e.commands.held, b)
		e.buffers[index] = bound{b, offset}
	}
}

func (s *standIn) setBytes(encoder id, bytes unsafe.Pointer, length, index uint) {
	const call = "setBytes"
	e := s.encoding(encoder, call)
	switch {
	case e == nil:
	case index > maxIndex:
		s.refuse("%s: there is no index %d", call, index)
	case length == 0 || length > maxArgs || bytes == nil:
		s.refuse("%s: %d bytes", call, length)
	default:
		e.bytes[index] = slices.Clone(unsafe.Slice((*byte)(bytes), length))
	}
}

func (s *standIn) dispatch(encoder id, groups, threads size) {
	const call = "dispatchThreadgroups"
	e := s.encoding(encoder, call)
	if e == nil {
		return
	}
	if e.pipeline == nil || e.pipeline.owners == 0 {
		s.refuse("%s: no pipeline", call)
		return
	}
	n, each := groups.Width*groups.Height*groups.Depth, threads.Width*threads.Height*threads.Depth
	if n == 0 || each == 0 {
		s.refuse("%s: %d groups of %d threads", call, n, each)
		return
	}
	if each > s.threads || each%s.width != 0 {
		s.refuse("%s: %d threads a group, at most %d and whole SIMD-groups", call, each, s.threads)
		return
	}
	d := dispatched{kernel: e.pipeline.text, warps: int(n * each / s.width)}
	entry := kernels.Entries[d.kernel]
	for i := range uint(entry.Buffers) {
		b, set := e.buffers[i]
		if !set {
			s.refuse("%s: %s has no buffer %d", call, d.kernel, i)
			return
		}
		d.buffers = append(d.buffers, b)
	}
	if d.args = e.bytes[uint(entry.Buffers)]; len(d.args) != entry.ArgBytes {
		s.refuse("%s: %s has %d bytes at index %d, not %d", call, d.kernel, len(d.args), entry.Buffers, entry.ArgBytes)
		return
	}
	e.commands.dispatches = append(e.commands.dispatches, d)
}

func (s *standIn) endEncoding(n id) {
	if e := s.encoding(n, "endEncoding"); e != nil {
		e.ended = true
		e.commands.encoder = nil
	}
}
