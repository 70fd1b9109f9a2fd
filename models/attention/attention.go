package attention

import (
	"math"

	"example.com/ringcheck/reference/ring"
	"gonum.org/v1/gonum/floats"
)

// Head is what one key/value head holds of a row: a key vector and a value
// vector for each token, oldest first.
type Head struct{ Keys, Values [][]float64 }

// Attend returns what one token's queries read, a vector of the values' width
// for each: query head i, whose query is queries[i], attends with key/value
// head i/(len(queries)/len(heads)) to those tokens t for which visible[t]
// holds. The score of a token is scale · query·key; its weight is the softmax
// of the scores.
//
// There must be at least one token, and the query heads must be a multiple of
// the others: otherwise, or where lengths do not agree, a [ring.ShapeError].
func Attend(queries [][]float64, heads []Head, visible []bool, scale float64) ([][]float64, error) {
	if err := check(queries, heads, visible); err != nil {
		return nil, err
	}
	out := make([][]float64, len(queries))
	for i, query := range queries {
		head := heads[i/(len(queries)/len(heads))]
		out[i] = make([]float64, len(head.Values[0]))
		scores := make([]float64, len(visible))
		for t := range scores {
			scores[t] = math.Inf(-1)
			if visible[t] {
				scores[t] = scale * floats.Dot(query, head.Keys[t])
			}
		}
		logTotal := floats.LogSumExp(scores)
		for t, value := range head.Values {
			if visible[t] {
				floats.AddScaled(out[i], math.Exp(scores[t]-logTotal), value)
			}
		}
	}
	return out, nil
}

// check refuses lengths that do not agree.
func check(queries [][]float64, heads []Head, visible []bool) error {
	refuse := func(what string, got, want int) error {
		return &ring.ShapeError{Op: "attention", What: what, Got: []int{got}, Want: []int{want}}
	}
	if len(visible) == 0 {
		return refuse("number of tokens", 0, 1)
	}
	if len(heads) == 0 {
		return refuse("number of key/value heads", 0, 1)
	}
	if len(queries)%len(heads) != 0 {
		return refuse("number of query heads (any multiple will do)", len(queries), len(heads))
	}
	for _, head := range heads {
		if len(head.Keys) != len(visible) {
			return refuse("number of keys", len(head.Keys), len(visible))
		}
		if len(head.Values) != len(visible) {
			return refuse("number of values", len(head.Values), len(visible))
		}
		for t := range visible {
			if n := len(head.Values[0]); len(head.Values[t]) != n {
				return refuse("width of a value", len(head.Values[t]), n)
			}
			for _, query := range queries {
				if len(head.Keys[t]) != len(query) {
					return refuse("width of a key", len(head.Keys[t]), len(query))
				}
			}
		}
	}
	return nil
}
