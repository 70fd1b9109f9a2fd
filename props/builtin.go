package props

import (
	"slices"
	"sync"

	"example.com/ringcheck/accelerated"
	_ "example.com/ringcheck/accelerated/cpu" // known to accelerated.Open, as the next two
	_ "example.com/ringcheck/accelerated/cuda"
	_ "example.com/ringcheck/accelerated/metal"
)

// Devices are the names of the accelerated cache's devices, as targets.
var Devices = []string{"cpu", "cuda", "metal"}

// builtin reports whether a name is that of a target that comes with this
// module, whether or not it can run here.
func builtin(name string) bool {
	return name == ReferenceTarget().Info().Name || slices.Contains(Devices, name)
}

// BuiltinTargets returns the implementations that come with this module and
// can run here: the reference, and the accelerated cache on each device that
// there is. Devices stay open for the life of the process.
var BuiltinTargets = sync.OnceValue(func() []Target {
	targets := []Target{ReferenceTarget()}
	for _, name := range Devices {
		if dev, err := accelerated.Open(name); err == nil {
			targets = append(targets, AcceleratedTarget(name, dev))
		}
	}
	return targets
})
