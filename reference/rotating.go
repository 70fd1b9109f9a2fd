package reference

import "example.com/ringcheck/reference/ring"

// RotatingKVCache is mlx-lm's RotatingKVCache: the ring of one sequence, a
// fixed window of columns that wraps. It holds its columns plain or, made by
// [NewRotatingQuantizedKVCache], quantized, which mlx-lm does not have (D-25).
//
// A single token is written in place; more tokens are appended as a block
// behind at most max size - 1 older columns, so that the buffer may exceed the
// window until the next write. The first keep columns are attention sinks that
// are never overwritten (in mlx-lm's semantics only).
type RotatingKVCache struct {
	Step int // growth quantum in columns

	semantics ring.Semantics
	store     storage
	format    Format
	keep      int
	maxSize   int
	offset    int
	idx       int
	rotated   bool // whether the ring has wrapped; upstream infers it
}

// NewRotatingKVCache is __init__. In exact semantics maxSize must be at least
// 1 and keep 0; mlx-lm checks neither (Q07).
func NewRotatingKVCache(semantics ring.Semantics, maxSize, keep int) (*RotatingKVCache, error) {
	if semantics == ring.Exact {
		if maxSize < 1 {
			return nil, &ring.MaxSizeError{Op: "new", Got: maxSize}
		}
		if keep != 0 {
			return nil, &ring.KeepError{Op: "new", Keep: keep}
		}
	}
	return &RotatingKVCache{Step: defaultStep, semantics: semantics, maxSize: maxSize, keep: keep}, nil
}

const defaultStep = 256

// trimmed is _trim: it drops the t columns behind the sinks and appends.
func (c *RotatingKVCache) trimmed(op string, t int, s storage) (storage, error) {
	if t <= 0 {
		return s, nil
	}
	return s.cut(0, c.keep).concatenate(op, s.cut(t+c.keep, s.columns()))
}

// temporalOrder is _temporal_order: the columns in use, oldest first (the
// sinks before all others).
func (c *RotatingKVCache) temporalOrder(op string, s storage) (storage, error) {
	wrapped := c.idx < c.offset
	if c.semantics == ring.Exact {
		wrapped = c.rotated // a short row is not a wrapped one (E10)
	}
	switch {
	case c.idx == s.columns():
		return s, nil
	case wrapped:
		sinks, err := s.cut(0, c.keep).concatenate(op, s.cut(c.idx, s.columns()))
		if err != nil {
			return storage{}, err
		}
		return sinks.concatenate(op, s.cut(c.keep, c.idx))
	default:
		return s.cut(0, c.idx), nil
	}
}

// updateConcat is _update_concat: it appends a block.
func (c *RotatingKVCache) updateConcat(op string, block storage) (ring.KV, error) {
	s := block
	if c.store.none() {
		s = block.clone()
	} else {
		ordered, err := c.temporalOrder(op, c.store)
		if err != nil {
			return ring.KV{}, err
		}
		if ordered, err = c.trimmed(op, ordered.columns()-c.maxSize+1, ordered); err != nil {
			return ring.KV{}, err
		}
		if s, err = ordered.concatenate(op, block); err != nil {
			return ring.KV{}, err
		}
	}
	c.store = s
	c.offset += block.columns()
	c.idx = s.columns()
	c.rotated = false
	return s.clone().KV, nil
}

// updateInPlace is _update_in_place: it writes one column, after growing the
// buffer or cutting it back to the window where that is due.
func (c *RotatingKVCache) updateInPlace(op string, column storage) (ring.KV, error) {
	n := column.columns()
	s, idx, rotated := c.store, c.idx, c.rotated
	if s.none() || (c.offset >= s.columns() && s.columns() < c.maxSize) {
		size := min(c.Step, c.maxSize-c.offset)
		var err error
		if s.none() {
			s, err = column.blank(op, size)
		} else {
			s, err = s.grow(op, size)
		}
		if err != nil {
			return ring.KV{}, err
		}
		idx = c.offset
	}
	if t := s.columns() - c.maxSize; t > 0 {
		var err error
		if s, err = c.trimmed(op, t, s); err != nil {
			return ring.KV{}, err
		}
		idx = c.maxSize
		rotated = false
	}
	if idx == c.maxSize {
		idx = c.keep
		rotated = true
	}
	if err := s.write(op, idx, idx+n, column); err != nil {
		return ring.KV{}, err
	}
	c.store, c.idx, c.rotated = s, idx+n, rotated
	c.offset += n
	return c.KeysAndValues(), nil
}

