package cpu

import (
	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference/ring"
)

// fewColumns is the number of new columns up to which a write takes all heads
// of a row, or of all rows, in one go.
const fewColumns = 16

// writeTask writes new tokens. An item is one head of one row; or some rows
// where each has few new columns and these lie one after another.
type writeTask struct {
	kernels *kernels
	stream  func(dst, src []byte)
	scatter func(dst, src []byte, dstStride, srcStride, width, count int)
	store   *accelerated.Store
	sides   [2]source
	at      int
	rows    int // an item, where it takes rows; else 0
}

// source is one side of what is written.
type source struct {
	*accelerated.View
	memory []byte // nil where there is none
}

func (t *writeTask) run(d *Device, store *accelerated.Store, w *accelerated.Write) {
	t.kernels, t.store, t.at, t.rows = &d.kernels, store, w.At, 0
	t.stream, t.scatter = d.streamFor(store)
	bytes, dense := 0, true
	for i, v := range [2]*accelerated.View{&w.Keys, &w.Values} {
		t.sides[i] = source{v, nil}
		if v.DType != 0 {
			t.sides[i].memory = memory(v)[v.Offset:]
			bytes += v.Bytes()
			dense = dense && isDense(v)
		}
	}
	if store.Quant.Bits > 0 {
		bytes *= 4 // the arithmetic is dearer than a move
	}
	rows := w.Keys.Shape[0]
	items := rows * store.Heads
	if dense && w.Keys.Shape[2] <= fewColumns {
		items, t.rows = rows, 1
		if bytes < 2*share {
			items, t.rows = min(rows, 1), rows
		}
	}
	d.workers.run(t, items, bytes)
	t.store, t.sides = nil, [2]source{}
}

// isDense reports whether the columns of all heads lie one after another.
func isDense(v *accelerated.View) bool {
	d := accelerated.HostView(ring.Array{DType: v.DType, Shape: v.Shape})
	for axis, stride := range v.Stride {
		if stride != d.Stride[axis] && v.Shape[axis] > 1 {
			return false
		}
	}
	return true
}

func (t *writeTask) item(i int, s *scratch) {
	for side := range t.sides {
		switch {
		case t.sides[side].memory == nil:
		case t.rows > 0:
			t.wholeRows(i*t.rows, side, s)
		default:
			t.head(i/t.store.Heads, i%t.store.Heads, side)
		}
	}
}

// wholeRows writes the dense tokens of t.rows rows.
func (t *writeTask) wholeRows(row, side int, s *scratch) {
	v := &t.sides[side]
	heads := t.rows * t.store.Heads
	columns := heads * v.Shape[2]
	size := v.Shape[3] * v.DType.Size()
	src := v.memory[row*t.store.Heads*v.Shape[2]*size:][:columns*size]
	if t.store.Quant.Bits == 0 {
		t.spread(3*side, row, src, heads)
		return
	}
	planes := t.store.Planes[3*side : 3*side+3]
	all := s.bytes(columns * (planes[0].Width + 2*planes[1].Width))
	codes, rest := all[:columns*planes[0].Width], all[columns*planes[0].Width:]
	scales, biases := rest[:len(rest)/2], rest[len(rest)/2:]
	t.kernels.quantize(t.store.Quant, t.store.DType, codes, scales, biases, src)
	t.spread(3*side, row, codes, heads)
	t.spread(3*side+1, row, scales, heads)
	t.spread(3*side+2, row, biases, heads)
}

// spread writes new columns of a plane, dense in src, to so many heads.
func (t *writeTask) spread(plane, row int, src []byte, heads int) {
	p := &t.store.Planes[plane]
	stride, size := t.store.Columns*p.Width, len(src)/heads
	dst := t.store.Buffer.(*Buffer).bytes[p.Offset+row*t.store.Heads*stride+t.at*p.Width:]
	t.scatter(dst, src, stride, size, size, heads)
}

// head writes the tokens of one head of one row.
func (t *writeTask) head(row, head, side int) {
	v := &t.sides[side]
	from := v.memory[row*v.Stride[0]+head*v.Stride[1]:]
	n, size := v.Shape[2], v.Shape[3]*v.DType.Size()
	if v.Stride[2] == size { // one run
		n, size = 1, n*size
	}
	data := 3 * side
	for c := range n {
		src := from[c*v.Stride[2]:][:size]
		if t.store.Quant.Bits == 0 {
			t.stream(t.columns(data, row, head, c)[:size], src)
			continue
		}
		t.kernels.quantize(t.store.Quant, t.store.DType,
			t.columns(data, row, head, c), t.columns(data+1, row, head, c), t.columns(data+2, row, head, c), src)
	}
}

// columns is one head of one row of a plane, from the c-th new column on.
func (t *writeTask) columns(plane, row, head, c int) []byte {
	return lane(t.store, plane, row, head)[(t.at+c)*t.store.Planes[plane].Width:]
}
