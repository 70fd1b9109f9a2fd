package reference

import (
	"fmt"

	"example.com/ringcheck/reference/ring"
)

// The functions of this file move columns: they never look at an element. Each
// returns an array of its own; only assign and assignRows write into an array
// that exists. Axis numbers are those of [b, h, s, d].

func zeros(t ring.DType, b, h, s, d int) ring.Array {
	return ring.Array{DType: t, Shape: [4]int{b, h, s, d}, Data: make([]byte, b*h*s*d*t.Size())}
}

// columnBytes is the length of one column of one head.
func columnBytes(a ring.Array) int { return a.Shape[3] * a.DType.Size() }

// bounds turns the two ends of a Python slice over n elements into from <= to
// within [0, n].
func bounds(from, to, n int) (int, int) {
	clip := func(i int) int {
		if i < 0 {
			i += n
		}
		return max(0, min(i, n))
	}
	from, to = clip(from), clip(to)
	return from, max(from, to)
}

// cut returns the columns a[..., from:to, :] in the sense of a Python slice:
// negative ends count from the right, and both are clipped.
func cut(a ring.Array, from, to int) ring.Array {
	from, to = bounds(from, to, a.Shape[2])
	cb, s := columnBytes(a), a.Shape[2]
	out := zeros(a.DType, a.Shape[0], a.Shape[1], to-from, a.Shape[3])
	n := (to - from) * cb
	for i := range a.Shape[0] * a.Shape[1] {
		copy(out.Data[i*n:(i+1)*n], a.Data[(i*s+from)*cb:])
	}
	return out
}

// concatenate joins arrays along the s axis.
func concatenate(op string, parts ...ring.Array) (ring.Array, error) {
	first := parts[0]
	total := 0
	for _, p := range parts {
		if p.Shape[0] != first.Shape[0] || p.Shape[1] != first.Shape[1] || p.Shape[3] != first.Shape[3] {
			return ring.Array{}, &ring.RaisesError{Op: op, Why: fmt.Sprintf("cannot concatenate shapes %v and %v", first.Shape, p.Shape)}
		}
		total += p.Shape[2]
	}
	cb := columnBytes(first)
	out := zeros(first.DType, first.Shape[0], first.Shape[1], total, first.Shape[3])
	at := 0
	for i := range first.Shape[0] * first.Shape[1] {
		for _, p := range parts {
			n := p.Shape[2] * cb
			at += copy(out.Data[at:], p.Data[i*n:(i+1)*n])
		}
	}
	return out, nil
}

// pad adds zero columns on both sides.
func pad(a ring.Array, left, right int) ring.Array {
	cb, s := columnBytes(a), a.Shape[2]
	out := zeros(a.DType, a.Shape[0], a.Shape[1], left+s+right, a.Shape[3])
	for i := range a.Shape[0] * a.Shape[1] {
		copy(out.Data[(i*(left+s+right)+left)*cb:], a.Data[i*s*cb:(i+1)*s*cb])
	}
	return out
}

// rollRows rolls row i cyclically to the right by shifts[i] over all columns
// (mlx-lm's dynamic_roll). One row rolled by several shifts gives one row a
// shift, and one shift serves all rows: broadcasting, as upstream does it.
func rollRows(op string, a ring.Array, shifts []int) (ring.Array, error) {
	rows := a.Shape[0]
	if len(shifts) != rows && len(shifts) != 1 && rows != 1 {
		return ring.Array{}, &ring.RaisesError{Op: op, Why: fmt.Sprintf("cannot broadcast %d shifts over %d rows", len(shifts), rows)}
	}
	n := max(rows, len(shifts))
	if len(shifts) == 0 || rows == 0 {
		n = 0
	}
	h, s, cb := a.Shape[1], a.Shape[2], columnBytes(a)
	out := zeros(a.DType, n, h, s, a.Shape[3])
	if s == 0 {
		return out, nil
	}
	for b := range n {
		shift := shifts[b%len(shifts)] % s
		if shift < 0 {
			shift += s
		}
		for i := range h {
			src := a.Data[((b%rows)*h+i)*s*cb:][:s*cb]
			dst := out.Data[(b*h+i)*s*cb:][:s*cb]
			copy(dst[shift*cb:], src)
			copy(dst, src[(s-shift)*cb:])
		}
	}
	return out, nil
}

// roll rolls every row by the same shift (mx.roll along the s axis).
func roll(a ring.Array, shift int) ring.Array {
	out, err := rollRows("roll", a, []int{shift})
	if err != nil {
		panic(err) // one shift serves any number of rows
	}
	return out
}

// takeRows gathers rows; each index must lie in range.
func takeRows(a ring.Array, rows []int) ring.Array {
	n := a.Shape[1] * a.Shape[2] * columnBytes(a)
	out := zeros(a.DType, len(rows), a.Shape[1], a.Shape[2], a.Shape[3])
	for i, r := range rows {
		copy(out.Data[i*n:(i+1)*n], a.Data[r*n:])
	}
	return out
}

// concatenateRows joins arrays along the b axis.
func concatenateRows(op string, parts ...ring.Array) (ring.Array, error) {
	out := parts[0]
	out.Data = append([]byte(nil), out.Data...)
	for _, p := range parts[1:] {
		if p.Shape[1] != out.Shape[1] || p.Shape[2] != out.Shape[2] || p.Shape[3] != out.Shape[3] || p.DType != out.DType {
			return ring.Array{}, &ring.RaisesError{Op: op, Why: fmt.Sprintf("cannot concatenate rows of %v %v and %v %v", out.DType, out.Shape, p.DType, p.Shape)}
		}
		out.Data = append(out.Data, p.Data...)
		out.Shape[0] += p.Shape[0]
	}
	return out, nil
}

// assignable reports whether src can be assigned to the rows [row, row+rows)
// and the columns [from, to) of dst, in the sense of a Python slice: rows,
// heads, columns and width must agree or be 1 in src, which is then repeated.
func assignable(op string, dst ring.Array, row, rows, from, to int, src ring.Array) error {
	from, to = bounds(from, to, dst.Shape[2])
	want := [4]int{rows, dst.Shape[1], to - from, dst.Shape[3]}
	for axis, n := range want {
		if src.Shape[axis] != n && src.Shape[axis] != 1 {
			return &ring.RaisesError{Op: op, Why: fmt.Sprintf("cannot assign shape %v to %v", src.Shape, want)}
		}
	}
	return nil
}

// assign writes src over what [assignable] has approved.
func assign(dst ring.Array, row, rows, from, to int, src ring.Array) {
	from, to = bounds(from, to, dst.Shape[2])
	h, s, cb := dst.Shape[1], dst.Shape[2], columnBytes(dst)
	scb := columnBytes(src)
	pick := func(axis, i int) int { return i % src.Shape[axis] }
	for b := range rows {
		for i := range h {
			head := src.Data[(pick(0, b)*src.Shape[1]+pick(1, i))*src.Shape[2]*scb:]
			for j := range to - from {
				to := dst.Data[(((row+b)*h+i)*s+from+j)*cb:][:cb]
				column := head[pick(2, j)*scb:][:scb]
				for n := 0; n < cb; n += scb { // a width of 1 is repeated
					copy(to[n:], column)
				}
			}
		}
	}
}

func clone(a ring.Array) ring.Array {
	a.Data = append([]byte(nil), a.Data...)
	return a
}
