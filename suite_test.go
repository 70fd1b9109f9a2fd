package ringcheck

import (
	"testing"

	"example.com/ringcheck/props"
)

// TestTargets holds every implementation of this module to everything, as the
// test of that name in package props does.
func TestTargets(t *testing.T) {
	for _, target := range props.BuiltinTargets() {
		t.Run(target.Info().Name, props.NewSuite(target).Test)
	}
}
