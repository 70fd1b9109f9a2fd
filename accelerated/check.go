package accelerated

import (
	"fmt"
	"slices"

	"example.com/ringcheck/reference/ring"
)

// checkTokens refuses keys and values [rows, heads, n, dim] that the cache
// cannot take; else it returns n, and they are in c.write.
func (c *Cache) checkTokens(op string, keys, values View) (int, error) {
	n := keys.Shape[2]
	if n == 0 {
		return 0, &ring.NoTokensError{Op: op}
	}
	rows := c.cur.rows()
	if keys.Shape[0] != rows {
		return 0, &ring.RowsError{Op: op, What: "keys", Got: keys.Shape[0], Want: rows}
	}
	if values.Shape[0] != rows {
		return 0, &ring.RowsError{Op: op, What: "values", Got: values.Shape[0], Want: rows}
	}
	c.write.Keys, c.write.Values = keys, values
	if err := c.checkView(op, "keys", &c.write.Keys, [4]int{rows, c.cfg.KVHeads, n, c.cfg.KeyDim}, c.cfg.DType); err != nil {
		return 0, err
	}
	if err := c.checkView(op, "values", &c.write.Values, [4]int{rows, c.cfg.KVHeads, n, c.cfg.ValueDim}, c.cfg.DType); err != nil {
		return 0, err
	}
	// What is written may move before it is read.
	for _, v := range [2]struct {
		what   string
		buffer Buffer
	}{{"keys", keys.Buffer}, {"values", values.Buffer}} {
		if v.buffer != nil && v.buffer == c.store.Buffer {
			return 0, &BufferError{Op: op, What: v.what, Own: true}
		}
	}
	if n > maxColumns-c.cur.length {
		return 0, &ring.RangeError{Op: op, What: "columns", Got: n, Low: 1, High: maxColumns - c.cur.length}
	}
	return n, nil
}

// checkView refuses a view that is not of the given shape and data type, or
// that reaches beyond its memory.
func (c *Cache) checkView(op, what string, v *View, shape [4]int, t ring.DType) error {
	if v.Shape != shape || shape[2] < 0 {
		return &ring.ShapeError{Op: op, What: what + " [b h s d]", Got: slices.Clone(v.Shape[:]), Want: slices.Clone(shape[:])}
	}
	if v.DType != t {
		return &ring.DTypeError{Op: op, Got: v.DType, Want: t}
	}
	return checkMemory(op, what, c.dev, v)
}

// checkMemory refuses a view that reaches beyond its memory, or whose memory is
// not the device's.
func checkMemory(op, what string, dev Device, v *View) error {
	size := len(v.Host)
	if v.Buffer != nil {
		if !dev.Owns(v.Buffer) {
			return &BufferError{Op: op, What: what}
		}
		size = v.Buffer.Size()
	}
	if v.Shape[0] == 0 || v.Shape[2] == 0 {
		return nil
	}
	room := size - v.Offset - v.Shape[3]*v.DType.Size() // behind the first element
	fits := v.Offset >= 0 && v.Offset <= size && room >= 0
	for axis, stride := range v.Stride {
		if fits = fits && stride >= 0; fits {
			far := product(v.Shape[axis]-1, stride)
			fits, room = far <= room, room-min(far, room)
		}
	}
	if !fits {
		return &ring.ShapeError{
			Op: op, What: fmt.Sprintf("memory of the %s, with [offset, strides, bytes]", what),
			Got: []int{v.Offset, v.Stride[0], v.Stride[1], v.Stride[2], size},
		}
	}
	return nil
}

// checkCounts refuses numbers below zero or too large to count.
func checkCounts(op, what string, counts []int) error {
	for _, n := range counts {
		if n < 0 || n > maxColumns {
			return &ring.RangeError{Op: op, What: what, Got: n, Low: 0, High: maxColumns}
		}
	}
	return nil
}

