package attention_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"example.com/ringcheck/models/attention"
	"example.com/ringcheck/reference/ring"
	"gonum.org/v1/gonum/floats"
	"pgregory.net/rapid"
)

type vectors = [][]float64

// Scores of 0 and ln 3 weigh 1 and 3. The third token is not to be seen, and
// the second head is read by the last two queries.
func TestAttendByHand(t *testing.T) {
	heads := []attention.Head{
		{Keys: vectors{{0}, {math.Log(3)}, {math.NaN()}}, Values: vectors{{4, 8}, {0, 0}, {math.NaN(), math.Inf(1)}}},
		{Keys: vectors{{0}, {math.Log(3) / 2}, {math.Inf(1)}}, Values: vectors{{16, 0}, {32, 4}, {0, 0}}},
	}
	got, err := attention.Attend(vectors{{0}, {0.5}, {0}, {1}}, heads, []bool{true, true, false}, 2)
	want := vectors{{2, 4}, {1, 2}, {24, 2}, {28, 3}}
	if err != nil || !slices.EqualFunc(got, want, func(a, b []float64) bool { return floats.EqualApprox(a, b, 1e-14) }) {
		t.Fatalf("%v, %v, want %v", got, err, want)
	}
}

func TestAttendOfNothingVisibleIsZero(t *testing.T) {
	heads := []attention.Head{{Keys: vectors{{1, 2}}, Values: vectors{{3, 4, 5}}}}
	got, err := attention.Attend(vectors{{6, 7}}, heads, []bool{false}, 1)
	if err != nil || !slices.Equal(got[0], []float64{0, 0, 0}) {
		t.Fatalf("%v, %v, want zeros", got, err)
	}
}

// Weights are shares: a constant added to a component of every value comes out
// in the same component, the order of the tokens does not matter, and a token
// that is not to be seen might as well not be there.
func TestAttendLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Float64Range(-4, 4)
		vector := func(what string, n int) []float64 { return rapid.SliceOfN(number, n, n).Draw(t, what) }
		d, dv := rapid.IntRange(1, 4).Draw(t, "d"), rapid.IntRange(1, 4).Draw(t, "dv")
		query, scale, shift := vector("query", d), number.Draw(t, "scale"), number.Draw(t, "shift")
		var head, shifted, turned, visibleOnly attention.Head
		visible := rapid.SliceOfN(rapid.Bool(), 1, 6).Draw(t, "visible")
		visible[0] = true
		for i := range visible {
			key, value := vector("key", d), vector("value", dv)
			head.Keys, head.Values = append(head.Keys, key), append(head.Values, value)
			raised := slices.Clone(value)
			floats.AddConst(shift, raised)
			shifted.Keys, shifted.Values = head.Keys, append(shifted.Values, raised)
			turned.Keys, turned.Values = append(vectors{key}, turned.Keys...), append(vectors{value}, turned.Values...)
			if visible[i] {
				visibleOnly.Keys, visibleOnly.Values = append(visibleOnly.Keys, key), append(visibleOnly.Values, value)
			}
		}
		attend := func(h attention.Head, visible []bool) []float64 {
			out, err := attention.Attend(vectors{query}, []attention.Head{h}, visible, scale)
			if err != nil {
				panic(err)
			}
			return out[0]
		}
		want := attend(head, visible)
		raised := slices.Clone(want)
		floats.AddConst(shift, raised)
		reversed := slices.Clone(visible)
		slices.Reverse(reversed)
		message := ""
		const tolerance = 1e-12 // of rounding, in another order
		switch {
		case !floats.EqualApprox(attend(shifted, visible), raised, tolerance):
			message = "a constant did not come out"
		case !floats.EqualApprox(attend(turned, reversed), want, tolerance):
			message = "the order matters"
		case !slices.Equal(attend(visibleOnly, slices.Repeat([]bool{true}, len(visibleOnly.Keys))), want):
			message = "a token that is not to be seen matters"
		}
		if message != "" {
			t.Fatal(message)
		}
	})
}

func TestAttendRefuses(t *testing.T) {
	one := attention.Head{Keys: vectors{{1, 2}}, Values: vectors{{3}}}
	seen := []bool{true}
	for name, c := range map[string]struct {
		queries vectors
		heads   []attention.Head
		visible []bool
	}{
		"no token":        {vectors{{1, 2}}, []attention.Head{{}}, nil},
		"no head":         {vectors{{1, 2}}, nil, seen},
		"a head too many": {vectors{{1, 2}, {1, 2}, {1, 2}}, []attention.Head{one, one}, seen},
		"keys":            {vectors{{1, 2}}, []attention.Head{{Values: vectors{{3}}}}, seen},
		"values":          {vectors{{1, 2}}, []attention.Head{{Keys: vectors{{1, 2}}}}, seen},
		"key width":       {vectors{{1}}, []attention.Head{one}, seen},
		"value width":     {vectors{{1}}, []attention.Head{{Keys: vectors{{1}, {1}}, Values: vectors{{3}, {}}}}, []bool{true, true}},
	} {
		out, err := attention.Attend(c.queries, c.heads, c.visible, 1)
		var shape *ring.ShapeError
		if out != nil || !errors.As(err, &shape) {
			t.Errorf("%s: %v, %v", name, out, err)
		}
	}
}
