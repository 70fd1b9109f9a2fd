package accelerated

import (
	"math"
	"runtime"
	"slices"
	"sync/atomic"

	"example.com/ringcheck/reference/ring"
)

// Recurrent is recurrent state in a batch: slots of arrays [b, ...] without a
// token axis, and for each row the number of its real tokens. Padding is
// announced and masked, never rolled. Like a [Cache] it belongs to one
// goroutine at a time, and an operation that returns an error has changed
// nothing. A nil Recurrent and the zero one are closed and hold nothing.
type Recurrent struct {
	dev     Device
	slots   []slot
	offset  []int
	left    []int // nil unless padding is pending, as lengths
	lengths []int
	masks   *Masks
	closed  atomic.Bool
	busy    atomic.Bool
}

// slot is one array: [rows, heads, columns] of KeyDim elements, as its store has
// them. It has no DType while it was never written.
type slot struct{ store Store }

func (s *slot) empty() bool { return s.store.DType == 0 }

// NewRecurrent makes state of that many slots, and no rows: the first Prepare
// or Write gives it rows. The errors are [*UnavailableError] without a device
// and [ring.RangeError].
func NewRecurrent(dev Device, slots int) (*Recurrent, error) {
	if dev == nil {
		return nil, errNoDevice()
	}
	if slots < 0 || slots > maxExtent {
		return nil, &ring.RangeError{Op: "new", What: "slots", Got: slots, Low: 0, High: maxExtent}
	}
	return &Recurrent{dev: told(dev), slots: make([]slot, slots), offset: []int{}, masks: NewMasks(dev)}, nil
}

// AdoptRecurrent makes state of arrays in host memory, one a slot, of each
// row's offset, and of what is left of the padding: what Slot, Offsets and
// Padding give. A slot without a data type was never written. The errors are
// those of [NewRecurrent] and [Recurrent.Write], [ring.RowsError] for padding of
// another number of rows, and [ring.RangeError].
func AdoptRecurrent(dev Device, slots []ring.Array, offset, left, lengths []int) (*Recurrent, error) {
	const op = "adopt"
	c, err := NewRecurrent(dev, len(slots))
	if err != nil {
		return nil, err
	}
	for _, l := range [3]struct {
		what string
		list []int
	}{{"offset", offset}, {"left padding", left}, {"lengths", lengths}} {
		if len(l.list) != len(offset) && (left != nil || lengths != nil) {
			return nil, &ring.RowsError{Op: op, What: l.what, Got: len(l.list), Want: len(offset)}
		}
		for _, n := range l.list {
			if n < -maxColumns || n > maxColumns {
				return nil, &ring.RangeError{Op: op, What: l.what, Got: n, Low: -maxColumns, High: maxColumns}
			}
		}
	}
	c.offset = append(c.offset, offset...)
	for i, a := range slots {
		if a.DType == 0 {
			continue
		}
		err := error(&ring.RowsError{Op: op, What: "a slot", Got: a.Shape[0], Want: len(offset)})
		if a.Shape[0] == len(offset) {
			err = c.Write(i, HostView(a))
		}
		if err != nil {
			freeSlots(dev, c.slots)
			return nil, err
		}
	}
	c.left, c.lengths = slices.Clone(left), slices.Clone(lengths)
	return c, nil
}

// Kind is "batch_recurrent".
func (c *Recurrent) Kind() string { return "batch_recurrent" }

func (c *Recurrent) begin(op string) error {
	if c == nil || c.dev == nil || c.closed.Load() {
		return &ring.ClosedError{Op: op}
	}
	if !c.busy.CompareAndSwap(false, true) {
		return &ring.BusyError{Op: op}
	}
	if c.closed.Load() {
		c.end()
		return &ring.ClosedError{Op: op}
	}
	return nil
}

func (c *Recurrent) end() { c.busy.Store(false) }

