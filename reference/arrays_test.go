package reference_test

import (
	"fmt"
	"math"
	"testing"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// state makes a slot of float32 whose rows hold the given numbers: [rows, ...]
// with more axes of that many elements.
func state(axes []int, rows ...float32) ring.Tensor {
	t := ring.Tensor{DType: ring.Float32, Shape: append([]int{len(rows)}, axes...)}
	n := 1
	for _, d := range axes {
		n *= d
	}
	for _, f := range rows {
		for range n {
			u := math.Float32bits(f)
			t.Data = append(t.Data, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
		}
	}
	return t
}

// slots reads states back, one list of rows a slot; nil where one is empty.
func slots(t *testing.T, list []ring.Tensor) [][]float32 {
	t.Helper()
	out := make([][]float32, len(list))
	for i, s := range list {
		if s.IsZero() {
			continue
		}
		out[i] = []float32{}
		n := 1
		for _, d := range s.Shape[1:] {
			n *= d
		}
		for row := range s.Rows() {
			var first float32
			for e := range n {
				at := 4 * (row*n + e)
				f := math.Float32frombits(uint32(s.Data[at]) | uint32(s.Data[at+1])<<8 | uint32(s.Data[at+2])<<16 | uint32(s.Data[at+3])<<24)
				if e == 0 {
					first = f
				}
				if f != first {
					t.Fatalf("slot %d, row %d holds %v and %v", i, row, first, f)
				}
			}
			out[i] = append(out[i], first)
		}
	}
	return out
}

// badTensors are arrays that no slot takes.
var badTensors = map[string]struct {
	ring.Tensor
	code string
}{
	"no array":              {ring.Tensor{}, "shape"},
	"no axis":               {ring.Tensor{DType: ring.Float32, Data: make([]byte, 4)}, "shape"},
	"cut short":             {ring.Tensor{DType: ring.Float32, Shape: []int{2}, Data: make([]byte, 7)}, "shape"},
	"a negative extent":     {ring.Tensor{DType: ring.Float32, Shape: []int{-1, 2}}, "shape"},
	"extents that overflow": {ring.Tensor{DType: ring.Float32, Shape: []int{1 << 31, 1 << 31, 4}}, "shape"},
	"of no type":            {ring.Tensor{Shape: []int{1}}, "dtype"},
	"of an unknown type":    {ring.Tensor{DType: 77, Shape: []int{1}}, "dtype"},
}

func TestArraysCache(t *testing.T) {
	left := []int{0, 3}
	c := reference.NewArraysCache(2, left)
	left[0] = 9
	same(t, "rows", c.BatchSize(), 2)
	same(t, "slots", slots(t, c.Slots()), [][]float32{nil, nil})
	same(t, "empty, size, trimmable, bytes", []any{c.Empty(), c.Size(), c.Trimmable(), must(c.NBytes())}, []any{true, 0, false, 0})
	same(t, "M18", masked(c.Mask(5, nil)), [][]string{{"11111"}, {"00011"}})
	refuses(t, "a mask with a window", "raises", func() error { return one(c.Mask(5, in(3))) }, c)
	refuses(t, "a slot that is none", "range", func() error { return c.Write(2, state(nil, 1, 2)) }, c)
	refuses(t, "a negative slot", "range", func() error { return c.Write(-1, state(nil, 1, 2)) }, c)
	for name, bad := range badTensors {
		refuses(t, name, bad.code, func() error { return c.Write(0, bad.Tensor) }, c)
	}
	ok(t, c.Write(1, state([]int{2, 1, 3}, 1, 2)))
	same(t, "empty goes by slot 0", c.Empty(), true)
	ok(t, c.Write(0, state(nil, 3, 4)))
	same(t, "slots", slots(t, c.Slots()), [][]float32{{3, 4}, {1, 2}})
	same(t, "bytes", must(c.NBytes()), 2*4+2*6*4)
	ok(t, c.Write(0, state(nil, 5, 6)))

	refuses(t, "prepare without lengths", "raises", func() error { return c.Prepare(reference.Padding{LeftPadding: []int{1, 1}}) }, c)
	ok(t, c.Prepare(right([]int{5, 4}, []int{0, 1})))
	same(t, "D-26, M26", masked(c.Mask(5, nil)), [][]string{{"11111"}, {"00010"}})
	ok(t, c.Advance(2))
	leftNow, lengths := c.Padding()
	same(t, "M13", [2][]int{leftNow, lengths}, [2][]int{{-2, 1}, {3, 2}})
	same(t, "mask", masked(c.Mask(3, nil)), [][]string{{"111"}, {"010"}})
	ok(t, c.Advance(256))
	leftNow, lengths = c.Padding()
	same(t, "M13", [2][]int{leftNow, lengths}, [2][]int{{-258, -255}, {-253, -254}})

	ok(t, c.Filter([]int{1, 1, 0}))
	same(t, "filtered", slots(t, c.Slots()), [][]float32{{6, 6, 5}, {2, 2, 1}})
	leftNow, lengths = c.Padding()
	same(t, "filtered padding", [2][]int{leftNow, lengths}, [2][]int{{-255, -255, -258}, {-254, -254, -253}})
	refuses(t, "no rows", "raises", func() error { return c.Filter(nil) }, c)
	refuses(t, "a row that is none", "range", func() error { return c.Filter([]int{3}) }, c)
	refuses(t, "a negative row", "range", func() error { return one(c.Extract(-1)) }, c)
	same(t, "a row that is none", slots(t, must(c.Extract(9)).Slots()), [][]float32{{}, {}})
	alone := must(c.Extract(2))
	same(t, "extracted", slots(t, alone.Slots()), [][]float32{{5}, {1}})
	leftNow, lengths = alone.Padding()
	same(t, "without padding", [2][]int{leftNow, lengths}, [2][]int{nil, nil})
	ok(t, c.Finalize())
	leftNow, lengths = c.Padding()
	same(t, "finalized", [2][]int{leftNow, lengths}, [2][]int{nil, nil})
	same(t, "no padding, no mask", masked(c.Mask(4, nil)), nil)
	ok(t, c.Advance(1))

	none := reference.NewArraysCache(2, []int{})
	same(t, "rows of none", none.BatchSize(), 1)
	refuses(t, "extract", "raises", func() error { return one(none.Extract(0)) }, none)
	ok(t, none.Prepare(reference.Padding{Lengths: []int{2, 3}}))
	same(t, "rows of lengths", none.BatchSize(), 2)
	same(t, "mask of lengths", masked(none.Mask(3, nil)), [][]string{{"110"}, {"111"}})
	ok(t, none.Write(1, state(nil, 7, 8)))
	refuses(t, "extract", "raises", func() error { return one(none.Extract(0)) }, none)
	same(t, "without slots", []any{reference.NewArraysCache(0, nil).Empty(), len(reference.NewArraysCache(-1, nil).Slots())}, []any{true, 0})
	odd := reference.NewArraysCache(1, []int{1, 2, 3})
	ok(t, odd.Prepare(reference.Padding{Lengths: []int{4, 4}}))
	refuses(t, "padding of three and lengths of two", "raises", func() error { return one(odd.Mask(4, nil)) }, odd)
	ok(t, odd.Prepare(reference.Padding{Lengths: []int{4}}))
	same(t, "one length serves all", masked(odd.Mask(4, nil)), [][]string{{"0111"}, {"0011"}, {"0001"}})
}

// TestArraysExtend is M10.
func TestArraysExtend(t *testing.T) {
	filled := func(rows ...float32) *reference.ArraysCache {
		c := reference.NewArraysCache(2, nil)
		ok(t, c.Write(0, state([]int{3}, rows...)))
		return c
	}
	empty := must(reference.MergeArrays([]*reference.ArraysCache{reference.NewArraysCache(2, nil), reference.NewArraysCache(2, nil)}))
	same(t, "D-28", empty.BatchSize(), 2)
	c := filled(1, 2)
	before := look(empty)
	ok(t, c.Extend(empty))
	same(t, "zeros behind", slots(t, c.Slots()), [][]float32{{1, 2, 0, 0}, nil})
	same(t, "mask", masked(c.Mask(1, nil)), [][]string{{"1"}, {"1"}, {"1"}, {"1"}})
	same(t, "other", look(empty), before)
	ok(t, empty.Extend(filled(1, 2)))
	same(t, "zeros in front", slots(t, empty.Slots()), [][]float32{{0, 0, 1, 2}, nil})

	a, b := filled(1), filled(2)
	ok(t, b.Prepare(reference.Padding{Lengths: []int{5}}))
	ok(t, a.Extend(b))
	left, lengths := a.Padding()
	same(t, "lengths of one side", [2][]int{left, lengths}, [2][]int{nil, {0, 5}})
	ok(t, b.Extend(a))
	_, lengths = b.Padding()
	same(t, "lengths of both", lengths, []int{5, 0, 5})
	ok(t, filled(1).Extend(filled(2)))

	few := reference.NewArraysCache(1, nil)
	ok(t, few.Write(0, state([]int{3}, 9)))
	ok(t, a.Extend(few))
	same(t, "as many slots as both have", slots(t, a.Slots()), [][]float32{{1, 2, 9}})
	wide := reference.NewArraysCache(1, nil)
	ok(t, wide.Write(0, state([]int{4}, 9)))
	refuses(t, "another shape", "raises", func() error { return a.Extend(wide) }, a, wide)
	half := reference.NewArraysCache(1, nil)
	ok(t, half.Write(0, ring.Tensor{DType: ring.Float16, Shape: []int{1, 3}, Data: make([]byte, 6)}))
	refuses(t, "another type", "raises", func() error { return a.Extend(half) }, a, half)
}

func TestMergeArrays(t *testing.T) {
	filled := func(values ...float32) *reference.ArraysCache {
		c := reference.NewArraysCache(len(values), nil)
		for i, v := range values {
			if v != 0 {
				ok(t, c.Write(i, state([]int{i + 1}, v)))
			}
		}
		return c
	}
	merge := func(c ...*reference.ArraysCache) func() error {
		return func() error { return one(reference.MergeArrays(c)) }
	}
	a, b := filled(1, 2), filled(3, 0)
	before := look(a) + look(b)
	c := must(reference.MergeArrays([]*reference.ArraysCache{filled(0, 4), a, b}))
	same(t, "slots", slots(t, c.Slots()), [][]float32{{0, 1, 3}, {4, 2, 0}})
	same(t, "the sources", look(a)+look(b), before)
	left, _ := must(reference.MergeArrays([]*reference.ArraysCache{filled(0), filled(0), filled(0)})).Padding()
	same(t, "D-28", left, []int{0, 0, 0})

	two := reference.NewArraysCache(1, nil)
	ok(t, two.Write(0, state([]int{1}, 1, 2)))
	wide := reference.NewArraysCache(1, nil)
	ok(t, wide.Write(0, state([]int{2}, 1)))
	transposed := reference.NewArraysCache(1, nil)
	ok(t, transposed.Write(0, state([]int{1, 2}, 1)))
	halfOf := func(n int) *reference.ArraysCache {
		c := reference.NewArraysCache(1, nil)
		ok(t, c.Write(0, ring.Tensor{DType: ring.BFloat16, Shape: []int{1, n}, Data: make([]byte, 2*n)}))
		return c
	}
	half := halfOf(2)
	refuses(t, "none", "rows", merge(), a)
	refuses(t, "fewer slots", "raises", merge(a, filled(1)), a)
	refuses(t, "a slot empty in all", "raises", merge(b, filled(5, 0)), a)
	refuses(t, "a source of two rows", "raises", merge(filled(1), two), two)
	refuses(t, "another shape", "raises", merge(filled(1), wide), wide)
	refuses(t, "another shape of as many bytes", "raises", merge(wide, transposed), wide)
	refuses(t, "another type", "dtype", merge(halfOf(1), filled(1)), half)
	refuses(t, "another type of as many bytes", "raises", merge(half, filled(1)), half)
}

func TestBatchRecurrent(t *testing.T) {
	c := reference.NewBatchRecurrent(2)
	at := func(c *reference.BatchRecurrent) string {
		left, lengths := c.Padding()
		return fmt.Sprint(c.Offsets(), left, lengths)
	}
	same(t, "empty", at(c), "[] [] []")
	same(t, "rows, empty, size, trimmable, bytes", []any{c.BatchSize(), c.Empty(), c.Size(), c.Trimmable(), must(c.NBytes())}, []any{0, true, 0, false, 0})
	same(t, "projected", must(c.ProjectedBytes(7)), 0)
	refuses(t, "trim", "not_trimmable", func() error { return one(c.Trim(1)) }, c)
	same(t, "no padding", masked(c.Mask(3, nil)), nil)
	same(t, "no padding", c.ConvolutionLengths(3), nil)

	// D-27: rows of 5 and 9 tokens, right-padded to 9, fed in two chunks.
	ok(t, c.Prepare(right([]int{5, 9}, []int{4, 0})))
	same(t, "prepared", at(c), "[0 0] [0 0] [5 9]")
	ok(t, c.Advance(3))
	same(t, "three on", at(c), "[3 3] [-3 -3] [2 6]")
	same(t, "mask", masked(c.Mask(4, nil)), [][]string{{"1100"}, {"1111"}})
	same(t, "convolution lengths", c.ConvolutionLengths(4), []int{2, 4})
	ok(t, c.Advance(4))
	same(t, "D-27", at(c), "[5 7] [-7 -7] [-2 2]")
	same(t, "convolution lengths", c.ConvolutionLengths(2), []int{0, 2})
	ok(t, c.Advance(2))
	ok(t, c.Finalize())
	same(t, "finalized", at(c), "[5 9] [] []")
	ok(t, c.Advance(1))
	same(t, "without padding", at(c), "[6 10] [] []")
	refuses(t, "a negative advance", "range", func() error { return c.Advance(-1) }, c)

	// D-26: padding on both sides. Lengths include the left one.
	d := reference.NewBatchRecurrent(1)
	ok(t, d.Prepare(reference.Padding{LeftPadding: []int{1}, Lengths: []int{3}}))
	same(t, "D-26", masked(d.Mask(4, nil)), [][]string{{"0110"}})
	ok(t, d.Advance(4))
	same(t, "two tokens", d.Offsets(), []int{2})
	ok(t, d.Prepare(reference.Padding{LeftPadding: []int{2}, Lengths: []int{5}, RightPadding: []int{1}}))
	ok(t, d.Advance(1))
	same(t, "padding alone", at(d), "[2] [1] [4]")
	ok(t, d.Prepare(right([]int{2}, []int{0})))
	same(t, "a prepare without padding forgets the old one", at(d), "[2] [] []")

	// Padding and rows that do not fit.
	for name, test := range map[string]struct {
		pad  reference.Padding
		code string
	}{
		"of one row":               {reference.Padding{Lengths: []int{1}}, "rows"},
		"left without lengths":     {reference.Padding{LeftPadding: []int{1, 0}}, "rows"},
		"right without lengths":    {reference.Padding{RightPadding: []int{1, 0}}, "rows"},
		"widths that differ":       {right([]int{1, 1}, []int{0, 1}), "shape"},
		"negative":                 {reference.Padding{Lengths: []int{1, -1}}, "range"},
		"left padding of no width": {reference.Padding{LeftPadding: []int{0, -1}, Lengths: []int{1, 1}}, "range"},
	} {
		refuses(t, name, test.code, func() error { return c.Prepare(test.pad) }, c)
	}
	fresh := reference.NewBatchRecurrent(1)
	refuses(t, "left without lengths, no rows yet", "rows", func() error { return fresh.Prepare(reference.Padding{LeftPadding: []int{1, 0}}) }, fresh)
	ok(t, c.Prepare(right([]int{1, 2}, []int{1, 0})))
	refuses(t, "left without lengths, while pending", "rows", func() error { return c.Prepare(reference.Padding{LeftPadding: []int{1, 0}}) }, c)
	refuses(t, "extract of nothing", "empty", func() error { return one(c.Extract(0)) }, c)

	// Slots.
	ok(t, c.Write(1, state([]int{2}, 3, 4)))
	same(t, "empty goes by slot 0", c.Empty(), true)
	ok(t, c.Write(0, state([]int{1, 3}, 1, 2)))
	same(t, "slots", slots(t, c.Slots()), [][]float32{{1, 2}, {3, 4}})
	same(t, "bytes", must(c.NBytes()), 2*4*(2+3))
	same(t, "projected", []int{must(c.ProjectedBytes(1)), must(c.ProjectedBytes(1000))}, []int{4 * 5, 4 * 5})
	refuses(t, "three rows", "rows", func() error { return c.Write(0, state(nil, 1, 2, 3)) }, c)
	refuses(t, "a slot that is none", "range", func() error { return c.Write(2, state(nil, 1, 2)) }, c)
	for name, bad := range badTensors {
		refuses(t, name, bad.code, func() error { return fresh.Write(0, bad.Tensor) }, fresh)
	}
	first := reference.NewBatchRecurrent(1)
	ok(t, first.Write(0, state(nil, 7, 8)))
	same(t, "a write makes rows", at(first), "[0 0] [] []")

	ok(t, c.Filter([]int{1, 0, 1}))
	same(t, "filtered", slots(t, c.Slots()), [][]float32{{2, 1, 2}, {4, 3, 4}})
	same(t, "filtered", at(c), "[10 6 10] [0 0 0] [2 1 2]")
	refuses(t, "a row that is none", "range", func() error { return c.Filter([]int{3}) }, c)
	row := must(c.Extract(1))
	same(t, "extracted", slots(t, row.Slots()), [][]float32{{1}, {3}})
	same(t, "extracted", at(row), "[6] [] []")
	refuses(t, "a row that is none", "range", func() error { return one(c.Extract(-1)) }, c)
	ok(t, c.Filter(nil))
	same(t, "no rows", at(c), "[] [] []")
	same(t, "projected", must(c.ProjectedBytes(1)), 0)
	same(t, "of no slots", reference.NewBatchRecurrent(0).Empty(), true)
	same(t, "of less than none", len(reference.NewBatchRecurrent(-1).Slots()), 0)
}

func TestMergeRecurrent(t *testing.T) {
	filled := func(tokens int, first, second []float32) *reference.BatchRecurrent {
		c := reference.NewBatchRecurrent(2)
		if first != nil {
			ok(t, c.Write(0, state([]int{2}, first...)))
		}
		if second != nil {
			ok(t, c.Write(1, state(nil, second...)))
		}
		ok(t, c.Advance(tokens))
		return c
	}
	merge := func(c ...*reference.BatchRecurrent) func() error {
		return func() error { return one(reference.MergeRecurrent(c)) }
	}
	a, b := filled(3, []float32{1, 2}, nil), filled(5, nil, []float32{4})
	ok(t, a.Prepare(right([]int{1, 2}, []int{1, 0})))
	empty := reference.NewBatchRecurrent(2)
	before := look(a) + look(b)
	c := must(reference.MergeRecurrent([]*reference.BatchRecurrent{a, b, empty, a}))
	same(t, "slots", slots(t, c.Slots()), [][]float32{{1, 2, 0, 1, 2}, {0, 0, 4, 0, 0}})
	same(t, "offsets", c.Offsets(), []int{3, 3, 5, 3, 3})
	left, lengths := c.Padding()
	same(t, "padding is not merged", [2][]int{left, lengths}, [2][]int{nil, nil})
	same(t, "the sources", look(a)+look(b), before)
	c = must(reference.MergeRecurrent([]*reference.BatchRecurrent{filled(3, []float32{1}, nil), filled(2, []float32{5}, nil)}))
	same(t, "a slot that none has", slots(t, c.Slots()), [][]float32{{1, 5}, nil})
	same(t, "nothing in all (D-28)", must(reference.MergeRecurrent([]*reference.BatchRecurrent{empty, empty})).BatchSize(), 0)

	refuses(t, "none", "rows", merge(), a)
	refuses(t, "other slots", "shape", merge(a, reference.NewBatchRecurrent(1)), a)
	wide := reference.NewBatchRecurrent(2)
	ok(t, wide.Write(0, state([]int{3}, 1)))
	refuses(t, "another shape", "shape", merge(a, wide), a, wide)
	half := reference.NewBatchRecurrent(2)
	ok(t, half.Write(0, ring.Tensor{DType: ring.Float16, Shape: []int{1, 2}, Data: make([]byte, 4)}))
	refuses(t, "another type", "dtype", merge(a, half), a, half)
}
