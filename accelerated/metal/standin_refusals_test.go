package metal

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"example.com/ringcheck/accelerated/kernels"
)

// scene is what a launch needs, made with an api.
type scene struct {
	*standIn
	device, queue, library, pipeline, buffer, commands, encoding id
	args                                                         []byte
}

const sceneKernel = "combine_splits"

// play makes a scene on a stand-in whose queue is late, has act do something
// in it, and gives everything back.
func play(t *testing.T, act func(s *scene)) []string {
	s := &scene{standIn: newStandIn(t)}
	s.lag = 8
	withPool(s, func() {
		s.device = s.createDevice()
		s.queue = s.newQueue(s.device)
		options := s.newOptions()
		s.setFastMath(options, false)
		var err id
		withString(s, kernels.MetalSource(), func(text id) { s.library = s.newLibrary(s.device, text, options, &err) })
		s.release(options)
		s.pipeline = s.makePipeline(sceneKernel)
		s.buffer = s.newBuffer(s.device, 256, storageShared)
		s.args = make([]byte, kernels.Entries[sceneKernel].ArgBytes) // no warps: nothing is done
		s.commands = s.commandBuffer(s.queue)
		s.encoding = s.encoder(s.commands)
		act(s)
	})
	return s.refused
}

func (s *scene) makePipeline(kernel string) (pipeline id) {
	withString(s, kernel, func(name id) {
		var err id
		function := s.newFunction(s.library, name)
		pipeline = s.newPipeline(s.device, function, &err)
		s.release(function)
	})
	return pipeline
}

// bind encodes all of a launch but the dispatch.
func (s *scene) bind() {
	s.setPipeline(s.encoding, s.pipeline)
	s.setBuffer(s.encoding, s.buffer, 0, 0)
	s.setBuffer(s.encoding, s.buffer, 16, 1)
	s.setArgs(2)
}

func (s *scene) setArgs(index uint) {
	s.setBytes(s.encoding, unsafe.Pointer(&s.args[0]), uint(len(s.args)), index)
}

func (s *scene) run() { s.dispatch(s.encoding, size{1, 1, 1}, size{128, 1, 1}) }

func (s *scene) end() {
	s.endEncoding(s.encoding)
	s.commit(s.commands)
}

// finish ends what a mistake in encoding left open.
func (s *scene) finish() {
	s.end()
	s.waitUntilCompleted(s.commands)
}

