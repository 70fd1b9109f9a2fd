package conformance

import (
	"encoding/binary"
	"fmt"
	"math"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference/ring"
)

// tolerance is what the order of sums may make of a result, for each unit of
// the largest value.
const tolerance = 1e-5

// sameView compares what is downloaded of some columns of a plane.
func (p *pair) sameView(s *store) error {
	plane := s.Planes[accelerated.KeyData]
	n := p.between(1, s.Columns)
	v := accelerated.View{DType: ring.Bool, Shape: [4]int{s.Rows, s.Heads, n, plane.Width}}
	v.Stride = [3]int{s.Heads * s.Columns * plane.Width, s.Columns * plane.Width, plane.Width}
	v.Offset = plane.Offset + p.between(0, s.Columns-n)*plane.Width
	var data [2][]byte
	for i, dev := range p.devices {
		data[i] = make([]byte, v.Bytes())
		on := v
		on.Buffer = s.buffer[i]
		if err := dev.Download(data[i], on); err != nil {
			return err
		}
	}
	return p.sameBytes("byte of a view", data)
}

// moderate draws a number around 1, with few bits.
func (p *pair) moderate() float32 { return float32(p.between(-128, 128)) / 64 }

// plain is n elements that are moderate, and their greatest magnitude.
func (p *pair) plain(t ring.DType, n int, scale float32) ([]byte, float64) {
	some, most := make([]float32, 61), 0.0
	for i := range some {
		some[i] = p.moderate() * scale
		most = max(most, math.Abs(float64(some[i])))
	}
	pick := p.noise(n)
	out := make([]byte, 0, n*t.Size())
	for _, i := range pick {
		out = appendElement(out, t, bitsOf(t, some[int(i)%len(some)]))
	}
	return out, most
}

// attend compares one attention.
func (p *pair) attend() error {
	s := &store{Store: p.shape()}
	// What models have most often, and kernels are made for: one query, too.
	usual := p.draw(3) == 0
	if usual {
		s.DType, s.KeyDim, s.ValueDim = ring.BFloat16, 128, 128
		if s.Quant.Bits > 0 {
			s.Quant = accelerated.Quant{GroupSize: 64, Bits: 4}
		}
	}
	size := lay(&s.Store, p.between(1, 3), [...]int{p.between(1, 40), p.between(1, 40), p.between(40, 400), p.between(40, 400), p.between(400, 1200)}[p.draw(5)])
	span := p.between(1, s.Columns)
	from := p.between(0, s.Columns-span)

	data := p.noise(size) // codes may be anything
	most := 1.0
	for i, plane := range s.Planes {
		if plane.Width == 0 || i%3 == 0 && s.Quant.Bits > 0 {
			continue
		}
		scale := float32(1)
		if i%3 == 1 {
			scale = 2 / float32(int(1)<<s.Quant.Bits)
		}
		elements, m := p.plain(s.DType, s.Rows*s.Heads*s.Columns*plane.Width/s.DType.Size(), scale)
		copy(data[plane.Offset:], elements)
		if i >= accelerated.ValueData {
			if i%3 == 1 {
				m *= float64(int(1)<<s.Quant.Bits - 1)
			}
			most += m
		}
	}

	rows, n, ratio := p.between(1, s.Rows), p.between(1, min(6, span)), p.between(1, 5)
	if usual && p.draw(4) > 0 {
		n, ratio = 1, 1
	}
	a := accelerated.Attention{From: from, S: span, Scale: float32(1 / math.Sqrt(float64(s.KeyDim)))}
	var mask both
	if p.bool() {
		// Some columns are masked for all, and hold garbage; others for some.
		bits := make([]byte, rows*n*span)
		pick, dead := p.noise(len(bits)), p.noise(span)
		rare := byte(p.draw(256))
		for i := range bits {
			if c := i % span; dead[c]%4 > 0 && pick[i] >= rare {
				bits[i] = 1
			}
		}
		garbage := [...]byte{0xFF, 0x7F}[p.draw(2)] // NaN; in two of the types the largest numbers
		for c, d := range dead {
			if d%4 == 0 {
				p.spoil(s, data, from+c, garbage)
			}
		}
		a.Mask = accelerated.MaskView{Offset: p.draw(20), B: rows, N: n, S: span}
		mask = p.upload(append(make([]byte, a.Mask.Offset), bits...))
	}
	s.buffer = p.upload(data)

	heads := s.Heads * ratio
	queries, _ := p.plain(s.DType, rows*heads*n*s.KeyDim, 0.5)
	query := p.view(s.DType, [4]int{rows, heads, n, s.KeyDim}, queries)
	a.Out = accelerated.HostView(ring.Array{DType: ring.Float32, Shape: [4]int{rows, heads, n, s.ValueDim}})
	a.Out.Offset = p.draw(3) * p.between(1, 5)
	count := a.Out.Bytes() / 4
	var out both
	onHost := p.bool()
	if !onHost {
		out = p.upload(p.noise(a.Out.Offset + 4*count))
	}
	var results [2][]byte
	for i, dev := range p.devices {
		on := a
		on.Store, on.Query, on.Mask.Buffer, on.Out.Buffer = s.on(i), query[i], mask[i], out[i]
		if onHost {
			on.Out.Host = make([]byte, a.Out.Offset+4*count)
		}
		if err := dev.Attend(&on); err != nil {
			return fmt.Errorf("%s: %w", dev.Name(), err)
		}
		results[i] = make([]byte, 4*count)
		if err := dev.Download(results[i], on.Out); err != nil {
			return fmt.Errorf("%s: %w", dev.Name(), err)
		}
	}
	for i := range count {
		g := math.Float32frombits(binary.LittleEndian.Uint32(results[0][4*i:]))
		w := math.Float32frombits(binary.LittleEndian.Uint32(results[1][4*i:]))
		if d := math.Abs(float64(g) - float64(w)); !(d <= tolerance*most) {
			return fmt.Errorf("attention of %v over %d columns from %d of %d rows, %d heads, %d columns of %v, %d and %d wide, %+v, masked %v: element %d is %v on %s and %v on %s",
				query[0].Shape, span, from, s.Rows, s.Heads, s.Columns, s.DType, s.KeyDim, s.ValueDim, s.Quant, mask[0] != nil,
				i, g, p.devices[0].Name(), w, p.devices[1].Name())
		}
	}
	return nil
}

// spoil fills a column of all rows and heads with a byte.
func (p *pair) spoil(s *store, data []byte, column int, with byte) {
	for i, plane := range s.Planes {
		if plane.Width == 0 || i%3 == 0 && s.Quant.Bits > 0 {
			continue
		}
		for strip := range s.Rows * s.Heads {
			at := data[plane.Offset+(strip*s.Columns+column)*plane.Width:]
			for j := range plane.Width {
				at[j] = with
			}
		}
	}
}