// wait starts what cannot be refused; it ends with c.end.
func (c *Recurrent) wait() {
	for !c.busy.CompareAndSwap(false, true) {
		runtime.Gosched()
	}
}

// Close gives all memory back. It is idempotent; refused only while another
// call runs.
func (c *Recurrent) Close() error {
	if c == nil {
		return &ring.ClosedError{Op: "close"}
	}
	if !c.busy.CompareAndSwap(false, true) {
		return &ring.BusyError{Op: "close"}
	}
	defer c.end()
	if !c.closed.Swap(true) {
		freeSlots(c.dev, c.slots)
		c.masks.Close()
	}
	return nil
}

func freeSlots(dev Device, slots []slot) {
	for i := range slots {
		if b := slots[i].store.Buffer; b != nil {
			dev.Free(b)
		}
		slots[i] = slot{}
	}
}

// Rows is the number of rows.
func (c *Recurrent) Rows() int { return ask(c, func(c *Recurrent) int { return len(c.offset) }) }

// Offsets appends to dst each row's number of real tokens.
func (c *Recurrent) Offsets(dst []int) []int {
	if c == nil {
		return dst
	}
	c.wait()
	defer c.end()
	return append(dst, c.offset...)
}

// Padding is what is left of the padding: both nil while none is pending.
func (c *Recurrent) Padding() (left, lengths []int) {
	if c == nil {
		return nil, nil
	}
	c.wait()
	defer c.end()
	return slices.Clone(c.left), slices.Clone(c.lengths)
}

// Trimmable is false: there is no token axis.
func (c *Recurrent) Trimmable() bool { return false }

// Trim is refused with [ring.NotTrimmableError].
func (c *Recurrent) Trim(int) (int, error) {
	if err := c.begin("trim"); err != nil {
		return 0, err
	}
	defer c.end()
	return 0, &ring.NotTrimmableError{Op: "trim"}
}

// Prepare announces padding on both sides of the next tokens: lengths count a
// row's tokens before its trailing padding, left padding included. It replaces
// what was announced before, and gives rows to a batch without any. The errors
// are [ring.RowsError], [ring.ShapeError] and [ring.RangeError].
func (c *Recurrent) Prepare(pad Padding) error {
	const op = "prepare"
	if err := c.begin(op); err != nil {
		return err
	}
	defer c.end()
	rows := len(c.offset)
	if rows == 0 {
		rows = max(len(pad.LeftPadding), len(pad.Lengths))
	}
	if err := checkLists(op, rows, &pad); err != nil {
		return err
	}
	padded := func(list []int) bool { return slices.ContainsFunc(list, func(n int) bool { return n > 0 }) }
	pending := padded(pad.LeftPadding) || padded(pad.RightPadding)
	if pending && pad.Lengths == nil {
		return &ring.RowsError{Op: op, What: "lengths", Got: 0, Want: rows}
	}
	c.addRows(rows)
	c.left, c.lengths = nil, nil
	if pending {
		c.left, c.lengths = make([]int, rows), slices.Clone(pad.Lengths)
		copy(c.left, pad.LeftPadding)
	}
	return nil
}

// Finalize forgets the padding.
func (c *Recurrent) Finalize() error {
	if err := c.begin("finalize"); err != nil {
		return err
	}
	defer c.end()
	c.left, c.lengths = nil, nil
	return nil
}

