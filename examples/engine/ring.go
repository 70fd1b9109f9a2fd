package engine

import (
	"math"

	"example.com/ringcheck/reference/ring"
)

// Ring holds the keys and values of the last window tokens of one sequence, in
// float32. The token at position p lies in slot p % window, and nowhere else.
type Ring struct {
	window, heads, keyDim, valueDim int

	keys, values []float32 // [heads, window, dim]
	offset       int       // position of the next token
}

// View is columns that queries may attend to: arrays [heads, n, dim].
type View struct {
	Keys, Values []float32
	N            int
}

// NewRing makes an empty ring.
func NewRing(window, heads, keyDim, valueDim int) (*Ring, error) {
	if window < 1 {
		return nil, &ring.MaxSizeError{Op: "new", Got: window}
	}
	return &Ring{
		window: window, heads: heads, keyDim: keyDim, valueDim: valueDim,
		keys: make([]float32, heads*window*keyDim), values: make([]float32, heads*window*valueDim),
	}, nil
}

// positions are those of the columns that an append of n tokens returns, in its
// order: slot by slot for one token, so that it could be attended to in place;
// oldest first for more.
func (r *Ring) positions(n int) []int {
	var out []int
	if n == 1 {
		for slot := range min(r.offset+1, r.window) {
			out = append(out, r.offset-(r.offset-slot)%r.window)
		}
		return out
	}
	for p := r.offset - min(r.offset, r.window-1); p < r.offset+n; p++ {
		out = append(out, p)
	}
	return out
}

// Mask says which columns of the next append of n tokens each query may see:
// n rows, one for each query.
func (r *Ring) Mask(n, window int) ([][]bool, error) {
	switch {
	case n < 1:
		return nil, &ring.RangeError{Op: "mask", What: "n", Got: n, Low: 1, High: math.MaxInt}
	case window < 1:
		return nil, &ring.WindowError{Op: "mask", Window: window}
	}
	window = min(window, r.window)
	mask := make([][]bool, n)
	for q := range mask {
		at := r.offset + q
		for _, p := range r.positions(n) {
			mask[q] = append(mask[q], p <= at && at < p+window)
		}
	}
	return mask, nil
}

// Append adds n tokens, keys and values [heads, n, dim], and returns what their
// queries may attend to.
func (r *Ring) Append(keys, values []float32, n int) (View, error) {
	if n == 0 {
		return View{}, &ring.NoTokensError{Op: "append"}
	}
	positions := r.positions(n)
	view := View{
		Keys:   r.gather(r.keys, keys, r.keyDim, n, positions),
		Values: r.gather(r.values, values, r.valueDim, n, positions),
		N:      len(positions),
	}
	r.scatter(r.keys, keys, r.keyDim, n)
	r.scatter(r.values, values, r.valueDim, n)
	r.offset += n
	return view, nil
}

// gather collects the columns at positions from the ring and from the n new
// ones behind it.
func (r *Ring) gather(held, added []float32, dim, n int, positions []int) []float32 {
	var out []float32
	for h := range r.heads {
		for _, p := range positions {
			from := held[(h*r.window+p%r.window)*dim:]
			if p >= r.offset {
				from = added[(h*n+p-r.offset)*dim:]
			}
			out = append(out, from[:dim]...)
		}
	}
	return out
}

// scatter stores the last of n new columns, as many as the window takes.
func (r *Ring) scatter(held, added []float32, dim, n int) {
	for h := range r.heads {
		for i := max(0, n-r.window); i < n; i++ {
			slot := (r.offset + i) % r.window
			copy(held[(h*r.window+slot)*dim:][:dim], added[(h*n+i)*dim:])
		}
	}
}

// Trim takes back the last n tokens, which is possible until the window is
// full.
func (r *Ring) Trim(n int) error {
	switch {
	case n < 0:
		return &ring.RangeError{Op: "trim", What: "n", Got: n, Low: 0, High: r.offset}
	case !r.Trimmable():
		return &ring.NotTrimmableError{Op: "trim", Total: r.offset, MaxSize: r.window}
	case n > r.offset:
		return &ring.OverTrimError{Op: "trim", N: n, Held: r.offset}
	}
	r.offset -= n
	return nil
}

// Offset is the position of the next token.
func (r *Ring) Offset() int { return r.offset }

// Size is how many tokens the next query may see, itself apart.
func (r *Ring) Size() int { return min(r.offset, r.window) }

// Trimmable reports whether Trim can take tokens back.
func (r *Ring) Trimmable() bool { return r.offset < r.window }
