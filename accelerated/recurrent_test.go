package accelerated_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"unsafe"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

// TestRecurrentReference drives recurrent state and its counterpart in the
// reference through the same random operations.
func TestRecurrentReference(t *testing.T) {
	dev := cpu.Open(cpu.Options{Workers: 2})
	defer dev.Close()
	type pair struct {
		acc *accelerated.Recurrent
		ref *reference.BatchRecurrent
	}
	rapid.Check(t, func(t *rapid.T) {
		const slots = 2
		var history []string
		failf := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("%s\nafter %v", fmt.Sprintf(format, args...), history)
		}
		acc, err := accelerated.NewRecurrent(dev, slots)
		if err != nil {
			failf("new: %v", err)
		}
		all := []pair{{acc, reference.NewBatchRecurrent(slots)}}
		defer func() {
			for _, p := range all {
				p.acc.Close()
			}
		}()
		agree := func(err, refErr error) bool {
			t.Helper()
			if ring.CodeOf(err) != ring.CodeOf(refErr) || (err == nil) != (refErr == nil) {
				failf("error %v, reference %v", err, refErr)
			}
			return err == nil
		}
		serial := byte(0)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			p := all[rapid.IntRange(0, len(all)-1).Draw(t, "cache")]
			rows := p.ref.BatchSize()
			op := rapid.SampledFrom([]string{"write", "write", "prepare", "finalize", "advance", "mask", "filter", "extract", "merge"}).Draw(t, "op")
			history = append(history, op)
			switch op {
			case "write":
				if rows == 0 {
					rows = rapid.IntRange(1, 3).Draw(t, "rows")
				}
				if rapid.IntRange(0, 9).Draw(t, "wrong") == 0 {
					rows++
				}
				slot := rapid.IntRange(0, slots).Draw(t, "slot")
				a := ring.Array{DType: ring.Float32, Shape: [4]int{rows, 1, 2 + slot, 3}}
				a.Data = make([]byte, rows*(2+slot)*3*4)
				for i := range a.Data {
					serial++
					a.Data[i] = serial
				}
				if rows != p.ref.BatchSize() && p.ref.BatchSize() == 0 && slices.ContainsFunc(p.ref.Slots(), func(t ring.Tensor) bool { return !t.IsZero() }) {
					continue // the reference keeps the empty slots
				}
				agree(p.acc.Write(slot, accelerated.HostView(a)), p.ref.Write(slot, a.Tensor()))
			case "prepare":
				if rows == 0 {
					continue
				}
				width := rapid.IntRange(0, 5).Draw(t, "width")
				pad := reference.Padding{Lengths: rapid.SliceOfN(rapid.IntRange(0, width), rows, rows).Draw(t, "lengths")}
				for _, n := range pad.Lengths {
					pad.RightPadding = append(pad.RightPadding, width-n)
				}
				if rapid.Bool().Draw(t, "left") {
					pad.LeftPadding = rapid.SliceOfN(rapid.IntRange(0, 3), rows, rows).Draw(t, "left padding")
				}
				agree(p.acc.Prepare(accelerated.Padding(pad)), p.ref.Prepare(pad))
			case "finalize":
				agree(p.acc.Finalize(), p.ref.Finalize())
			case "advance":
				n := rapid.IntRange(-1, 4).Draw(t, "n")
				agree(p.acc.Advance(n), p.ref.Advance(n))
			case "mask":
				n := rapid.IntRange(1, 5).Draw(t, "n")
				want, refErr := p.ref.Mask(n, nil)
				lease, err := p.acc.Mask(n)
				if !agree(err, refErr) {
					continue
				}
				v := lease.View()
				if (v.Buffer == nil) != (want == nil) {
					failf("mask %+v, reference %+v", v, want)
				}
				if v.Buffer != nil {
					got := v.Buffer.(*cpu.Buffer).Bytes()[v.Offset:][:v.B*v.N*v.S]
					if !bytes.Equal(got, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(want.Data))), len(want.Data))) {
						failf("mask %v, reference %v", got, want)
					}
				}
				lease.Release()
				if !slices.Equal(p.acc.ConvolutionLengths(n), p.ref.ConvolutionLengths(n)) {
					failf("convolution lengths")
				}
			case "filter":
				if rows == 0 {
					continue
				}
				keep := rapid.SliceOfN(rapid.IntRange(0, rows), 0, 4).Draw(t, "keep")
				agree(p.acc.Filter(keep), p.ref.Filter(keep))
			case "extract":
				row := rapid.IntRange(0, rows).Draw(t, "row")
				ref, refErr := p.ref.Extract(row)
				acc, err := p.acc.Extract(row)
				if agree(err, refErr) {
					all = append(all, pair{acc, ref})
				}
			case "merge":
				other := all[rapid.IntRange(0, len(all)-1).Draw(t, "other")]
				if rows+other.ref.BatchSize() > 8 {
					continue
				}
				ref, refErr := reference.MergeRecurrent([]*reference.BatchRecurrent{p.ref, other.ref})
				acc, err := accelerated.MergeRecurrent(p.acc, other.acc)
				if agree(err, refErr) {
					all = append(all, pair{acc, ref})
				}
			}
			for _, p := range all {
				left, lengths := p.acc.Padding()
				refLeft, refLengths := p.ref.Padding()
				if !slices.Equal(p.acc.Offsets(nil), p.ref.Offsets()) || !slices.Equal(left, refLeft) || !slices.Equal(lengths, refLengths) {
					failf("offsets %v, reference %v", p.acc.Offsets(nil), p.ref.Offsets())
				}
				want, wantErr := p.ref.ProjectedBytes(1)
				if n, err := p.acc.ProjectedBytes(1); err != nil || wantErr != nil || n != want {
					failf("projected bytes %d, %v, reference %d, %v", n, err, want, wantErr)
				}
				for i, want := range p.ref.Slots() {
					v, err := p.acc.Slot(i)
					if err != nil {
						failf("slot: %v", err)
					}
					got := make([]byte, v.Bytes())
					if len(got) > 0 {
						err = dev.Download(got, v)
					}
					if err != nil || !bytes.Equal(got, want.Data) || (v.DType == 0) != want.IsZero() {
						failf("slot %d: %x, %v, reference %x", i, got, err, want.Data)
					}
				}
			}
		}
		for _, p := range all {
			if err := p.acc.Close(); err != nil {
				failf("close: %v", err)
			}
		}
		if n := dev.Stats().Live; n != 0 {
			failf("%d live buffers", n)
		}
	})
}

