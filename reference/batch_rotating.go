package reference

import "example.com/ringcheck/reference/ring"

// BatchRotatingKVCache is mlx-lm's BatchRotatingKVCache: the ring of a batch,
// one fixed window of columns that wraps for all rows together. Rows shorter
// than the ring have left padding. It holds its columns plain or, made by
// [NewBatchRotatingQuantizedKVCache], quantized, which mlx-lm does not have.
//
// A single token a row is written in place; more tokens are appended as a
// block. Right padding announced by Prepare is rolled to a row's front, before
// it can evict a token, by the next block and by Finalize.
type BatchRotatingKVCache struct {
	Step int // growth quantum in columns

	semantics ring.Semantics
	store     storage
	format    Format
	rows      RowState
	positions []int // what RowPositions returns until Release
	loaded    bool  // from a prompt-cache file: the pending field is missing (Q03)
}

// NewBatchRotatingKVCache is __init__: an empty ring of maxSize columns with a
// row for each element of leftPadding.
func NewBatchRotatingKVCache(semantics ring.Semantics, maxSize int, leftPadding []int) (*BatchRotatingKVCache, error) {
	if semantics == ring.Exact {
		if maxSize < 1 {
			return nil, &ring.MaxSizeError{Op: "new", Got: maxSize}
		}
		for _, n := range leftPadding {
			if n < 0 {
				return nil, &ring.RangeError{Op: "new", What: "left padding", Got: n, Low: 0, High: maxInt}
			}
		}
	}
	c := &BatchRotatingKVCache{Step: defaultStep, semantics: semantics, rows: NewRowState(semantics, maxSize, leftPadding)}
	c.Release()
	return c, nil
}

// temporalOrder is _temporal_order: the buffer and the state of a ring that
// was put into temporal order.
func (c *BatchRotatingKVCache) temporalOrder() (storage, RowState) {
	s, state := c.store, c.rows
	if state.p.Rotated {
		s = s.temporal(state.p.Idx)
		state.order(s.columns())
	}
	return s, state
}

// updateConcat is _update_concat: it appends a block behind at most W-1 older
// columns. Rows whose trailing padding was counted are rolled first, so that
// the padding is evicted before any token.
func (c *BatchRotatingKVCache) updateConcat(op string, block storage) (ring.KV, error) {
	s, state, evicted := block, c.rows, 0
	if c.store.none() {
		s = block.clone()
	} else {
		var held storage
		held, state = c.temporalOrder()
		if held.columns() > state.p.Idx {
			held = held.cut(0, state.p.Idx)
		}
		if c.loaded {
			return ring.KV{}, &ring.RaisesError{Op: op, Why: "a loaded cache has no lengths"}
		}
		roll, err := state.PrefillRoll()
		if err != nil {
			return ring.KV{}, err
		}
		if roll != nil {
			if held, err = held.rollRows(op, roll); err != nil {
				return ring.KV{}, err
			}
			if err := state.rollPadding(roll); err != nil {
				return ring.KV{}, err
			}
		}
		evicted = state.evictedByBlock()
		if s, err = held.cut(evicted, held.columns()).concatenate(op, block); err != nil {
			return ring.KV{}, err
		}
	}
	state.CommitConcat(block.columns(), evicted, s.columns())
	c.store, c.rows = s, state
	return s.clone().KV, nil
}

// updateInPlace is _update_in_place: it writes one column a row, after growing
// the buffer or cutting it back to the window where that is due.
func (c *BatchRotatingKVCache) updateInPlace(op string, column storage) (ring.KV, error) {
	if c.loaded {
		return ring.KV{}, &ring.RaisesError{Op: op, Why: "a loaded cache has no lengths"}
	}
	if c.rows.Pending() {
		return ring.KV{}, &ring.PendingPaddingError{Op: op}
	}
	s, state, n := c.store, c.rows, column.columns()
	w, total := state.p.MaxSize, state.p.Total
	if s.none() || (total >= s.columns() && s.columns() < w) {
		size := min(c.Step, w-total)
		var err error
		if s.none() {
			s, err = column.blank(op, size)
		} else {
			s, err = s.grow(op, size)
		}
		if err != nil {
			return ring.KV{}, err
		}
		state.MarkGrown(total)
	}
	if t := s.columns() - w; t > 0 {
		s = s.cut(t, s.columns())
		state.TrimOvershoot(t)
	}
	at := state.BeginWrite(n)
	if err := s.write(op, at, at+n, column); err != nil {
		return ring.KV{}, err
	}
	state.CommitWrite(n)
	c.store, c.rows = s, state
	return c.KeysAndValues(), nil
}

