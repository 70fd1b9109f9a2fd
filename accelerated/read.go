package accelerated

import (
	"slices"

	"example.com/ringcheck/reference/ring"
)

// Read is what one append may attend to: columns and a mask. While it is open,
// writes to its cache are refused. Close it once; a copy is the same Read, and
// one that was closed, or whose cache was, stays so. KV, Mask and Close, which
// return no error, wait for the end of a call that runs on the cache.
type Read struct {
	cache *Cache
	seq   uint64
}

func (c *Cache) openRead(n int, mask Lease, causal bool) Read {
	r := &c.read
	r.open, r.n, r.s, r.mask, r.causal = true, n, c.cur.visible(), mask, causal
	r.seq++
	return Read{c, r.seq}
}

// current reports whether the read is open, in an operation on its cache.
func (r Read) current() bool { return r.cache.read.open && r.cache.read.seq == r.seq }

// askRead is what f says of the cache of an open read; zero where it is closed.
func askRead[T any](r Read, f func(c *Cache) T) T {
	return ask(r.cache, func(c *Cache) (answer T) {
		if r.current() {
			return f(c)
		}
		return answer
	})
}

// KV is the columns; zero after Close.
func (r Read) KV() KV {
	return askRead(r, func(c *Cache) KV { return c.view(0, c.read.s) })
}

// Mask is the mask [b, 1, n, S]; zero after Close.
func (r Read) Mask() MaskView {
	return askRead(r, func(c *Cache) MaskView { return c.read.mask.View() })
}

// Attend lets the queries of the append, [b, hq, n, d], attend over the read,
// and writes float32 [b, hq, n, d'], dense, to out: memory of the host or the
// device. hq is a multiple of the key heads; query head i reads key head
// i/(hq/h). A query whose mask row is all false gets zeros. It may be called
// any number of times. The errors are [ring.ShapeError], [ring.RowsError],
// [ring.DTypeError], [*BufferError] for memory that is not the device's, or an
// output in the cache's own or its masks', and [ring.ClosedError] after Close.
func (r Read) Attend(out, queries View, scale float32) error {
	const op = "attend"
	c := r.cache
	if c == nil {
		return &ring.ClosedError{Op: op}
	}
	if err := c.begin(op, 0); err != nil {
		return err
	}
	defer c.end()
	if !r.current() {
		return &ring.ClosedError{Op: op}
	}
	if err := c.checkQueries(op, &out, &queries, c.read.n); err != nil {
		return err
	}
	mask := c.read.mask.View()
	if c.read.causal {
		mask.Buffer = nil
	}
	return c.attendOver(&out, &queries, scale, mask, c.read.s)
}

// Close ends the read and releases its mask.
func (r Read) Close() {
	c := r.cache
	if c == nil {
		return
	}
	c.wait()
	defer c.end()
	if r.current() {
		c.closeRead()
	}
}

func (c *Cache) closeRead() {
	c.read.open = false
	c.read.mask.Release()
}

// Attend lets the queries of the last n tokens, [b, hq, n, d], attend over the
// ring as it stands: each sees its own token and the MaxSize-1 before it, less
// padding. For the rest see [Read.Attend]. Its errors are [ring.EmptyError]
// without columns, [ring.RangeError] for more queries than columns, and those
// of Read.Attend.
func (c *Cache) Attend(out, queries View, scale float32) error {
	const op = "attend"
	if err := c.begin(op, 0); err != nil {
		return err
	}
	defer c.end()
	a, n := c.cur.active(), queries.Shape[2]
	if a == 0 {
		return &ring.EmptyError{Op: op}
	}
	if n < 1 || n > a {
		return &ring.RangeError{Op: op, What: "queries a row", Got: n, Low: 1, High: a}
	}
	if err := c.checkQueries(op, &out, &queries, n); err != nil {
		return err
	}
	if c.cur.rows() == 0 {
		return nil
	}
	c.mask = c.cur.presentMask(n, c.first)
	c.work = Work{}
	lease, err := c.masks.run(c.cfg.MaxSize, &c.mask, &c.work)
	if err != nil {
		return err
	}
	defer lease.Release()
	return c.attendOver(&out, &queries, scale, lease.View(), a)
}

func (c *Cache) attendOver(out, queries *View, scale float32, mask MaskView, s int) error {
	if c.cur.rows() == 0 {
		return nil
	}
	c.attend = Attention{Store: &c.store, From: c.base, S: s, Query: *queries, Scale: scale, Mask: mask, Out: *out}
	err := c.dev.Attend(&c.attend)
	c.attend = Attention{} // what the caller owns
	return err
}

func (c *Cache) checkQueries(op string, out, queries *View, n int) error {
	rows, heads := c.cur.rows(), queries.Shape[1]
	if queries.Shape[0] != rows {
		return &ring.RowsError{Op: op, What: "queries", Got: queries.Shape[0], Want: rows}
	}
	if heads < 1 || heads > maxExtent || heads%c.cfg.KVHeads != 0 {
		return &ring.ShapeError{Op: op, What: "query heads (any multiple will do)", Got: []int{heads}, Want: []int{c.cfg.KVHeads}}
	}
	if err := c.checkView(op, "queries", queries, [4]int{rows, heads, n, c.cfg.KeyDim}, c.cfg.DType); err != nil {
		return err
	}
	dense := HostView(ring.Array{DType: ring.Float32, Shape: [4]int{rows, heads, n, c.cfg.ValueDim}})
	if out.Stride != dense.Stride {
		return &ring.ShapeError{Op: op, What: "strides of the output", Got: slices.Clone(out.Stride[:]), Want: slices.Clone(dense.Stride[:])}
	}
	if err := c.checkView(op, "output", out, dense.Shape, ring.Float32); err != nil {
		return err
	}
	if b := out.Buffer; b != nil && (b == c.store.Buffer || b == c.read.mask.View().Buffer || c.masks.owns(b)) {
		return &BufferError{Op: op, What: "output", Own: true}
	}
	return nil
}
