package corpus

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"

	"example.com/ringcheck/reference/ring"
)

// String returns the name used in text: "grid" or "bits".
func (f Fill) String() string {
	switch f {
	case Grid:
		return "grid"
	case Bits:
		return "bits"
	}
	return fmt.Sprintf("Fill(%d)", uint8(f))
}

// The planes of a token.
const (
	KeyPlane   = 0
	ValuePlane = 1
	QueryPlane = 2 // of attend
)

// Width returns the elements of one head of a token in a plane, or of a slot of
// recurrent state, whose plane is its number modulo 2.
func (s Shape) Width(plane int) int {
	if plane == ValuePlane {
		return s.ValueDim
	}
	return s.KeyDim
}

// element returns 32 bits that depend on every argument.
func element(id, plane, head, d int) uint32 {
	x := uint32(id)*0x9E3779B1 + uint32(2*head+plane)*0x85EBCA6B + uint32(d)*0xC2B2AE35
	x ^= x >> 16
	x *= 0x7FEB352D
	x ^= x >> 15
	x *= 0x846CA68B
	x ^= x >> 16
	return x
}

// gridBits holds the bit patterns of (v-128)/64 for v from 0 to 255, which the
// three types hold exactly.
var gridBits = func() (t [ring.Float32 + 1][256]uint32) {
	for v := range 256 {
		f := math.Float32bits(float32(v-128) / 64)
		t[ring.Float32][v], t[ring.BFloat16][v] = f, f>>16
		if f != 0 {
			// Normal in float16: rebias the exponent by 15-127, keep 10 of 23 bits.
			t[ring.Float16][v] = f>>16&0x8000 | (f>>23&0xFF-112)<<10 | f>>13&0x3FF
		}
	}
	return t
}()

// appendElements appends the first n elements of a head.
func appendElements(b []byte, n, id, plane, head int, t ring.DType, f Fill) []byte {
	for d := range n {
		x := element(id, plane, head, d)
		if f == Grid {
			x = gridBits[t][x&0xFF]
		}
		if t == ring.Float32 {
			b = binary.LittleEndian.AppendUint32(b, x)
		} else {
			b = binary.LittleEndian.AppendUint16(b, uint16(x))
		}
	}
	return b
}

// AppendToken appends the bytes of token id in a plane to b: [h][d] elements of
// the shape's data type, little-endian.
func AppendToken(b []byte, id, plane int, s Shape, f Fill) []byte {
	for h := range s.KVHeads {
		b = appendElements(b, s.Width(plane), id, plane, h, s.DType, f)
	}
	return b
}

// TokenArray returns a plane of tokens, one list a row, as an array [b, h, s,
// d] with s the length of the first row. The rows are of one length, as Parse
// makes sure.
func TokenArray(s Shape, f Fill, plane int, tokens [][]int) ring.Array {
	cols := 0
	if len(tokens) > 0 {
		cols = len(tokens[0])
	}
	a := ring.Array{DType: s.DType, Shape: [4]int{len(tokens), s.KVHeads, cols, s.Width(plane)}}
	a.Data = make([]byte, 0, len(tokens)*s.KVHeads*cols*s.Width(plane)*s.DType.Size())
	for _, row := range tokens {
		for h := range s.KVHeads {
			for _, id := range row {
				a.Data = appendElements(a.Data, s.Width(plane), id, plane, h, s.DType, f)
			}
		}
	}
	return a
}

// AppendColumn appends the bytes of one column of one row of a to b: [h][d],
// as AppendToken orders them.
func AppendColumn(b []byte, a ring.Array, row, col int) []byte {
	width := a.Shape[3] * a.DType.Size()
	for h := range a.Shape[1] {
		at := ((row*a.Shape[1]+h)*a.Shape[2] + col) * width
		b = append(b, a.Data[at:at+width]...)
	}
	return b
}

// TokenIDs yields the ids that c feeds, in order, as often as it feeds them,
// each with the index of its operation.
func (c Case) TokenIDs() iter.Seq2[int, int] {
	return func(yield func(op, id int) bool) {
		for i := range c.Ops {
			for _, row := range c.Ops[i].Tokens {
				for _, id := range row {
					if !yield(i, id) {
						return
					}
				}
			}
		}
	}
}

// Lookup finds the id of a token by the bytes of its column. All columns of a
// Lookup are of one form of storage: keys and values, or six quantized planes,
// or one slot of recurrent state. It is for one goroutine.
type Lookup struct {
	ids map[string]int
	key []byte
}

// NewLookup returns a Lookup that knows no token.
func NewLookup() *Lookup { return &Lookup{ids: map[string]int{}} }

// PlainLookup returns a Lookup of all tokens that c feeds, by their keys and
// values.
func PlainLookup(c Case) *Lookup {
	l := NewLookup()
	var k, v []byte
	for _, id := range c.TokenIDs() {
		k = AppendToken(k[:0], id, KeyPlane, c.Shape, c.Fill)
		v = AppendToken(v[:0], id, ValuePlane, c.Shape, c.Fill)
		l.Add(id, k, v)
	}
	return l
}

// Add makes the column known whose planes hold these bytes. It returns false,
// and changes nothing, where the bytes are those of another id already, or all
// zero, as quantization of arbitrary bits may make them.
func (l *Lookup) Add(id int, planes ...[]byte) bool {
	old, known := l.ID(planes...)
	if !known {
		l.ids[string(l.key)] = id
	}
	return !known || old == id
}

// ID returns the id of the column whose planes hold these bytes: 0 where all
// are zero, and false where no such column was added.
func (l *Lookup) ID(planes ...[]byte) (int, bool) {
	l.key = l.key[:0]
	for _, p := range planes {
		l.key = append(l.key, p...)
	}
	if allZero(l.key) {
		return 0, true
	}
	id, ok := l.ids[string(l.key)]
	return id, ok
}

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
