package metal

import (
	"errors"
	"fmt"
	"math/bits"

	"example.com/ringcheck/accelerated"
)

// Buffer is memory of a device, shared with the processor.
type Buffer struct {
	backend  *backend
	object   id
	size     int    // bytes that may be used, as asked for
	capacity int    // bytes that it has
	last     uint64 // number of the last command buffer that uses it
	live     bool
}

// Size is the number of bytes that may be used.
func (b *Buffer) Size() int { return b.size }

const (
	// keepFree is how much the pool keeps in any case; it keeps more where more
	// has been live at once.
	keepFree = 64 << 20

	// A free buffer that work under way still uses makes an upload to it wait.
	// Up to this size, a new one is cheaper.
	waitAbove = 1 << 20
)

// pool gives out buffers and keeps those that were freed, by capacity, the
// oldest first.
type pool struct {
	limit     int // most bytes that are held, live and free
	maxLength int // of one buffer
	live      map[*Buffer]struct{}
	free      map[int][]*Buffer
	stats     accelerated.Stats
	peak      int // most bytes that were live at once
}

// capacityOf rounds a size up to one of eight classes for each doubling, all of
// them multiples of [accelerated.Align]: at most an eighth is wasted, and
// buffers of about one size replace each other.
func capacityOf(size int) int {
	step := max(accelerated.Align, 1<<max(0, bits.Len(uint(size-1))-4))
	return (size + step - 1) / step * step
}

var errNoRoom = errors.New("the device made no buffer of that size")

// Alloc returns a buffer from the pool, or a new one. Where there is no room,
// what the pool keeps is given back first.
func (b *backend) Alloc(size int) (buffer accelerated.Buffer, err error) {
	withPool(b.api, func() { buffer, err = b.alloc(size) })
	return buffer, err
}

func (b *backend) alloc(size int) (accelerated.Buffer, error) {
	p := &b.pool
	refuse := func(err error) (accelerated.Buffer, error) {
		return nil, &accelerated.MemoryError{Device: b.name, Bytes: size, Err: err}
	}
	if size > p.maxLength {
		return refuse(fmt.Errorf("a buffer has at most %d bytes", p.maxLength))
	}
	capacity := min(capacityOf(size), p.maxLength)
	b.settle()
	if list := p.free[capacity]; len(list) > 0 && (list[0].last <= b.done || capacity > waitAbove) {
		buf := list[0]
		p.free[capacity] = list[1:]
		p.stats.PoolBytes -= capacity
		p.admit(buf, size)
		return buf, nil
	}
	if p.stats.LiveBytes+capacity > p.limit {
		return refuse(fmt.Errorf("%d bytes are in use of the %d that may be", p.stats.LiveBytes, p.limit))
	}
	if p.stats.LiveBytes+p.stats.PoolBytes+capacity > p.limit {
		b.drain()
	}
	object := b.api.newBuffer(b.device, uint(capacity), storageShared)
	if object == 0 && p.stats.PoolBytes > 0 {
		b.drain()
		object = b.api.newBuffer(b.device, uint(capacity), storageShared)
	}
	if object == 0 {
		return refuse(errNoRoom)
	}
	buf := &Buffer{backend: b, object: object, capacity: capacity}
	p.admit(buf, size)
	return buf, nil
}

func (p *pool) admit(buf *Buffer, size int) {
	buf.size, buf.live = size, true
	p.live[buf] = struct{}{}
	p.stats.Live++
	p.stats.LiveBytes += buf.capacity
	p.peak = max(p.peak, p.stats.LiveBytes)
}

// Free gives a buffer back to the pool. The queue keeps later work behind what
// is under way, and uploads wait for it, so that it need not be waited for.
func (b *backend) Free(buffer accelerated.Buffer) {
	buf, ok := buffer.(*Buffer)
	if !ok || buf.backend != b || !buf.live {
		return
	}
	p := &b.pool
	buf.live = false
	delete(p.live, buf)
	p.stats.Live--
	p.stats.LiveBytes -= buf.capacity
	p.free[buf.capacity] = append(p.free[buf.capacity], buf)
	p.stats.PoolBytes += buf.capacity
	if p.stats.PoolBytes > max(keepFree, p.peak) {
		withPool(b.api, b.drain)
	}
}

// drain gives what the pool keeps back to the system. Command buffers hold what
// they use until they are done.
func (b *backend) drain() {
	p := &b.pool
	for capacity, list := range p.free {
		for _, buf := range list {
			b.api.release(buf.object)
		}
		delete(p.free, capacity)
	}
	p.stats.PoolBytes = 0
}

// Stats counts the memory that is held.
func (b *backend) Stats() accelerated.Stats { return b.pool.stats }
