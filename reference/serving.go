package reference

import (
	"example.com/ringcheck/reference/ring"
)

// This file is what a serving engine needs of a ring and mlx-lm does not have.

// Read is what one write of a ring may attend to: the columns that it
// returned, and the mask that was made before it.
type Read struct {
	ring.KV
	Mask   *ring.Mask
	format Format
}

// Attend lets queries [b, hq, n, d] attend over the read, grouped-query heads
// included, and returns [b, hq, n, d'] in float32. It may be called any number
// of times. A query whose mask row is all false gets zeros.
func (r Read) Attend(queries ring.Array, scale float64) ([]float32, error) {
	return Attend(queries, r.KV, r.Mask, scale, r.format)
}

// AppendDecode writes one column a row in place, under the decode mask. It is
// refused while padding is pending.
func (c *BatchRotatingKVCache) AppendDecode(keys, values ring.Array) (Read, error) {
	const op = "append_decode"
	if c.rows.Pending() {
		return Read{}, &ring.PendingPaddingError{Op: op}
	}
	columns, err := c.encode(op, keys, values)
	if err != nil {
		return Read{}, err
	}
	if keys.Columns() != 1 {
		return Read{}, &ring.ShapeError{Op: op, What: "columns", Got: []int{keys.Columns()}, Want: []int{1}}
	}
	m, err := c.mask(1, nil, false)
	if err != nil {
		return Read{}, err
	}
	kv, err := c.updateInPlace(op, columns)
	return Read{kv, m, c.format}, err
}

// AppendWindow appends a block of one or more columns, also while padding is
// pending, under the block mask.
func (c *BatchRotatingKVCache) AppendWindow(keys, values ring.Array) (Read, error) {
	const op = "append_window"
	columns, err := c.encode(op, keys, values)
	if err != nil {
		return Read{}, err
	}
	m, err := c.mask(keys.Columns(), nil, true)
	if err != nil {
		return Read{}, err
	}
	kv, err := c.updateConcat(op, columns)
	return Read{kv, m, c.format}, err
}

// AppendWindowUnder is AppendWindow under the caller's mask [B, 1, n, S], with
// S the number of columns that the write returns. causal says that the caller
// knows it to be plain causal, which lets an accelerated cache skip it; here
// it changes nothing.
func (c *BatchRotatingKVCache) AppendWindowUnder(keys, values ring.Array, mask *ring.Mask, causal bool) (Read, error) {
	const op = "append_window_under"
	columns, err := c.encode(op, keys, values)
	if err != nil {
		return Read{}, err
	}
	if mask == nil {
		return Read{}, &ring.ShapeError{Op: op, What: "mask", Want: []int{c.rows.BatchSize(), 1, keys.Columns()}}
	}
	s := min(c.rows.ActiveLength(), c.rows.p.MaxSize-1) + keys.Columns()
	if mask.B != c.rows.BatchSize() || mask.N != keys.Columns() || mask.S != s || len(mask.Data) != mask.B*mask.N*mask.S {
		return Read{}, &ring.ShapeError{Op: op, What: "mask [b n s]", Got: []int{mask.B, mask.N, mask.S}, Want: []int{c.rows.BatchSize(), keys.Columns(), s}}
	}
	kv, err := c.updateConcat(op, columns)
	m := *mask
	m.Data = append([]bool(nil), m.Data...)
	return Read{kv, &m, c.format}, err
}

// Rollback takes back columns written since every row i stood at before[i],
// keeping keep[i] of each row's: see [PlanRollback]. It is refused while
// padding is pending.
func (c *BatchRotatingKVCache) Rollback(before, keep []int, preserveColumns bool) error {
	const op = "rollback"
	if c.rows.Pending() {
		return &ring.PendingPaddingError{Op: op}
	}
	for _, l := range [2]struct {
		what string
		list []int
	}{{"before", before}, {"keep", keep}} {
		if len(l.list) != c.rows.BatchSize() {
			return &ring.RowsError{Op: op, What: l.what, Got: len(l.list), Want: c.rows.BatchSize()}
		}
	}
	for i, k := range keep {
		written := c.rows.p.Offset[i] - before[i]
		// What is taken back must still be held (I-4).
		if least := max(0, written-activeLength(c.rows.p)); k < least || k > written {
			return &ring.RangeError{Op: op, What: "keep", Got: k, Low: least, High: written}
		}
	}
	if c.store.none() {
		return nil
	}
	plan := PlanRollback(c.rows.p, before, keep, preserveColumns)
	if plan.Shifts == nil {
		c.rows.Trim(plan.Trim)
		c.Release()
		return nil
	}
	s, err := c.store.rollRows(op, plan.Shifts)
	if err != nil {
		return err
	}
	c.store = s
	c.rows.p = plan.Position
	c.Release()
	return nil
}