// filled is state of two rows in one of two slots.
func filled(dev accelerated.Device) *accelerated.Recurrent {
	c := must(accelerated.NewRecurrent(dev, 2))
	check(c.Write(1, column(2, 3)))
	return c
}

func recurrentImage(dev accelerated.Device, c *accelerated.Recurrent) string {
	left, lengths := c.Padding()
	out := fmt.Sprintln(c.Rows(), c.Offsets(nil), left, lengths)
	for i := range 2 {
		v := must(c.Slot(i))
		data := make([]byte, v.Bytes())
		if len(data) > 0 {
			check(dev.Download(data, v))
		}
		out += fmt.Sprintf("%v %v %x\n", v.DType, v.Shape, data)
	}
	return out
}

// TestRecurrentInput gives each operation wrong arguments, a failing device, a
// closed cache.
func TestRecurrentInput(t *testing.T) {
	inner := cpu.Open(cpu.Options{Workers: 1})
	defer inner.Close()
	dev := &failing{Device: inner}
	c, other := filled(dev), must(accelerated.NewRecurrent(dev, 3))
	unlike := must(accelerated.NewRecurrent(dev, 2))
	check(unlike.Write(1, column(2, 2)))
	typed := must(accelerated.NewRecurrent(dev, 2))
	half := column(2, 3)
	half.DType, half.Host = ring.BFloat16, half.Host[:len(half.Host)/2]
	half.Stride = accelerated.HostView(ring.Array{DType: ring.BFloat16, Shape: half.Shape}).Stride
	check(typed.Write(1, half))
	fresh := must(accelerated.NewRecurrent(dev, 2))
	wrong := column(2, 3)
	wrong.Shape[3] = 0
	short := column(2, 3)
	short.Host = short.Host[1:]
	untyped := column(2, 3)
	untyped.DType = 0
	before := recurrentImage(dev, c)
	for name, test := range map[string]struct {
		code string
		op   func() error
	}{
		"slots below 0":    {"range", func() error { _, err := accelerated.NewRecurrent(dev, -1); return err }},
		"rows":             {"rows", func() error { return c.Write(0, column(3, 1)) }},
		"shape":            {"shape", func() error { return c.Write(0, wrong) }},
		"memory":           {"shape", func() error { return c.Write(0, short) }},
		"dtype":            {"dtype", func() error { return c.Write(0, untyped) }},
		"slot":             {"range", func() error { return c.Write(2, column(2, 1)) }},
		"view of a slot":   {"range", func() error { _, err := c.Slot(-1); return err }},
		"trim":             {"not_trimmable", func() error { _, err := c.Trim(0); return err }},
		"lengths":          {"rows", func() error { return c.Prepare(accelerated.Padding{Lengths: []int{1}}) }},
		"no lengths":       {"rows", func() error { return c.Prepare(accelerated.Padding{LeftPadding: []int{1, 0}}) }},
		"mask of none":     {"range", func() error { _, err := c.Mask(0); return err }},
		"advance":          {"range", func() error { return c.Advance(-1) }},
		"filter":           {"range", func() error { return c.Filter([]int{2}) }},
		"extract":          {"range", func() error { _, err := c.Extract(-1); return err }},
		"extract nothing":  {"range", func() error { _, err := fresh.Extract(0); return err }},
		"merge nothing":    {"rows", func() error { _, err := accelerated.MergeRecurrent(); return err }},
		"merge slots":      {"shape", func() error { _, err := accelerated.MergeRecurrent(c, other); return err }},
		"merge shapes":     {"shape", func() error { _, err := accelerated.MergeRecurrent(c, unlike); return err }},
		"merge data types": {"dtype", func() error { _, err := accelerated.MergeRecurrent(c, typed); return err }},
	} {
		if err := test.op(); ring.CodeOf(err) != test.code {
			t.Errorf("%s: %v, want code %s", name, err, test.code)
		}
		if got := recurrentImage(dev, c); got != before {
			t.Errorf("%s: the cache is\n%s\nit was\n%s", name, got, before)
		}
	}
	if c.Trimmable() || c.Kind() != "batch_recurrent" || c.Rows() != 2 {
		t.Error("what the cache says of itself")
	}

	check(c.Prepare(accelerated.Padding{Lengths: []int{3, 1}, RightPadding: []int{0, 2}}))
	before = recurrentImage(dev, c)
	for name, op := range map[string]func() error{
		"write":  func() error { return c.Write(0, column(2, 1)) },
		"filter": func() error { return c.Filter([]int{1}) },
		"mask":   func() error { l, err := c.Mask(2); l.Release(); return err },
		"extract": func() error {
			e, err := c.Extract(1)
			if err == nil {
				check(e.Close())
			}
			return err
		},
		"merge": func() error {
			m, err := accelerated.MergeRecurrent(c, c)
			if err == nil {
				check(m.Close())
			}
			return err
		},
	} {
		live, calls := inner.Stats().Live, 0
		for ; calls < 2; calls++ {
			dev.left = calls + 1
			err := op()
			dev.left = 0
			if !errors.Is(err, errOnDemand) || recurrentImage(dev, c) != before || inner.Stats().Live != live {
				t.Errorf("%s, call %d failing: %v, %d live buffers, before %d, and\n%s", name, calls, err, inner.Stats().Live, live, recurrentImage(dev, c))
			}
		}
	}
	for _, c := range []*accelerated.Recurrent{c, other, unlike, typed, fresh} {
		check(c.Close())
		check(c.Close())
		for name, err := range map[string]error{
			"write": c.Write(0, column(2, 1)), "prepare": c.Prepare(accelerated.Padding{}), "finalize": c.Finalize(),
			"advance": c.Advance(1), "filter": c.Filter(nil),
		} {
			if ring.CodeOf(err) != "closed" {
				t.Errorf("%s after Close: %v", name, err)
			}
		}
	}
	if n := inner.Stats().Live; n != 0 {
		t.Errorf("%d live buffers", n)
	}
}