// Update is update_and_fetch: keys [b h s d] and values [b h s d'] become the
// newest columns of every row; it returns all columns that the rows may attend
// to, in physical order. One column is written in place, any other number is
// appended as a block.
//
// mlx-lm refuses a single column while padding is pending (D-1); in exact
// semantics it is a block of one (E4).
func (c *BatchRotatingKVCache) Update(keys, values ring.Array) (ring.KV, error) {
	const op = "update"
	inPlace := keys.Columns() == 1 && !(c.semantics == ring.Exact && c.rows.Pending())
	if inPlace && c.rows.Pending() {
		return ring.KV{}, &ring.PendingPaddingError{Op: op} // whatever the columns are
	}
	columns, err := c.encode(op, keys, values)
	if err != nil {
		return ring.KV{}, err
	}
	if inPlace {
		return c.updateInPlace(op, columns)
	}
	return c.updateConcat(op, columns)
}

// encode checks new columns and turns them into planes.
func (c *BatchRotatingKVCache) encode(op string, keys, values ring.Array) (storage, error) {
	if err := checkUpdate(op, c.semantics, c.store, c.format, c.rows.BatchSize(), keys, values); err != nil {
		return storage{}, err
	}
	return c.format.encode(keys, values)
}

// KeysAndValues is keys_and_values: the columns that the last update returned,
// or as many as a trim has left.
func (c *BatchRotatingKVCache) KeysAndValues() ring.KV {
	if total := c.rows.p.Total; total < c.store.columns() {
		return c.store.cut(0, total).KV
	}
	return c.store.clone().KV
}

// Prepare is prepare: see [RowState.Prepare]. Left padding is refused once the
// ring holds columns.
func (c *BatchRotatingKVCache) Prepare(pad Padding) error {
	const op = "prepare"
	late := pad.LeftPadding != nil && !c.store.none()
	if late && c.semantics == ring.MLXLM {
		return &ring.LeftPaddingError{Op: op}
	}
	state := c.rows
	if c.semantics == ring.Exact && !state.Pending() && state.BatchSize() == 0 && !c.store.none() {
		if n := max(len(pad.LeftPadding), len(pad.Lengths), len(pad.RightPadding)); n > 0 {
			return &ring.RowsError{Op: op, What: "padding", Got: n} // columns that have no rows get none
		}
	}
	if err := state.Prepare(pad); err != nil {
		return err
	}
	if late {
		return &ring.LeftPaddingError{Op: op}
	}
	c.loaded = c.loaded && !state.Pending()
	c.rows = state
	c.Release()
	return nil
}

// Finalize is finalize: each row is rolled so that its trailing padding comes
// to its front, over the whole buffer; nothing is pending any more. mlx-lm
// raises where no column was written yet (D-9).
func (c *BatchRotatingKVCache) Finalize() error {
	const op = "finalize"
	if c.loaded {
		return &ring.RaisesError{Op: op, Why: "a loaded cache has no lengths"}
	}
	s, state := c.store, c.rows
	roll, err := state.PrefillRoll()
	if err != nil {
		return err
	}
	if roll == nil {
		return nil
	}
	if s.none() && c.semantics == ring.MLXLM {
		return &ring.RaisesError{Op: op, Why: "the cache is empty"}
	}
	if s, err = s.rollRows(op, roll); err != nil {
		return err
	}
	if err := state.Finalize(); err != nil {
		return err
	}
	c.store, c.rows = s, state
	c.Release()
	return nil
}

