package accelerated

import "example.com/ringcheck/reference/ring"

// Update writes new tokens, keys [b, h, n, d] and values [b, h, n, d'], and
// returns all columns that their rows may attend to, in mlx-lm's order: as many
// as the mask made before the call is wide. One token with nothing pending is
// written in place; what else is appended behind at most MaxSize-1 columns.
//
// The errors are [ring.NoTokensError], [ring.RowsError], [ring.ShapeError],
// [ring.DTypeError], [*BufferError] for memory that is not the device's or is
// the cache's own (what Update returns must be copied before it is written
// again); in mlxlm also [ring.PendingPaddingError] for one token
// while padding is pending, and [ring.RaisesError] for one token on a ring
// that was extracted short.
func (c *Cache) Update(keys, values View) (KV, error) {
	const op = "update"
	if err := c.begin(op, writing); err != nil {
		return KV{}, err
	}
	defer c.end()
	if c.cur.pending && c.cfg.Semantics == ring.MLXLM && keys.Shape[2] == 1 {
		return KV{}, &ring.PendingPaddingError{Op: op}
	}
	n, err := c.checkTokens(op, keys, values)
	if err != nil {
		return KV{}, err
	}
	if err := c.stage(op, n, c.cur.blocks(n)); err != nil {
		return KV{}, err
	}
	if err := c.run(); err != nil {
		return KV{}, err
	}
	return c.view(0, c.cur.visible()), nil
}

// AppendDecode writes one token a row in place, and returns what it may
// attend to, under the mask of a decode. It is refused while padding is
// pending, and for a serial ring; its other errors are those of Update.
func (c *Cache) AppendDecode(keys, values View) (Read, error) {
	const op = "append_decode"
	if err := c.begin(op, writing|batched|settled); err != nil {
		return Read{}, err
	}
	defer c.end()
	n, err := c.checkTokens(op, keys, values)
	if err != nil {
		return Read{}, err
	}
	if n != 1 {
		return Read{}, &ring.ShapeError{Op: op, What: "columns", Got: []int{n}, Want: []int{1}}
	}
	return c.appendRead(op, n, false)
}

// AppendWindow appends a block of one or more tokens a row, also while padding
// is pending, and returns what it may attend to, under the mask of a block. It
// is refused for a serial ring; its other errors are those of Update.
func (c *Cache) AppendWindow(keys, values View) (Read, error) {
	const op = "append_window"
	if err := c.begin(op, writing|batched); err != nil {
		return Read{}, err
	}
	defer c.end()
	n, err := c.checkTokens(op, keys, values)
	if err != nil {
		return Read{}, err
	}
	return c.appendRead(op, n, true)
}

// AppendWindowUnder is AppendWindow under the caller's mask [b, 1, n, S], S
// being the columns that it returns. causal says that the mask is plain
// causal, so that it need not be read. The lease is the cache's from here on:
// it is released with the Read, or at once on an error, and the caller's copies
// of it hold nothing any more. One that was released before is no mask
// ([ring.ShapeError]).
func (c *Cache) AppendWindowUnder(keys, values View, mask Lease, causal bool) (Read, error) {
	const op = "append_window_under"
	mask = mask.take()
	r, err := c.appendUnder(op, keys, values, mask, causal)
	if err != nil {
		mask.Release()
	}
	return r, err
}

func (c *Cache) appendUnder(op string, keys, values View, mask Lease, causal bool) (Read, error) {
	if err := c.begin(op, writing|batched); err != nil {
		return Read{}, err
	}
	defer c.end()
	n, err := c.checkTokens(op, keys, values)
	if err != nil {
		return Read{}, err
	}
	s := min(c.cur.active(), c.cfg.MaxSize-1) + n
	if v := mask.View(); v.B != c.cur.rows() || v.N != n || v.S != s {
		return Read{}, &ring.ShapeError{Op: op, What: "mask [b n s]", Got: []int{v.B, v.N, v.S}, Want: []int{c.cur.rows(), n, s}}
	}
	if !c.dev.Owns(mask.View().Buffer) {
		return Read{}, &BufferError{Op: op, What: "mask"}
	}
	if err := c.stage(op, n, true); err != nil {
		return Read{}, err
	}
	if err := c.run(); err != nil {
		return Read{}, err
	}
	return c.openRead(n, mask, causal), nil
}

