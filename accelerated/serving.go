package accelerated

import "example.com/ringcheck/reference/ring"

// Rollback takes back tokens of the last round, so that row i keeps keep[i] of
// those written since it stood at offset before[i]; the rest becomes left
// padding. One row whose window never filled is trimmed instead, unless
// preserveColumns. Nothing but the round's appends may have happened since. A
// round may be longer than the ring, but what is taken back must still be held:
// no more than the columns in use. It is refused while padding is pending; the
// errors are [ring.RowsError] and [ring.RangeError].
func (c *Cache) Rollback(before, keep []int, preserveColumns bool) error {
	const op = "rollback"
	if err := c.begin(op, writing|batched|settled); err != nil {
		return err
	}
	defer c.end()
	lists := [2]struct {
		what string
		list []int
	}{{"before", before}, {"keep", keep}}
	for _, l := range lists {
		if len(l.list) != c.cur.rows() {
			return &ring.RowsError{Op: op, What: l.what, Got: len(l.list), Want: c.cur.rows()}
		}
	}
	for i, k := range keep {
		high := c.cur.offset[i]
		if before[i] < -maxColumns || before[i] > high {
			return &ring.RangeError{Op: op, What: "before", Got: before[i], Low: -maxColumns, High: high}
		}
		written := high - before[i]
		if least := max(0, written-c.cur.active()); k < least || k > written {
			return &ring.RangeError{Op: op, What: "keep", Got: k, Low: least, High: written}
		}
	}
	if c.cur.length == 0 {
		return nil
	}
	c.next.copyFrom(&c.cur)
	c.edit = c.next.rollback(before, keep, preserveColumns)
	return c.rearrange(op)
}

// ValidOffset is the position after row i's last real token, trailing padding
// not counted.
func (c *Cache) ValidOffset(row int) (int, error) {
	const op = "valid_offset"
	if err := c.begin(op, batched); err != nil {
		return 0, err
	}
	defer c.end()
	if err := c.checkRows(op, row); err != nil {
		return 0, err
	}
	return c.cur.validOffset(row), nil
}

// RowPositions appends to dst the rows' offsets as a rotary embedding reads
// them: they stay what they were while appends advance the cache, until
// Release. All other operations that move offsets bring them up to date.
func (c *Cache) RowPositions(dst []int) []int {
	if c == nil {
		return dst
	}
	c.wait()
	defer c.end()
	return append(dst, c.rope...)
}

// Release brings RowPositions up to date, at the end of a step.
func (c *Cache) Release() error {
	if err := c.begin("release", batched); err != nil {
		return err
	}
	defer c.end()
	c.release()
	return nil
}

// TemporalView is the newest min(A, MaxSize) columns of all rows, oldest first,
// A being the columns in use. A ring that has wrapped is copied for it, once.
// It is valid until the next operation. An empty ring has none
// ([ring.EmptyError]).
func (c *Cache) TemporalView() (KV, error) {
	const op = "temporal_view"
	if err := c.begin(op, 0); err != nil {
		return KV{}, err
	}
	defer c.end()
	a := c.cur.active()
	if a == 0 {
		return KV{}, &ring.EmptyError{Op: op}
	}
	rows := c.cur.rows()
	e := c.cur.ordered().newest(c.cfg.MaxSize)
	if !e.wraps() || rows == 0 {
		return c.view(e.first(0), e.kept), nil
	}
	temp, err := c.newStore(op, rows, e.kept)
	if err != nil {
		return KV{}, err
	}
	c.plan.runs = c.plan.runs[:0]
	for row := range rows {
		c.plan.place(0, row, row, c.base, &e)
	}
	c.work = Work{Store: &temp}
	c.setMove(&c.store)
	if err := c.dev.Run(&c.work); err != nil {
		c.free(temp)
		return KV{}, err
	}
	c.temp = temp.Buffer
	return c.viewOf(&temp, rows, 0, e.kept), nil
}