// Trimmable is is_trimmable: total < W, and in exact semantics nothing
// pending (E7).
func (c *BatchRotatingKVCache) Trimmable() bool { return c.rows.Trimmable() }

// Trim is trim: it takes back the last min(total, n) columns of every row and
// returns their number. mlx-lm never asks whether that is possible (O-5, Q04,
// Q12); exact semantics refuse what would lose or resurrect tokens (E6).
func (c *BatchRotatingKVCache) Trim(n int) (int, error) {
	if c.semantics == ring.Exact {
		if c.rows.Pending() {
			return 0, &ring.PendingPaddingError{Op: "trim"}
		}
		if err := checkTrim(n, c.rows.p.Total, c.rows.p.MaxSize, c.shortestRow()); err != nil {
			return 0, err
		}
	}
	n = c.rows.Trim(n)
	c.Release()
	return n, nil
}

// shortestRow is the least number of tokens that a row holds.
func (c *BatchRotatingKVCache) shortestRow() int {
	held := c.rows.ActiveLength()
	for i := range c.rows.BatchSize() {
		held = min(held, c.rows.Held(i))
	}
	return held
}

// Mask is make_mask: [B, 1, n, S] for a write of n columns that has not
// happened yet, S being what it will return; never nil. See [RingMask].
//
// In mlx-lm's semantics a window of 0 counts as none given (D-18), one over
// the ring's lets late queries of a block see more than the ring, and a single
// column counts as a decode even while padding is pending (D-2). Exact
// semantics take the smaller window and count it as a block.
func (c *BatchRotatingKVCache) Mask(n int, window *int) (*ring.Mask, error) {
	return c.mask(n, window, n > 1 || (c.semantics == ring.Exact && c.rows.Pending()))
}

func (c *BatchRotatingKVCache) mask(n int, window *int, block bool) (*ring.Mask, error) {
	w := mlxlmWindow(window, c.rows.p.MaxSize)
	if c.semantics == ring.Exact {
		var err error
		if w, err = exactWindow(n, window, c.rows.p.MaxSize); err != nil {
			return nil, err
		}
	}
	return RingMask(c.rows.p, n, w, block, c.semantics), nil
}

// Filter is filter: it keeps the given rows, in that order; repeats are
// allowed. Exact semantics allow no rows, too, and filter what is pending,
// which mlx-lm does not (D-4, M28).
func (c *BatchRotatingKVCache) Filter(rows []int) error {
	const op = "filter"
	if err := checkRows(op, rows, c.rows.BatchSize()); err != nil {
		return err
	}
	if len(rows) == 0 && c.semantics == ring.MLXLM {
		return &ring.RaisesError{Op: op, Why: "no rows are left"}
	}
	if !c.store.none() {
		c.store = c.store.takeRows(rows)
	}
	c.rows.Filter(rows)
	c.Release()
	return nil
}

// Extend is extend: the rows of other join this cache's. Both rings are put
// into temporal order unless they agree in rotation and write position, and
// the shorter one gets left padding. Other is not changed.
//
// mlx-lm keeps what is pending of this cache and drops what is pending of
// other, and does not ask whether the windows are the same (Q16).
func (c *BatchRotatingKVCache) Extend(other *BatchRotatingKVCache) error {
	const op = "extend"
	if c.semantics != other.semantics {
		return otherSemantics(op, other.semantics)
	}
	if c.semantics == ring.MLXLM && c.format != other.format {
		return &ring.QuantError{Op: op, GroupSize: other.format.GroupSize, Bits: other.format.Bits}
	}
	if c.semantics == ring.Exact {
		if c.rows.Pending() || other.rows.Pending() {
			return &ring.PendingPaddingError{Op: op}
		}
		if err := sameRing(op, c, other); err != nil {
			return err
		}
	}
	a, b := c.rows, other.rows
	s := c.store
	if !c.store.none() || !other.store.none() {
		t := other.store
		if a.p.Rotated != b.p.Rotated || a.p.Idx != b.p.Idx {
			s, a = c.temporalOrder()
			t, b = other.temporalOrder()
		}
		var lefts [2]int
		var err error
		if s, a.p.Idx, lefts, err = extend(op, s, t, a.p.Idx, b.p.Idx, a.BatchSize(), b.BatchSize()); err != nil {
			return err
		}
		a.p.LeftPadding = each(a.p.LeftPadding, lefts[0], add)
		b.p.LeftPadding = each(b.p.LeftPadding, lefts[1], add)
		a.p.Total = max(a.p.Total, b.p.Total)
	}
	a.p.LeftPadding = append(append([]int{}, a.p.LeftPadding...), b.p.LeftPadding...)
	a.p.Offset = append(append([]int{}, a.p.Offset...), b.p.Offset...)
	c.store, c.rows = s, a
	c.Release()
	return nil
}