// appendRead is an append with the cache's own mask, in one call of the device.
func (c *Cache) appendRead(op string, n int, block bool) (Read, error) {
	c.mask, _ = c.cur.mask(n, nil, block, c.first)
	if err := c.stage(op, n, block); err != nil {
		return Read{}, err
	}
	lease, err := c.masks.run(c.cfg.MaxSize, &c.mask, &c.work)
	if err != nil {
		c.abandon()
		return Read{}, err
	}
	c.commit()
	return c.openRead(n, lease, false), nil
}

// stage plans the write of the n tokens in c.write into c.next, c.plan and
// c.work, and gets the store that it needs. Then either commit or abandon
// follows.
func (c *Cache) stage(op string, n int, block bool) error {
	if c.cur.total < c.cur.idx { // left padding was announced, but not fed before it was extracted
		return &ring.RangeError{Op: op, What: "offset", Got: c.cur.total, Low: c.cur.idx, High: maxColumns}
	}
	if !block && c.cur.length < c.cfg.MaxSize && c.cur.total >= c.cfg.MaxSize {
		return &ring.RaisesError{Op: op, Why: "the ring holds fewer columns than its offset says, and cannot grow"}
	}
	c.next.copyFrom(&c.cur)
	if block {
		c.edit = c.next.block(n)
	} else {
		c.edit = c.next.decode()
	}
	if err := c.arrange(op); err != nil {
		return err
	}
	c.write.At = c.plan.at
	c.work.Write = &c.write
	if c.cur.rows() == 0 {
		c.work = Work{}
	}
	return nil
}

// arrange plans c.edit and gets the store that it needs: c.work moves.
func (c *Cache) arrange(op string) error {
	c.plan.make(layout{rows: c.cur.rows(), capacity: c.store.Columns, base: c.base, maxSize: c.cfg.MaxSize}, &c.edit)
	c.work = Work{Store: &c.store}
	if c.plan.fresh {
		var err error
		if c.spare, err = c.newStore(op, c.cur.rows(), c.plan.capacity); err != nil {
			return err
		}
		c.work.Store = &c.spare
	}
	c.setMove(&c.store)
	return nil
}

// setMove makes c.work move by the runs of c.plan, if there are any.
func (c *Cache) setMove(sources ...*Store) {
	if len(c.plan.runs) > 0 {
		c.move = Move{Sources: append(c.move.Sources[:0], sources...), Runs: c.plan.runs}
		c.work.Move = &c.move
	}
}

// run does what was staged, and commits or abandons it.
func (c *Cache) run() error {
	if c.work.Move != nil || c.work.Write != nil {
		if err := c.dev.Run(&c.work); err != nil {
			c.abandon()
			return err
		}
	}
	c.commit()
	return nil
}

// commit makes what was staged the state of the cache.
func (c *Cache) commit() {
	c.cur, c.next = c.next, c.cur
	if c.plan.fresh {
		c.setStore(c.spare, 0)
		c.spare = Store{}
	}
	c.base = c.plan.base
	c.write = Write{} // what the caller owns
}

// abandon drops what was staged.
func (c *Cache) abandon() {
	c.write = Write{}
	c.free(c.spare)
	c.spare = Store{}
}

// Mask leases the mask [b, 1, n, S] for a write of n tokens that has not
// happened yet, over the columns that the write will return. window narrows
// it; nil is the whole ring. In mlxlm a serial ring has none for one token
// unless the window is smaller than the ring and has filled: then the lease is
// the zero Lease. The errors are [ring.RangeError] for no token or too many, and
// [ring.WindowError].
func (c *Cache) Mask(n int, window *int) (Lease, error) {
	const op = "mask"
	if err := c.begin(op, 0); err != nil {
		return Lease{}, err
	}
	defer c.end()
	if n < 1 || n > maxColumns-c.cfg.MaxSize {
		return Lease{}, &ring.RangeError{Op: op, What: "n", Got: n, Low: 1, High: maxColumns - c.cfg.MaxSize}
	}
	if window != nil && *window < 1 {
		return Lease{}, &ring.WindowError{Op: op, Window: *window}
	}
	var exists bool
	if c.mask, exists = c.cur.mask(n, window, c.cur.blocks(n), c.first); !exists {
		return Lease{}, nil
	}
	c.work = Work{}
	return c.masks.run(c.cfg.MaxSize, &c.mask, &c.work)
}
