package props

import (
	"context"
	"flag"
	"testing"
)

var exhaustive = flag.Duration("exhaustive", 0, "how long to try every sequence of operations, as deep as that goes; 0: to a small depth")

// TestExhaustive tries every short sequence of operations. For the run whose
// figures the README gives:
//
//	go test ./props -run TestExhaustive -v -exhaustive=5m
func TestExhaustive(t *testing.T) {
	for _, target := range BuiltinTargets() {
		t.Run(target.Info().Name, func(t *testing.T) {
			ctx, depth := t.Context(), 3
			if *exhaustive > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, *exhaustive)
				defer cancel()
				depth = 100
			}
			s := NewSuite(target)
			done, f, err := Exhaust(ctx, target, s.Domain, depth)
			t.Log(done)
			if err != nil {
				t.Fatal(err)
			}
			if f != nil {
				t.Fatal(s.Explain(t.Context(), f, t.Name(), 0))
			}
			if *exhaustive == 0 && done.Depth != depth {
				t.Errorf("it ended at depth %d, want %d", done.Depth, depth)
			}
		})
	}
}