// Extract is extract: row i alone as a serial ring, oldest column first,
// without its left padding; its offset is the row's.
//
// Where left padding has gone below zero in mlx-lm's semantics, columns of
// padding or of rejected tokens stand before the row's own (O-2), and what is
// pending is not heeded (M29). Exact semantics refuse while padding is pending
// and give exactly the tokens that the row holds (E1). An empty cache raises
// in mlx-lm's (D-12) and gives an empty ring in exact semantics (E7).
func (c *BatchRotatingKVCache) Extract(row int) (*RotatingKVCache, error) {
	return c.extract(row, maxInt)
}

// ExtractLimit is [BatchRotatingKVCache.Extract] for the last limit columns at
// most; mlx-lm has no such limit (D-11).
func (c *BatchRotatingKVCache) ExtractLimit(row, limit int) (*RotatingKVCache, error) {
	return c.extract(row, limit)
}

func (c *BatchRotatingKVCache) extract(row, limit int) (*RotatingKVCache, error) {
	const op = "extract"
	if c.semantics == ring.Exact && c.rows.Pending() {
		return nil, &ring.PendingPaddingError{Op: op}
	}
	if err := checkRows(op, []int{row}, c.rows.BatchSize()); err != nil {
		if c.semantics == ring.MLXLM {
			err = &ring.RaisesError{Op: op, Why: err.Error()}
		}
		return nil, err
	}
	if limit < 1 {
		return nil, &ring.RangeError{Op: op, What: "limit", Got: limit, Low: 1, High: maxInt}
	}
	p := c.rows.p
	out := &RotatingKVCache{Step: c.Step, semantics: c.semantics, format: c.format, maxSize: p.MaxSize}
	if c.store.none() {
		if c.semantics == ring.MLXLM {
			return nil, &ring.RaisesError{Op: op, Why: "the cache is empty"}
		}
		out.offset = max(0, p.Offset[row]) // left padding still to come is no token
		return out, nil
	}
	s, to := c.store.takeRows([]int{row}), p.Idx
	if p.Rotated {
		s, to = s.temporal(p.Idx), p.MaxSize
	}
	from := max(0, p.LeftPadding[row])
	if limit < to {
		from = max(from, to-limit)
	}
	out.store = s.cut(from, to)
	out.offset, out.idx = p.Offset[row], out.store.columns()
	return out, nil
}

// MergeRotating is merge: a batch with one row for each ring, right-justified
// under left padding. It takes each ring's last min(offset, W) columns in
// temporal order; the sources stay. mlx-lm forgets the sinks (M35), and raises
// or takes padding for tokens where a ring holds fewer than it claims (O-3);
// exact semantics take what it holds (E10).
func MergeRotating(caches []*RotatingKVCache) (*BatchRotatingKVCache, error) {
	const op = "merge"
	if err := checkSources(len(caches)); err != nil {
		return nil, err
	}
	if err := sameRings(op, caches); err != nil {
		return nil, err
	}
	first := caches[0]
	stores, lengths, offset := make([]storage, len(caches)), make([]int, len(caches)), make([]int, len(caches))
	for i, c := range caches {
		stores[i], lengths[i], offset[i] = c.store, c.Size(), c.offset
		if c.semantics == ring.Exact {
			lengths[i] = min(c.active(), c.maxSize)
		}
		if c.store.none() {
			continue
		}
		ordered, err := c.temporalOrder(op, c.store)
		if err != nil {
			return nil, err
		}
		from := -lengths[i] // Python's [-0:] is everything
		if c.semantics == ring.Exact {
			from = ordered.columns() - lengths[i]
		}
		stores[i] = ordered.cut(from, ordered.columns())
	}
	s, padding, err := merge(op, stores, lengths)
	if err != nil {
		return nil, err
	}
	out := &BatchRotatingKVCache{
		Step: caches[0].Step, semantics: first.semantics, store: s, format: first.format,
		rows: NewRowState(first.semantics, first.maxSize, padding),
	}
	if !s.none() || first.semantics == ring.Exact {
		out.rows.RestoreMerged(s.columns(), offset)
	}
	out.Release()
	return out, nil
}