// ProjectedBytes is what a row of tokens tokens takes: the bytes of one column
// of one row times min(tokens, MaxSize); 0 while nothing is held.
func (c *Cache) ProjectedBytes(tokens int) (int, error) {
	const op = "projected_bytes"
	if err := c.begin(op, batched); err != nil {
		return 0, err
	}
	defer c.end()
	if tokens < 0 {
		return 0, &ring.RangeError{Op: op, What: "tokens", Got: tokens, Low: 0, High: maxColumns}
	}
	if c.cur.length == 0 || c.cur.rows() == 0 {
		return 0, nil
	}
	return c.columnBytes() * min(tokens, c.cfg.MaxSize), nil
}

// columnBytes is the bytes of one column of one row, all heads and planes.
func (c *Cache) columnBytes() int {
	n := 0
	for _, w := range c.widths {
		n += w
	}
	return n * c.cfg.KVHeads
}

// Snapshot is everything that a ring holds, columns and bookkeeping: a copy on
// the device that no later operation changes. It belongs to one goroutine at a
// time, and must be closed. A nil one and the zero Snapshot are closed.
type Snapshot struct {
	cache *Cache // a cache that nobody else has
}

// held is the snapshot's cache, nil where there is none.
func (s *Snapshot) held() *Cache {
	if s == nil {
		return nil
	}
	return s.cache
}

// Snapshot copies the ring.
func (c *Cache) Snapshot() (*Snapshot, error) {
	const op = "snapshot"
	if err := c.begin(op, 0); err != nil {
		return nil, err
	}
	defer c.end()
	out, err := c.clone(op)
	if err != nil {
		return nil, err
	}
	return &Snapshot{out}, nil
}

// clone is a cache with the same columns, spare ones included, and position.
func (c *Cache) clone(op string) (*Cache, error) {
	var p position
	p.copyFrom(&c.cur)
	e := c.cur.unchanged()
	c.plan.runs = c.plan.runs[:0]
	for row := range c.cur.rows() {
		c.plan.place(0, row, row, c.base, &e)
	}
	return c.derive(op, p, &c.store)
}

// Close gives the snapshot's memory back. It is idempotent.
func (s *Snapshot) Close() error { return s.held().Close() }

// Position is the bookkeeping that the snapshot holds.
func (s *Snapshot) Position() ring.Position { return s.held().Position() }

// Serial reports whether the snapshot is of a serial ring.
func (s *Snapshot) Serial() bool {
	return ask(s.held(), func(c *Cache) bool { return c.cur.serial })
}

// Adopt makes a new cache of the snapshot, which stays what it is.
func (s *Snapshot) Adopt() (*Cache, error) {
	const op = "adopt"
	c := s.held()
	if err := c.begin(op, 0); err != nil {
		return nil, err
	}
	defer c.end()
	return c.clone(op)
}

// Restore makes the ring what it was when the snapshot was taken. The snapshot
// stays what it is, and its sinks are the ring's. One of another kind
// ([ring.NotSupportedError]), number of rows ([ring.RowsError]) or
// configuration otherwise is refused.
func (c *Cache) Restore(s *Snapshot) error {
	const op = "restore"
	if err := c.begin(op, writing); err != nil {
		return err
	}
	defer c.end()
	if err := s.held().begin(op, 0); err != nil {
		return err
	}
	defer s.cache.end()
	if c.cur.serial != s.cache.cur.serial {
		return &ring.NotSupportedError{Op: op, Kind: "a snapshot of " + s.cache.kind()}
	}
	if got := s.cache.cur.rows(); got != c.cur.rows() {
		return &ring.RowsError{Op: op, What: "the snapshot", Got: got, Want: c.cur.rows()}
	}
	if err := c.checkAlike(op, s.cache); err != nil {
		return err
	}
	c.next.copyFrom(&s.cache.cur)
	c.plan = plan{runs: c.plan.runs[:0], capacity: c.store.Columns}
	c.work = Work{Store: &c.store}
	if c.store.Columns < c.next.length {
		c.plan.fresh, c.plan.capacity = true, c.next.length
		var err error
		if c.spare, err = c.newStore(op, c.next.rows(), c.next.length); err != nil {
			return err
		}
		c.work.Store = &c.spare
	}
	e := c.next.unchanged()
	for row := range c.next.rows() {
		c.plan.place(0, row, row, s.cache.base, &e)
	}
	c.setMove(&s.cache.store)
	if err := c.run(); err != nil {
		return err
	}
	c.cfg.Keep = s.cache.cfg.Keep
	c.release()
	return nil
}

