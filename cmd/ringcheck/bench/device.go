package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference/ring"
)

// subject is a cache, or several, made ready for one work.
type subject struct {
	step   func() error // what is timed
	reset  func() error // prepares the ground for budget steps, untimed; nil: never needed
	budget int
	cycle  int // steps after which all repeats
	close  []func() error

	held  int  // bytes of the planes of the ring that a step leaves; 0: not known
	alone bool // that ring is all that lives on the device
	place int  // where the columns of the last write lie, in bytes
	masks *accelerated.Masks

	dev accelerated.Device
	Shape
}

// subjects make caches ready, by kind of work.
var subjects = map[Kind]func(*subject) error{
	Decode: (*subject).decode, DecodePadded: (*subject).decodePadded, Block: (*subject).block, BlockUnseen: (*subject).blockUnseen,
	Merge: (*subject).merge, Extract: (*subject).extract, Filter: (*subject).filter,
	Finalize: (*subject).finalize, Rollback: (*subject).rollback, Quantize: (*subject).quantize,
	QuantizingDecode: (*subject).decode, Attend: (*subject).attend,
}

// newSubject makes caches of a device ready for w. Close it.
func newSubject(dev accelerated.Device, w Work) (*subject, error) {
	s := &subject{dev: dev, Shape: w.Shape, cycle: 1}
	if err := subjects[w.Kind](s); err != nil {
		return nil, errorsAfter(fmt.Errorf("%s on %s: %w", w.Name, dev.Name(), err), s.Close)
	}
	return s, nil
}

func (s *subject) Close() error {
	var first error
	for _, c := range s.close {
		if err := c(); first == nil {
			first = err
		}
	}
	s.close = nil
	return first
}

// run does n steps and says how long they took.
func (s *subject) run(n int) (time.Duration, error) {
	var taken time.Duration
	for n > 0 {
		now := n
		if s.reset != nil {
			now = min(n, s.budget)
			if err := s.reset(); err != nil {
				return 0, err
			}
		}
		begin := time.Now()
		for range now {
			if err := s.step(); err != nil {
				return 0, err
			}
		}
		if err := s.dev.Sync(); err != nil {
			return 0, err
		}
		taken += time.Since(begin)
		n -= now
	}
	return taken, nil
}

func (s *subject) config() accelerated.Config {
	cfg := accelerated.Config{
		Semantics: ring.Exact, MaxSize: s.Window, KVHeads: s.Heads, KeyDim: s.KeyDim, ValueDim: s.ValueDim, DType: ring.BFloat16,
		Masks: s.masks,
	}
	if s.Bits > 0 {
		cfg.Quant = accelerated.Quant{GroupSize: s.Group, Bits: s.Bits}
	}
	return cfg
}

// tokens are keys and values of n tokens a row.
func (s *subject) tokens(rows, n int) [2]accelerated.View {
	return [2]accelerated.View{normal(rows, s.Heads, n, s.KeyDim), normal(rows, s.Heads, n, s.ValueDim)}
}

// normal is normally distributed, bfloat16, on the host.
func normal(shape ...int) accelerated.View {
	r := rand.New(rand.NewPCG(1, 2))
	var few [2 * 8191]byte // and then the same again
	for i := 0; i < len(few); i += 2 {
		bits := math.Float32bits(float32(r.NormFloat64()))
		few[i], few[i+1] = byte(bits>>16), byte(bits>>24)
	}
	a := ring.Array{DType: ring.BFloat16, Shape: [4]int(shape)}
	a.Data = make([]byte, 2*shape[0]*shape[1]*shape[2]*shape[3])
	for rest := a.Data; len(rest) > 0; {
		rest = rest[copy(rest, few[:]):]
	}
	return accelerated.HostView(a)
}

// write is an update under its mask.
func (s *subject) write(c *accelerated.Cache, tokens [2]accelerated.View) error {
	mask, err := c.Mask(tokens[0].Shape[2], nil)
	if err != nil {
		return err
	}
	defer mask.Release()
	kv, err := c.Update(tokens[0], tokens[1])
	if err != nil {
		return err
	}
	s.held, s.place = kv.Keys[0].Buffer.Size(), kv.Keys[0].Offset
	return nil
}

