package cuda

import (
	"fmt"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference/ring"
)

// External describes an array [b, h, s, d] in the device's memory to another
// library, in DLPack's terms (DLTensor of kind kDLCUDA). It lends: the memory
// stays that of the view, and what the view says of its lifetime holds.
//
// Work on the array must come after that of this package. It does on Stream;
// elsewhere, after the device's Sync.
type External struct {
	Pointer uint64 // device pointer to the array's first element
	Device  int    // ordinal
	Stream  uintptr
	Code    uint8 // DLDataTypeCode: 1 unsigned, 2 float, 4 bfloat, 6 bool
	Bits    uint8 // of an element
	Shape   []int64
	Strides []int64 // in elements
}

// Describe describes a view. A view of host memory, or of memory that is not
// live on a device of this package, is an [*accelerated.BufferError]; strides
// that are no whole elements are a [*StrideError].
func Describe(v accelerated.View) (External, error) {
	const op = "describe"
	buf, ok := v.Buffer.(*Buffer)
	if !ok || !buf.live {
		return External{}, &accelerated.BufferError{Op: op, What: "view"}
	}
	size := v.DType.Size()
	e := External{
		Pointer: buf.pointer + uint64(v.Offset), Device: buf.backend.ordinal, Stream: buf.backend.stream,
		Bits: uint8(8 * size),
	}
	switch v.DType {
	case ring.BFloat16:
		e.Code = 4
	case ring.Float16, ring.Float32:
		e.Code = 2
	case ring.Bool:
		e.Code = 6
	default:
		e.Code = 1
	}
	for _, n := range v.Shape {
		e.Shape = append(e.Shape, int64(n))
	}
	for _, n := range v.Stride {
		if n%size != 0 {
			return External{}, &StrideError{Stride: n, Size: size}
		}
		e.Strides = append(e.Strides, int64(n/size))
	}
	e.Strides = append(e.Strides, 1)
	return e, nil
}

// DescribeMask describes a mask, as an array [b, 1, n, s] of booleans.
func DescribeMask(m accelerated.MaskView) (External, error) {
	buf, ok := m.Buffer.(*Buffer)
	if !ok || !buf.live {
		return External{}, &accelerated.BufferError{Op: "describe", What: "mask"}
	}
	b, n, s := int64(m.B), int64(m.N), int64(m.S)
	return External{
		Pointer: buf.pointer + uint64(m.Offset), Device: buf.backend.ordinal, Stream: buf.backend.stream,
		Code: 6, Bits: 8, Shape: []int64{b, 1, n, s}, Strides: []int64{n * s, n * s, s, 1},
	}, nil
}

// StrideError refuses a view that cannot be described in whole elements.
type StrideError struct{ Stride, Size int }

func (e *StrideError) Error() string {
	return fmt.Sprintf("describe: a stride of %d bytes is no number of elements of %d bytes; copy the view first", e.Stride, e.Size)
}