// RowPositions are the rows' offsets as a rotary embedding reads them: they
// stay what they were while updates advance the cache, until Release. All
// other operations that move offsets bring them up to date.
func (c *BatchRotatingKVCache) RowPositions() []int { return append([]int{}, c.positions...) }

// Release brings RowPositions up to date.
func (c *BatchRotatingKVCache) Release() { c.positions = append([]int{}, c.rows.p.Offset...) }

// ValidOffset is the position after row i's last real token, trailing padding
// not counted.
func (c *BatchRotatingKVCache) ValidOffset(row int) (int, error) {
	if err := checkRows("valid_offset", []int{row}, c.rows.BatchSize()); err != nil {
		return 0, err
	}
	return c.rows.ValidOffset(row), nil
}

// TemporalView returns the newest min(A, W) columns of all rows, oldest first.
func (c *BatchRotatingKVCache) TemporalView() (ring.KV, error) {
	return temporalView(c.store, c.rows.p)
}

func temporalView(s storage, p ring.Position) (ring.KV, error) {
	if s.none() || activeLength(p) == 0 {
		return ring.KV{}, &ring.EmptyError{Op: "temporal_view"}
	}
	a := activeLength(p)
	if p.Rotated {
		s = s.temporal(p.Idx)
	}
	return s.cut(max(0, a-p.MaxSize), a).KV, nil
}

// ProjectedBytes is what one row of tokens tokens takes: the bytes of one
// column of one row times min(tokens, W); 0 while nothing is held. A negative
// number is refused ([ring.RangeError]).
func (c *BatchRotatingKVCache) ProjectedBytes(tokens int) (int, error) {
	if tokens < 0 {
		return 0, &ring.RangeError{Op: "projected_bytes", What: "tokens", Got: tokens, Low: 0, High: maxInt}
	}
	columns := c.store.rows() * c.store.columns()
	if columns == 0 {
		return 0, nil
	}
	return c.store.nbytes() / columns * min(tokens, c.rows.p.MaxSize), nil
}

// Attend lets the queries of the last n columns, [b, hq, n, d], attend over
// the ring as it stands: each sees its own column and the W-1 before it, less
// padding. It returns [b, hq, n, d'] in float32, zeros for a query that sees
// nothing.
func (c *BatchRotatingKVCache) Attend(queries ring.Array, scale float64) ([]float32, error) {
	return attendRing(c.store, c.rows.p, c.format, queries, scale)
}

func attendRing(s storage, p ring.Position, f Format, queries ring.Array, scale float64) ([]float32, error) {
	const op = "attend"
	a, n := activeLength(p), queries.Shape[2]
	if s.none() || a == 0 {
		return nil, &ring.EmptyError{Op: op}
	}
	if n < 1 || n > a {
		return nil, &ring.RangeError{Op: op, What: "queries a row", Got: n, Low: 1, High: a}
	}
	if p.Rotated {
		s = s.temporal(p.Idx)
	}
	m := CausalMask(n, a-n, &p.MaxSize, p.LeftPadding)
	return Attend(queries, s.cut(0, a).KV, m, scale, f)
}

// TemporalView returns the newest min(A, W) columns, oldest first.
func (c *RotatingKVCache) TemporalView() (ring.KV, error) {
	return temporalView(c.store, c.position())
}

// Attend lets the queries of the last n columns, [1, hq, n, d], attend over
// the ring as it stands; see [BatchRotatingKVCache.Attend].
func (c *RotatingKVCache) Attend(queries ring.Array, scale float64) ([]float32, error) {
	return attendRing(c.store, c.position(), c.format, queries, scale)
}

// Snapshot is everything that a ring holds, columns and bookkeeping: a deep
// copy that no later operation changes.
type Snapshot struct {
	semantics ring.Semantics
	serial    bool
	step      int
	keep      int
	format    Format
	store     storage
	position  ring.Position
}

// NewSnapshot makes a snapshot of bookkeeping and columns that an
// implementation of another kind holds, to be adopted or saved. The whole
// buffer counts, spare columns included. What could not come from a ring is
// refused with a [StateError].
func NewSnapshot(semantics ring.Semantics, serial bool, keep int, f Format, p ring.Position, columns ring.KV) (*Snapshot, error) {
	s := storage{columns}
	class := "BatchRotatingKVCache"
	if serial {
		class = "RotatingKVCache"
	}
	c, err := FromState("ringcheck."+class, ringState(semantics, keep, f, s, p))
	if err != nil {
		return nil, err
	}
	return c.(interface{ Snapshot() *Snapshot }).Snapshot(), nil
}

// Serial reports whether the snapshot is of a serial ring.
func (s *Snapshot) Serial() bool { return s.serial }

