package metal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference/ring"
)

// group is how many elements the self-test quantizes at once.
const group = 32

// vectors are the groups, D1 to D11 of docs/semantics.md, on which what a GPU
// easily does (round half away, start a maximum at zero, flush subnormals, let
// a NaN through) makes other bytes than the canonical arithmetic.
var vectors = []vector{
	{"D1 element ties", ring.BFloat16, 2, []uint32{0xC040, 0xC020, 0xBF00, 0x0000}, 0x3F80, 0xC040, "e0"},
	{"D2 a tie of zero", ring.BFloat16, 4, []uint32{0xC0A0, 0x3F80, 0xC000, 0x0000}, 0x3ED5, 0xC0A0, "e0c7"},
	{"D2 at 2 bits", ring.BFloat16, 2, []uint32{0xC0A0, 0x3F80, 0xC000, 0x0000}, 0x4020, 0xC0A0, "98"},
	{"D2 at 8 bits", ring.BFloat16, 8, []uint32{0xC0A0, 0x3F80, 0xC000, 0x0000}, 0x3CC1, 0xC0A0, "00fe7fd4"},
	{"D3 all negative", ring.BFloat16, 4, []uint32{0xBF80, 0xC000, 0xBFC0, 0xBFA0}, 0x3D89, 0xC000, "0fb7"},
	{"D4 all equal, negative", ring.BFloat16, 8, []uint32{0xBF80}, 0xB3D7, 0xBF80, "00"},
	{"D5 a NaN", ring.BFloat16, 8, []uint32{0x7FC0, 0x3F80, 0xC000, 0x3F00}, 0x3C41, 0xC000, "00ff00d4"},
	{"D6 all NaN, bfloat16", ring.BFloat16, 8, []uint32{0x7FC0}, 0x7FC0, 0xFF80, "00"},
	{"D6 all NaN, float16", ring.Float16, 8, []uint32{0x7E00}, 0x7E00, 0xFC00, "00"},
	{"D6 all NaN, float32", ring.Float32, 8, []uint32{0x7FC00000}, 0x7FC00000, 0xFF800000, "00"},
	{"D7 infinite, bfloat16", ring.BFloat16, 8, []uint32{0x7F80, 0x3F80, 0xC000, 0x3F00}, 0x7FC0, 0x7F80, "00"},
	{"D7 infinite, float16", ring.Float16, 8, []uint32{0x7C00, 0x3C00, 0xC000, 0x3800}, 0x7E00, 0x7C00, "00"},
	{"D7 infinite, float32", ring.Float32, 8, []uint32{0x7F800000, 0x3F800000, 0xC0000000, 0x3F000000}, 0x7FC00000, 0x7F800000, "00"},
	{"D8 huge, all equal", ring.BFloat16, 8, []uint32{0x7645}, 0x8000, 0x7645, "00"},
	{"D8 huge, negative", ring.Float32, 8, []uint32{0xF6453719}, 0x80000000, 0xF6453719, "00"},
	{"D9 subnormal, float32", ring.Float32, 8, []uint32{0x80022D85, 0x000116C2}, 0x33D6BF95, 0, "00"},
	{"D9 subnormal, bfloat16", ring.BFloat16, 8, []uint32{0x8002, 0x0001}, 0x33D7, 0, "00"},
	{"D9 subnormal, float16", ring.Float16, 8, []uint32{0x8003, 0x0002}, 0x0002, 0x8003, "0003"},
	{"D10 half epsilon", ring.Float32, 8, []uint32{0x3356BF95, 0x00000000, 0xB356BF95, 0x00000000}, 0xB3D6BF95, 0, "00"},
	{"D11 symmetric, bfloat16", ring.BFloat16, 8, []uint32{0x3F80, 0xBF80, 0x3F00, 0xBF00}, 0xBC01, 0x3F80, "00fe40be"},
	{"D11 symmetric, float16", ring.Float16, 8, []uint32{0x3C00, 0xBC00, 0x3800, 0xB800}, 0xA008, 0x3C00, "00fe40be"},
	{"D11 symmetric, float32", ring.Float32, 8, []uint32{0x3F800000, 0xBF800000, 0x3F000000, 0xBF000000}, 0xBC010204, 0x3F800000, "00fe40be"},
}

type vector struct {
	name        string
	dtype       ring.DType
	bits        int
	elements    []uint32 // as bits; repeated, to make a group
	scale, bias uint32   // as bits
	packed      string   // codes, in hexadecimal; repeated
}

// planes are the group's elements, and what they are quantized to.
func (v *vector) planes() (elements, packed, scale, bias []byte) {
	number := func(to []byte, u uint32) []byte {
		return append(to, binary.LittleEndian.AppendUint32(nil, u)[:v.dtype.Size()]...)
	}
	for _, u := range slices.Repeat(v.elements, group/len(v.elements)) {
		elements = number(elements, u)
	}
	unit, _ := hex.DecodeString(v.packed)
	return elements, bytes.Repeat(unit, group*v.bits/8/len(unit)), number(nil, v.scale), number(nil, v.bias)
}

// selfTest has a device quantize all vectors. Its error names the first that
// comes out otherwise than it should.
func selfTest(dev accelerated.Device) error {
	buffer, err := dev.Alloc(3 * accelerated.Align)
	if err != nil {
		return err
	}
	defer dev.Free(buffer)
	for i := range vectors {
		v := &vectors[i]
		elements, packed, scale, bias := v.planes()
		store := accelerated.Store{
			Buffer: buffer, Rows: 1, Heads: 1, Columns: 1, DType: v.dtype, KeyDim: group,
			Quant: accelerated.Quant{GroupSize: group, Bits: v.bits},
		}
		wants := [...][]byte{packed, scale, bias}
		for j, want := range wants {
			store.Planes[accelerated.KeyData+j] = accelerated.Plane{Offset: j * accelerated.Align, Width: len(want)}
		}
		keys := accelerated.HostView(ring.Array{DType: v.dtype, Shape: [4]int{1, 1, 1, group}, Data: elements})
		if err := dev.Run(&accelerated.Work{Store: &store, Write: &accelerated.Write{Keys: keys}}); err != nil {
			return fmt.Errorf("self-test %s: %w", v.name, err)
		}
		for j, want := range wants {
			n := len(want)
			got := make([]byte, n)
			plane := accelerated.View{
				Buffer: buffer, Offset: j * accelerated.Align, DType: ring.Bool,
				Shape: [4]int{1, 1, 1, n}, Stride: [3]int{n, n, n},
			}
			if err := dev.Download(got, plane); err != nil {
				return fmt.Errorf("self-test %s: %w", v.name, err)
			}
			if !bytes.Equal(got, want) {
				return fmt.Errorf("self-test %s: the device makes %s %x; %x are right. Use cpu",
					v.name, [...]string{"codes", "scale", "bias"}[j], got, want)
			}
		}
	}
	return nil
}
