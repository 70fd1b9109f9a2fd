package reference

import (
	"fmt"

	"example.com/ringcheck/reference/ring"
)

// storage is the columns of a cache, one plane a side (plain) or three
// (quantized: packed, scales, biases). Quantization packs along the head
// dimension, so that every operation on columns and rows is the same byte move
// on each plane; the methods below say it once for both. All but write return
// a storage of their own. The zero storage holds nothing, as mlx-lm's None.
type storage struct{ ring.KV }

// Format says how a cache stores what it is given: the zero Format is plain,
// any other is affine quantization.
type Format struct{ GroupSize, Bits int }

// encode turns new columns into planes of the format. The result may share
// memory with its argument.
func (f Format) encode(keys, values ring.Array) (storage, error) {
	if f == (Format{}) {
		return storage{ring.KV{Keys: ring.Planes{keys}, Values: ring.Planes{values}}}, nil
	}
	k, err := Quantize(keys, f.GroupSize, f.Bits)
	if err != nil {
		return storage{}, err
	}
	v, err := Quantize(values, f.GroupSize, f.Bits)
	if err != nil {
		return storage{}, err
	}
	return storage{ring.KV{Keys: k, Values: v}}, nil
}

func (s storage) none() bool { return len(s.Keys) == 0 }

// columns returns L, the physical length of the s axis; 0 where there is none.
func (s storage) columns() int {
	if s.none() {
		return 0
	}
	return s.Keys[0].Shape[2]
}

// rows returns the length of the b axis; 0 where there is none.
func (s storage) rows() int {
	if s.none() {
		return 0
	}
	return s.Keys[0].Shape[0]
}

func (s storage) each(f func(ring.Array) ring.Array) storage {
	out, _ := s.eachErr(func(a ring.Array) (ring.Array, error) { return f(a), nil })
	return out
}

func (s storage) eachErr(f func(ring.Array) (ring.Array, error)) (storage, error) {
	var out storage
	planes := make(ring.Planes, len(s.Keys)+len(s.Values))
	for i, a := range s.Keys {
		p, err := f(a)
		if err != nil {
			return storage{}, err
		}
		planes[i] = p
	}
	for i, a := range s.Values {
		p, err := f(a)
		if err != nil {
			return storage{}, err
		}
		planes[len(s.Keys)+i] = p
	}
	n := len(s.Keys)
	out.Keys, out.Values = planes[:n:n], planes[n:]
	return out, nil
}

// pairErr applies f to the planes of s and t side by side.
func (s storage) pairErr(t storage, f func(a, b ring.Array) (ring.Array, error)) (storage, error) {
	planes := append(append(ring.Planes(nil), t.Keys...), t.Values...)
	i := -1
	return s.eachErr(func(a ring.Array) (ring.Array, error) {
		i++
		return f(a, planes[i])
	})
}

func (s storage) cut(from, to int) storage {
	return s.each(func(a ring.Array) ring.Array { return cut(a, from, to) })
}

func (s storage) roll(shift int) storage {
	return s.each(func(a ring.Array) ring.Array { return roll(a, shift) })
}

func (s storage) rollRows(op string, shifts []int) (storage, error) {
	return s.eachErr(func(a ring.Array) (ring.Array, error) { return rollRows(op, a, shifts) })
}

func (s storage) pad(left, right int) storage {
	return s.each(func(a ring.Array) ring.Array { return pad(a, left, right) })
}

func (s storage) takeRows(rows []int) storage {
	return s.each(func(a ring.Array) ring.Array { return takeRows(a, rows) })
}

func (s storage) clone() storage { return s.each(clone) }

func (s storage) concatenate(op string, t storage) (storage, error) {
	return s.pairErr(t, func(a, b ring.Array) (ring.Array, error) { return concatenate(op, a, b) })
}

func (s storage) concatenateRows(op string, t storage) (storage, error) {
	return s.pairErr(t, func(a, b ring.Array) (ring.Array, error) { return concatenateRows(op, a, b) })
}

// temporal returns the columns of a ring whose next write goes to idx, oldest
// first: [idx:] and then [:idx].
func (s storage) temporal(idx int) storage { return s.roll(-idx) }

// grow adds n columns of zero bytes on the right.
func (s storage) grow(op string, n int) (storage, error) {
	if n < 0 {
		return storage{}, &ring.RaisesError{Op: op, Why: "negative dimensions are not allowed"}
	}
	return s.pad(0, n), nil
}

// blank returns n columns of zero bytes for each row and plane of s.
func (s storage) blank(op string, n int) (storage, error) {
	return s.cut(0, 0).grow(op, n)
}

// write assigns the columns of t to [from, to) in place. It refuses before it
// writes anything.
func (s storage) write(op string, from, to int, t storage) error {
	check := func(dst, src ring.Planes) error {
		for i := range dst {
			if err := assignable(op, dst[i], 0, dst[i].Shape[0], from, to, src[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := check(s.Keys, t.Keys); err != nil {
		return err
	}
	if err := check(s.Values, t.Values); err != nil {
		return err
	}
	for i := range s.Keys {
		assign(s.Keys[i], 0, s.Keys[i].Shape[0], from, to, t.Keys[i])
	}
	for i := range s.Values {
		assign(s.Values[i], 0, s.Values[i].Shape[0], from, to, t.Values[i])
	}
	return nil
}

// nbytes is the sum of all planes' bytes.
func (s storage) nbytes() int {
	n := 0
	for _, p := range [2]ring.Planes{s.Keys, s.Values} {
		for _, a := range p {
			n += len(a.Data)
		}
	}
	return n
}

// stepped is how the caches without a window grow: enough whole steps for n
// columns, after the buffer was cut to prev columns unless prev is a multiple
// of the step.
func (s storage) stepped(op string, like storage, prev, n, step int) (storage, error) {
	if step < 1 {
		return storage{}, &ring.RaisesError{Op: op, Why: fmt.Sprintf("the growth step is %d, want at least 1", step)}
	}
	size := (step + n - 1) / step * step
	if s.none() {
		return like.blank(op, size)
	}
	if prev%step != 0 {
		s = s.cut(0, prev)
	}
	return s.grow(op, size)
}

// checkPair refuses keys and values that do not belong together, or are no
// whole arrays of floats.
func checkPair(op string, keys, values ring.Array) error {
	for i := range 3 {
		if keys.Shape[i] != values.Shape[i] {
			return &ring.ShapeError{Op: op, What: "values [b h s]", Got: values.Shape[:3], Want: keys.Shape[:3]}
		}
	}
	if err := checkFloats(op, keys); err != nil {
		return err
	}
	if err := checkFloats(op, values); err != nil {
		return err
	}
	if keys.DType != values.DType {
		return &ring.DTypeError{Op: op, Got: values.DType, Want: keys.DType}
	}
	return nil
}