// Update is update_and_fetch: keys [b h s d] and values [b h s d'] become the
// newest columns; it returns all columns that the cache may attend to, in
// physical order. mlx-lm writes one column in place and appends any other
// number, none included (M34).
//
// Exact semantics append a single column, too, to a ring that holds fewer
// tokens than its window and offset call for (E10).
func (c *RotatingKVCache) Update(keys, values ring.Array) (ring.KV, error) {
	const op = "update"
	if err := checkUpdate(op, c.semantics, c.store, c.format, -1, keys, values); err != nil {
		return ring.KV{}, err
	}
	columns, err := c.format.encode(keys, values)
	if err != nil {
		return ring.KV{}, err
	}
	if keys.Columns() == 1 && !c.short() {
		return c.updateInPlace(op, columns)
	}
	return c.updateConcat(op, columns)
}

// short reports, in exact semantics, that the ring holds fewer tokens than it
// should: one that was extracted short, or with a limit.
func (c *RotatingKVCache) short() bool {
	return c.semantics == ring.Exact && c.active() < min(c.offset, c.maxSize)
}

// active is the number of columns in use.
func (c *RotatingKVCache) active() int { return activeLength(c.position()) }

// position is the ring's bookkeeping in the form of a batch of one row.
func (c *RotatingKVCache) position() ring.Position {
	return ring.Position{
		MaxSize: c.maxSize, Offset: []int{c.offset}, LeftPadding: []int{0},
		Idx: c.idx, Total: c.offset, Rotated: c.rotated,
	}
}

// KeysAndValues is keys_and_values: the columns that the last update
// returned, or as many as a trim has left.
func (c *RotatingKVCache) KeysAndValues() ring.KV {
	if c.store.none() {
		return ring.KV{}
	}
	if c.semantics == ring.Exact {
		return c.store.cut(0, c.active()).KV
	}
	if c.offset < c.store.columns() {
		return c.store.cut(0, c.offset).KV
	}
	return c.store.clone().KV
}

// Size is size: min(offset, max size). A ring right after a block, or a short
// one, holds another number of columns (Q15).
func (c *RotatingKVCache) Size() int { return min(c.offset, c.maxSize) }

// Trimmable is is_trimmable: offset < max size. It is false already when the
// window is just full, and in mlx-lm's semantics true again after more was
// trimmed than the ring can give back (M37, Q11).
func (c *RotatingKVCache) Trimmable() bool { return c.offset < c.maxSize }

// Trim is trim: it takes back the last min(offset, n) tokens and returns their
// number. mlx-lm never asks whether that is possible (M31, M33); exact
// semantics refuse what would lose or resurrect tokens (E6).
func (c *RotatingKVCache) Trim(n int) (int, error) {
	if c.semantics == ring.Exact {
		if err := checkTrim(n, c.offset, c.maxSize, c.active()); err != nil {
			return 0, err
		}
	}
	n = min(c.offset, n)
	c.offset -= n
	c.idx -= n
	return n, nil
}

// ToQuantized is to_quantized. mlx-lm has not implemented it (M36). In exact
// semantics it returns the quantized ring that the same updates would have
// made.
func (c *RotatingKVCache) ToQuantized(f Format) (*RotatingKVCache, error) {
	if c.semantics == ring.MLXLM || c.format != (Format{}) {
		return nil, &ring.NotSupportedError{Op: "to_quantized", Kind: "a rotating cache"}
	}
	if err := f.check("to_quantized"); err != nil {
		return nil, err
	}
	out := *c
	out.format = f
	if !c.store.none() {
		inUse := c.store.cut(0, c.active())
		var err error
		if out.store, err = f.encode(inUse.Keys[0], inUse.Values[0]); err != nil {
			return nil, err
		}
		out.store = out.store.pad(0, c.store.columns()-c.active())
	}
	return &out, nil
}