// Write makes slot i a copy of an array [b, h, s, d] in memory of the host or
// the device; a state of lower rank has axes of length 1. It gives rows to a
// batch without any. The errors are [ring.RowsError], [ring.ShapeError],
// [ring.DTypeError] and [ring.RangeError].
func (c *Recurrent) Write(i int, v View) error {
	const op = "write"
	if err := c.begin(op); err != nil {
		return err
	}
	defer c.end()
	if rows := v.Shape[0]; rows < 0 || rows != len(c.offset) && len(c.offset) > 0 {
		return &ring.RowsError{Op: op, What: "the array", Got: rows, Want: len(c.offset)}
	}
	for _, n := range v.Shape[1:] {
		if n < 1 || n > maxExtent {
			return &ring.ShapeError{Op: op, What: "array [b h s d]", Got: slices.Clone(v.Shape[:]), Want: []int{len(c.offset), 1, 1, 1}}
		}
	}
	if v.DType.Size() == 0 {
		return &ring.DTypeError{Op: op, Got: v.DType}
	}
	if err := checkMemory(op, "array", c.dev, &v); err != nil {
		return err
	}
	if i < 0 || i >= len(c.slots) {
		return &ring.RangeError{Op: op, What: "slot", Got: i, Low: 0, High: len(c.slots) - 1}
	}
	fresh, err := newSlot(op, c.dev, v.DType, v.Shape)
	if err != nil {
		return err
	}
	if fresh.store.Buffer != nil {
		if err := c.dev.Run(&Work{Store: &fresh.store, Write: &Write{Keys: v}}); err != nil {
			c.dev.Free(fresh.store.Buffer)
			return err
		}
	}
	c.addRows(v.Shape[0])
	freeSlots(c.dev, c.slots[i:i+1])
	c.slots[i] = fresh
	return nil
}

// addRows gives rows to a batch without any; what its slots were they are no
// more, and nothing is pending.
func (c *Recurrent) addRows(n int) {
	if len(c.offset) == 0 && n > 0 {
		freeSlots(c.dev, c.slots)
		c.offset = make([]int, n)
		c.left, c.lengths = nil, nil
	}
}

// newSlot allocates an array; one without rows has no buffer.
func newSlot(op string, dev Device, t ring.DType, shape [4]int) (slot, error) {
	s := slot{Store{Rows: shape[0], Heads: shape[1], Columns: shape[2], KeyDim: shape[3], DType: t}}
	width := product(shape[3], t.Size())
	s.store.Planes[KeyData].Width = width
	size := product(shape[0], shape[1], shape[2], width)
	if size == 0 {
		return s, nil
	}
	if size > math.MaxInt-Align {
		return slot{}, &MemoryError{Device: dev.Name(), Bytes: size}
	}
	var err error
	s.store.Buffer, err = dev.Alloc(size)
	return s, err
}

func (s *slot) shape() [4]int {
	return [4]int{s.store.Rows, s.store.Heads, s.store.Columns, s.store.KeyDim}
}

// Slots is the number of slots.
func (c *Recurrent) Slots() int { return ask(c, func(c *Recurrent) int { return len(c.slots) }) }

// Slot is slot i, valid until the next operation; the zero View where it was
// never written.
func (c *Recurrent) Slot(i int) (View, error) {
	const op = "slot"
	if err := c.begin(op); err != nil {
		return View{}, err
	}
	defer c.end()
	if i < 0 || i >= len(c.slots) {
		return View{}, &ring.RangeError{Op: op, What: "slot", Got: i, Low: 0, High: len(c.slots) - 1}
	}
	s := &c.slots[i]
	if s.empty() {
		return View{}, nil
	}
	v := HostView(ring.Array{DType: s.store.DType, Shape: s.shape()})
	v.Buffer = s.store.Buffer
	return v, nil
}

// Mask leases what says which of the next n tokens of each row are real, one
// query a row: [b, 1, 1, n]. It is the zero Lease while no padding is pending. The
// error is [ring.RangeError] for no token.
func (c *Recurrent) Mask(n int) (Lease, error) {
	const op = "mask"
	if err := c.begin(op); err != nil {
		return Lease{}, err
	}
	defer c.end()
	if n < 1 || n > maxColumns {
		return Lease{}, &ring.RangeError{Op: op, What: "n", Got: n, Low: 1, High: maxColumns}
	}
	if c.lengths == nil {
		return Lease{}, nil
	}
	m := &ring.Mask{B: len(c.offset), N: 1, S: n, Data: make([]bool, len(c.offset)*n)}
	for b := range m.B {
		for t := max(0, c.left[b]); t < min(n, c.lengths[b]); t++ {
			m.Data[b*n+t] = true
		}
	}
	return c.masks.Upload(m)
}