// full is a batch whose window is full and has begun to wrap.
func (s *subject) full(leftPadding []int) (*accelerated.Cache, error) {
	c, err := accelerated.NewBatchRotating(s.dev, s.config(), leftPadding)
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, c.Close)
	return c, s.fill(c, s.Rows)
}

// fill fills a ring's window, and one column more.
func (s *subject) fill(c *accelerated.Cache, rows int) error {
	if err := s.write(c, s.tokens(rows, s.Window)); err != nil {
		return err
	}
	return s.write(c, s.tokens(rows, 1))
}

func (s *subject) decode() error {
	c, err := s.full(make([]int, s.Rows))
	if err != nil {
		return err
	}
	s.alone = true
	tokens := s.tokens(s.Rows, 1)
	s.step = func() error { return s.write(c, tokens) }
	return nil
}

func (s *subject) decodePadded() error {
	padding := make([]int, s.Rows)
	for i := range padding {
		padding[i] = s.Window / 2 * (i + 1) / s.Rows
	}
	c, err := s.full(padding)
	if err != nil {
		return err
	}
	before, err := c.Snapshot()
	if err != nil {
		return err
	}
	s.close = append(s.close, before.Close)
	tokens := s.tokens(s.Rows, 1)
	s.reset, s.budget = func() error { return c.Restore(before) }, s.Window/2-1
	s.step = func() error { return s.write(c, tokens) }
	return nil
}

// block also finds how many blocks it takes until the columns lie where they
// did.
func (s *subject) block() error {
	c, err := s.full(make([]int, s.Rows))
	if err != nil {
		return err
	}
	s.alone = true
	tokens := s.tokens(s.Rows, s.Block)
	s.step = func() error { return s.write(c, tokens) }
	for range 3 { // the first two are not of the steady state
		s.cycle = 0
		for again := false; !again; s.cycle++ {
			before := s.place
			if err := s.step(); err != nil {
				return err
			}
			again = s.place <= before
		}
	}
	return nil
}

func (s *subject) blockUnseen() error {
	s.masks = accelerated.NewMasks(s.dev)
	if err := s.block(); err != nil {
		return err
	}
	seen := s.step
	s.step = func() error {
		s.masks.Close() // forgets
		return seen()
	}
	s.close = append(s.close, func() error { s.masks.Close(); return nil })
	return nil
}

func (s *subject) merge() error {
	rows := make([]*accelerated.Cache, s.Rows)
	for i := range rows {
		c, err := accelerated.NewRotating(s.dev, s.config())
		if err != nil {
			return err
		}
		s.close = append(s.close, c.Close)
		if err := s.fill(c, 1); err != nil {
			return err
		}
		rows[i] = c
	}
	s.step = func() error {
		c, err := accelerated.Merge(rows...)
		if err != nil {
			return err
		}
		return s.look(c)
	}
	return nil
}

// look notes what a new ring holds, and closes it.
func (s *subject) look(c *accelerated.Cache) error {
	kv, err := c.TemporalView()
	if err != nil {
		return errorsAfter(err, c.Close)
	}
	s.held = kv.Keys[0].Buffer.Size()
	return c.Close()
}

func (s *subject) extract() error {
	c, err := s.full(make([]int, s.Rows))
	if err != nil {
		return err
	}
	row := 0
	s.step = func() error {
		row = (row + 1) % s.Rows
		one, err := c.Extract(row)
		if err != nil {
			return err
		}
		return s.look(one)
	}
	return nil
}

func (s *subject) filter() error {
	c, err := s.full(make([]int, s.Rows))
	if err != nil {
		return err
	}
	s.held = 0 // what a filter leaves is not looked at
	before, err := c.Snapshot()
	if err != nil {
		return err
	}
	var copied *accelerated.Cache
	drop := func() error {
		if copied == nil {
			return nil
		}
		return copied.Close()
	}
	s.close = append(s.close, before.Close, drop)
	s.budget = 1
	s.reset = func() error {
		if err := drop(); err != nil {
			return err
		}
		var err error
		copied, err = before.Adopt()
		return err
	}
	kept := s.kept()
	s.step = func() error { return copied.Filter(kept) }
	return nil
}

