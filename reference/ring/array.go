package ring

import "fmt"

// DType is the type of an array's elements.
type DType uint8

const (
	BFloat16 DType = iota + 1
	Float16
	Float32
	// Uint32 is the type of packed quantized planes.
	Uint32
	// Bool is the type of masks in a device's memory: one byte, 0 or 1.
	Bool
)

var dtypes = [...]struct {
	name string
	size int
}{BFloat16: {"bfloat16", 2}, Float16: {"float16", 2}, Float32: {"float32", 4}, Uint32: {"uint32", 4}, Bool: {"bool", 1}}

// String returns the name used wherever text is, for example "bfloat16".
func (t DType) String() string {
	if t == 0 || int(t) >= len(dtypes) {
		return fmt.Sprintf("DType(%d)", uint8(t))
	}
	return dtypes[t].name
}

// Size returns the bytes of one element; 0 for a value that is no data type.
func (t DType) Size() int {
	if int(t) >= len(dtypes) {
		return 0
	}
	return dtypes[t].size
}

// ParseDType is the inverse of [DType.String].
func ParseDType(name string) (DType, error) {
	for t := BFloat16; int(t) < len(dtypes); t++ {
		if dtypes[t].name == name {
			return t, nil
		}
	}
	return 0, fmt.Errorf("unknown data type %q: use bfloat16, float16, float32, uint32 or bool", name)
}

// Array is a dense array of columns with shape [b, h, s, d]: Data holds
// b*h*s*d elements, row-major and little-endian. The zero Array (no data type)
// stands for "no array", as mlx-lm's None does.
type Array struct {
	DType DType
	Shape [4]int
	Data  []byte
}

// IsZero reports whether a is the zero Array, which stands for "no array".
func (a Array) IsZero() bool { return a.DType == 0 }

// Columns returns the length of the s axis.
func (a Array) Columns() int { return a.Shape[2] }

// Rows returns the length of the b axis.
func (a Array) Rows() int { return a.Shape[0] }

// Tensor is a dense array of any rank whose first axis is the batch, as
// recurrent state has it: row-major, little-endian. The zero Tensor stands for
// "no array".
type Tensor struct {
	DType DType
	Shape []int
	Data  []byte
}

// IsZero reports whether t is the zero Tensor, which stands for "no array".
func (t Tensor) IsZero() bool { return t.DType == 0 }

// Rows returns the length of the first axis; 0 where there is none.
func (t Tensor) Rows() int {
	if len(t.Shape) == 0 {
		return 0
	}
	return t.Shape[0]
}

// Tensor returns a as a tensor of rank four, sharing its data.
func (a Array) Tensor() Tensor { return Tensor{a.DType, a.Shape[:], a.Data} }

// Array returns t as an array, sharing its data, and whether its rank is four.
func (t Tensor) Array() (Array, bool) {
	if len(t.Shape) != 4 {
		return Array{}, false
	}
	return Array{t.DType, [4]int(t.Shape), t.Data}, true
}

// Planes are the arrays that hold one side (keys or values) of a cache's
// columns: none, one (plain storage), or three (quantized storage: packed
// codes, scales, biases). All planes agree in b, h and s.
type Planes []Array

// KV is the two sides of a run of columns.
type KV struct{ Keys, Values Planes }

// Mask says which column each query may see: element (b, q, s) of Data, which
// is row-major over [B, 1, N, S], is true where query q of row b attends to
// column s. A one-dimensional mask of mlx-lm's has B = N = 1.
type Mask struct {
	B, N, S int
	Data    []bool
}

// At returns the element of row b, query q, column s.
func (m *Mask) At(b, q, s int) bool { return m.Data[(b*m.N+q)*m.S+s] }

// Sees reports whether query q of row b may see column s, and whether the mask
// says so at all: one without queries hides nothing, one of one row serves all
// rows. It takes any extents and any amount of data.
func (m *Mask) Sees(b, q, s int) (sees, ok bool) {
	if m.N == 0 {
		return true, true
	}
	if m.B == 1 {
		b = 0
	}
	if b >= m.B || q >= m.N || s >= m.S || (b*m.N+q)*m.S+s >= len(m.Data) {
		return false, false
	}
	return m.At(b, q, s), true
}

// Position is the bookkeeping of a batched ring: integers only, no columns.
// Ends is nil unless right padding is pending. All slices have one element a
// row. It shares nothing with the cache it was taken from.
type Position struct {
	MaxSize     int
	Offset      []int // position of each row's next token, pads counted while pending
	LeftPadding []int
	Idx         int // column of the next write
	Total       int // columns ever written, less those trimmed
	Rotated     bool
	Ends        []int
}

// Clone returns a deep copy.
func (p Position) Clone() Position {
	p.Offset = append([]int{}, p.Offset...)
	p.LeftPadding = append([]int{}, p.LeftPadding...)
	if p.Ends != nil {
		p.Ends = append([]int{}, p.Ends...)
	}
	return p
}
