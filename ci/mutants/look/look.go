// Package look finds planted bugs by properties, in a child or in the program
// itself. The comparison with the reference is no such property.
package look

import (
	"context"
	"slices"

	"example.com/ringcheck/props"
)

// Checks is how many cases of a seed are checked at most.
const Checks = 1000

// Found is what came of looking.
type Found struct {
	Checks     []int // by seed, from 1, until a property failed; Checks+1 where none did
	Property   string
	Operations int // of the first seed's finding, reduced
}

// For looks for a bug in a target, so many seeds. Names choose properties; none
// means all.
func For(ctx context.Context, t props.Target, seeds int, names ...string) (found Found, err error) {
	suite := props.NewSuite(t)
	if suite.Properties, err = props.Named(names); err != nil {
		return found, err
	}
	suite.Properties = slices.DeleteFunc(suite.Properties, func(p props.Property) bool { return p.Name == "reference" || p.Name == "corpus" })
	for seed := range seeds {
		n, f, err := first(ctx, suite, uint64(seed+1))
		if err == nil && f != nil && found.Property == "" {
			if f, err = props.Reduce(ctx, t, f); f != nil {
				found.Property, found.Operations = f.Property, len(f.Case.Ops)
			}
		}
		if err != nil {
			return found, err
		}
		found.Checks = append(found.Checks, n)
	}
	return found, nil
}

// first checks cases of a seed, as the command check does, until a property
// fails.
func first(ctx context.Context, s *props.Suite, seed uint64) (int, *props.Finding, error) {
	for i := range Checks {
		f, err := props.Check(ctx, s.Target, s.Case(seed, i), props.Turn(s.Properties, i))
		if f != nil || err != nil {
			return i + 1, f, err
		}
	}
	return Checks + 1, nil, nil
}
