package props

import (
	"reflect"
	"slices"

	"example.com/ringcheck/corpus"
)

// longestStored is the columns of a buffer that a want still spells out after
// an operation that only grows or shortens it.
const longestStored = 64

// WithWants returns c with a want at each operation that has none, taken from
// answers. Columns that are no token of the case are left out, since a want can
// only name tokens; so is what involves a cache that a raises has spoiled.
func WithWants(c corpus.Case, answers []corpus.Step) corpus.Case {
	c.Ops = slices.Clone(c.Ops)
	tokens := NewTokens(c)
	spoiled := DropAfterRaises(c, answers)
	for i := range min(len(c.Ops), len(answers)) {
		if op := &c.Ops[i]; op.Want == nil && answers[i].Unsupported == "" && (spoiled == nil || !spoiled[i]) {
			op.Want = wantFrom(op.Verb, answers[i], tokens)
		}
	}
	return c
}

// wantFrom is what s says, nil if it says nothing.
func wantFrom(v corpus.Verb, s corpus.Step, tokens *Tokens) *corpus.Want {
	w := &corpus.Want{
		Returned: known(tokens.IDs(s.Returned)), State: s.State, Mask: s.Mask,
		Trimmed: s.Trimmed, Offsets: s.Offsets, Bytes: s.Bytes, Error: s.Error,
	}
	if stored := known(tokens.IDs(s.Stored)); s.Error == "" && spelled(v, stored) {
		w.Stored = stored
	}
	if reflect.DeepEqual(*w, corpus.Want{}) {
		return nil
	}
	return w
}

// spelled reports whether a want says what the buffer holds after v.
func spelled(v corpus.Verb, stored [][]int) bool {
	switch v {
	case corpus.New, corpus.Prepare:
		return false
	case corpus.Update, corpus.Trim:
		return len(stored) == 0 || len(stored[0]) <= longestStored
	}
	return true
}

// known returns ids, or nil where one of them is unknown.
func known(ids [][]int) [][]int {
	for _, row := range ids {
		if slices.Contains(row, Unknown) {
			return nil
		}
	}
	return ids
}