// ConvolutionLengths is, for the next n tokens, how many of each row's come
// before its trailing padding; nil while no padding is pending.
func (c *Recurrent) ConvolutionLengths(n int) []int {
	_, out := c.Padding()
	for i := range out {
		out[i] = max(0, min(out[i], n))
	}
	return out
}

// Advance counts n tokens: each row's offset by its real ones, and what is left
// of the padding.
func (c *Recurrent) Advance(n int) error {
	const op = "advance"
	if err := c.begin(op); err != nil {
		return err
	}
	defer c.end()
	if n < 0 || n > maxColumns {
		return &ring.RangeError{Op: op, What: "n", Got: n, Low: 0, High: maxColumns}
	}
	for i := range c.offset {
		if c.lengths == nil {
			c.offset[i] += n
			continue
		}
		c.offset[i] += max(0, min(n, c.lengths[i])-max(0, min(c.left[i], n)))
		c.left[i] -= n
		c.lengths[i] -= n
	}
	return nil
}

// Filter keeps the given rows, in that order, of slots, offsets and padding;
// repeats are allowed.
func (c *Recurrent) Filter(rows []int) error {
	const op = "filter"
	if err := c.begin(op); err != nil {
		return err
	}
	defer c.end()
	fresh, err := c.take(op, rows)
	if err != nil {
		return err
	}
	freeSlots(c.dev, c.slots)
	c.slots = fresh
	c.offset = pick(c.offset, rows)
	if c.lengths != nil {
		c.left, c.lengths = pick(c.left, rows), pick(c.lengths, rows)
	}
	return nil
}

func pick(list, rows []int) []int {
	out := make([]int, len(rows))
	for i, r := range rows {
		out[i] = list[r]
	}
	return out
}

// take copies rows of all slots.
func (c *Recurrent) take(op string, rows []int) ([]slot, error) {
	for _, r := range rows {
		if r < 0 || r >= len(c.offset) {
			return nil, &ring.RangeError{Op: op, What: "row", Got: r, Low: 0, High: len(c.offset) - 1}
		}
	}
	from := make([]origin, len(rows))
	for i, r := range rows {
		from[i].row = r
	}
	return gather(op, []*Recurrent{c}, from)
}

// origin is where a row comes from: a row of one of some sources.
type origin struct{ source, row int }

// gather makes slots of the given rows, in order. A source that lacks a slot
// which another has brings zeros; a slot that none has stays empty.
func gather(op string, sources []*Recurrent, rows []origin) ([]slot, error) {
	dev, out := sources[0].dev, make([]slot, len(sources[0].slots))
	var p plan
	for i := range out {
		like := slices.IndexFunc(sources, func(s *Recurrent) bool { return !s.slots[i].empty() })
		if like < 0 {
			continue
		}
		shape := sources[like].slots[i].shape()
		shape[0] = len(rows)
		p.runs = p.runs[:0]
		for to, from := range rows {
			e := edit{kept: shape[2], cycle: shape[2]}
			if sources[from.source].slots[i].empty() {
				e = edit{left: shape[2]}
			}
			p.place(from.source, from.row, to, 0, &e)
		}
		stores := make([]*Store, len(sources))
		for j, s := range sources {
			stores[j] = &s.slots[i].store
		}
		var err error
		if out[i], err = newSlot(op, dev, sources[like].slots[i].store.DType, shape); err == nil && out[i].store.Buffer != nil {
			err = dev.Run(&Work{Store: &out[i].store, Move: &Move{Sources: stores, Runs: p.runs}})
		}
		if err != nil {
			freeSlots(dev, out)
			return nil, err
		}
	}
	return out, nil
}

