package host

import (
	"errors"
	"unsafe"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/kernels"
)

// Open opens a device of its own.
func Open() (accelerated.Device, error) {
	l, err := Load()
	if err != nil {
		return nil, err
	}
	return kernels.New(&backend{library: l, live: map[*Buffer]struct{}{}}), nil
}

// Buffer is memory on the C heap, no byte more than it says.
type Buffer struct {
	at   unsafe.Pointer
	size int
}

// Size is the number of bytes that may be used.
func (b *Buffer) Size() int { return b.size }

func (b *Buffer) bytes() []byte { return unsafe.Slice((*byte)(b.at), b.size) }

// backend does everything at once, so that there is nothing to wait for.
type backend struct {
	library *Library
	live    map[*Buffer]struct{}
	bytes   int
}

const name = "host"

var errRoom = errors.New("the C heap has no room")

func (b *backend) Name() string { return name }

func (b *backend) Alloc(size int) (accelerated.Buffer, error) {
	p := b.library.alloc(uintptr(size))
	if p == nil {
		return nil, &accelerated.MemoryError{Device: name, Bytes: size, Err: errRoom}
	}
	buffer := &Buffer{p, size}
	b.live[buffer] = struct{}{}
	b.bytes += size
	return buffer, nil
}

func (b *backend) Free(buffer accelerated.Buffer) {
	own := buffer.(*Buffer)
	delete(b.live, own)
	b.bytes -= own.size
	b.library.free(own.at)
	own.at = nil
}

func (b *backend) Address(buffer accelerated.Buffer) uint64 {
	return uint64(uintptr(buffer.(*Buffer).at))
}

func (b *backend) Launch(batch ...kernels.Launch) error {
	for _, l := range batch {
		buffers := make([]unsafe.Pointer, len(l.Buffers))
		for i, at := range l.Buffers {
			buffers[i] = unsafe.Add(at.Buffer.(*Buffer).at, at.Offset)
		}
		if err := b.library.Call(l.Kernel, buffers, l.Args, l.Groups*l.Threads/kernels.Warp); err != nil {
			return err
		}
	}
	return nil
}

func (b *backend) Upload(dst accelerated.Buffer, offset int, src []byte) error {
	copy(dst.(*Buffer).bytes()[offset:], src)
	return nil
}

func (b *backend) Download(dst []byte, src accelerated.Buffer, offset int) error {
	copy(dst, src.(*Buffer).bytes()[offset:])
	return nil
}

func (b *backend) Sync() error { return nil }

func (b *backend) Stats() accelerated.Stats {
	return accelerated.Stats{Live: len(b.live), LiveBytes: b.bytes}
}

func (b *backend) Close() error {
	for buffer := range b.live {
		b.Free(buffer)
	}
	return nil
}
