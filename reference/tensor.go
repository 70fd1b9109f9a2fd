package reference

import (
	"fmt"
	"slices"

	"example.com/ringcheck/reference/ring"
)

// The functions of this file move rows of recurrent state, whose arrays may
// have any rank from one on. Each returns a tensor of its own.

// checkTensor refuses an array that is not whole, or has no axis.
func checkTensor(op string, t ring.Tensor) error {
	if want := sizeOf(t.DType, t.Shape); len(t.Shape) == 0 || len(t.Data) != want {
		return &ring.ShapeError{Op: op, What: fmt.Sprintf("array %v of %d bytes", t.Shape, len(t.Data)), Got: []int{len(t.Data)}, Want: []int{want}}
	}
	if t.DType.Size() == 0 {
		return &ring.DTypeError{Op: op, Got: t.DType}
	}
	return nil
}

func cloneTensor(t ring.Tensor) ring.Tensor {
	return ring.Tensor{DType: t.DType, Shape: slices.Clone(t.Shape), Data: slices.Clone(t.Data)}
}

func cloneTensors(list []ring.Tensor) []ring.Tensor {
	out := make([]ring.Tensor, len(list))
	for i, t := range list {
		out[i] = cloneTensor(t)
	}
	return out
}

// zeroRows returns n rows of zeros of like's row shape.
func zeroRows(like ring.Tensor, n int) ring.Tensor {
	out := ring.Tensor{DType: like.DType, Shape: slices.Clone(like.Shape), Data: make([]byte, n*rowBytes(like))}
	out.Shape[0] = n
	return out
}

func rowBytes(t ring.Tensor) int {
	n := t.DType.Size()
	for _, d := range t.Shape[1:] {
		n *= d
	}
	return n
}

// takeTensors gathers rows of every tensor that is there.
func takeTensors(list []ring.Tensor, rows []int) []ring.Tensor {
	out := make([]ring.Tensor, len(list))
	for i, t := range list {
		if t.IsZero() {
			continue
		}
		out[i] = zeroRows(t, len(rows))
		n := rowBytes(t)
		for j, r := range rows {
			copy(out[i].Data[j*n:(j+1)*n], t.Data[r*n:])
		}
	}
	return out
}

// appendRows returns the rows of a and then those of b, whose shape and data
// type must be a's.
func appendRows(op string, a, b ring.Tensor) (ring.Tensor, error) {
	if !slices.Equal(a.Shape[1:], b.Shape[1:]) {
		return ring.Tensor{}, &ring.ShapeError{Op: op, What: "slot without its rows", Got: b.Shape[1:], Want: a.Shape[1:]}
	}
	if a.DType != b.DType {
		return ring.Tensor{}, &ring.DTypeError{Op: op, Got: b.DType, Want: a.DType}
	}
	out := cloneTensor(a)
	out.Shape[0] += b.Shape[0]
	out.Data = append(out.Data, b.Data...)
	return out, nil
}

// firstTensor returns the first slot i that is written.
func firstTensor[C any](caches []C, slots func(C) []ring.Tensor, i int) ring.Tensor {
	for _, c := range caches {
		if t := slots(c)[i]; !t.IsZero() {
			return t
		}
	}
	return ring.Tensor{}
}

// tensorBytes is the bytes of all slots.
func tensorBytes(list []ring.Tensor) int {
	n := 0
	for _, t := range list {
		n += len(t.Data)
	}
	return n
}