// checkRows refuses row indices outside the batch.
func (c *Cache) checkRows(op string, rows ...int) error {
	for _, r := range rows {
		if r < 0 || r >= c.cur.rows() {
			return &ring.RangeError{Op: op, What: "row", Got: r, Low: 0, High: c.cur.rows() - 1}
		}
	}
	return nil
}

// checkPadding refuses what Prepare cannot announce.
func (c *Cache) checkPadding(op string, pad *Padding) error {
	rows := c.cur.rows()
	if rows == 0 && c.cur.length == 0 && c.cfg.Semantics == ring.Exact {
		rows = max(len(pad.LeftPadding), len(pad.Lengths))
	}
	if err := checkLists(op, rows, pad); err != nil {
		return err
	}
	if pad.LeftPadding == nil {
		return nil
	}
	if c.cur.length > 0 {
		return &ring.LeftPaddingError{Op: op}
	}
	for i, n := range pad.LeftPadding {
		if i < c.cur.rows() && n > maxColumns-c.cur.left[i] {
			return &ring.RangeError{Op: op, What: "left padding", Got: n, Low: 0, High: maxColumns - c.cur.left[i]}
		}
	}
	return nil
}

// checkLists refuses padding that is not one sensible number for each of the
// rows.
func checkLists(op string, rows int, pad *Padding) error {
	lists := [3]struct {
		what string
		list []int
	}{{"left padding", pad.LeftPadding}, {"lengths", pad.Lengths}, {"right padding", pad.RightPadding}}
	for _, l := range lists {
		if l.list != nil && len(l.list) != rows {
			return &ring.RowsError{Op: op, What: l.what, Got: len(l.list), Want: rows}
		}
	}
	if pad.Lengths == nil && (pad.RightPadding != nil || pad.RightPadded != nil && *pad.RightPadded) {
		return &ring.RowsError{Op: op, What: "lengths", Got: 0, Want: rows}
	}
	for i, n := range pad.RightPadding {
		if got, want := pad.Lengths[i]+n, pad.Lengths[0]+pad.RightPadding[0]; got != want {
			return &ring.ShapeError{Op: op, What: fmt.Sprintf("length and right padding of row %d", i), Got: []int{got}, Want: []int{want}}
		}
	}
	for _, l := range lists {
		if err := checkCounts(op, l.what, l.list); err != nil {
			return err
		}
	}
	return nil
}

// checkAlike refuses caches whose columns cannot lie in one ring with those of
// c. It looks at one thing in all of them before the next.
func (c *Cache) checkAlike(op string, others ...*Cache) error {
	a := &c.cfg
	for _, check := range []func(o *Cache, b *Config) error{
		func(o *Cache, b *Config) error {
			if a.Semantics != b.Semantics || c.dev != o.dev {
				return &ring.NotSupportedError{Op: op, Kind: "caches of unlike semantics or devices"}
			}
			return nil
		},
		func(_ *Cache, b *Config) error {
			if a.KVHeads != b.KVHeads || a.KeyDim != b.KeyDim || a.ValueDim != b.ValueDim {
				return &ring.ShapeError{Op: op, What: "the other cache's heads and widths",
					Got: []int{b.KVHeads, b.KeyDim, b.ValueDim}, Want: []int{a.KVHeads, a.KeyDim, a.ValueDim}}
			}
			return nil
		},
		func(_ *Cache, b *Config) error {
			if a.DType != b.DType {
				return &ring.DTypeError{Op: op, Got: b.DType, Want: a.DType}
			}
			return nil
		},
		func(_ *Cache, b *Config) error {
			if a.MaxSize != b.MaxSize {
				return &ring.MaxSizeError{Op: op, Got: b.MaxSize, Want: a.MaxSize}
			}
			return nil
		},
		func(_ *Cache, b *Config) error {
			if a.Quant != b.Quant {
				return &ring.QuantError{Op: op, GroupSize: b.Quant.GroupSize, Bits: b.Quant.Bits, Dim: b.KeyDim}
			}
			return nil
		},
	} {
		for _, o := range others {
			if err := check(o, &o.cfg); err != nil {
				return err
			}
		}
	}
	return nil
}
