package props

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/models"
	"example.com/ringcheck/reference/ring"
)

// checkGenerated: a case can be kept, and package models can speak of all of it.
func checkGenerated(t rapid.TB, c corpus.Case) {
	if len(c.Ops) == 0 {
		return
	}
	if !modelled(&c) {
		t.Fatalf("package models cannot speak of all of it:\n%s", Listing(c, nil))
	}
	m := models.New(c.Semantics, c.Shape, c.Quant)
	lintable := corpus.Unwanted(c)
	for i := range lintable.Ops {
		if code := m.Apply(&c.Ops[i]).Error; code != "" {
			lintable.Ops[i].Want = &corpus.Want{Error: code}
		}
	}
	if problems := corpus.Lint(lintable); problems != nil {
		t.Fatalf("%v:\n%s", problems, Listing(c, nil))
	}
	if read, err := corpus.Parse(corpus.Format(c), "it"); err != nil || Listing(read, nil) != Listing(c, nil) {
		t.Fatalf("written and read it is another, %v:\n%s", err, Listing(c, nil))
	}
}

func TestGenerate(t *testing.T) {
	d := Domain{Info: ReferenceTarget().Info()}
	seen := map[string]uint64{} // content to seed
	for seed := range uint64(3) {
		for i := range 300 {
			c := Generate(RandomSource(seed, i), d)
			checkGenerated(t, c)
			if again := Generate(RandomSource(seed, i), d); !bytes.Equal(corpus.Format(again), corpus.Format(c)) {
				t.Fatalf("case %d of seed %d is another one the second time", i, seed)
			}
			if other, ok := seen[c.Content()]; ok && other != seed && len(c.Ops) > 4 {
				t.Errorf("seeds %d and %d have a case of %d operations in common", seed, other, len(c.Ops))
			}
			seen[c.Content()] = seed
		}
	}
	t.Run("drawn", rapid.MakeCheck(func(t *rapid.T) { checkGenerated(t, drawnCases(d).Draw(t, "case").Case) }))
	t.Run("from bytes", rapid.MakeCheck(func(t *rapid.T) {
		checkGenerated(t, Generate(ByteSource(rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(t, "bytes")), d))
	}))
}

// TestGenerateDomain: a case needs nothing that the domain has not.
func TestGenerateDomain(t *testing.T) {
	info := ReferenceTarget().Info()
	info.Kinds = []corpus.Kind{corpus.Rotating, corpus.BatchRotating, corpus.RotatingQuantized, corpus.KV}
	info.Ops = slices.DeleteFunc(slices.Clone(info.Ops), func(v corpus.Verb) bool { return v == corpus.Extend || v == corpus.Rollback })
	info.DTypes = []ring.DType{ring.Float16}
	info.Quant = []corpus.Quant{{GroupSize: 64, Bits: 4}}
	info.Fills = []corpus.Fill{corpus.Grid}
	for _, d := range []Domain{
		{Info: info},
		{Info: info, Kinds: []corpus.Kind{corpus.BatchRotating}},
		{Info: info, Semantics: []ring.Semantics{ring.Exact}},
		{Info: info, Kinds: []corpus.Kind{corpus.KV}}, // in mlxlm only
	} {
		some := 0
		for i := range 500 {
			c := Generate(RandomSource(5, i), d)
			if lacks := info.Lacks(c); lacks != "" {
				t.Fatalf("a case needs %s:\n%s", lacks, Listing(c, nil))
			}
			for _, op := range c.Ops {
				if op.Kind != "" && d.Kinds != nil && !slices.Contains(d.Kinds, op.Kind) {
					t.Fatalf("a case of %v has a new %s", d.Kinds, op.Kind)
				}
			}
			if d.Semantics != nil && !slices.Contains(d.Semantics, c.Semantics) {
				t.Fatalf("a case is of %v", c.Semantics)
			}
			some += len(c.Ops)
		}
		if some < 2000 {
			t.Errorf("500 cases of %v have %d operations", d.Kinds, some)
		}
	}
	if c := Generate(RandomSource(5, 0), Domain{Info: info, Kinds: []corpus.Kind{corpus.List}}); len(c.Ops) != 0 {
		t.Errorf("a case was made of a domain without kinds: %v", c.Ops)
	}
}
