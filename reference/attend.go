package reference

import (
	"math"

	"example.com/ringcheck/reference/ring"
)

// Attend is scaled dot-product attention over the columns of a cache. It
// returns float32 [b, hq, n, dv], row-major: for each of the n queries of each
// row and query head, the average of the values of the columns that the mask
// selects, weighted by softmax(scale · query·key).
//
// Queries are [b, hq, n, d], keys [b, h, s, d], values [b, h, s, dv], each of
// any type of float; hq is a multiple of h, and query head i reads key/value
// head i/(hq/h). Quantized columns are read as [Dequantize] gives them. The
// mask is [b, 1, n, s] or, one for all rows, [1, 1, n, s]; nil, or one without
// queries (N is 0), selects every column.
//
// A column that is not selected has no influence, whatever it holds. A query
// that selects no column reads zeros. Products and sums are float64.
//
// The errors are [ring.EmptyError] where there is no column, [ring.RowsError],
// [ring.ShapeError] and [ring.DTypeError] where the arrays do not fit each
// other, and those of [Dequantize].
func Attend(queries ring.Array, kv ring.KV, mask *ring.Mask, scale float64, format Format) ([]float32, error) {
	const op = "attend"
	if len(kv.Keys) == 0 || kv.Keys[0].Columns() == 0 {
		return nil, &ring.EmptyError{Op: op}
	}
	keys, err := plain(op, "keys", kv.Keys, format)
	if err != nil {
		return nil, err
	}
	values, err := plain(op, "values", kv.Values, format)
	if err != nil {
		return nil, err
	}
	if err := checkAttend(op, queries, keys, values, mask); err != nil {
		return nil, err
	}

	q, k, v := floats(queries), floats(keys), floats(values)
	if len(q) == 0 {
		return []float32{}, nil
	}
	rows, heads, n, d := queries.Shape[0], queries.Shape[1], queries.Shape[2], queries.Shape[3]
	kvHeads, columns, dv := keys.Shape[1], keys.Shape[2], values.Shape[3]
	out := make([]float32, rows*heads*n*dv)
	weights := make([]float64, columns)
	sum := make([]float64, dv)
	for i := range rows * heads * n { // row, head and query in one index
		row, head, query := i/n/heads, i/n%heads, i%n
		first := (row*kvHeads + head/(heads/kvHeads)) * columns // of the head's columns
		selected := func(column int) bool { return sees(mask, row, query, column) }

		scores(weights, q[i*d:(i+1)*d], k[first*d:], scale, selected)
		clear(sum)
		total := 0.0
		for c, weight := range weights {
			if !selected(c) {
				continue
			}
			total += weight
			for e := range sum {
				sum[e] += weight * float64(v[(first+c)*dv+e])
			}
		}
		if total == 0 { // nothing selected: the largest weight is 1
			continue
		}
		for e := range sum {
			out[i*dv+e] = float32(sum[e] / total)
		}
	}
	return out, nil
}

// scores fills the weights of the selected columns: exp(score - largest score).
// The others keep what they hold.
func scores(weights []float64, query, keys []float32, scale float64, selected func(int) bool) {
	largest := math.Inf(-1)
	for c := range weights {
		if !selected(c) {
			continue
		}
		dot := 0.0
		for e, x := range query {
			dot += float64(x) * float64(keys[c*len(query)+e])
		}
		weights[c] = scale * dot
		largest = max(largest, weights[c])
	}
	for c := range weights {
		if selected(c) {
			weights[c] = math.Exp(weights[c] - largest)
		}
	}
}

// sees reports whether the mask lets a query of a row see a column.
func sees(mask *ring.Mask, row, query, column int) bool {
	if mask == nil || mask.N == 0 {
		return true
	}
	if mask.B == 1 {
		row = 0
	}
	return mask.At(row, query, column)
}

// plain returns one side of a cache as an array of floats.
func plain(op, what string, p ring.Planes, format Format) (ring.Array, error) {
	if format != (Format{}) {
		return Dequantize(p, format.GroupSize, format.Bits)
	}
	if len(p) != 1 {
		return ring.Array{}, &ring.ShapeError{Op: op, What: "number of planes of the " + what, Got: []int{len(p)}, Want: []int{1}}
	}
	return p[0], checkFloats(op, p[0])
}

// checkAttend refuses arrays that do not fit each other.
func checkAttend(op string, queries, keys, values ring.Array, mask *ring.Mask) error {
	if err := checkFloats(op, queries); err != nil {
		return err
	}
	q, k, v := queries.Shape, keys.Shape, values.Shape
	switch {
	case q[0] != k[0]:
		return &ring.RowsError{Op: op, What: "the array of queries", Got: q[0], Want: k[0]}
	case v[0] != k[0]:
		return &ring.RowsError{Op: op, What: "the array of values", Got: v[0], Want: k[0]}
	case k[1] == 0 || k[3] == 0:
		return &ring.ShapeError{Op: op, What: "shape of the keys", Got: k[:], Want: []int{k[0], max(k[1], 1), k[2], max(k[3], 1)}}
	case v[1] != k[1] || v[2] != k[2]:
		return &ring.ShapeError{Op: op, What: "shape of the values", Got: v[:], Want: []int{k[0], k[1], k[2], v[3]}}
	case q[3] != k[3]:
		return &ring.ShapeError{Op: op, What: "shape of the queries", Got: q[:], Want: []int{k[0], q[1], q[2], k[3]}}
	case q[1]%k[1] != 0:
		return &ring.ShapeError{Op: op, What: "number of query heads (any multiple will do)", Got: []int{q[1]}, Want: []int{k[1]}}
	case mask == nil || mask.N == 0:
		return nil
	case mask.B != 1 && mask.B != k[0]:
		return &ring.RowsError{Op: op, What: "the mask", Got: mask.B, Want: k[0]}
	case mask.N != q[2] || mask.S != k[2]:
		return &ring.ShapeError{Op: op, What: "shape of the mask", Got: []int{mask.B, 1, mask.N, mask.S}, Want: []int{mask.B, 1, q[2], k[2]}}
	case len(mask.Data) != mask.B*mask.N*mask.S:
		return &ring.ShapeError{Op: op, What: "number of elements of the mask", Got: []int{len(mask.Data)}, Want: []int{mask.B * mask.N * mask.S}}
	}
	return nil
}
