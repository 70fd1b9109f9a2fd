package corpus

import (
	"encoding/hex"
	"math"
	"math/big"
	"testing"

	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

// Bytes made by another program from the formula of docs/case-format.md.
func TestTokenBytes(t *testing.T) {
	for _, c := range vectors {
		s := Shape{KVHeads: 2, KeyDim: 3, ValueDim: 2, DType: c.dtype}
		if got := hex.EncodeToString(AppendToken(nil, c.id, c.plane, s, c.fill)); got != c.hex {
			t.Errorf("token %d, plane %d, %v, %v: %s, want %s", c.id, c.plane, c.dtype, c.fill, got, c.hex)
		}
	}
}

// mix is the formula in numbers without bounds.
func mix(id, plane, head, d int) int64 {
	mod := big.NewInt(1 << 32)
	n := func(v int64) *big.Int { return big.NewInt(v) }
	x := new(big.Int).Mul(n(int64(id)), n(0x9E3779B1))
	x.Add(x, new(big.Int).Mul(n(int64(2*head+plane)), n(0x85EBCA6B)))
	x.Add(x, new(big.Int).Mul(n(int64(d)), n(0xC2B2AE35)))
	x.Mod(x, mod)
	for _, step := range []struct {
		shift uint
		times int64
	}{{16, 0x7FEB352D}, {15, 0x846CA68B}, {16, 1}} {
		x.Xor(x, new(big.Int).Rsh(x, step.shift))
		x.Mod(x.Mul(x, n(step.times)), mod)
	}
	return x.Int64()
}

// float returns the value of a bit pattern.
func float(bits uint32, t ring.DType) float64 {
	switch t {
	case ring.BFloat16:
		return float64(math.Float32frombits(bits << 16))
	case ring.Float32:
		return float64(math.Float32frombits(bits))
	}
	sign, exp, frac := 1-2*float64(bits>>15), int(bits>>10&31), float64(bits&1023)
	if exp == 0 {
		return sign * math.Ldexp(frac, -24)
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

func TestFills(t *testing.T) {
	types := []ring.DType{ring.BFloat16, ring.Float16, ring.Float32}
	rapid.Check(t, func(t *rapid.T) {
		s := Shape{
			rapid.IntRange(1, 3).Draw(t, "heads"), rapid.IntRange(1, 5).Draw(t, "key"), rapid.IntRange(1, 5).Draw(t, "value"),
			rapid.SampledFrom(types).Draw(t, "dtype"),
		}
		fill := rapid.SampledFrom([]Fill{Grid, Bits}).Draw(t, "fill")
		plane := rapid.IntRange(0, 2).Draw(t, "plane")
		cols := rapid.IntRange(0, 3).Draw(t, "cols")
		id := rapid.OneOf(rapid.IntRange(-3, 3), rapid.IntRange(-1<<31, 1<<31-1))
		tokens := rapid.SliceOfN(rapid.SliceOfN(id, cols, cols), 0, 3).Draw(t, "tokens")
		a := TokenArray(s, fill, plane, tokens)
		width := []int{s.KeyDim, s.ValueDim, s.KeyDim}[plane]
		if len(tokens) == 0 {
			cols = 0
		}
		size := s.DType.Size()
		problem := ""
		if a.DType != s.DType || a.Shape != [4]int{len(tokens), s.KVHeads, cols, width} || len(a.Data) != len(tokens)*s.KVHeads*cols*width*size {
			t.Fatalf("TokenArray is %v %v of %d bytes", a.DType, a.Shape, len(a.Data))
		}
		for b, row := range tokens {
			for c, id := range row {
				column := AppendColumn(nil, a, b, c)
				if string(column) != string(AppendToken([]byte{}, id, plane, s, fill)) {
					problem = "a column of the array is not the token"
				}
				for h := range s.KVHeads {
					for d := range width {
						var bits uint32
						for i := range size {
							bits |= uint32(column[(h*width+d)*size+i]) << (8 * i)
						}
						x := mix(id, plane, h, d)
						switch {
						case fill == Grid && float(bits, s.DType) != float64(x&0xFF-128)/64:
							problem = "a value is off the grid"
						case fill == Bits && int64(bits) != x&(1<<(8*size)-1):
							problem = "bits differ"
						}
					}
				}
			}
		}
		if problem != "" {
			t.Fatal(problem)
		}
	})
	for t8 := range types {
		for v := range 256 {
			if got := float(gridBits[types[t8]][v], types[t8]); got != float64(v-128)/64 {
				t.Errorf("%v: grid value %d is %v, want %v", types[t8], v, got, float64(v-128)/64)
			}
		}
	}
}

func TestFillString(t *testing.T) {
	for f, want := range map[Fill]string{Grid: "grid", Bits: "bits", 9: "Fill(9)"} {
		if got := f.String(); got != want {
			t.Errorf("Fill %d is %q, want %q", uint8(f), got, want)
		}
	}
}

func TestLookup(t *testing.T) {
	c := must(t, caseOf(`{"op":"update","cache":"a","tokens":[[1,-2],[3,4]]}`, `{"op":"trim","cache":"a","n":1}`, `{"op":"update","cache":"a","tokens":[[-2],[5]]}`))
	var fed [][2]int
	for op, id := range c.TokenIDs() {
		fed = append(fed, [2]int{op, id})
	}
	if want := [][2]int{{0, 1}, {0, -2}, {0, 3}, {0, 4}, {2, -2}, {2, 5}}; len(fed) != len(want) || fed[1] != want[1] || fed[5] != want[5] {
		t.Errorf("TokenIDs yields %v, want %v", fed, want)
	}
	for range c.TokenIDs() {
		break // an early end must not go on
	}
	l := PlainLookup(c)
	tokens := [][]int{{5, 4}, {-2, 1}}
	keys, values := TokenArray(c.Shape, c.Fill, KeyPlane, tokens), TokenArray(c.Shape, c.Fill, ValuePlane, tokens)
	for b, row := range tokens {
		for col, want := range row {
			k, v := AppendColumn(nil, keys, b, col), AppendColumn(nil, values, b, col)
			if id, ok := l.ID(k, v); !ok || id != want {
				t.Errorf("row %d, column %d: %d, %t, want %d", b, col, id, ok, want)
			}
			if _, ok := l.ID(k, AppendColumn(nil, values, 1-b, col)); ok {
				t.Error("keys of one token and values of another have an id")
			}
			k[len(k)-1] ^= 1
			if _, ok := l.ID(k, v); ok {
				t.Error("a flipped bit has an id")
			}
		}
	}
	zeros := make([]byte, 8)
	if id, ok := l.ID(zeros, zeros); id != 0 || !ok {
		t.Errorf("zero bytes are %d, %t, want 0", id, ok)
	}
	if id, ok := l.ID(AppendToken(nil, 9, 0, c.Shape, Grid), zeros); ok {
		t.Errorf("a token that was not fed is %d", id)
	}
	// Encoded planes: any number, the first id stays.
	l = NewLookup()
	for _, s := range []struct {
		id     int
		planes [][]byte
		ok     bool
	}{
		{1, [][]byte{{1}, {0}, {0}}, true},
		{1, [][]byte{{1}, {0}, {0}}, true},
		{2, [][]byte{{1}, {0}, {0}}, false},
		{3, [][]byte{{0}, {0}, {0}}, false},
		{4, [][]byte{{1}, {0}, {2}}, true},
	} {
		if got := l.Add(s.id, s.planes...); got != s.ok {
			t.Errorf("Add(%d, %v) = %t, want %t", s.id, s.planes, got, s.ok)
		}
	}
	if id, ok := l.ID([]byte{1}, []byte{0}, []byte{0}); id != 1 || !ok {
		t.Errorf("ID = %d, %t, want 1", id, ok)
	}
}

var vectors = []struct {
	id, plane int
	dtype     ring.DType
	fill      Fill
	hex       string
}{
	{1, 0, ring.BFloat16, Grid, "e0bff63f80bcb6bfa8be743f"},
	{-7, 1, ring.Float16, Grid, "603d40bc403a8032"},
	{2147483647, 0, ring.Float32, Grid, "0000cabf0000e8be0000b6bf0000cebf0000ee3f00009cbf"},
	{-1001, 2, ring.BFloat16, Bits, "8e69a5fabb4c2e211877748c"},
	{12, 1, ring.Float32, Bits, "8e26002c8a3d69da21b8d706a47c6ccc"},
}