// Download copies the whole buffer, spare columns included, to host memory in
// the layout of the reference: planes of keys and of values, none while
// nothing is held.
func (c *Cache) Download() (ring.KV, error) {
	const op = "download"
	if err := c.begin(op, 0); err != nil {
		return ring.KV{}, err
	}
	defer c.end()
	if c.cur.length == 0 {
		return ring.KV{}, nil
	}
	kv := c.view(0, c.cur.length)
	return kv.Download(c.dev)
}

// Download copies the columns to host memory.
func (kv *KV) Download(dev Device) (ring.KV, error) {
	var out ring.KV
	for i, side := range [2]*Side{&kv.Keys, &kv.Values} {
		planes := [2]*ring.Planes{&out.Keys, &out.Values}[i]
		for _, v := range side {
			if v.DType == 0 {
				continue
			}
			a := ring.Array{DType: v.DType, Shape: v.Shape, Data: make([]byte, v.Bytes())}
			if len(a.Data) > 0 {
				if err := dev.Download(a.Data, v); err != nil {
					return ring.KV{}, err
				}
			}
			*planes = append(*planes, a)
		}
	}
	return out, nil
}

// Adopt makes a cache of columns in host memory and their bookkeeping, as
// [Cache.Download] and [Cache.Position] give them: of a serial ring or of a
// batch. It is refused where they do not belong together ([ring.ShapeError],
// [ring.DTypeError], [ring.RangeError], [ring.RowsError]), and for another
// window than the configuration's ([ring.MaxSizeError]).
func Adopt(dev Device, cfg Config, serial bool, p ring.Position, kv ring.KV) (*Cache, error) {
	const op = "adopt"
	c, err := newCache(dev, cfg, serial)
	if err != nil {
		return nil, err
	}
	length := 0
	if len(kv.Keys) > 0 {
		length = kv.Keys[0].Columns()
	}
	q, err := c.adoptPosition(op, serial, p, length)
	if err != nil {
		return nil, err
	}
	planes, err := c.adoptPlanes(op, q.rows(), length, kv)
	if err != nil {
		return nil, err
	}
	if c.store, err = c.newStore(op, q.rows(), length); err != nil {
		return nil, err
	}
	for i, data := range planes {
		if c.store.Buffer != nil && len(data) > 0 {
			if err := dev.Upload(c.store.Buffer, c.store.Planes[i].Offset, data); err != nil {
				c.free(c.store)
				return nil, err
			}
		}
	}
	c.setPosition(q)
	return c, nil
}

// adoptPosition checks bookkeeping that comes from outside: what holds for
// every ring that operations have made (I-1, I-2) must hold for it.
func (c *Cache) adoptPosition(op string, serial bool, p ring.Position, length int) (position, error) {
	rows := len(p.Offset)
	if p.MaxSize != c.cfg.MaxSize {
		return position{}, &ring.MaxSizeError{Op: op, Got: p.MaxSize, Want: c.cfg.MaxSize}
	}
	if serial && rows != 1 {
		return position{}, &ring.RowsError{Op: op, What: "offset", Got: rows, Want: 1}
	}
	leastLeft := -maxColumns
	if c.cfg.Semantics == ring.Exact {
		leastLeft = 0 // E1
	}
	for _, l := range [4]struct {
		what string
		list []int
		low  int
		rows int
	}{
		{"offset", p.Offset, -maxColumns, rows},
		{"left padding", p.LeftPadding, leastLeft, rows},
		{"ends", p.Ends, -maxColumns, rows},
		{"total", []int{p.Total}, 0, 1},
	} {
		if len(l.list) != l.rows && (l.list != nil || l.what != "ends") {
			return position{}, &ring.RowsError{Op: op, What: l.what, Got: len(l.list), Want: l.rows}
		}
		for _, n := range l.list {
			if n < l.low || n > maxColumns {
				return position{}, &ring.RangeError{Op: op, What: l.what, Got: n, Low: l.low, High: maxColumns}
			}
		}
	}
	if length > maxColumns {
		return position{}, &ring.RangeError{Op: op, What: "columns", Got: length, Low: 0, High: maxColumns}
	}
	q := newPosition(c.rules(serial), make([]int, rows))
	q.idx, q.total, q.length, q.rotated = p.Idx, p.Total, length, p.Rotated
	q.pending = p.Ends != nil
	copy(q.offset, p.Offset)
	copy(q.left, p.LeftPadding)
	copy(q.ends, p.Ends)
	low, high := 0, length
	if q.rotated {
		low, high = 1, min(length, c.cfg.MaxSize)
	} else if length > c.cfg.MaxSize {
		low = length
	}
	if q.idx < low || q.idx > high || q.rotated && length != c.cfg.MaxSize {
		return position{}, &ring.RangeError{Op: op, What: "idx", Got: q.idx, Low: low, High: high}
	}
	if !serial && (q.total < q.idx || q.total < c.cfg.MaxSize && (q.rotated || q.total != q.idx)) ||
		q.active() < min(q.total, c.cfg.MaxSize) && !serial {
		return position{}, &ring.RangeError{Op: op, What: "total", Got: q.total, Low: q.idx, High: maxColumns}
	}
	if serial && (q.total != q.offset[0] || q.left[0] != 0 || q.pending || q.total < q.idx) {
		return position{}, &ring.RangeError{Op: op, What: "offset of a serial ring", Got: q.offset[0], Low: q.idx, High: maxColumns}
	}
	return q, nil
}

