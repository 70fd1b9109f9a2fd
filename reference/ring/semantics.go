package ring

import "fmt"

// Semantics selects which of the two specified behaviours a cache has. It is
// always chosen explicitly; the zero value is not valid.
type Semantics uint8

const (
	// MLXLM is mlx-lm of the pinned version, defect for defect.
	MLXLM Semantics = iota + 1
	// Exact is the behaviour that is right: see docs/semantics.md.
	Exact
)

// String returns the name used wherever text is: "mlxlm" or "exact".
func (s Semantics) String() string {
	switch s {
	case MLXLM:
		return "mlxlm"
	case Exact:
		return "exact"
	}
	return fmt.Sprintf("Semantics(%d)", uint8(s))
}

// ParseSemantics is the inverse of [Semantics.String].
func ParseSemantics(name string) (Semantics, error) {
	switch name {
	case "mlxlm":
		return MLXLM, nil
	case "exact":
		return Exact, nil
	}
	return 0, fmt.Errorf("unknown semantics %q: use mlxlm or exact", name)
}
