package kernels

import (
	"unsafe"

	"example.com/ringcheck/accelerated"
)

// write adds the launch that writes new tokens and a mask.
func (e *engine) write(w *accelerated.Work) error {
	var a writeArgs
	var bindings [5]Binding
	kernel := writers[0]
	if w.Write != nil {
		s := w.Store
		bindings[0] = Binding{s.Buffer, 0}
		a.Heads, a.Columns, a.At, a.N = uint32(s.Heads), uint32(s.Columns), uint32(w.Write.At), uint32(w.Write.Keys.Shape[2])
		a.Group, a.Bits = uint32(s.Quant.GroupSize), uint32(s.Quant.Bits)
		a.Per = perLane(w.Write.Keys.Bytes())
		if s.Quant.Bits > 0 {
			kernel = writers[s.DType]
		}
		for i, v := range [2]*accelerated.View{&w.Write.Keys, &w.Write.Values} {
			if v.DType == 0 || v.Bytes() == 0 {
				continue
			}
			unit := 1
			if s.Quant.Bits > 0 {
				unit = v.DType.Size()
			}
			d, err := e.onDevice(v, unit)
			if err != nil {
				return err
			}
			bindings[1+i] = Binding{d.Buffer, 0}
			if planes := s.Planes[3*i:][:3]; s.Quant.Bits > 0 {
				a.Sides[i] = quantizedSide(&d, planes)
			} else {
				a.Sides[i] = plainSide(&d, planes[0].Offset, planes[0].Width, a.Per)
			}
		}
	}
	if m := w.Mask; m != nil {
		bindings[3] = Binding{m.Buffer, 0}
		a.Mask = maskPart{
			Offset: uint64(m.Offset), N: uint32(m.N), S: uint32(m.S),
			Past: int32(m.Past), Window: int32(min(m.Window, m.Past+m.N)), Shift: uint32(m.Shift),
			Warps: uint32(m.B * m.N),
		}
		if m.B > maxFirsts {
			a.Mask.Tabled = 1
			bindings[4] = e.stage(bytesOf(m.First[:m.B]))
		} else {
			copy(a.First[:], m.First[:m.B])
		}
	}
	a.Warps = a.Sides[0].Warps + a.Sides[1].Warps + a.Mask.Warps
	launch(e, kernel, a.Warps, &a, bindings[:]...)
	return nil
}

func bytesOf[T any](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// copyTo adds a launch that makes a dense copy of a view, from byte offset of
// to on.
func (e *engine) copyTo(to accelerated.Buffer, offset int, v *accelerated.View) {
	a := writeArgs{Heads: uint32(v.Shape[1]), Columns: uint32(v.Shape[2]), N: uint32(v.Shape[2])}
	a.Per = perLane(v.Bytes())
	a.Sides[0] = plainSide(v, offset, v.Shape[3]*v.DType.Size(), a.Per)
	a.Warps = a.Sides[0].Warps
	launch(e, writers[0], a.Warps, &a, Binding{to, 0}, Binding{v.Buffer, 0}, Binding{}, Binding{}, Binding{})
}

// perLane is how many units of a plain write each lane copies: several where
// there is enough for many warps.
func perLane(bytes int) uint32 {
	if bytes >= 4<<20 {
		return 8
	}
	return 1
}

func plainSide(v *accelerated.View, plane, width int, per uint32) side {
	s := side{Src: uint64(v.Offset), Plane: [3]uint64{uint64(plane)}, Width: [3]uint32{uint32(width)}}
	for i, stride := range v.Stride {
		s.Stride[i] = uint64(stride)
	}
	s.Unit = uint32(unitOf(alignment(v) | plane | width))
	units := uint32(v.Shape[2]) * (s.Width[0] / s.Unit)
	s.Parts = (units + per*Warp - 1) / (per * Warp)
	s.Warps = uint32(v.Shape[0]*v.Shape[1]) * s.Parts
	return s
}

// quantizedSide gives each lane eight elements.
func quantizedSide(v *accelerated.View, planes []accelerated.Plane) side {
	s := side{Src: uint64(v.Offset), Dim: uint32(v.Shape[3])}
	for i, stride := range v.Stride {
		s.Stride[i] = uint64(stride)
	}
	for i, p := range planes {
		s.Plane[i], s.Width[i] = uint64(p.Offset), uint32(p.Width)
	}
	s.Unit = uint32(unitOf(alignment(v)))
	s.Parts = (uint32(v.Shape[2])*s.Dim/8 + Warp - 1) / Warp
	s.Warps = uint32(v.Shape[0]*v.Shape[1]) * s.Parts
	return s
}
