package cuda

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"example.com/ringcheck/accelerated"
)

// Buffer is memory of a device.
type Buffer struct {
	backend  *backend
	pointer  uint64
	size     int // bytes that may be used, as asked for
	capacity int // bytes that the device gave
	live     bool
}

// Size is the number of bytes that may be used.
func (b *Buffer) Size() int { return b.size }

// keepFree is how much the pool keeps in any case; it keeps more where more has
// been live at once.
const keepFree = 64 << 20

// pool gives out buffers and keeps those that were freed, by capacity.
type pool struct {
	limit int // most bytes that are held, live and free
	live  map[*Buffer]struct{}
	free  map[int][]*Buffer
	stats accelerated.Stats
	peak  int // most bytes that were live at once
}

// capacityOf rounds a size up to one of eight classes for each doubling, all of
// them multiples of [accelerated.Align]: at most an eighth is wasted, and
// buffers of about one size replace each other.
func capacityOf(size int) int {
	step := max(accelerated.Align, 1<<max(0, bits.Len(uint(size-1))-4))
	return (size + step - 1) / step * step
}

var errTooLarge = errors.New("the size is beyond what can be addressed")

// Alloc returns a buffer from the pool, or a new one. Where there is no room,
// what the pool keeps is given back first.
func (b *backend) Alloc(size int) (accelerated.Buffer, error) {
	refuse := func(err error) error { return &accelerated.MemoryError{Device: b.name, Bytes: size, Err: err} }
	if size > math.MaxInt/2 {
		return nil, refuse(errTooLarge)
	}
	p, capacity := &b.pool, capacityOf(size)
	if list := p.free[capacity]; len(list) > 0 {
		buf := list[len(list)-1]
		list[len(list)-1] = nil
		p.free[capacity] = list[:len(list)-1]
		p.stats.PoolBytes -= capacity
		p.admit(buf, size)
		return buf, nil
	}
	if err := b.enter("alloc"); err != nil {
		return nil, err
	}
	defer b.leave()
	if p.stats.LiveBytes+capacity > p.limit {
		return nil, refuse(fmt.Errorf("%d bytes are in use of the %d that may be", p.stats.LiveBytes, p.limit))
	}
	if p.stats.LiveBytes+p.stats.PoolBytes+capacity > p.limit {
		if err := b.drain(); err != nil {
			return nil, err
		}
	}
	buf := &Buffer{backend: b, capacity: capacity}
	code := b.driver.memoryAlloc(&buf.pointer, uint64(capacity))
	if code == outOfMemory && p.stats.PoolBytes > 0 {
		if err := b.drain(); err != nil {
			return nil, err
		}
		code = b.driver.memoryAlloc(&buf.pointer, uint64(capacity))
	}
	if err := b.driver.check("cuMemAlloc", code); code == outOfMemory {
		return nil, refuse(err)
	} else if err != nil {
		return nil, err
	}
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

// Free gives a buffer back to the pool. Later work comes after what is under
// way, so that need not be waited for.
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
	if p.stats.PoolBytes <= max(keepFree, p.peak) {
		return
	}
	// An error here is one of earlier work, and surfaces where that is waited for.
	if b.enter("free") == nil {
		_ = b.drain()
		b.leave()
	}
}

// drain gives what the pool keeps back to the device, once nothing uses it.
func (b *backend) drain() error {
	err := b.driver.check("cuStreamSynchronize", b.driver.streamWait(b.stream))
	p := &b.pool
	for capacity, list := range p.free {
		for _, buf := range list {
			err = errors.Join(err, b.driver.check("cuMemFree", b.driver.memoryFree(buf.pointer)))
		}
		delete(p.free, capacity)
	}
	p.stats.PoolBytes = 0
	return err
}

// Stats counts the memory that is held.
func (b *backend) Stats() accelerated.Stats { return b.pool.stats }