// Mask is make_mask with return_array: the mask for a write of n columns that
// has not happened yet, over the columns that it will return.
//
// In mlx-lm's semantics it is nil for one column, unless the window is smaller
// than the ring and already full; it does not know the sinks (Q05); and a
// window of 0 means the whole ring for a block, but hides everything for one
// column (D-18, Q24). In exact semantics it is never nil, and its window is
// the smaller of the two (E3).
func (c *RotatingKVCache) Mask(n int, window *int) (*ring.Mask, error) {
	if c.semantics == ring.Exact {
		w, err := exactWindow(n, window, c.maxSize)
		if err != nil {
			return nil, err
		}
		return RingMask(c.position(), n, w, n > 1 || c.short(), ring.Exact), nil
	}
	if n > 1 {
		w := mlxlmWindow(window, c.maxSize)
		return CausalMask(n, min(c.maxSize-1, c.offset), &w, nil), nil
	}
	if window == nil || c.offset < *window || c.maxSize <= *window {
		return nil, nil
	}
	idx := c.idx
	if idx >= c.maxSize {
		idx = 0
	}
	m := newMask(1, 1, min(c.offset+1, c.maxSize))
	for j := range m.S {
		m.Data[j] = j >= m.S-*window
	}
	return rollMask(m, idx+1), nil
}

// Empty is empty: whether no column was ever written.
func (c *RotatingKVCache) Empty() bool { return c.store.none() }

// NBytes is nbytes: the bytes of the whole buffer.
func (c *RotatingKVCache) NBytes() (int, error) { return c.store.nbytes(), nil }

// mlxlmWindow is mlx-lm's "window_size or max_size": 0 counts as none given.
func mlxlmWindow(window *int, maxSize int) int {
	if window == nil || *window == 0 {
		return maxSize
	}
	return *window
}

// exactWindow is the window of a mask of n queries in exact semantics.
func exactWindow(n int, window *int, maxSize int) (int, error) {
	if n < 1 {
		return 0, &ring.RangeError{Op: "mask", What: "n", Got: n, Low: 1, High: maxInt}
	}
	if window == nil {
		return maxSize, nil
	}
	if *window < 1 {
		return 0, &ring.WindowError{Op: "mask", Window: *window}
	}
	return min(*window, maxSize), nil
}

// checkTrim is what exact semantics demand of a trim.
func checkTrim(n, total, maxSize, held int) error {
	const op = "trim"
	switch {
	case n < 0:
		return &ring.RangeError{Op: op, What: "n", Got: n, Low: 0, High: held}
	case total >= maxSize:
		return &ring.NotTrimmableError{Op: op, Total: total, MaxSize: maxSize}
	case n > held:
		return &ring.OverTrimError{Op: op, N: n, Held: held}
	}
	return nil
}

// checkUpdate refuses columns that do not fit a cache of that storage and
// format. rows is the cache's number of rows, or -1 where any will do.
//
// In mlx-lm's semantics only what could not be stored at all is refused here;
// the rest raises, or not, where upstream does. Another data type, which
// upstream converts, is refused: this package only moves bytes.
func checkUpdate(op string, semantics ring.Semantics, s storage, f Format, rows int, keys, values ring.Array) error {
	if err := checkPair(op, keys, values); err != nil {
		return err
	}
	if semantics == ring.Exact && keys.Columns() == 0 {
		return &ring.NoTokensError{Op: op}
	}
	if rows < 0 && semantics == ring.Exact {
		rows = 1
	}
	if rows >= 0 && keys.Rows() != rows {
		return &ring.RowsError{Op: op, What: "keys", Got: keys.Rows(), Want: rows}
	}
	if s.none() {
		return nil
	}
	if semantics == ring.Exact {
		if err := sameShape(op, s, f, keys, values); err != nil {
			return err
		}
	}
	if dtype := s.Keys[len(s.Keys)-1].DType; keys.DType != dtype {
		return &ring.DTypeError{Op: op, Got: keys.DType, Want: dtype}
	}
	return nil
}

// sameShape refuses keys and values whose heads or widths are not those that s
// holds in format f.
func sameShape(op string, s storage, f Format, keys, values ring.Array) error {
	for _, side := range [2]struct {
		what  string
		held  ring.Planes
		given ring.Array
	}{{"keys [h d]", s.Keys, keys}, {"values [h d]", s.Values, values}} {
		heads, width := side.held[0].Shape[1], f.width(side.held)
		if side.given.Shape[1] != heads || side.given.Shape[3] != width {
			return &ring.ShapeError{Op: op, What: side.what, Got: []int{side.given.Shape[1], side.given.Shape[3]}, Want: []int{heads, width}}
		}
	}
	return nil
}

// width is the head dimension of the columns that planes of the format hold.
func (f Format) width(planes ring.Planes) int {
	if f == (Format{}) {
		return planes[0].Shape[3]
	}
	return planes[1].Shape[3] * f.GroupSize
}
