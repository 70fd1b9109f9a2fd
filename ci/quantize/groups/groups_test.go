package groups_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"example.com/ringcheck/ci/quantize/groups"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

// format is what groups are made for.
type format struct {
	t               ring.DType
	groupSize, bits int
}

func drawFormat(t *rapid.T) format {
	return format{
		rapid.SampledFrom([]ring.DType{ring.BFloat16, ring.Float16, ring.Float32}).Draw(t, "dtype"),
		rapid.SampledFrom([]int{32, 64, 128}).Draw(t, "group size"),
		rapid.SampledFrom([]int{2, 3, 4, 5, 6, 8}).Draw(t, "bits"),
	}
}

func (f format) make(seed uint64, count int) ring.Array {
	return groups.Make(rand.New(rand.NewPCG(seed, 0)), f.t, f.groupSize, f.bits, count)
}

func isNaN(f float32) bool { return f != f }
func isInf(f float32) bool { return math.IsInf(float64(f), 0) }

// ofKind says for some kinds what every group of it is.
var ofKind = map[string]func(f format, group []float32) bool{
	"all negative": func(_ format, g []float32) bool {
		return !slices.ContainsFunc(g, func(v float32) bool { return !math.Signbit(float64(v)) })
	},
	"all positive": func(_ format, g []float32) bool {
		return !slices.ContainsFunc(g, func(v float32) bool { return math.Signbit(float64(v)) })
	},
	"all equal": func(_ format, g []float32) bool {
		return !slices.ContainsFunc(g, func(v float32) bool { return v != g[0] && !isNaN(v) })
	},
	"zeros": func(_ format, g []float32) bool {
		return !slices.ContainsFunc(g, func(v float32) bool { return v != 0 })
	},
	"subnormal": func(f format, g []float32) bool {
		smallest := map[ring.DType]float32{ring.BFloat16: 0x1p-126, ring.Float16: 0x1p-14, ring.Float32: 0x1p-126}[f.t]
		return slices.Max(g) < smallest && slices.Min(g) > -smallest
	},
	"all NaN": func(_ format, g []float32) bool {
		return !slices.ContainsFunc(g, func(v float32) bool { return !isNaN(v) })
	},
	"one NaN":  func(_ format, g []float32) bool { return len(slices.DeleteFunc(g, isNaN)) == len(g)-1 },
	"infinite": func(_ format, g []float32) bool { return slices.ContainsFunc(g, isInf) },
	"largest": func(f format, g []float32) bool {
		return max(slices.Max(g), -slices.Min(g)) > map[ring.DType]float32{ring.BFloat16: 3.3e38, ring.Float16: 65000, ring.Float32: 3.4e38}[f.t]
	},
	"huge": func(f format, g []float32) bool {
		least := map[ring.DType]float32{ring.BFloat16: 3.2e31, ring.Float16: 32768, ring.Float32: 3.2e31}[f.t]
		return !slices.ContainsFunc(g, func(v float32) bool { return v < least && v > -least || isInf(v) })
	},
	// The upper end less the lower one, over the largest code, is a power of
	// two, and an element half way between two codes is a tie. bfloat16 lacks
	// the bits for all ties at 8 bits.
	"element ties": func(f format, g []float32) bool {
		step := (slices.Max(g) - slices.Min(g)) / float32(int(1)<<f.bits-1)
		fraction, _ := math.Frexp(float64(step))
		return fraction == 0.5 && slices.ContainsFunc(g, func(v float32) bool { return v/step != float32(math.Trunc(float64(v/step))) })
	},
	"zero ties": func(f format, g []float32) bool {
		low, high := slices.Min(g), slices.Max(g)
		zero := max(-low, high) / ((high - low) / float32(int(1)<<f.bits-1))
		_, part := math.Modf(float64(zero))
		return part == 0.5
	},
}

func TestKindsAreWhatTheySay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFormat(t)
		a := f.make(rapid.Uint64().Draw(t, "seed"), 2*len(groups.Kinds))
		values, err := reference.Floats(a)
		if err != nil {
			t.Fatal(err)
		}
		message := ""
		for i, group := range slices.Collect(slices.Chunk(values, f.groupSize)) {
			name := groups.Kinds[i%len(groups.Kinds)].Name
			if holds := ofKind[name]; holds != nil && !holds(f, slices.Clone(group)) {
				message = fmt.Sprintf("a group of kind %q is %v", name, group)
			}
		}
		if message != "" {
			t.Fatal(message)
		}
	})
	for name := range ofKind {
		if !slices.ContainsFunc(groups.Kinds, func(k groups.Kind) bool { return k.Name == name }) {
			t.Errorf("there is no kind %q", name)
		}
	}
}

func TestMakeFollowsFromTheSeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, seed := drawFormat(t), rapid.Uint64().Draw(t, "seed")
		a, b, c := f.make(seed, 40), f.make(seed, 40), f.make(seed+1, 40)
		if a.Shape != [4]int{1, 1, 40, f.groupSize} || !bytes.Equal(a.Data, b.Data) || bytes.Equal(a.Data, c.Data) {
			t.Fatalf("%v: the groups of seed %d differ, or are those of the next", f, seed)
		}
	})
}
