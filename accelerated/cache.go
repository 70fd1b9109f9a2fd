package accelerated

import (
	"fmt"
	"math"
	"runtime"
	"sync/atomic"

	"example.com/ringcheck/reference/ring"
)

// Config says what a ring holds. It is fixed for its life.
type Config struct {
	Semantics ring.Semantics
	MaxSize   int // window, in columns
	Keep      int // attention sinks: serial plain rings in mlxlm only
	Step      int // growth quantum in columns; 0: 256, mlx-lm's
	KVHeads   int
	KeyDim    int // elements of a head's key
	ValueDim  int
	DType     ring.DType // of the tokens: bfloat16, float16 or float32
	Quant     Quant      // the zero Quant: plain storage
	Masks     *Masks     // shared with other caches of the device; nil: its own
}

// Cache is a ring of key and value columns on a device: of one sequence
// (serial) or of a batch, plain or quantized. Its methods are mlx-lm's verbs
// and what a serving engine needs beside; an operation that returns an error
// has changed nothing.
//
// Arrays go in as views [b, h, s, d] of host memory ([HostView]) or of the
// device's. Views that come out lie in the cache's own memory, in mlx-lm's
// order of columns, and are valid until the next operation on the cache.
//
// A cache belongs to one goroutine at a time: what is called while another
// call runs is refused, or waits for its end where it returns no error. A nil
// cache and the zero Cache are closed ones that hold nothing. What comes of it (rows extracted, merged, adopted,
// snapshots) shares nothing with it. Close it before its device.
type Cache struct {
	dev      Device
	cfg      Config
	widths   [Planes]int
	cur      position
	store    Store // no Buffer while nothing is held
	base     int
	masks    *Masks
	ownMasks bool
	rope     []int // offsets as of the last Release

	read struct {
		open   bool
		seq    uint64
		n      int // queries
		s      int // columns
		mask   Lease
		causal bool
	}
	temp   Buffer // of the last TemporalView
	closed atomic.Bool
	busy   atomic.Bool

	// What follows is scratch, so that a decode step allocates nothing.
	next   position
	edit   edit
	plan   plan
	spare  Store
	work   Work
	move   Move
	write  Write
	mask   Mask
	first  []int32
	attend Attention
}

// Padding announces what the columns of the next blocks are. LeftPadding is
// nil or one number a row. Lengths is nil or the number of columns of each row
// before its trailing padding, left padding included. RightPadding is nil or
// each row's trailing padding. RightPadded overrides, in exact semantics,
// whether the ring waits for Finalize; without it the ring does where any
// right padding is over zero.
type Padding struct {
	LeftPadding, Lengths, RightPadding []int
	RightPadded                        *bool
}

// Side is the planes of one side of a cache's columns, as [b, h, s, d] views:
// the elements alone in plain storage; packed codes (uint32), scales and
// biases in quantized storage. Unused views are zero.
type Side [3]View

// KV is the two sides of a run of columns.
type KV struct{ Keys, Values Side }

// NewRotating makes an empty ring of one sequence.
//
// The errors are those of the configuration: [ring.MaxSizeError],
// [ring.KeepError], [ring.DTypeError], [ring.QuantError], [ring.RangeError] for
// another number out of bounds, and [ring.NotSupportedError] for unknown
// semantics.
func NewRotating(dev Device, cfg Config) (*Cache, error) {
	c, err := newCache(dev, cfg, true)
	if err != nil {
		return nil, err
	}
	c.setPosition(newPosition(c.rules(true), []int{0}))
	return c, nil
}

// NewBatchRotating makes an empty ring of a batch with a row for each element
// of leftPadding. Its errors are those of [NewRotating], and
// [ring.RangeError] for negative padding.
func NewBatchRotating(dev Device, cfg Config, leftPadding []int) (*Cache, error) {
	if err := checkCounts("new", "left padding", leftPadding); err != nil {
		return nil, err
	}
	c, err := newCache(dev, cfg, false)
	if err != nil {
		return nil, err
	}
	c.setPosition(newPosition(c.rules(false), leftPadding))
	return c, nil
}

const defaultStep = 256

func newCache(dev Device, cfg Config, serial bool) (*Cache, error) {
	if cfg.Step == 0 {
		cfg.Step = defaultStep
	}
	c := &Cache{dev: told(dev), cfg: cfg, masks: cfg.Masks}
	if err := c.checkConfig(serial); err != nil {
		return nil, err
	}
	for side, dim := range [2]int{cfg.KeyDim, cfg.ValueDim} {
		size := cfg.DType.Size()
		if q := cfg.Quant; q.Bits > 0 {
			c.widths[3*side], c.widths[3*side+1], c.widths[3*side+2] = dim/8*q.Bits, dim/q.GroupSize*size, dim/q.GroupSize*size
		} else {
			c.widths[3*side] = dim * size
		}
	}
	if c.masks == nil {
		c.masks, c.ownMasks = NewMasks(dev), true
	}
	return c, nil
}

