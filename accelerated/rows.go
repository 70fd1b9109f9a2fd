package accelerated

import "example.com/ringcheck/reference/ring"

// Prepare announces padding of the next blocks. Left padding is refused on a
// ring that holds columns ([ring.LeftPaddingError]), and any announcement
// while right padding is pending ([ring.PendingPaddingError]). In exact
// semantics it gives rows to a batch without any. Its other errors are
// [ring.RowsError], [ring.ShapeError] where lengths and right padding do not
// add up to one width, and [ring.RangeError].
func (c *Cache) Prepare(pad Padding) error {
	const op = "prepare"
	if err := c.begin(op, writing|batched); err != nil {
		return err
	}
	defer c.end()
	if c.cfg.Semantics == ring.MLXLM && pad.LeftPadding != nil && c.cur.length > 0 {
		return &ring.LeftPaddingError{Op: op} // mlx-lm asks this before anything else
	}
	if c.cur.pending {
		return &ring.PendingPaddingError{Op: op}
	}
	if err := c.checkPadding(op, &pad); err != nil {
		return err
	}
	c.cur.prepare(pad)
	c.resized()
	return nil
}

// Finalize rolls each row so that its trailing padding comes to its front;
// nothing is pending any more. It does nothing where nothing is. In mlxlm it
// is refused where no column was written ([ring.RaisesError]).
func (c *Cache) Finalize() error {
	const op = "finalize"
	if err := c.begin(op, writing|batched); err != nil {
		return err
	}
	defer c.end()
	if !c.cur.pending {
		return nil
	}
	if c.cur.length == 0 && c.cfg.Semantics == ring.MLXLM {
		return &ring.RaisesError{Op: op, Why: "the cache is empty"}
	}
	c.next.copyFrom(&c.cur)
	c.edit = c.next.finalize()
	return c.rearrange(op)
}

// rearrange does c.edit, which makes the position c.next.
func (c *Cache) rearrange(op string) error {
	if c.edit.roll == nil || c.cur.length == 0 || c.cur.rows() == 0 {
		c.cur, c.next = c.next, c.cur
		c.release()
		return nil
	}
	if err := c.arrange(op); err != nil {
		return err
	}
	if err := c.run(); err != nil {
		return err
	}
	c.release()
	return nil
}

// resized follows a change of the number of rows.
func (c *Cache) resized() {
	if len(c.first) != c.cur.rows() {
		c.first = make([]int32, c.cur.rows())
	}
	c.release()
}

// Filter keeps the given rows, in that order; repeats are allowed, and in exact
// semantics no rows at all. In mlxlm it is refused while padding is pending.
// Rows that stay where they are do not move, if most rows stay.
func (c *Cache) Filter(rows []int) error {
	const op = "filter"
	if err := c.begin(op, writing|batched); err != nil {
		return err
	}
	defer c.end()
	if c.cur.pending && c.cfg.Semantics == ring.MLXLM {
		return &ring.PendingPaddingError{Op: op}
	}
	if err := c.checkRows(op, rows...); err != nil {
		return err
	}
	if len(rows) == 0 && c.cfg.Semantics == ring.MLXLM {
		return &ring.RaisesError{Op: op, Why: "no rows are left"}
	}
	c.next.filter(&c.cur, rows)
	c.work = Work{Store: &c.store}
	c.plan = plan{runs: c.plan.runs[:0], base: c.base, capacity: c.store.Columns}
	e := c.cur.unchanged()
	if c.store.Buffer != nil && !c.staysInPlace(rows) {
		c.plan.fresh, c.plan.base = true, 0
		var err error
		if c.spare, err = c.newStore(op, len(rows), c.store.Columns); err != nil {
			return err
		}
		c.work.Store = &c.spare
	}
	for i, r := range rows {
		switch {
		case c.plan.fresh:
			c.plan.place(0, r, i, c.base, &e)
		case i != r:
			c.plan.copy(0, r, i, c.base, e.cycle, 0, e.kept, c.base)
		}
	}
	c.setMove(&c.store)
	if err := c.run(); err != nil {
		return err
	}
	c.resized()
	return nil
}