// Snapshot copies the ring.
func (c *BatchRotatingKVCache) Snapshot() *Snapshot {
	return &Snapshot{semantics: c.semantics, step: c.Step, format: c.format, store: c.store.clone(), position: c.rows.Position()}
}

// Restore makes the ring what it was when the snapshot was taken. It is
// refused for a snapshot of another window, number of rows or format.
func (c *BatchRotatingKVCache) Restore(s *Snapshot) error {
	const op = "restore"
	if err := s.fits(op, false, c.semantics, c.format, c.rows.BatchSize(), c.rows.p.MaxSize); err != nil {
		return err
	}
	c.store, c.rows.p = s.store.clone(), s.position.Clone()
	c.loaded = false
	c.Release()
	return nil
}

// AdoptBatchRotating makes a new ring of a snapshot of a batched one, which
// stays what it is.
func AdoptBatchRotating(s *Snapshot) (*BatchRotatingKVCache, error) {
	if s.serial {
		return nil, &ring.NotSupportedError{Op: "adopt", Kind: "a serial snapshot"}
	}
	c := &BatchRotatingKVCache{Step: s.step, semantics: s.semantics, format: s.format, store: s.store.clone()}
	c.rows = RowState{s.semantics, s.position.Clone()}
	c.Release()
	return c, nil
}

// fits refuses a snapshot that is not of such a cache.
func (s *Snapshot) fits(op string, serial bool, semantics ring.Semantics, f Format, rows, maxSize int) error {
	switch {
	case s.semantics != semantics:
		return otherSemantics(op, s.semantics)
	case s.serial != serial:
		return &ring.NotSupportedError{Op: op, Kind: "a snapshot of the other kind of ring"}
	case len(s.position.Offset) != rows:
		return &ring.RowsError{Op: op, What: "the snapshot", Got: len(s.position.Offset), Want: rows}
	case s.position.MaxSize != maxSize:
		return &ring.MaxSizeError{Op: op, Got: s.position.MaxSize, Want: maxSize}
	case s.format != f:
		return &ring.QuantError{Op: op, GroupSize: s.format.GroupSize, Bits: s.format.Bits}
	}
	return nil
}

// Snapshot copies the ring.
func (c *RotatingKVCache) Snapshot() *Snapshot {
	return &Snapshot{semantics: c.semantics, serial: true, step: c.Step, keep: c.keep, format: c.format, store: c.store.clone(), position: c.position()}
}

// Restore makes the ring what it was when the snapshot was taken; see
// [BatchRotatingKVCache.Restore].
func (c *RotatingKVCache) Restore(s *Snapshot) error {
	if err := s.fits("restore", true, c.semantics, c.format, 1, c.maxSize); err != nil {
		return err
	}
	*c = *s.rotating()
	return nil
}

// AdoptRotating makes a new ring of a snapshot of a serial one, which stays
// what it is.
func AdoptRotating(s *Snapshot) (*RotatingKVCache, error) {
	if !s.serial {
		return nil, &ring.NotSupportedError{Op: "adopt", Kind: "a batched snapshot"}
	}
	return s.rotating(), nil
}

func (s *Snapshot) rotating() *RotatingKVCache {
	return &RotatingKVCache{
		Step: s.step, semantics: s.semantics, store: s.store.clone(), format: s.format, keep: s.keep, maxSize: s.position.MaxSize,
		offset: s.position.Offset[0], idx: s.position.Idx, rotated: s.position.Rotated,
	}
}

// MergeRows makes a batch of all rows of its sources, in order: batched rings
// and serial ones of one window, format and shape, in exact semantics. Each
// row brings its last min(held, W) tokens; the sources stay.
//
// A source that is wider than its window right after a block brings its newest
// tokens: the padding that its view has left behind is not taken off a second
// time (S-1).
func MergeRows(sources []Cache) (*BatchRotatingKVCache, error) {
	const op = "merge"
	var rows []*RotatingKVCache
	var rings []*RotatingKVCache // the rows, and what a batch without rows must have in common with them
	for _, source := range sources {
		switch c := source.(type) {
		case *RotatingKVCache:
			rows, rings = append(rows, c), append(rings, c)
		case *BatchRotatingKVCache:
			if c.rows.Pending() {
				return nil, &ring.PendingPaddingError{Op: op}
			}
			if c.rows.BatchSize() == 0 {
				rings = append(rings, &RotatingKVCache{semantics: c.semantics, store: c.store, format: c.format, maxSize: c.rows.p.MaxSize})
			}
			for i := range c.rows.BatchSize() {
				row, err := c.Extract(i)
				if err != nil {
					return nil, err
				}
				rows, rings = append(rows, row), append(rings, row)
			}
		default:
			return nil, &ring.NotSupportedError{Op: op, Kind: "a source that is no ring"}
		}
	}
	if err := sameRings(op, rings); err != nil {
		return nil, err
	}
	return MergeRotating(rows)
}
