package conformance

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference/ring"
)

// Draw returns a number from 0 to n-1; n is at least 1.
type Draw func(n int) int

// Seeded draws from a generator with a seed.
func Seeded(seed uint64) Draw {
	r := rand.New(rand.NewPCG(seed, 0x9E3779B97F4A7C15))
	return r.IntN
}

// Run does a few random works on both devices. The error says after which one
// their memory differs.
func Run(got, want accelerated.Device, draw Draw) error {
	return with(got, want, draw, func(p *pair) error {
		s := p.store(p.shape())
		for range 1 + draw(4) {
			w := p.work(s)
			what := describe(w[0])
			for i, dev := range p.devices {
				if err := dev.Run(w[i]); err != nil {
					return fmt.Errorf("%s: %s: %w", what, dev.Name(), err)
				}
			}
			buffers := []both{s.buffer}
			if w[0].Mask != nil {
				buffers = append(buffers, both{w[0].Mask.Buffer, w[1].Mask.Buffer})
			}
			for _, b := range buffers {
				if err := p.same(b); err != nil {
					return fmt.Errorf("%s: %w", what, err)
				}
			}
		}
		return p.sameView(s)
	})
}

// Attend computes a random attention on both devices.
func Attend(got, want accelerated.Device, draw Draw) error {
	return with(got, want, draw, func(p *pair) error { return p.attend() })
}

// with gives f a pair of devices, and counts their buffers afterwards.
func with(got, want accelerated.Device, draw Draw, f func(*pair) error) error {
	p := &pair{devices: [2]accelerated.Device{got, want}, draw: draw}
	var before [2]accelerated.Stats
	for i, dev := range p.devices {
		before[i] = dev.Stats()
	}
	err := f(p)
	for _, b := range p.buffers {
		for i, dev := range p.devices {
			dev.Free(b[i])
		}
	}
	for i, dev := range p.devices {
		if s := dev.Stats(); err == nil && s.Live != before[i].Live {
			err = fmt.Errorf("%s: %d buffers are live, and were %d before", dev.Name(), s.Live, before[i].Live)
		}
	}
	return err
}

// both is a buffer of each device.
type both [2]accelerated.Buffer

// pair is two devices that are given the same.
type pair struct {
	devices [2]accelerated.Device
	draw    Draw
	buffers []both
}

func (p *pair) bool() bool { return p.draw(2) == 0 }

// between is a number from low to high.
func (p *pair) between(low, high int) int { return low + p.draw(high-low+1) }

// must panics: there is nothing to compare when a device has no memory.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// upload makes a buffer of some bytes on both devices.
func (p *pair) upload(data []byte) both {
	var b both
	for i, dev := range p.devices {
		var err error
		b[i], err = dev.Alloc(len(data))
		must(err)
		must(dev.Upload(b[i], 0, data))
	}
	p.buffers = append(p.buffers, b)
	return b
}

// same compares a buffer's bytes.
func (p *pair) same(b both) error {
	var data [2][]byte
	for i, dev := range p.devices {
		n := b[0].Size()
		data[i] = make([]byte, n)
		v := accelerated.HostView(ring.Array{DType: ring.Bool, Shape: [4]int{1, 1, 1, n}})
		v.Buffer = b[i]
		if err := dev.Download(data[i], v); err != nil {
			return err
		}
	}
	return p.sameBytes("byte", data)
}

func (p *pair) sameBytes(what string, data [2][]byte) error {
	if bytes.Equal(data[0], data[1]) {
		return nil
	}
	at, n := -1, 0
	for i := range data[0] {
		if data[0][i] != data[1][i] {
			n++
			if at < 0 {
				at = i
			}
		}
	}
	return fmt.Errorf("%s %d is %#x on %s and %#x on %s (%d of %d differ)",
		what, at, data[0][at], p.devices[0].Name(), data[1][at], p.devices[1].Name(), n, len(data[0]))
}

// store is a store on both devices.
type store struct {
	accelerated.Store // without its buffer
	buffer            both
}

