package cpu

import (
	"encoding/binary"
	"math"
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

// TestAttendTwins holds attention with assembly to attention without, bit for
// bit: plain and quantized rings, few queries and many, any width.
func TestAttendTwins(t *testing.T) {
	devices := [2]*Device{Open(Options{Workers: 2}), Open(Options{Workers: 1, PlainGo: true})}
	for _, d := range devices {
		defer d.Close()
	}
	rapid.Check(t, func(t *rapid.T) {
		store := accelerated.Store{
			Rows: rapid.IntRange(1, 2).Draw(t, "rows"), Heads: rapid.IntRange(1, 2).Draw(t, "heads"),
			Columns: rapid.IntRange(1, 90).Draw(t, "columns"), DType: anyType.Draw(t, "dtype"),
		}
		size, width := store.DType.Size(), rapid.IntRange(1, 40)
		if rapid.Bool().Draw(t, "vectors") { // what assembly takes as it is stored
			width = rapid.Map(rapid.IntRange(1, 20), func(n int) int { return 8 * n })
		}
		if rapid.IntRange(0, 3).Draw(t, "quantized") == 0 {
			store.Quant = anyQuant.Draw(t, "quant")
			width = rapid.Map(rapid.IntRange(1, 2), func(n int) int { return n * store.Quant.GroupSize })
		}
		store.KeyDim, store.ValueDim = width.Draw(t, "key width"), width.Draw(t, "value width")
		end := 0
		plane := func(p, bytes int) {
			store.Planes[p] = accelerated.Plane{Offset: end, Width: bytes}
			end += (store.Rows*store.Heads*store.Columns*bytes + accelerated.Align - 1) &^ (accelerated.Align - 1)
		}
		for i, dim := range [2]int{store.KeyDim, store.ValueDim} {
			data := [2]int{accelerated.KeyData, accelerated.ValueData}[i]
			if q := store.Quant; q.Bits == 0 {
				plane(data, dim*size)
			} else {
				plane(data, dim*q.Bits/8)
				plane(data+1, dim/q.GroupSize*size)
				plane(data+2, dim/q.GroupSize*size)
			}
		}
		// Numbers of either sign below 2 in every plane, codes included.
		elements := func(n int, seed uint64) []byte {
			b := make([]byte, n)
			for at := 0; at+size <= n; at += size {
				storeFloat(store.DType, b[at:], float32(int32(mix(seed+uint64(at))))/(1<<30))
			}
			return b
		}
		seed := rapid.Uint64().Draw(t, "seed")
		a := accelerated.Attention{Store: &store, Scale: 0.3}
		a.From = rapid.IntRange(0, store.Columns-1).Draw(t, "from")
		a.S = rapid.IntRange(1, store.Columns-a.From).Draw(t, "s")
		n := rapid.IntRange(1, min(3, a.S)).Draw(t, "n")
		query := ring.Array{DType: store.DType, Shape: [4]int{store.Rows, store.Heads * rapid.IntRange(1, 9).Draw(t, "group"), n, store.KeyDim}}
		query.Data = elements(query.Shape[0]*query.Shape[1]*n*store.KeyDim*size, ^seed)
		a.Query = accelerated.HostView(query)
		masked := rapid.Bool().Draw(t, "masked")

		var results [2][]float32
		for i, d := range devices {
			buffer := func(bytes []byte) accelerated.Buffer {
				b, err := d.Alloc(len(bytes))
				if err != nil {
					t.Fatal(err)
				}
				copy(b.(*Buffer).bytes, bytes)
				return b
			}
			store.Buffer = buffer(elements(end, seed))
			defer d.Free(store.Buffer)
			if masked {
				mask := make([]byte, store.Rows*n*a.S)
				for i := range mask {
					mask[i] = byte(mix(seed*uint64(i)) & 1)
				}
				a.Mask = accelerated.MaskView{Buffer: buffer(mask), B: store.Rows, N: n, S: a.S}
				defer d.Free(a.Mask.Buffer)
			}
			a.Out = accelerated.HostView(ring.Array{DType: ring.Float32, Shape: [4]int{store.Rows, query.Shape[1], n, store.ValueDim}})
			a.Out.Host = make([]byte, a.Out.Bytes())
			if err := d.Attend(&a); err != nil {
				t.Fatal(err)
			}
			for at := 0; at < len(a.Out.Host); at += 4 {
				results[i] = append(results[i], math.Float32frombits(binary.LittleEndian.Uint32(a.Out.Host[at:])))
			}
		}
		if i := differ(results[0], results[1]); i >= 0 {
			t.Fatalf("element %d is %v with %s and %v with %s", i, results[0][i], devices[0].Name(), results[1][i], devices[1].Name())
		}
	})
}
