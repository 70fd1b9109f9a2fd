package cpu

import (
	"math"
	"slices"
	"sync"
	"unsafe"

	"example.com/ringcheck/accelerated"
)

// Buffer is memory of a [Device].
type Buffer struct {
	bytes  []byte // size as asked for
	whole  []byte // as it came from the heap or the system
	mapped bool
}

// Size is the number of bytes that may be used.
func (b *Buffer) Size() int { return len(b.bytes) }

// Bytes is the memory itself: valid while the buffer is live.
func (b *Buffer) Bytes() []byte { return b.bytes }

const (
	// mapFrom is the size from which buffers are mapped rather than taken from
	// the heap: fresh heap pages cost more than the copy into them.
	mapFrom  = 1 << 20
	hugePage = 2 << 20
	// slack lies behind every buffer, for vector loads that read past the end
	// of the last column.
	slack = 64
	// keepFree is how much the pool keeps in any case; it keeps more where more
	// has been live at once.
	keepFree = 64 << 20
)

// pool gives out buffers and keeps those that were freed.
type pool struct {
	mu    sync.Mutex
	live  map[*Buffer]struct{}
	free  []*Buffer // the one freed last is last
	stats accelerated.Stats
	peak  int // most bytes that were live at once
}

// take returns a live buffer of the given size: the smallest free one that
// fits and is at most a quarter larger than a new one would be, or a new one.
func (p *pool) take(size int) (*Buffer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if size > math.MaxInt/2 {
		return nil, errTooLarge
	}
	best, most := -1, capacity(size)+max(size/4, 4096)
	for i, b := range p.free {
		if n := b.capacity(); n >= size && n <= most && (best < 0 || n < p.free[best].capacity()) {
			best = i
		}
	}
	var b *Buffer
	if best >= 0 {
		b = p.free[best]
		p.free = slices.Delete(p.free, best, best+1)
		p.stats.PoolBytes -= b.capacity()
	} else {
		var err error
		if b, err = newBuffer(size); err != nil {
			return nil, err
		}
	}
	if p.live == nil {
		p.live = map[*Buffer]struct{}{}
	}
	b.bytes = b.aligned()[:size:size]
	p.live[b] = struct{}{}
	p.stats.Live++
	p.stats.LiveBytes += b.capacity()
	p.peak = max(p.peak, p.stats.LiveBytes)
	return b, nil
}

func (p *pool) owns(b *Buffer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, live := p.live[b]
	return live
}

// give takes a live buffer back.
func (p *pool) give(b *Buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, live := p.live[b]; !live {
		return
	}
	delete(p.live, b)
	p.stats.Live--
	p.stats.LiveBytes -= b.capacity()
	p.free = append(p.free, b)
	p.stats.PoolBytes += b.capacity()
	// What was freed last is the likeliest to be asked for again.
	for p.stats.PoolBytes > max(keepFree, p.peak) {
		p.stats.PoolBytes -= p.free[0].capacity()
		p.free[0].release()
		p.free = slices.Delete(p.free, 0, 1)
	}
}

// empty gives everything back to the system, live buffers too.
func (p *pool) empty() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for b := range p.live {
		b.release()
	}
	for _, b := range p.free {
		b.release()
	}
	p.live, p.free, p.stats = nil, nil, accelerated.Stats{}
}

// capacity is that of a new buffer: a mapped one fills huge pages.
func capacity(size int) int {
	if size < mapFrom {
		return size
	}
	return (size+slack+hugePage-1)/hugePage*hugePage - slack
}

func newBuffer(size int) (*Buffer, error) {
	if size < mapFrom {
		return &Buffer{whole: make([]byte, size+slack+accelerated.Align)}, nil
	}
	// One huge page more than needed, so that the buffer can begin on one.
	whole, err := mapMemory(capacity(size) + slack + hugePage)
	if err != nil {
		return nil, err
	}
	return &Buffer{whole: whole, mapped: true}, nil
}

// aligned is the memory from the first aligned byte on, without the slack.
func (b *Buffer) aligned() []byte {
	align, behind := accelerated.Align, slack
	if b.mapped {
		align = hugePage
	}
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b.whole))) % uintptr(align))
	if b.mapped {
		behind += hugePage - skip
	}
	return b.whole[skip : len(b.whole)-behind]
}

func (b *Buffer) capacity() int { return len(b.aligned()) }

func (b *Buffer) release() {
	b.bytes = nil
	if b.mapped {
		_ = unmapMemory(b.whole) // it was mapped as it is, so this cannot fail
	}
	b.whole = nil
}
