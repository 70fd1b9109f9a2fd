package cuda

import (
	"unsafe"

	"example.com/ringcheck/accelerated"
)

// The staging memory is a ring of segments. The bytes of an upload stay there
// until the device has copied them, so that an upload neither waits nor leaves
// the driver with a pointer to Go's memory. A segment is used again when the
// copies from it are done, which one event each tells.
const (
	segments    = 4
	segmentSize = 1 << 20
	stagingSize = segments * segmentSize
)

type staging struct {
	memory  unsafe.Pointer // page-locked
	events  [segments]uintptr
	pending [segments]bool // the event was recorded and not waited for
	current int            // segment
	used    int            // bytes of it
}

// Upload copies src to dst from offset on, in the order of the stream.
func (b *backend) Upload(dst accelerated.Buffer, offset int, src []byte) error {
	if err := b.enter("upload"); err != nil {
		return err
	}
	defer b.leave()
	s, to := &b.staging, dst.(*Buffer).pointer+uint64(offset)
	for len(src) > 0 {
		if s.used == segmentSize {
			if err := b.nextSegment(); err != nil {
				return err
			}
		}
		at := unsafe.Add(s.memory, s.current*segmentSize+s.used)
		n := copy(unsafe.Slice((*byte)(at), segmentSize-s.used), src)
		// What is used is counted first, so that it is not used again even where
		// the copy fails.
		s.used = min(segmentSize, (s.used+n+63)&^63)
		if err := b.driver.check("cuMemcpyHtoDAsync", b.driver.copyToDevice(to, at, uint64(n), b.stream)); err != nil {
			return err
		}
		src, to = src[n:], to+uint64(n)
	}
	return nil
}

// nextSegment goes on to the segment that was filled longest ago.
func (b *backend) nextSegment() error {
	s := &b.staging
	if err := b.driver.check("cuEventRecord", b.driver.eventRecord(s.events[s.current], b.stream)); err != nil {
		return err
	}
	s.pending[s.current] = true
	next := (s.current + 1) % segments
	if s.pending[next] {
		if err := b.driver.check("cuEventSynchronize", b.driver.eventWait(s.events[next])); err != nil {
			return err
		}
	}
	s.pending[next] = false
	s.current, s.used = next, 0
	return nil
}

// Download waits for all work, then copies len(dst) bytes of src from offset on.
func (b *backend) Download(dst []byte, src accelerated.Buffer, offset int) error {
	if err := b.enter("download"); err != nil {
		return err
	}
	defer b.leave()
	if err := b.wait(); err != nil {
		return err
	}
	from := src.(*Buffer).pointer + uint64(offset)
	for len(dst) > 0 {
		n := min(len(dst), stagingSize)
		if err := b.driver.check("cuMemcpyDtoHAsync", b.driver.copyFromDevice(b.staging.memory, from, uint64(n), b.stream)); err != nil {
			return err
		}
		if err := b.wait(); err != nil {
			return err
		}
		copy(dst, unsafe.Slice((*byte)(b.staging.memory), n))
		dst, from = dst[n:], from+uint64(n)
	}
	return nil
}

// wait waits for all work, after which all of the staging memory is free.
func (b *backend) wait() error {
	if err := b.driver.check("cuStreamSynchronize", b.driver.streamWait(b.stream)); err != nil {
		return err
	}
	b.staging.pending = [segments]bool{}
	b.staging.current, b.staging.used = 0, 0
	return nil
}