// What is adopted is what Slot, Offsets and Padding gave; rows that disagree are
// refused, and give back all memory.
func TestAdoptRecurrent(t *testing.T) {
	dev := cpu.Open(cpu.Options{})
	defer dev.Close()
	slot := corpus.TokenArray(corpus.Shape{KVHeads: 2, KeyDim: 4, ValueDim: 4, DType: ring.Float32}, corpus.Grid, 0, [][]int{{1, 2}, {3, 4}})
	c, err := accelerated.AdoptRecurrent(dev, []ring.Array{{}, slot}, []int{5, 6}, []int{1, 0}, []int{2, 2})
	if err != nil {
		t.Fatal(err)
	}
	left, lengths := c.Padding()
	v, err := c.Slot(1)
	if err != nil || v.Shape != slot.Shape || !slices.Equal(c.Offsets(nil), []int{5, 6}) || !slices.Equal(left, []int{1, 0}) || !slices.Equal(lengths, []int{2, 2}) {
		t.Errorf("slot %v, %v, offsets %v, padding %v %v", v.Shape, err, c.Offsets(nil), left, lengths)
	}
	got := make([]byte, v.Bytes())
	if err := dev.Download(got, v); err != nil || !slices.Equal(got, slot.Data) {
		t.Errorf("slot 1 holds other bytes, %v", err)
	}
	if v, err := c.Slot(0); err != nil || v.DType != 0 {
		t.Errorf("slot 0 was never written, and is %v, %v", v, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	var rows *ring.RowsError
	for _, bad := range []struct{ offset, left, lengths []int }{
		{offset: []int{5}}, {offset: []int{5, 6}, left: []int{1, 0}}, {offset: []int{5, 6}, left: []int{1, 0}, lengths: []int{2}},
	} {
		if _, err := accelerated.AdoptRecurrent(dev, []ring.Array{slot, slot}, bad.offset, bad.left, bad.lengths); !errors.As(err, &rows) {
			t.Errorf("%v: %v, want a RowsError", bad, err)
		}
	}
	var outside *ring.RangeError
	for _, bad := range [][3][]int{{{math.MaxInt, 0}, nil, nil}, {{0, 0}, {math.MinInt, 0}, {1, 1}}, {{0, 0}, {0, 0}, {1, math.MaxInt}}} {
		if _, err := accelerated.AdoptRecurrent(dev, nil, bad[0], bad[1], bad[2]); !errors.As(err, &outside) {
			t.Errorf("%v: %v, want a RangeError", bad, err)
		}
	}
	if n := dev.Stats().Live; n != 0 {
		t.Errorf("%d buffers are live", n)
	}
}
