package props

import (
	"slices"
	"strings"
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// TestSituations: 10,000 random cases get into everything that they can.
func TestSituations(t *testing.T) {
	t.Parallel()
	d := Domain{Info: ReferenceTarget().Info()}
	var all Situations
	for i := range enough {
		if err := count(&all, Generate(RandomSource(1, i), d)); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(all.String())
	if missing := all.Missing(d); len(missing) > 0 {
		t.Errorf("%d cases have not had:\n%s", all.Cases, strings.Join(missing, "\n"))
	}
}

// TestSituationsMissing: what has not occurred is named, and what the domain
// does not allow is not.
func TestSituationsMissing(t *testing.T) {
	d := Domain{Info: ReferenceTarget().Info(), Kinds: []corpus.Kind{corpus.Rotating}, Semantics: []ring.Semantics{ring.Exact}}
	var s Situations
	c := corpus.Case{Semantics: ring.Exact, Step: 256, Shape: corpus.Shape{KVHeads: 1, KeyDim: 4, ValueDim: 4, DType: ring.Float32}, Ops: []corpus.Op{
		{Verb: corpus.New, Out: "c", Kind: corpus.Rotating, MaxSize: 2},
		{Verb: corpus.Update, Cache: "c", Tokens: [][]int{{1, 2, 3}}},
		{Verb: corpus.Update, Cache: "c", Tokens: [][]int{{4}}},
		{Verb: corpus.Trim, Cache: "c", N: 1},
	}}
	if err := count(&s, c); err != nil {
		t.Fatal(err)
	}
	missing := s.Missing(d)
	for _, name := range []string{"the ring wraps", "a decode after an overshoot", "a write of W+1 columns", "a refusal: not_trimmable", "new, then update", "update, then update", "a new rotating under exact"} {
		if slices.Contains(missing, name) {
			t.Errorf("%q is said to be missing", name)
		}
	}
	for _, name := range []string{"a block after an overshoot", "a refusal: window", "update, then trim", "a snapshot restored over a later state"} {
		if !slices.Contains(missing, name) {
			t.Errorf("%q is not said to be missing", name)
		}
	}
	for _, name := range []string{"a batch of no rows", "a refusal: raises", "update, then extend", "a new batch_rotating under exact", "a chunk dropped at the front"} {
		if slices.Contains(missing, name) {
			t.Errorf("%q is said to be missing, although it cannot occur", name)
		}
	}
	for _, line := range []string{
		"1 cases, 4 operations\n", "       1  the ring wraps\n", "       1  a refusal: not_trimmable\n",
		"       1  update, then: update 1\n", // a refused trim makes no pair
	} {
		if !strings.Contains(s.String(), line) {
			t.Errorf("the table lacks %q:\n%s", line, s.String())
		}
	}
}
