package reference

import "example.com/ringcheck/reference/ring"

// NewRotatingQuantizedKVCache returns the quantized ring of one sequence: a
// [RotatingKVCache] whose columns are quantized as they are written. mlx-lm has
// no such class; the bookkeeping is that of the plain ring, under either
// semantics. A column's planes depend on its token alone, so that every
// operation moves the bytes that the write made.
func NewRotatingQuantizedKVCache(semantics ring.Semantics, maxSize int, f Format) (*RotatingKVCache, error) {
	c, err := NewRotatingKVCache(semantics, maxSize, 0)
	if err != nil {
		return nil, err
	}
	if err := f.check("new"); err != nil {
		return nil, err
	}
	c.format = f
	return c, nil
}

// NewBatchRotatingQuantizedKVCache returns the quantized ring of a batch: a
// [BatchRotatingKVCache] whose columns are quantized as they are written, so
// that each row holds, byte for byte, what the same row's own serial quantized
// ring holds. Padding columns that an operation makes are zero bytes in all
// planes, never a quantized zero.
func NewBatchRotatingQuantizedKVCache(semantics ring.Semantics, maxSize int, leftPadding []int, f Format) (*BatchRotatingKVCache, error) {
	c, err := NewBatchRotatingKVCache(semantics, maxSize, leftPadding)
	if err != nil {
		return nil, err
	}
	if err := f.check("new"); err != nil {
		return nil, err
	}
	c.format = f
	return c, nil
}

// check refuses a group size or a number of bits that no head width can have.
func (f Format) check(op string) error { return checkQuant(op, f.GroupSize, f.Bits, f.GroupSize) }
