package cpu

import (
	"unsafe"

	"example.com/ringcheck/accelerated"
)

// Stores of these sizes and more are written past the cache. What is large
// would not stay there anyway; of a few columns in each of many places, none
// was there.
const (
	streamFrom  = 16 << 20
	scatterFrom = 2 << 20
)

// moveTask does a move. An item is one lane (a head of a plane) with all runs
// in order, or one run of it where runs are independent.
type moveTask struct {
	stream  func(dst, src []byte)
	store   *accelerated.Store
	move    *accelerated.Move
	planes  [accelerated.Planes]int // those that exist
	inPlace bool
}

func (t *moveTask) run(d *Device, store *accelerated.Store, m *accelerated.Move) {
	t.store, t.move = store, m
	t.stream, _ = d.streamFor(store)
	n, width, columns := 0, 0, 0
	for i, p := range store.Planes {
		if p.Width > 0 {
			t.planes[n] = i
			n++
			width += p.Width
		}
	}
	for i := range m.Runs {
		columns += int(m.Runs[i].N)
	}
	t.inPlace = len(m.Sources) == 1 && m.Sources[0].Buffer == store.Buffer
	items := n * store.Heads
	if !t.inPlace {
		items *= len(m.Runs)
	}
	d.workers.run(t, items, columns*store.Heads*width)
	t.store, t.move = nil, nil
}

func (t *moveTask) item(i int, s *scratch) {
	runs := t.move.Runs
	if !t.inPlace {
		// Neighbouring items are neighbouring heads of one run, which both lie
		// beside each other in memory.
		heads := t.store.Heads * (i / (t.store.Heads * len(runs)))
		runs, i = runs[i/t.store.Heads%len(runs):][:1], heads+i%t.store.Heads
	}
	head, plane := i%t.store.Heads, t.planes[i/t.store.Heads]
	for i := range runs {
		t.do(&runs[i], plane, head, s)
	}
}

func (t *moveTask) do(r *accelerated.Run, plane, head int, s *scratch) {
	width := t.store.Planes[plane].Width
	dst := lane(t.store, plane, int(r.DstRow), head)[int(r.To)*width:][:int(r.N)*width]
	if r.Source == accelerated.Zero {
		clear(dst)
		return
	}
	src := lane(t.move.Sources[r.Source], plane, int(r.SrcRow), head)[int(r.From)*width:][:int(r.Cycle)*width]
	skip := int(r.Skip) * width
	if skip+len(dst) <= len(src) {
		t.moveBytes(dst, src[skip:][:len(dst)])
		return
	}
	put := t.stream
	if t.inPlace {
		c := s.bytes(len(src))
		copy(c, src)
		src, put = c, copyBytes // where it goes was read just now
	}
	for from := src[skip:]; len(dst) > 0; from = src {
		n := min(len(dst), len(from))
		put(dst[:n], from[:n])
		dst = dst[n:]
	}
}

// moveBytes copies src to dst, of one length, which may overlap.
func (t *moveTask) moveBytes(dst, src []byte) {
	d, s := uintptr(unsafe.Pointer(unsafe.SliceData(dst))), uintptr(unsafe.Pointer(unsafe.SliceData(src)))
	switch n := uintptr(len(src)); {
	case d == s:
	case d > s && d < s+n, d < s && s < d+32:
		copy(dst, src)
	default:
		t.stream(dst, src)
	}
}

// lane is one head of one row of a plane, all columns.
func lane(s *accelerated.Store, plane, row, head int) []byte {
	p := &s.Planes[plane]
	n := s.Columns * p.Width
	return s.Buffer.(*Buffer).bytes[p.Offset+(row*s.Heads+head)*n:][:n:n]
}

// streamFor is how bytes are copied into a store: one run, or many strips.
func (d *Device) streamFor(s *accelerated.Store) (stream func(dst, src []byte), scatter func(dst, src []byte, dstStride, srcStride, width, count int)) {
	stream, scatter = copyBytes, scatterGo
	if s.Buffer.Size() >= streamFrom {
		stream = d.kernels.stream
	}
	if s.Buffer.Size() >= scatterFrom {
		scatter = d.kernels.scatter
	}
	return stream, scatter
}
