package kernels

import (
	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference/ring"
)

// dense reports whether a view's elements lie one after another.
func dense(v *accelerated.View) bool {
	stride := v.Shape[3] * v.DType.Size()
	for axis := 2; axis >= 0; axis-- {
		if v.Shape[axis] > 1 && v.Stride[axis] != stride {
			return false
		}
		stride *= v.Shape[axis]
	}
	return true
}

// gather appends the elements of a view in host memory, in order, to dst.
func gather(dst []byte, v *accelerated.View) []byte {
	if dense(v) {
		return append(dst, v.Host[v.Offset:][:v.Bytes()]...)
	}
	n := v.Shape[3] * v.DType.Size()
	for b := range v.Shape[0] {
		for h := range v.Shape[1] {
			for s := range v.Shape[2] {
				dst = append(dst, v.Host[v.Offset+b*v.Stride[0]+h*v.Stride[1]+s*v.Stride[2]:][:n]...)
			}
		}
	}
	return dst
}

// alignment is or-ed together from the addresses that accesses to a view have:
// what they are all multiples of, it is.
func alignment(v *accelerated.View) int {
	all := v.Offset
	for axis, stride := range v.Stride {
		if v.Shape[axis] > 1 {
			all |= stride
		}
	}
	return all
}

// unitOf is the widest access, in bytes, that suits an alignment.
func unitOf(all int) int {
	switch {
	case all&15 == 0:
		return 16
	case all&3 == 0:
		return 4
	case all&1 == 0:
		return 2
	}
	return 1
}

// onDevice is a view's elements in memory of the device, each at a multiple of
// unit bytes: the view itself, or a dense copy that lasts until the call ends.
func (e *engine) onDevice(v *accelerated.View, unit int) (accelerated.View, error) {
	if v.Buffer != nil && alignment(v)%unit == 0 {
		return *v, nil
	}
	d := accelerated.HostView(ring.Array{DType: v.DType, Shape: v.Shape})
	switch {
	case v.Buffer != nil:
		temp, err := e.temp(v.Bytes())
		if err != nil {
			return d, err
		}
		e.copyTo(temp, 0, v)
		d.Buffer = temp
	case dense(v) && v.Bytes() > keepStaging/2:
		temp, err := e.temp(v.Bytes())
		if err != nil {
			return d, err
		}
		d.Buffer = temp
		return d, e.backend.Upload(temp, 0, v.Host[v.Offset:][:v.Bytes()])
	default:
		d.Offset = e.stageRoom(v.Bytes())
		gather(e.staging[:d.Offset], v)
		d.Buffer = staged{}
	}
	return d, nil
}
