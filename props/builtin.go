package props

// BuiltinTargets returns the implementations that come with this module and
// can run here.
func BuiltinTargets() []Target { return []Target{ReferenceTarget()} }