// staysInPlace reports whether the rows can close ranks where they are: in
// order, and enough of them that the room behind is not wasted.
func (c *Cache) staysInPlace(rows []int) bool {
	if 4*len(rows) < 3*c.store.Rows {
		return false
	}
	for i := 1; i < len(rows); i++ {
		if rows[i] <= rows[i-1] {
			return false
		}
	}
	return true
}

// Extend joins the rows of other to this cache's, the shorter side padded on
// the left. Other stays as it is. Both are refused while padding is pending;
// windows, heads, widths, data types and quantization must be the same
// ([ring.MaxSizeError], [ring.ShapeError], [ring.DTypeError],
// [ring.QuantError]).
func (c *Cache) Extend(other *Cache) error {
	const op = "extend"
	if err := c.begin(op, writing|batched|settled); err != nil {
		return err
	}
	defer c.end()
	if other != c {
		if err := other.begin(op, batched|settled); err != nil {
			return err
		}
		defer other.end()
	}
	if err := c.checkAlike(op, other); err != nil {
		return err
	}
	j := c.cur.extend(&other.cur)
	rows := c.cur.rows()
	c.plan = plan{runs: c.plan.runs[:0], fresh: true, capacity: j.length}
	var err error
	if c.spare, err = c.newStore(op, j.rows(), j.length); err != nil {
		return err
	}
	for i := range rows {
		c.plan.place(0, i, i, c.base, &j.edits[0])
	}
	for i := range other.cur.rows() {
		c.plan.place(1, i, rows+i, other.base, &j.edits[1])
	}
	c.work = Work{Store: &c.spare}
	c.setMove(&c.store, &other.store)
	c.next = j.position
	if err := c.run(); err != nil {
		return err
	}
	c.resized()
	return nil
}

// Extract makes a serial ring of row i alone, oldest column first and without
// its left padding. Its offset is the row's. In mlxlm, where left padding may
// have gone below zero, columns of padding can stand before the row's own; an
// empty cache is refused ([ring.RaisesError]), where exact semantics give an
// empty ring. The other errors are [ring.RangeError] and
// [ring.PendingPaddingError].
func (c *Cache) Extract(row int) (*Cache, error) { return c.extract(row, maxColumns) }

// ExtractLimit is [Cache.Extract] for the last limit columns at most, at least
// 1 ([ring.RangeError]).
func (c *Cache) ExtractLimit(row, limit int) (*Cache, error) { return c.extract(row, limit) }

func (c *Cache) extract(row, limit int) (*Cache, error) {
	const op = "extract"
	if err := c.begin(op, batched|settled); err != nil {
		return nil, err
	}
	defer c.end()
	if err := c.checkRows(op, row); err != nil {
		return nil, err
	}
	if limit < 1 {
		return nil, &ring.RangeError{Op: op, What: "limit", Got: limit, Low: 1, High: maxColumns}
	}
	if c.cur.length == 0 && c.cfg.Semantics == ring.MLXLM {
		return nil, &ring.RaisesError{Op: op, Why: "the cache is empty"}
	}
	p, e := c.cur.extract(row, limit)
	c.plan.runs = c.plan.runs[:0]
	c.plan.place(0, row, 0, c.base, &e)
	return c.derive(op, p, &c.store)
}

// derive makes a new cache at position p, whose columns the runs of c.plan
// take from the sources.
func (c *Cache) derive(op string, p position, sources ...*Store) (*Cache, error) {
	cfg := c.cfg
	cfg.Keep = p.keep
	out, err := newCache(c.dev, cfg, p.serial)
	if err != nil {
		return nil, err
	}
	if out.store, err = out.newStore(op, p.rows(), p.length); err != nil {
		return nil, err
	}
	out.setPosition(p)
	if len(c.plan.runs) > 0 {
		c.work = Work{Store: &out.store}
		c.setMove(sources...)
		if err := c.dev.Run(&c.work); err != nil {
			out.free(out.store)
			return nil, err
		}
	}
	return out, nil
}

