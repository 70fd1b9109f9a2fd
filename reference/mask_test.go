package reference_test

import (
	"fmt"
	"testing"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

// TestCausalMask holds every element against the formula of
// create_causal_mask.
func TestCausalMask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, offset := rapid.IntRange(0, 4).Draw(t, "n"), rapid.IntRange(-2, 6).Draw(t, "offset")
		window := rapid.OneOf(rapid.Just[*int](nil), rapid.Map(rapid.IntRange(-1, 8), in)).Draw(t, "window")
		left := rapid.OneOf(rapid.Just[[]int](nil), rapid.SliceOfN(rapid.IntRange(-2, 5), 0, 3)).Draw(t, "left padding")
		m := reference.CausalMask(n, offset, window, left)
		rows := len(left)
		if left == nil {
			rows = 1
		}
		if m.B != rows || m.N != n || m.S != max(0, offset+n) || len(m.Data) != m.B*m.N*m.S {
			t.Fatalf("mask of %d rows, %d queries, %d columns, %d elements", m.B, m.N, m.S, len(m.Data))
		}
		for b := range rows {
			for q := range n {
				for j := range m.S {
					i := offset + q
					want := i >= j && (window == nil || i < j+*window) && (left == nil || j >= left[b])
					if m.At(b, q, j) != want {
						t.Fatalf("n %d, offset %d, window %v, left padding %v: row %d, query %d, column %d is %t", n, offset, window, left, b, q, j, !want)
					}
				}
			}
		}
	})
}

func TestMaskOfFixedWindow(t *testing.T) { // M03: not one more than the window
	m := reference.CausalMask(1, 8, in(4), nil)
	same(t, "mask", masked(m, nil), [][]string{{"000001111"}})
}

// drawPosition draws any position at all, legal or not.
func drawPosition(t *rapid.T) ring.Position {
	rows := rapid.IntRange(0, 2).Draw(t, "rows")
	w := rapid.IntRange(1, 4).Draw(t, "max size")
	return ring.Position{
		MaxSize:     w,
		Offset:      rapid.SliceOfN(rapid.IntRange(-1, 3), rows, rows).Draw(t, "offset"),
		LeftPadding: rapid.SliceOfN(rapid.IntRange(-2, 4), rows, rows).Draw(t, "left padding"),
		Idx:         rapid.IntRange(0, 6).Draw(t, "idx"),
		Total:       rapid.IntRange(0, 6).Draw(t, "total"),
		Rotated:     rapid.Bool().Draw(t, "rotated"),
	}
}

// TestRingMask holds every element against the formula, of mlx-lm and of exact
// semantics (E2: the columns in use in place of the write position).
func TestRingMask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPosition(t)
		n := rapid.IntRange(1, 3).Draw(t, "n")
		block := n > 1 || rapid.Bool().Draw(t, "block")
		window := rapid.IntRange(1, 6).Draw(t, "window")
		semantics := rapid.SampledFrom(semanticses).Draw(t, "semantics")
		m := reference.RingMask(p, n, window, block, semantics)

		w, idx, total := p.MaxSize, p.Idx, p.Total
		if semantics == ring.Exact {
			total = p.Idx
			if p.Rotated {
				total = w
			}
			if block {
				idx = total
			}
		}
		o := min(w-1, total)
		s := o + n
		evicted, turn, rolled := max(0, idx-w), 0, false
		if block {
			evicted = max(0, idx-w+1)
		} else if p.Rotated || p.Idx >= w {
			rolled = true
			turn = 1
			if idx < w {
				turn += idx
			}
		}
		if m.B != len(p.LeftPadding) || m.N != n || m.S != s {
			t.Fatalf("mask of %d rows, %d queries, %d columns, want %d, %d, %d", m.B, m.N, m.S, len(p.LeftPadding), n, s)
		}
		for b := range m.B {
			left := p.LeftPadding[b] - evicted
			if rolled {
				left--
			}
			for i := range n {
				for j := range s {
					want := o+i >= j && o+i < j+window && j >= left
					if m.At(b, i, (j+turn)%s) != want {
						t.Fatalf("%v %+v, n %d, window %d, block %t: row %d, query %d, column %d is %t", semantics, p, n, window, block, b, i, (j+turn)%s, !want)
					}
				}
			}
		}
	})
}