func (c *Cache) checkConfig(serial bool) error {
	const op = "new"
	cfg := &c.cfg
	switch {
	case c.dev == nil:
		return errNoDevice()
	case cfg.Semantics != ring.MLXLM && cfg.Semantics != ring.Exact:
		return &ring.NotSupportedError{Op: op, Kind: cfg.Semantics.String()}
	case cfg.DType != ring.BFloat16 && cfg.DType != ring.Float16 && cfg.DType != ring.Float32:
		return &ring.DTypeError{Op: op, Got: cfg.DType}
	}
	for _, n := range [4]struct {
		what           string
		got, low, high int
	}{
		{"heads", cfg.KVHeads, 1, maxExtent}, {"key width", cfg.KeyDim, 1, maxExtent},
		{"value width", cfg.ValueDim, 1, maxExtent}, {"step", cfg.Step, 0, maxColumns},
	} {
		if n.got < n.low || n.got > n.high {
			return &ring.RangeError{Op: op, What: n.what, Got: n.got, Low: n.low, High: n.high}
		}
	}
	switch {
	case cfg.MaxSize > maxColumns:
		return &ring.RangeError{Op: op, What: "max size", Got: cfg.MaxSize, Low: 1, High: maxColumns}
	case cfg.MaxSize < 1:
		return &ring.MaxSizeError{Op: op, Got: cfg.MaxSize}
	case cfg.Masks != nil && cfg.Masks.dev != c.dev:
		return &ring.NotSupportedError{Op: op, Kind: "masks of another device"}
	case cfg.Keep < 0 || cfg.Keep > 0 && (cfg.Semantics == ring.Exact || !serial || cfg.Keep >= cfg.MaxSize || cfg.Quant.Bits > 0):
		return &ring.KeepError{Op: op, Keep: cfg.Keep}
	}
	if cfg.Quant != (Quant{}) {
		for _, dim := range [2]int{cfg.KeyDim, cfg.ValueDim} {
			if err := checkQuant(op, cfg.Quant, dim); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkQuant(op string, q Quant, dim int) error {
	switch q.GroupSize {
	case 32, 64, 128:
		switch q.Bits {
		case 2, 3, 4, 5, 6, 8:
			if dim%q.GroupSize == 0 {
				return nil
			}
		}
	}
	return &ring.QuantError{Op: op, GroupSize: q.GroupSize, Bits: q.Bits, Dim: dim}
}

const (
	// maxColumns keeps every number of a plan within 31 bits.
	maxColumns = math.MaxInt32 / 8
	maxExtent  = math.MaxInt32 / 8
)

func (c *Cache) rules(serial bool) rules {
	return rules{semantics: c.cfg.Semantics, serial: serial, maxSize: c.cfg.MaxSize, keep: c.cfg.Keep, step: c.cfg.Step}
}

// setPosition gives a cache its rows.
func (c *Cache) setPosition(p position) {
	c.cur = p
	c.first = make([]int32, p.rows())
	c.release()
}

// Kind is the name of the cache's kind, for example "batch_rotating_quantized".
func (c *Cache) Kind() string { return ask(c, (*Cache).kind) }

func (c *Cache) kind() string {
	kind := "rotating"
	if !c.cur.serial {
		kind = "batch_rotating"
	}
	if c.cfg.Quant.Bits > 0 {
		kind += "_quantized"
	}
	return kind
}

// need is what an operation asks of a cache before it begins.
type need uint8

const (
	writing need = 1 << iota // no Read is open
	batched                  // the cache is a batch
	settled                  // no padding is pending
)

// begin starts an operation, which ends with c.end.
func (c *Cache) begin(op string, n need) error {
	if c == nil || c.dev == nil || c.closed.Load() {
		return &ring.ClosedError{Op: op}
	}
	if !c.busy.CompareAndSwap(false, true) {
		return &ring.BusyError{Op: op}
	}
	var err error
	switch {
	case c.closed.Load():
		err = &ring.ClosedError{Op: op}
	case n&writing != 0 && c.read.open:
		err = &ring.ReadOpenError{Op: op}
	case n&batched != 0 && c.cur.serial:
		err = &ring.NotSupportedError{Op: op, Kind: c.kind()}
	case n&settled != 0 && c.cur.pending:
		err = &ring.PendingPaddingError{Op: op}
	}
	if err != nil {
		c.end()
		return err
	}
	if c.temp != nil {
		c.dev.Free(c.temp)
		c.temp = nil
	}
	return nil
}

func (c *Cache) end() { c.busy.Store(false) }

// wait starts what cannot be refused, since it returns no error; it ends with
// c.end.
func (c *Cache) wait() {
	for !c.busy.CompareAndSwap(false, true) {
		runtime.Gosched()
	}
}

// ask is what f says of a cache, or of recurrent state, while no call runs; zero
// of none.
func ask[C interface {
	comparable
	wait()
	end()
}, T any](c C, f func(c C) T) (answer T) {
	var none C
	if c == none {
		return answer
	}
	c.wait()
	defer c.end()
	return f(c)
}

// Close gives all memory back. It is idempotent; refused only while another
// call runs.
func (c *Cache) Close() error {
	if c == nil {
		return &ring.ClosedError{Op: "close"}
	}
	if !c.busy.CompareAndSwap(false, true) {
		return &ring.BusyError{Op: "close"}
	}
	defer c.end()
	if c.closed.Swap(true) {
		return nil
	}
	c.closeRead()
	for _, b := range [2]Buffer{c.store.Buffer, c.temp} {
		if b != nil {
			c.dev.Free(b)
		}
	}
	c.store, c.temp = Store{}, nil
	if c.ownMasks {
		c.masks.Close()
	}
	return nil
}

// Config is the configuration that the cache was made with.
func (c *Cache) Config() Config { return ask(c, func(c *Cache) Config { return c.cfg }) }

// Rows is the number of rows.
func (c *Cache) Rows() int { return ask(c, func(c *Cache) int { return c.cur.rows() }) }

// Position is the bookkeeping, of a serial ring in the form of a batch of one
// row. It shares nothing with the cache.
func (c *Cache) Position() ring.Position {
	return ask(c, func(c *Cache) ring.Position { return c.cur.snapshot() })
}

// Size is min(total, max size), the columns that the next decode may see.
func (c *Cache) Size() int {
	return ask(c, func(c *Cache) int { return min(c.cur.total, c.cur.maxSize) })
}

// Length is the number of columns of the buffer as mlx-lm has it, spare ones
// included.
func (c *Cache) Length() int { return ask(c, func(c *Cache) int { return c.cur.length }) }

// NBytes is the memory that holds the columns, room to spare included.
func (c *Cache) NBytes() int {
	return ask(c, func(c *Cache) int {
		if c.store.Buffer == nil {
			return 0
		}
		return c.store.Buffer.Size()
	})
}

// Trimmable reports whether Trim may be called: total < max size, and in exact
// semantics nothing pending.
func (c *Cache) Trimmable() bool {
	return ask(c, func(c *Cache) bool { return c.cur.trimmable() })
}

// newStore allocates a store; one without rows or columns has no buffer.
func (c *Cache) newStore(op string, rows, columns int) (Store, error) {
	s := Store{
		Rows: rows, Heads: c.cfg.KVHeads, Columns: columns,
		DType: c.cfg.DType, KeyDim: c.cfg.KeyDim, ValueDim: c.cfg.ValueDim, Quant: c.cfg.Quant,
	}
	if rows == 0 || columns == 0 {
		return Store{}, nil
	}
	size := 0
	for i, width := range c.widths {
		s.Planes[i] = Plane{Offset: size, Width: width}
		n := product(rows, s.Heads, columns, width)
		if n > math.MaxInt-size-Align {
			return Store{}, &MemoryError{Device: c.dev.Name(), Bytes: math.MaxInt, Err: fmt.Errorf("%s: %d rows of %d columns", op, rows, columns)}
		}
		size += (n + Align - 1) / Align * Align
	}
	var err error
	s.Buffer, err = c.dev.Alloc(size)
	return s, err
}

// product is that of factors from 0 on, or MaxInt where it is more.
func product(factors ...int) int {
	p := 1
	for _, f := range factors {
		if f != 0 && p > math.MaxInt/f {
			return math.MaxInt
		}
		p *= f
	}
	return p
}

// setStore replaces the store.
func (c *Cache) setStore(s Store, base int) {
	if c.store.Buffer != nil {
		c.dev.Free(c.store.Buffer)
	}
	c.store, c.base = s, base
}

// free gives back a store that did not come to be used.
func (c *Cache) free(s Store) {
	if s.Buffer != nil {
		c.dev.Free(s.Buffer)
	}
}

// view is columns [from, from+n) of all planes, logical columns.
func (c *Cache) view(from, n int) KV { return c.viewOf(&c.store, c.cur.rows(), c.base+from, n) }

func (c *Cache) viewOf(s *Store, rows, from, n int) KV {
	var kv KV
	for side, planes := range [2]*Side{&kv.Keys, &kv.Values} {
		for i := range planes {
			p := &s.Planes[3*side+i]
			width := c.widths[3*side+i]
			if width == 0 {
				continue
			}
			v := &planes[i]
			v.Buffer, v.DType = s.Buffer, c.cfg.DType
			if i == 0 && c.cfg.Quant.Bits > 0 {
				v.DType = ring.Uint32
			}
			v.Shape = [4]int{rows, c.cfg.KVHeads, n, width / v.DType.Size()}
			v.Offset = p.Offset + from*width
			v.Stride[2] = width
			v.Stride[1] = s.Columns * width
			v.Stride[0] = s.Heads * v.Stride[1]
		}
	}
	return kv
}

// release brings the positions that a step reads up to date.
func (c *Cache) release() { c.rope = append(c.rope[:0], c.cur.offset...) }
