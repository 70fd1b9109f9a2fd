package bench

import (
	"context"
	"strings"
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
)

func TestSuite(t *testing.T) {
	done := 0
	r, err := Suite(context.Background(), SuiteOptions{
		Targets: []props.Target{props.ReferenceTarget()}, Peer: playedPeer(t, "stateful"), Rounds: 2, Done: func() { done++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	list := r.Suite.Contenders
	if done != 2 || list[0].Name != "reference" || list[0].Cores != 1 || list[len(list)-1].Name != hypothesis {
		t.Errorf("%d rounds, %+v", done, list)
	}
	for _, c := range list {
		if len(c.PerSecond) != 2 || c.PerSecond.Median() <= 0 || c.Name == hypothesis && c.PerSecond.Median() != 50 {
			t.Errorf("%+v", c)
		}
	}
}

// TestSuiteFindsBugs shows that what is timed is checked.
func TestSuiteFindsBugs(t *testing.T) {
	_, err := Suite(context.Background(), SuiteOptions{Targets: []props.Target{forgetful{props.ReferenceTarget()}}, Rounds: 1})
	if err == nil || !strings.Contains(err.Error(), "does not hold of forgetful") {
		t.Errorf("got %v", err)
	}
	_, err = Suite(context.Background(), SuiteOptions{Peer: playedPeer(t, "silent"), Rounds: 1})
	if err == nil || !strings.Contains(err.Error(), "no such module") {
		t.Errorf("got %v", err)
	}
	_, err = Suite(context.Background(), SuiteOptions{Peer: playedPeer(t, "chatty"), Rounds: 1})
	if err == nil || !strings.Contains(err.Error(), "no per_second") {
		t.Errorf("got %v", err)
	}
}

func TestSmallCases(t *testing.T) {
	verbs, reference := map[string]int{}, props.ReferenceTarget()
	properties, err := stepwise()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range smallCases(reference.Info()) {
		if f, err := props.Check(context.Background(), reference, c, properties); f != nil || err != nil {
			t.Errorf("%v, %v", f, err)
		}
		if op := c.Ops[0]; op.MaxSize != 8 || len(op.LeftPadding) != 2 || c.Shape.KVHeads != 2 || c.Shape.KeyDim != 8 {
			t.Fatalf("%+v", c)
		}
		for _, op := range c.Ops {
			verbs[string(op.Verb)]++
		}
	}
	for _, v := range []string{"update", "merge", "filter", "extract", "trim", "prepare", "finalize"} {
		if verbs[v] == 0 {
			t.Errorf("no case has %s: %v", v, verbs)
		}
	}
}

// forgetful zeroes the first plane of all that it returns.
type forgetful struct{ props.Target }

func (f forgetful) Info() props.Info {
	info := f.Target.Info()
	info.Name = "forgetful"
	return info
}

func (f forgetful) Run(ctx context.Context, c corpus.Case, dir string) ([]corpus.Step, error) {
	steps, err := f.Target.Run(ctx, c, dir)
	for _, s := range steps {
		for _, p := range s.Returned {
			clear(p.Array.Data)
		}
	}
	return steps, err
}