// adoptPlanes checks columns that come from outside, and returns the bytes of
// each plane.
func (c *Cache) adoptPlanes(op string, rows, length int, kv ring.KV) (planes [Planes][]byte, err error) {
	for side, given := range [2]ring.Planes{kv.Keys, kv.Values} {
		want := 0
		for _, w := range c.widths[3*side:][:3] {
			if w > 0 && length > 0 {
				want++
			}
		}
		if len(given) != want {
			return planes, &ring.ShapeError{Op: op, What: "planes of a side", Got: []int{len(given)}, Want: []int{want}}
		}
		for i, a := range given {
			t := c.cfg.DType
			if i == 0 && c.cfg.Quant.Bits > 0 {
				t = ring.Uint32
			}
			shape := [4]int{rows, c.cfg.KVHeads, length, c.widths[3*side+i] / t.Size()}
			v := HostView(a)
			if err := c.checkView(op, "planes", &v, shape, t); err != nil {
				return planes, err
			}
			planes[3*side+i] = a.Data[:v.Bytes()]
		}
	}
	return planes, nil
}

// ToQuantized makes a quantized ring of a plain serial one: the one that the
// same updates would have made. It is refused in mlxlm, which has not
// implemented it, and for what is quantized or a batch
// ([ring.NotSupportedError]); the other error is [ring.QuantError].
func (c *Cache) ToQuantized(q Quant) (*Cache, error) {
	const op = "to_quantized"
	if err := c.begin(op, 0); err != nil {
		return nil, err
	}
	defer c.end()
	if !c.cur.serial || c.cfg.Semantics == ring.MLXLM || c.cfg.Quant.Bits > 0 {
		return nil, &ring.NotSupportedError{Op: op, Kind: c.kind()}
	}
	cfg := c.cfg
	cfg.Quant = q
	if q == (Quant{}) {
		return nil, &ring.QuantError{Op: op, Dim: cfg.KeyDim}
	}
	out, err := newCache(c.dev, cfg, true)
	if err != nil {
		return nil, err
	}
	var p position
	p.copyFrom(&c.cur)
	if out.store, err = out.newStore(op, 1, p.length); err != nil {
		return nil, err
	}
	out.setPosition(p)
	a := p.active()
	if out.store.Buffer == nil {
		return out, nil
	}
	c.plan.runs = c.plan.runs[:0]
	c.plan.zero(0, a, p.length-a)
	c.work = Work{Store: &out.store}
	c.setMove()
	if a > 0 {
		kv := c.view(0, a)
		c.write = Write{Keys: kv.Keys[0], Values: kv.Values[0]}
		c.work.Write = &c.write
	}
	if err := c.dev.Run(&c.work); err != nil {
		out.free(out.store)
		return nil, err
	}
	return out, nil
}