// TestRefusals plants each mistake that Metal would refuse, and has the stand-in
// find it and nothing else. The first entries are no mistakes.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		act  func(s *scene)
		want string // "": nothing is refused
	}{
		"a launch": {func(s *scene) { s.bind(); s.run(); s.finish(); s.contents(s.buffer) }, ""},
		"two of them": {func(s *scene) {
			s.bind()
			s.run()
			s.run()
			s.finish()
		}, ""},
		"a buffer released under way": {func(s *scene) { s.bind(); s.run(); s.release(s.buffer); s.finish() }, ""},

		"no buffer":        {func(s *scene) { s.setPipeline(s.encoding, s.pipeline); s.setArgs(2); s.run(); s.finish() }, "combine_splits has no buffer 0"},
		"a buffer's index": {func(s *scene) { s.setBuffer(s.encoding, s.buffer, 0, 31); s.finish() }, "there is no index 31"},
		"another index": {func(s *scene) {
			s.setPipeline(s.encoding, s.pipeline)
			s.setBuffer(s.encoding, s.buffer, 0, 0)
			s.setBuffer(s.encoding, s.buffer, 0, 2)
			s.setArgs(3)
			s.run()
			s.finish()
		}, "combine_splits has no buffer 1"},
		"an offset":            {func(s *scene) { s.setBuffer(s.encoding, s.buffer, 256, 0); s.finish() }, "offset 256 of 256 bytes"},
		"a crooked offset":     {func(s *scene) { s.setBuffer(s.encoding, s.buffer, 2, 0); s.finish() }, "offset 2 is not a multiple of 4"},
		"the arguments' index": {func(s *scene) { s.bind(); delete(s.objects[s.encoding].bytes, 2); s.setArgs(3); s.run(); s.finish() }, "has 0 bytes at index 2"},
		"the arguments' size":  {func(s *scene) { s.args = s.args[:8]; s.bind(); s.run(); s.finish() }, "has 8 bytes at index 2"},
		"too many arguments":   {func(s *scene) { s.args = make([]byte, maxArgs+1); s.setArgs(2); s.finish() }, "setBytes: 4097 bytes"},
		"no arguments":         {func(s *scene) { s.setBytes(s.encoding, nil, 8, 2); s.finish() }, "setBytes: 8 bytes"},
		"no pipeline":          {func(s *scene) { s.run(); s.finish() }, "no pipeline"},
		"a pipeline released": {func(s *scene) {
			s.bind()
			s.release(s.pipeline)
			s.run()
			s.finish()
		}, "no pipeline"},
		"too many threads":      {func(s *scene) { s.bind(); s.dispatch(s.encoding, size{1, 1, 1}, size{2048, 1, 1}); s.finish() }, "2048 threads a group"},
		"part of a SIMD-group":  {func(s *scene) { s.bind(); s.dispatch(s.encoding, size{1, 1, 1}, size{100, 1, 1}); s.finish() }, "100 threads a group"},
		"no groups":             {func(s *scene) { s.bind(); s.dispatch(s.encoding, size{}, size{128, 1, 1}); s.finish() }, "0 groups"},
		"encoding after end":    {func(s *scene) { s.bind(); s.finish(); s.setBuffer(s.encoding, s.buffer, 0, 0) }, "setBuffer: the encoder is ended"},
		"dispatch after end":    {func(s *scene) { s.bind(); s.finish(); s.run() }, "dispatchThreadgroups: the encoder is ended"},
		"end after end":         {func(s *scene) { s.finish(); s.endEncoding(s.encoding) }, "endEncoding: the encoder is ended"},
		"two encoders":          {func(s *scene) { s.encoder(s.commands); s.finish() }, "another encoder is not ended"},
		"an encoder too late":   {func(s *scene) { s.finish(); s.encoder(s.commands) }, "computeCommandEncoder: the command buffer is committed"},
		"commit before end":     {func(s *scene) { s.commit(s.commands); s.finish() }, "commit: an encoder is not ended"},
		"commit twice":          {func(s *scene) { s.finish(); s.commit(s.commands) }, "commit: the command buffer is committed"},
		"no commit":             {func(s *scene) { s.endEncoding(s.encoding) }, "the command buffer was not committed"},
		"waiting for no commit": {func(s *scene) { s.endEncoding(s.encoding); s.waitUntilCompleted(s.commands); s.commit(s.commands) }, "waitUntilCompleted: the command buffer is not committed"},
		"reading too soon":      {func(s *scene) { s.bind(); s.run(); s.end(); s.contents(s.buffer) }, "contents: work that is not completed"},
		"reading sooner":        {func(s *scene) { s.bind(); s.run(); s.contents(s.buffer); s.finish() }, "contents: work that is not completed"},
		"use after release":     {func(s *scene) { s.finish(); s.release(s.buffer); s.contents(s.buffer) }, "contents: the buffer has been released"},
		"binding after release": {func(s *scene) { s.release(s.buffer); s.setBuffer(s.encoding, s.buffer, 0, 0); s.finish() }, "setBuffer: the buffer has been released"},
		"release twice":         {func(s *scene) { s.finish(); s.release(s.buffer); s.release(s.buffer) }, "release: the object has been released"},
		"retain after release":  {func(s *scene) { s.finish(); s.release(s.buffer); s.retain(s.buffer) }, "retain: the object has been released"},
		"nil":                   {func(s *scene) { s.finish(); s.contents(0) }, "contents: 0 is no object"},
		"another kind":          {func(s *scene) { s.setPipeline(s.encoding, s.buffer); s.finish() }, "a buffer, not a pipeline"},
		"private storage":       {func(s *scene) { s.newBuffer(s.device, 256, 32); s.finish() }, "cannot reach that storage"},
		"fast math": {func(s *scene) {
			var err id
			options := s.newOptions()
			s.setMathMode(options, mathSafe)
			withString(s, "", func(text id) { s.newLibrary(s.device, text, options, &err) })
			s.finish()
		}, "floating point would not be IEEE's"},
		"a selector too new": {func(s *scene) { s.old = true; s.setMathMode(s.newOptions(), mathSafe); s.finish() }, "setMathMode: unrecognized selector"},
		"writing behind": {func(s *scene) {
			s.after = func(_ string, buffers [][]byte) { buffers[0][:257][256] = 0 }
			s.bind()
			s.run()
			s.finish()
			s.release(s.buffer)
		}, "wrote behind the end"},
		"the outer pool": {func(s *scene) {
			s.finish()
			outer := s.last
			for s.objects[outer] == nil || s.objects[outer].kind != "pool" {
				outer--
			}
			inner := s.newPool()
			s.drain(outer)
			s.drain(inner)
		}, "drain: not the innermost pool"},
	} {
		t.Run(name, func(t *testing.T) {
			refused := play(t, c.act)
			if c.want == "" && len(refused) > 0 || c.want != "" && (len(refused) != 1 || !strings.Contains(refused[0], c.want)) {
				t.Errorf("refused %q, want %q", refused, c.want)
			}
		})
	}
}

// TestPools: what is autoreleased without a pool, or on another thread than the
// pool's, is refused.
func TestPools(t *testing.T) {
	s := newStandIn(t)
	dev := s.createDevice()
	s.deviceName(dev)
	if want := []string{"string: no autorelease pool is in force, so it leaks"}; !slices.Equal(s.refused, want) {
		t.Errorf("%q", s.refused)
	}
	if runtime.GOOS != "linux" {
		return
	}
	s.refused = nil
	withPool(s, func() {
		done := make(chan bool)
		go func() {
			runtime.LockOSThread()
			s.deviceName(dev)
			close(done)
		}()
		<-done
	})
	if len(s.refused) == 0 || !strings.Contains(s.refused[0], "another thread's") {
		t.Errorf("%q", s.refused)
	}
}

// TestWithPool: what f does in a pool ends with it, and the thread stays.
func TestWithPool(t *testing.T) {
	s := newStandIn(t)
	dev := s.createDevice()
	for range 100 {
		withPool(s, func() {
			before := thread()
			s.deviceName(dev)
			runtime.Gosched()
			if thread() != before {
				t.Fatal("the goroutine changed threads")
			}
		})
	}
	s.release(dev)
	s.clean(t)
}