// Merge makes a batch of all rows of its sources, in order: serial rings and
// batches of one configuration, right-justified under left padding. Each row
// brings its last MaxSize tokens, or all that it holds. The sources stay. They
// are refused while padding is pending, and where configurations differ (see
// Extend). In mlxlm a batch without columns and a ring that holds fewer
// tokens than its offset says are refused ([ring.RaisesError]).
func Merge(sources ...*Cache) (*Cache, error) {
	const op = "merge"
	if len(sources) == 0 {
		return nil, &ring.RowsError{Op: op, What: "the list of caches", Got: 0, Want: 1}
	}
	for i, s := range sources {
		if first(sources, s) < i {
			continue // it is named twice
		}
		if err := s.begin(op, settled); err != nil {
			return nil, err
		}
		defer s.end()
	}
	c := sources[0]
	if err := c.checkAlike(op, sources...); err != nil {
		return nil, err
	}
	var rows []mergeRow
	for i, s := range sources {
		r, err := s.mergeRows(op, i)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r...)
	}
	j := merge(c.rules(false), rows)
	c.plan.runs = c.plan.runs[:0]
	stores := make([]*Store, len(sources))
	for i, s := range sources {
		stores[i] = &s.store
	}
	for i, r := range rows {
		c.plan.place(r.source, r.row, i, sources[r.source].base, &j.edits[i])
	}
	return c.derive(op, j.position, stores...)
}

func first(sources []*Cache, s *Cache) int {
	i := 0
	for sources[i] != s {
		i++
	}
	return i
}

// mergeRows are the rows that a source brings to a merge.
func (c *Cache) mergeRows(op string, source int) ([]mergeRow, error) {
	if !c.cur.serial && c.cur.length == 0 && c.cur.rows() > 0 && c.cfg.Semantics == ring.MLXLM {
		return nil, &ring.RaisesError{Op: op, Why: "the cache is empty"}
	}
	rows := make([]mergeRow, c.cur.rows())
	for i := range rows {
		r := mergeRow{source: source, row: i, offset: c.cur.total, edit: c.cur.chronological()}
		if !c.cur.serial {
			var p position
			p, r.edit = c.cur.extract(i, maxColumns)
			r.offset = p.total
		}
		if want := min(r.offset, c.cfg.MaxSize); c.cfg.Semantics == ring.MLXLM {
			if r.edit.kept < want {
				return nil, &ring.RaisesError{Op: op, Why: "a ring holds fewer columns than its offset says"}
			}
			r.edit = r.edit.newest(max(0, want))
		} else {
			r.edit = r.edit.newest(c.cfg.MaxSize)
		}
		rows[i] = r
	}
	return rows, nil
}

// Trim takes back the last n tokens of every row and returns n. It is refused
// once the window has filled ([ring.NotTrimmableError]), for more tokens than
// the shortest row holds ([ring.OverTrimError]), for n below 0
// ([ring.RangeError]), and while padding is pending.
func (c *Cache) Trim(n int) (int, error) {
	const op = "trim"
	if err := c.begin(op, writing|settled); err != nil {
		return 0, err
	}
	defer c.end()
	held := c.cur.leastHeld()
	switch {
	case n < 0:
		return 0, &ring.RangeError{Op: op, What: "n", Got: n, Low: 0, High: held}
	case c.cur.total >= c.cfg.MaxSize:
		return 0, &ring.NotTrimmableError{Op: op, Total: c.cur.total, MaxSize: c.cfg.MaxSize}
	case n > held:
		return 0, &ring.OverTrimError{Op: op, N: n, Held: held}
	}
	c.cur.advance(-n)
	c.release()
	return n, nil
}
