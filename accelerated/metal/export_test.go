package metal

import (
	"testing"

	"example.com/ringcheck/accelerated"
)

// OpenStandIn opens a device over a stand-in, for tests of package metal_test.
func OpenStandIn(t *testing.T) accelerated.Device {
	s := newStandIn(t)
	s.lag = 3
	return device(t, s)
}
