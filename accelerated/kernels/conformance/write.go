package conformance

import (
	"encoding/binary"
	"math"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference/ring"
)

// write adds new tokens to a work.
func (p *pair) write(s *store, out [2]*accelerated.Work) {
	n, rows := p.between(1, s.Columns), p.between(1, s.Rows)
	at := p.between(0, s.Columns-n)
	var sides [2][2]accelerated.View
	for i, dim := range [2]int{s.KeyDim, s.ValueDim} {
		shape := [4]int{rows, s.Heads, n, dim}
		sides[i] = p.view(s.DType, shape, p.tokens(s.DType, rows*s.Heads*n*dim))
	}
	for i := range out {
		out[i].Write = &accelerated.Write{Keys: sides[0][i], Values: sides[1][i], At: at}
	}
}

// view is an array as a view for each device: of host memory or the device's,
// dense or not.
func (p *pair) view(t ring.DType, shape [4]int, data []byte) [2]accelerated.View {
	v := accelerated.HostView(ring.Array{DType: t, Shape: shape, Data: data})
	size := shape[3] * t.Size()
	if p.bool() {
		// Axes in another order, with gaps between.
		v.Stride[2] = size + p.gap(t)
		order := [...][3]int{{2, 1, 0}, {1, 2, 0}, {0, 2, 1}, {2, 0, 1}}[p.draw(4)]
		stride := size + p.gap(t)
		for _, axis := range order {
			v.Stride[axis] = stride
			stride = stride*shape[axis] + p.gap(t)
		}
		v.Offset = p.gap(t)
		v.Host = p.noise(v.Offset + stride)
		for b := range shape[0] {
			for h := range shape[1] {
				for s := range shape[2] {
					copy(v.Host[v.Offset+b*v.Stride[0]+h*v.Stride[1]+s*v.Stride[2]:], data[:size])
					data = data[size:]
				}
			}
		}
	}
	views := [2]accelerated.View{v, v}
	if p.bool() {
		b := p.upload(v.Host)
		for i := range views {
			views[i].Host, views[i].Buffer = nil, b[i]
		}
	}
	return views
}

// gap is some bytes, rarely not a multiple of an element.
func (p *pair) gap(t ring.DType) int {
	switch p.draw(8) {
	case 0:
		return p.draw(8)
	case 1, 2:
		return p.draw(5) * t.Size()
	case 3, 4:
		return p.draw(3) * 16
	}
	return 0
}

// tokens draws elements: independent ones, few different ones, or all one.
func (p *pair) tokens(t ring.DType, n int) []byte {
	some := make([]uint32, [...]int{1, 2, 7, 64}[p.draw(4)])
	for i := range some {
		some[i] = p.element(t)
	}
	pick := p.noise(n)
	out := make([]byte, 0, n*t.Size())
	for _, i := range pick {
		out = appendElement(out, t, some[int(i)%len(some)])
	}
	return out
}

func appendElement(dst []byte, t ring.DType, bits uint32) []byte {
	if t == ring.Float32 {
		return binary.LittleEndian.AppendUint32(dst, bits)
	}
	return binary.LittleEndian.AppendUint16(dst, uint16(bits))
}

// element draws the kinds of numbers on which roundings, ties, signs and limits
// depend.
func (p *pair) element(t ring.DType) uint32 {
	switch p.draw(8) {
	case 0:
		return uint32(p.draw(1<<16))<<16 | uint32(p.draw(1<<16))
	case 1, 2:
		return bitsOf(t, float32(p.between(-64, 64))/2) // ties
	case 3:
		special := [...]float64{0, math.Copysign(0, -1), 1e-7, 5e-8, 1e33, -1e33, 3e38, -3e38, 1e-40, -2e-40,
			math.Inf(1), math.Inf(-1), math.NaN(), 65504, 65520}
		return bitsOf(t, float32(special[p.draw(len(special))]))
	case 4:
		return bitsOf(t, -float32(p.between(1, 9)))
	}
	return bitsOf(t, float32(p.between(-1<<20, 1<<20))/(1<<18))
}

// bitsOf is a number in a data type, rounded anyhow.
func bitsOf(t ring.DType, f float32) uint32 {
	u := math.Float32bits(f)
	if t == ring.Float16 {
		sign, magnitude := u>>16&0x8000, u&^(1<<31)
		switch {
		case magnitude > 0x7F800000:
			return 0x7E01
		case magnitude >= 0x477FF000:
			return sign | 0x7C00
		case magnitude < 0x38800000:
			return sign | uint32(float64(math.Float32frombits(magnitude))*0x1p24)
		}
		return sign | (magnitude-(127-15)<<23)>>13
	}
	if t == ring.BFloat16 {
		return u >> 16
	}
	return u
}

// mask adds a mask to a work.
func (p *pair) mask(out [2]*accelerated.Work) {
	m := accelerated.Mask{
		B: p.between(1, 4), N: p.between(1, 6), S: p.between(1, 100),
		Offset: p.draw(40), Past: p.draw(100), Window: p.between(1, 120),
	}
	if p.draw(8) == 0 {
		m.B = p.between(100, 200)
	}
	if p.draw(4) == 0 {
		m.S = p.between(1, 1500)
	}
	m.Shift = p.draw(m.S)
	for range m.B {
		m.First = append(m.First, int32(p.between(-5, m.S+5)))
	}
	b := p.upload(p.noise(m.Offset + m.B*m.N*m.S + p.draw(40)))
	for i := range out {
		on := m
		on.Buffer = b[i]
		out[i].Mask = &on
	}
}

// Large writes megabytes on both devices, which may take other ways than a few
// bytes do, from memory of the host and of the device at each alignment.
func Large(got, want accelerated.Device, draw Draw) error {
	return with(got, want, draw, func(p *pair) error {
		for i, dim := range [...]int{64, 66, 65, 65} {
			s := &store{Store: accelerated.Store{Heads: 3, DType: ring.BFloat16, KeyDim: dim, ValueDim: dim}}
			const rows, columns = 2, 6000
			s.buffer = p.upload(p.noise(lay(&s.Store, rows, columns)))
			keys := p.noise(rows * s.Heads * columns * dim * 2)
			v := accelerated.HostView(ring.Array{DType: ring.BFloat16, Shape: [4]int{rows, s.Heads, columns, dim}, Data: keys})
			values := v
			if i == 3 {
				values.Offset = 1
			}
			memory := p.upload(append(make([]byte, values.Offset), keys...))
			for j, dev := range p.devices {
				values.Host, values.Buffer = nil, memory[j]
				if err := dev.Run(&accelerated.Work{Store: s.on(j), Write: &accelerated.Write{Keys: v, Values: values}}); err != nil {
					return err
				}
			}
			if err := p.same(s.buffer); err != nil {
				return err
			}
		}
		return nil
	})
}
