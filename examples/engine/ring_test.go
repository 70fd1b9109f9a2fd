package engine

import (
	"context"
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
)

// TestRing holds Ring to the corpus and to every property, on -rapid.checks
// random cases each. What fails is made small and kept in ringcheck-found.
func TestRing(t *testing.T) {
	suite := props.NewSuite(target{})
	suite.Folder = "ringcheck-found"
	suite.Test(t)
}

// forgetful is target with a defect: the mask of a block does not end at the
// window.
type forgetful struct{ target }

func (f forgetful) Run(ctx context.Context, c corpus.Case, dir string) ([]corpus.Step, error) {
	steps, err := f.target.Run(ctx, c, dir)
	for i := range steps {
		if m := steps[i].Mask; m != nil && m.N > 1 {
			for k := range m.Data {
				query, column := k/m.S, k%m.S
				m.Data[k] = column <= m.S-m.N+query
			}
		}
	}
	return steps, err
}

// TestDefectIsFound makes sure that the suite says something about this
// target: it finds a defect within a few random cases.
func TestDefectIsFound(t *testing.T) {
	suite := props.NewSuite(forgetful{})
	for i := range 200 {
		finding, err := suite.Check(t.Context(), suite.Case(1, i))
		if err != nil {
			t.Fatal(err)
		}
		if finding != nil {
			t.Logf("case %d: %v", i, finding)
			return
		}
	}
	t.Error("200 cases have not found it")
}