func (s *subject) finalize() error {
	c, err := s.full(make([]int, s.Rows))
	if err != nil {
		return err
	}
	s.alone = true
	lengths, right := make([]int, s.Rows), make([]int, s.Rows)
	for i := range right {
		right[i] = i % s.Block
		lengths[i] = s.Block - right[i]
	}
	tokens := s.tokens(s.Rows, s.Block)
	s.budget = 1
	s.reset = func() error {
		if err := c.Prepare(accelerated.Padding{Lengths: lengths, RightPadding: right}); err != nil {
			return err
		}
		return s.write(c, tokens)
	}
	s.step = c.Finalize
	return nil
}

func (s *subject) rollback() error {
	c, err := s.full(make([]int, s.Rows))
	if err != nil {
		return err
	}
	s.alone = true
	tokens := s.tokens(s.Rows, s.Block)
	keep := make([]int, s.Rows)
	for i := range keep {
		keep[i] = 1 + i%s.Block
	}
	var before []int
	s.budget = 1
	s.reset = func() error {
		before = append(before[:0], c.Position().Offset...)
		return s.write(c, tokens)
	}
	s.step = func() error { return c.Rollback(before, keep, false) }
	return nil
}

func (s *subject) quantize() error {
	var c *accelerated.Cache
	drop := func() error {
		if c == nil {
			return nil
		}
		return c.Close()
	}
	s.close = append(s.close, drop)
	s.budget = 1
	s.reset = func() error {
		if err := drop(); err != nil {
			return err
		}
		var err error
		c, err = accelerated.NewBatchRotating(s.dev, s.config(), make([]int, s.Rows))
		return err
	}
	tokens := s.tokens(s.Rows, s.Window)
	s.step = func() error {
		kv, err := c.Update(tokens[0], tokens[1])
		if err != nil {
			return err
		}
		s.held = kv.Keys[0].Buffer.Size()
		return nil
	}
	return nil
}

func (s *subject) attend() error {
	c, err := s.full(make([]int, s.Rows))
	if err != nil {
		return err
	}
	s.alone = true
	queries := normal(s.Rows, s.QueryHeads, 1, s.KeyDim)
	out := accelerated.HostView(ring.Array{DType: ring.Float32, Shape: [4]int{s.Rows, s.QueryHeads, 1, s.ValueDim}})
	out.Host = make([]byte, out.Bytes())
	scale := float32(1 / math.Sqrt(float64(s.KeyDim)))
	s.step = func() error { return c.Attend(out, queries, scale) }
	return nil
}

// errorsAfter closes what an error leaves behind. The error counts.
func errorsAfter(err error, closer func() error) error {
	_ = closer() // it would say no more
	return err
}

// counting is a device that counts the bytes that it is told to write.
type counting struct {
	accelerated.Device
	written int
}

// Run counts by the plan: moved columns, new columns, masks.
func (d *counting) Run(w *accelerated.Work) error {
	if w.Store != nil {
		column := 0
		for _, p := range w.Store.Planes {
			column += p.Width * w.Store.Heads
		}
		if w.Move != nil {
			for _, r := range w.Move.Runs {
				d.written += int(r.N) * column
			}
		}
		if w.Write != nil {
			d.written += w.Write.Keys.Shape[0] * w.Write.Keys.Shape[2] * column
		}
	}
	if m := w.Mask; m != nil {
		d.written += m.B * m.N * m.S
	}
	return d.Device.Run(w)
}

// written is how many bytes a step of w writes on a device, by its plans, on
// the mean over a cycle.
func written(dev accelerated.Device, w Work) (float64, error) {
	counted := &counting{Device: dev}
	s, err := newSubject(counted, w)
	if err != nil {
		return 0, err
	}
	if s.reset == nil {
		_, err = s.run(s.cycle) // into the steady state
	}
	total := 0
	for range s.cycle {
		if s.reset != nil && err == nil {
			err = s.reset()
		}
		counted.written = 0
		if err == nil {
			err = s.step()
		}
		total += counted.written
	}
	if err != nil {
		return 0, errorsAfter(err, s.Close)
	}
	return float64(total) / float64(s.cycle), s.Close()
}
