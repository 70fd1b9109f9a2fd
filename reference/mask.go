package reference

import (
	"fmt"
	"strings"

	"example.com/ringcheck/reference/ring"
)

// CausalMask is create_causal_mask: query q of n stands at position offset+q
// and sees column j of offset+n where j <= offset+q, and with a window also
// offset+q < j+window. leftPadding hides each row's first columns, nil hides
// none; the mask has one row for each of its elements, or one row. It is
// [rows, 1, n, offset+n].
func CausalMask(n, offset int, window *int, leftPadding []int) *ring.Mask {
	rows := len(leftPadding)
	if leftPadding == nil {
		rows = 1
	}
	m := newMask(rows, n, offset+n)
	for b := range rows {
		low := 0
		if leftPadding != nil {
			low = leftPadding[b]
		}
		for q := range n {
			row := m.Data[(b*n+q)*m.S:][:m.S]
			from := max(0, low)
			if window != nil {
				from = max(from, offset+q-*window+1)
			}
			for j := from; j <= offset+q; j++ {
				row[j] = true
			}
		}
	}
	return m
}

// attentionMask is cache.py's create_attention_mask with return_array: what
// the caches without a ring answer. It is nil for one query without a window.
func attentionMask(n, offset int, window *int) *ring.Mask {
	if window == nil && n == 1 {
		return nil
	}
	return CausalMask(n, offset, window, nil)
}

// newMask makes a mask of false; a negative extent counts as 0, as in mx.arange.
func newMask(b, n, s int) *ring.Mask {
	n, s = max(0, n), max(0, s)
	return &ring.Mask{B: b, N: n, S: s, Data: make([]bool, b*n*s)}
}

// rollMask rolls every query's row to the right by shift.
func rollMask(m *ring.Mask, shift int) *ring.Mask {
	out := newMask(m.B, m.N, m.S)
	if m.S == 0 {
		return out
	}
	for i := range m.B * m.N {
		src, dst := m.Data[i*m.S:][:m.S], out.Data[i*m.S:][:m.S]
		at := ((shift % m.S) + m.S) % m.S
		copy(dst[at:], src)
		copy(dst, src[m.S-at:])
	}
	return out
}

// RingMask is the mask of a batched ring at position p for a write of n
// columns that has not happened yet: bool [B, 1, n, S], where S is the number
// of columns that the write will return. block says that the write appends: n
// over 1, a window, or pending right padding. Queries see at most window
// columns of the ring, and none of their row's left padding.
//
// In mlx-lm's semantics a block on a ring that has wrapped hides the oldest
// column of every row that still has left padding (O-1): the padding that will
// be evicted is counted from the write position, although the write first puts
// the ring in order.
func RingMask(p ring.Position, n, window int, block bool, semantics ring.Semantics) *ring.Mask {
	w := p.MaxSize
	idx, held := p.Idx, p.Total
	if semantics == ring.Exact {
		held = activeLength(p)
		if block {
			idx = held
		}
	}
	o := min(w-1, held)
	evicted := idx - w
	if block {
		evicted++
	}
	wrapped := !block && (p.Rotated || p.Idx >= w)
	low := make([]int, len(p.LeftPadding))
	for i, left := range p.LeftPadding {
		low[i] = left - max(0, evicted)
		if wrapped {
			low[i]--
		}
	}
	m := CausalMask(n, o, &window, low)
	if wrapped {
		if idx >= w {
			idx = 0
		}
		m = rollMask(m, idx+1)
	}
	return m
}

// MaskKey lists every input of [RingMask] that can vary while a ring lives:
// two equal keys, with one window, mean two equal masks.
func MaskKey(p ring.Position, n int, block bool) string {
	return fmt.Sprintf("%d|%t|%s|%d|%d|%t", n, block,
		strings.Trim(strings.ReplaceAll(fmt.Sprint(p.LeftPadding), " ", ","), "[]"), p.Idx, p.Total, p.Rotated)
}

// activeLength is A: the columns that hold tokens or padding.
func activeLength(p ring.Position) int {
	if p.Rotated {
		return p.MaxSize
	}
	return p.Idx
}