// TestEqualKeysEqualMasks: what a key leaves out cannot change a mask.
func TestEqualKeysEqualMasks(t *testing.T) {
	type key struct {
		text             string
		maxSize          int
		exact            bool
		window, mostRows int
	}
	seen := map[key]string{}
	rapid.Check(t, func(t *rapid.T) {
		p := drawPosition(t)
		n := rapid.IntRange(1, 2).Draw(t, "n")
		block := n > 1 || rapid.Bool().Draw(t, "block")
		for _, semantics := range semanticses {
			k := key{reference.MaskKey(p, n, block), p.MaxSize, semantics == ring.Exact, p.MaxSize, 0}
			mask := fmt.Sprint(masked(reference.RingMask(p, n, p.MaxSize, block, semantics), nil))
			if old, ok := seen[k]; ok && old != mask {
				t.Fatalf("key %q means %s and %s", k.text, old, mask)
			}
			seen[k] = mask

			// Offsets and pending ends are no part of it.
			q := p.Clone()
			for i := range q.Offset {
				q.Offset[i] += 7
			}
			q.Ends = q.Offset
			if got := reference.MaskKey(q, n, block); got != k.text {
				t.Fatalf("key %q became %q with the offsets", k.text, got)
			}
		}
	})
	base := ring.Position{MaxSize: 4, Offset: []int{1, 2}, LeftPadding: []int{0, 1}, Idx: 1, Total: 2}
	same(t, "key", reference.MaskKey(base, 2, true), "2|true|0,1|1|2|false")
	keys := map[string]bool{}
	for _, change := range []func(p *ring.Position){
		func(p *ring.Position) {}, func(p *ring.Position) { p.Idx++ }, func(p *ring.Position) { p.Total++ }, func(p *ring.Position) { p.Rotated = true },
		func(p *ring.Position) { p.LeftPadding = []int{1, 0} }, func(p *ring.Position) { p.LeftPadding = []int{0} }, func(p *ring.Position) { p.LeftPadding = []int{0, 11} },
		func(p *ring.Position) { p.LeftPadding = []int{0, 1, 1} },
	} {
		p := base.Clone()
		change(&p)
		for _, n := range []int{1, 2} {
			for _, block := range []bool{true, false} {
				keys[reference.MaskKey(p, n, block)] = true
			}
		}
	}
	same(t, "keys that differ", len(keys), 8*4)
}

// TestMasksOfHostileNumbers: what makes no sense makes an empty mask, as
// upstream, and never a panic.
func TestMasksOfHostileNumbers(t *testing.T) {
	same(t, "negative n", reference.CausalMask(-2, 3, nil, nil), &ring.Mask{B: 1, N: 0, S: 1, Data: []bool{}})
	same(t, "no queries", reference.CausalMask(0, 3, nil, nil), &ring.Mask{B: 1, N: 0, S: 3, Data: []bool{}})
	for _, w := range []int{-3, 0, 1} {
		p := ring.Position{MaxSize: w, Offset: []int{0}, LeftPadding: []int{0}}
		for _, n := range []int{-1, 0, 1, 2} {
			for _, idx := range []int{-5, 0, 5} {
				p.Idx, p.Total = idx, idx
				for _, rotated := range []bool{false, true} {
					p.Rotated = rotated
					m := reference.RingMask(p, n, w, n > 1, ring.MLXLM)
					if m.N != max(0, n) || m.S < 0 || len(m.Data) != m.B*m.N*m.S {
						t.Errorf("window %d, n %d, idx %d: %+v", w, n, idx, m)
					}
				}
			}
		}
	}
}