// Extract makes state of row i alone, with its own offset and without padding.
// The errors are [ring.RangeError], and [ring.EmptyError] where no slot was
// written.
func (c *Recurrent) Extract(row int) (*Recurrent, error) {
	const op = "extract"
	if err := c.begin(op); err != nil {
		return nil, err
	}
	defer c.end()
	slots, err := c.take(op, []int{row})
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(slots, func(s slot) bool { return !s.empty() }) {
		return nil, &ring.EmptyError{Op: op}
	}
	return &Recurrent{dev: c.dev, slots: slots, offset: []int{c.offset[row]}, masks: NewMasks(c.dev)}, nil
}

// MergeRecurrent makes a batch of all rows of its sources, in order. A source
// that lacks a slot which another has brings zeros; a slot that none has stays
// empty. The sources stay; their padding is not merged. Numbers of slots,
// shapes and data types must be the same ([ring.ShapeError],
// [ring.DTypeError]).
func MergeRecurrent(sources ...*Recurrent) (*Recurrent, error) {
	const op = "merge"
	if len(sources) == 0 {
		return nil, &ring.RowsError{Op: op, What: "the list of caches", Got: 0, Want: 1}
	}
	for i, s := range sources {
		if slices.Index(sources, s) < i {
			continue // it is named twice
		}
		if err := s.begin(op); err != nil {
			return nil, err
		}
		defer s.end()
	}
	c := sources[0]
	out := &Recurrent{dev: c.dev, offset: []int{}, masks: NewMasks(c.dev)}
	for _, s := range sources {
		if err := c.checkAlike(op, s); err != nil {
			return nil, err
		}
		out.offset = append(out.offset, s.offset...)
	}
	for i := range c.slots {
		if err := checkSlots(op, sources, i); err != nil {
			return nil, err
		}
	}
	var rows []origin
	for i, s := range sources {
		for row := range s.offset {
			rows = append(rows, origin{i, row})
		}
	}
	var err error
	if out.slots, err = gather(op, sources, rows); err != nil {
		return nil, err
	}
	return out, nil
}

func (c *Recurrent) checkAlike(op string, o *Recurrent) error {
	if c.dev != o.dev {
		return &ring.NotSupportedError{Op: op, Kind: "caches of unlike devices"}
	}
	if len(c.slots) != len(o.slots) {
		return &ring.ShapeError{Op: op, What: "slots", Got: []int{len(o.slots)}, Want: []int{len(c.slots)}}
	}
	return nil
}

// checkSlots refuses arrays of one slot that differ in more than their rows.
func checkSlots(op string, sources []*Recurrent, i int) error {
	var like *slot
	for _, source := range sources {
		s := &source.slots[i]
		if s.empty() {
			continue
		}
		if like == nil {
			like = s
		}
		got, want := s.shape(), like.shape()
		if !slices.Equal(got[1:], want[1:]) {
			return &ring.ShapeError{Op: op, What: "array of a slot [h s d]", Got: got[1:], Want: want[1:]}
		}
		if s.store.DType != like.store.DType {
			return &ring.DTypeError{Op: op, Got: s.store.DType, Want: like.store.DType}
		}
	}
	return nil
}

// ProjectedBytes is what one row takes, however many tokens it has; 0 without
// rows.
func (c *Recurrent) ProjectedBytes(tokens int) (int, error) {
	const op = "projected_bytes"
	if err := c.begin(op); err != nil {
		return 0, err
	}
	defer c.end()
	if tokens < 0 {
		return 0, &ring.RangeError{Op: op, What: "tokens", Got: tokens, Low: 0, High: maxColumns}
	}
	n := 0
	for i := range c.slots {
		if s := c.slots[i].shape(); len(c.offset) > 0 {
			n += s[1] * s[2] * s[3] * c.slots[i].store.DType.Size()
		}
	}
	return n, nil
}