func (s *store) on(i int) *accelerated.Store {
	out := s.Store
	out.Buffer = s.buffer[i]
	return &out
}

var types = [...]ring.DType{ring.BFloat16, ring.Float16, ring.Float32}

// shape draws what a store holds, but not how much.
func (p *pair) shape() accelerated.Store {
	s := accelerated.Store{Heads: p.between(1, 3), DType: types[p.draw(3)]}
	if p.bool() {
		s.Quant = accelerated.Quant{GroupSize: 32 << p.draw(3), Bits: [...]int{2, 3, 4, 4, 5, 6, 8}[p.draw(7)]}
		s.KeyDim, s.ValueDim = s.Quant.GroupSize*p.between(1, 3), s.Quant.GroupSize*p.between(1, 3)
		return s
	}
	s.KeyDim, s.ValueDim = p.dim(), p.dim()
	return s
}

func (p *pair) dim() int {
	if p.bool() {
		return 8 * p.between(1, 34)
	}
	return p.between(1, 20)
}

// lay adds rows, columns and planes, and returns the store's size in bytes.
func lay(s *accelerated.Store, rows, columns int) int {
	s.Rows, s.Columns = rows, columns
	size := 0
	for side, dim := range [2]int{s.KeyDim, s.ValueDim} {
		widths := [3]int{dim * s.DType.Size()}
		if q := s.Quant; q.Bits > 0 {
			scales := dim / q.GroupSize * s.DType.Size()
			widths = [3]int{dim * q.Bits / 8, scales, scales}
		}
		for i, w := range widths {
			if w == 0 {
				continue
			}
			s.Planes[3*side+i] = accelerated.Plane{Offset: size, Width: w}
			size += (rows*s.Heads*columns*w + accelerated.Align - 1) / accelerated.Align * accelerated.Align
		}
	}
	return size
}

// store draws a store of a shape that holds anything.
func (p *pair) store(shape accelerated.Store) *store {
	s := &store{Store: shape}
	rows, columns := p.between(1, 5), p.between(1, 40)
	if p.draw(12) == 0 { // more runs than a launch's arguments have room for
		rows, columns = p.between(60, 90), p.between(1, 4)
	}
	size := lay(&s.Store, rows, columns)
	s.buffer = p.upload(p.noise(size))
	return s
}

// noise is n bytes.
func (p *pair) noise(n int) []byte {
	r := rand.New(rand.NewPCG(uint64(p.draw(1<<30)), 0))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// work draws a work on a store, for both devices.
func (p *pair) work(s *store) [2]*accelerated.Work {
	var out [2]*accelerated.Work
	for i := range out {
		out[i] = &accelerated.Work{Store: s.on(i)}
	}
	parts := p.between(1, 7)
	if parts&1 != 0 {
		p.move(s, out)
	}
	if parts&2 != 0 {
		p.write(s, out)
	}
	if parts&4 != 0 {
		p.mask(out)
		if parts == 4 {
			out[0].Store, out[1].Store = nil, nil
		}
	}
	return out
}

func describe(w *accelerated.Work) string {
	text := "run"
	if s := w.Store; s != nil {
		text += fmt.Sprintf(" on %d rows, %d heads, %d columns of %v, %d and %d wide, %+v", s.Rows, s.Heads, s.Columns, s.DType, s.KeyDim, s.ValueDim, s.Quant)
	}
	if m := w.Move; m != nil {
		place := "apart"
		if len(m.Sources) == 1 && m.Sources[0].Buffer == w.Store.Buffer {
			place = "in place"
		}
		text += fmt.Sprintf(", move %s from %d stores by %v", place, len(m.Sources), m.Runs)
	}
	if x := w.Write; x != nil {
		text += fmt.Sprintf(", write %v at %d", x.Keys.Shape, x.At)
	}
	if m := w.Mask; m != nil {
		text += fmt.Sprintf(", mask %d %d %d past %d window %d shift %d first %v at %d", m.B, m.N, m.S, m.Past, m.Window, m.Shift, m.First, m.Offset)
	}
	return text
}
