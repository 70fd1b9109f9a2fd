package ring_test

import (
	"testing"

	"example.com/ringcheck/reference/ring"
	_ "pgregory.net/rapid"
)

func TestMaskSees(t *testing.T) {
	two := &ring.Mask{B: 2, N: 1, S: 2, Data: []bool{true, false, false, true}}
	one := &ring.Mask{B: 1, N: 1, S: 2, Data: []bool{true, false}}
	for name, test := range map[string]struct {
		mask     *ring.Mask
		b, q, s  int
		sees, ok bool
	}{
		"its own row":        {two, 1, 0, 1, true, true},
		"hidden":             {two, 1, 0, 0, false, true},
		"no mask":            {&ring.Mask{}, 5, 5, 5, true, true},
		"one row serves all": {one, 7, 0, 0, true, true},
		"no such row":        {two, 2, 0, 0, false, false},
		"no such query":      {two, 0, 1, 0, false, false},
		"no such column":     {two, 0, 0, 2, false, false},
		"short of data":      {&ring.Mask{B: 1, N: 1, S: 2, Data: []bool{true}}, 0, 0, 1, false, false},
	} {
		if sees, ok := test.mask.Sees(test.b, test.q, test.s); sees != test.sees || ok != test.ok {
			t.Errorf("%s: %t, %t; want %t, %t", name, sees, ok, test.sees, test.ok)
		}
	}
}
