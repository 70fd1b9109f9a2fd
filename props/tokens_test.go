package props

import (
	"reflect"
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

func TestTokens(t *testing.T) {
	ids := [][]int{{1, 0, -1}, {4, 5, 0}}
	for _, c := range fakeCases {
		planes := plainPlanes
		if c.Quant != nil {
			planes = quantizedPlanes
		}
		for _, fill := range []corpus.Fill{corpus.Grid, corpus.Bits} {
			for _, dtype := range []ring.DType{ring.BFloat16, ring.Float16, ring.Float32} {
				c.Fill, c.Shape.DType = fill, dtype
				tokens := NewTokens(c)
				if got := tokens.IDs(planes(c, ids)); !reflect.DeepEqual(got, ids) {
					t.Errorf("%s, %v, %v: got %v, want %v", c.Name, fill, dtype, got, ids)
				}
				// Any one plane of another token makes the column unknown.
				for p := range planes(c, ids) {
					mixed := planes(c, ids)
					mixed[p] = planes(c, [][]int{{1, 2, -1}, {4, 3, 0}})[p]
					want := [][]int{{1, Unknown, -1}, {4, Unknown, 0}}
					if got := tokens.IDs(mixed); !reflect.DeepEqual(got, want) {
						t.Errorf("%s, %v, %v, plane %d: got %v, want %v", c.Name, fill, dtype, p, got, want)
					}
				}
				// A token that the case does not feed is unknown too.
				if got := tokens.IDs(planes(c, [][]int{{99}})); !reflect.DeepEqual(got, [][]int{{Unknown}}) {
					t.Errorf("%s: token 99 is %v", c.Name, got)
				}
			}
		}
	}
}

func TestTokensOfOddShapes(t *testing.T) {
	c := fakeCases[0]
	tokens := NewTokens(c)
	for _, ids := range [][][]int{{}, {{}, {}}} {
		if got := tokens.IDs(plainPlanes(c, ids)); got == nil || len(got) != len(ids) {
			t.Errorf("%v reads as %v", ids, got)
		}
	}
	change := func(f func(planes []corpus.Plane)) []corpus.Plane {
		planes := plainPlanes(c, [][]int{{1, 2}})
		f(planes)
		return planes
	}
	for name, planes := range map[string][]corpus.Plane{
		"none":          nil,
		"keys alone":    plainPlanes(c, [][]int{{1}})[:1],
		"data type":     change(func(p []corpus.Plane) { p[0].Array.DType = ring.Float16 }),
		"heads":         change(func(p []corpus.Plane) { p[0].Array.Shape = [4]int{1, 4, 2, 2} }),
		"width":         change(func(p []corpus.Plane) { p[1].Array.Shape = [4]int{1, 2, 4, 3} }),
		"other columns": append(plainPlanes(c, [][]int{{1, 2}})[:1], plainPlanes(c, [][]int{{1}})[1]),
		"other rows":    append(plainPlanes(c, [][]int{{1}, {2}})[:1], plainPlanes(c, [][]int{{1}})[1]),
		"quantized":     quantizedPlanes(fakeCases[1], [][]int{{1}}),
		"odd name":      {{Name: "key"}},
	} {
		if got := tokens.IDs(planes); got != nil {
			t.Errorf("%s: %v, want nil", name, got)
		}
	}
}

func TestTokensOfSlots(t *testing.T) {
	c := fakeCases[0]
	tokens := NewTokens(c)
	// A slot's tokens are of the plane that is its number modulo 2.
	slot := func(name string, plane int, ids ...[]int) corpus.Plane {
		return corpus.Plane{Name: name, Array: columnsOf(c, plane, ids)}
	}
	for name, test := range map[string]struct {
		planes []corpus.Plane
		want   [][]int
	}{
		"two slots":       {[]corpus.Plane{slot("slot.0", 0, []int{1}, []int{2}), slot("slot.1", 1, []int{3}, []int{0})}, [][]int{{1, 3}, {2, 0}}},
		"one not set":     {[]corpus.Plane{slot("slot.1", 1, []int{3})}, [][]int{{0, 3}}},
		"the wrong plane": {[]corpus.Plane{slot("slot.2", 0, []int{1}), slot("slot.4", 0, []int{99})}, [][]int{{0, 0, 1, 0, Unknown}}},
		"two columns":     {[]corpus.Plane{slot("slot.0", 0, []int{1, 2})}, nil},
		"other rows":      {[]corpus.Plane{slot("slot.0", 0, []int{1}), slot("slot.2", 0, []int{1}, []int{2})}, nil},
		"other width":     {[]corpus.Plane{slot("slot.0", 1, []int{1})}, nil},
		"not in order":    {[]corpus.Plane{slot("slot.2", 0, []int{1}), slot("slot.0", 0, []int{1})}, nil},
	} {
		if got := tokens.IDs(test.planes); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