// sameRings refuses rings that cannot become one: it looks at the columns of
// all (mlx-lm, which broadcasts, later), then all windows, then all formats.
func sameRings(op string, caches []*RotatingKVCache) error {
	for _, c := range caches {
		if c.semantics != caches[0].semantics {
			return otherSemantics(op, c.semantics)
		}
	}
	var held *RotatingKVCache // the first that holds columns
	for _, c := range caches {
		if c.semantics != ring.Exact || c.store.none() {
			continue
		}
		if held == nil {
			held = c
		}
		if err := sameColumns(op, held.store, held.format, c.store, c.format); err != nil {
			return err
		}
	}
	for _, c := range caches {
		if want := caches[0].maxSize; c.maxSize != want {
			return &ring.MaxSizeError{Op: op, Got: c.maxSize, Want: want}
		}
	}
	for _, c := range caches {
		if c.format != caches[0].format {
			return &ring.QuantError{Op: op, GroupSize: c.format.GroupSize, Bits: c.format.Bits}
		}
	}
	return nil
}

// otherSemantics refuses a ring whose semantics are not those of the ring that
// it would become part of.
func otherSemantics(op string, s ring.Semantics) error {
	return &ring.NotSupportedError{Op: op, Kind: "a ring of other semantics than those of the other, " + s.String()}
}

// sameRing refuses two batched rings that cannot become one.
func sameRing(op string, a, b *BatchRotatingKVCache) error {
	if err := sameColumns(op, a.store, a.format, b.store, b.format); err != nil {
		return err
	}
	if a.rows.p.MaxSize != b.rows.p.MaxSize {
		return &ring.MaxSizeError{Op: op, Got: b.rows.p.MaxSize, Want: a.rows.p.MaxSize}
	}
	if a.format != b.format {
		return &ring.QuantError{Op: op, GroupSize: b.format.GroupSize, Bits: b.format.Bits}
	}
	return nil
}

// sameColumns refuses two storages whose heads, widths or data types differ;
// one without columns fits any other.
func sameColumns(op string, a storage, af Format, b storage, bf Format) error {
	if a.none() || b.none() {
		return nil
	}
	for _, pair := range [2][2]ring.Planes{{a.Keys, b.Keys}, {a.Values, b.Values}} {
		got, want := pair[1][len(pair[1])-1], pair[0][len(pair[0])-1]
		if got.Shape[1] != want.Shape[1] || bf.width(pair[1]) != af.width(pair[0]) {
			return &ring.ShapeError{Op: op, What: "the other cache's [h d]",
				Got: []int{got.Shape[1], bf.width(pair[1])}, Want: []int{want.Shape[1], af.width(pair[0])}}
		}
		if got.DType != want.DType {
			return &ring.DTypeError{Op: op, Got: got.DType, Want: want.DType}
		}
	}
	return nil
}

// Size is size: min(total, W).
func (c *BatchRotatingKVCache) Size() int { return c.rows.ValidLength() }

// Empty is empty: whether no column was ever written.
func (c *BatchRotatingKVCache) Empty() bool { return c.store.none() }

// NBytes is nbytes: the bytes of the whole buffer.
func (c *BatchRotatingKVCache) NBytes() (int, error) { return c.store.nbytes(), nil }
