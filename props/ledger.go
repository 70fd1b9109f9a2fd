package props

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// CheckLedger runs the case of each row of [reference.Ledger] on a target of
// mlx-lm's semantics, and returns a line for each row where it answers
// something else than the ledger says: a quirk that is gone, or has changed.
// Checked counts the rows asked: not those that no case shows, nor those whose
// case is of exact, since these need what mlx-lm does not have, nor those whose
// case the target lacks something for. The error is for a case that could not
// be run.
func CheckLedger(ctx context.Context, t Target) (changed []string, checked int, err error) {
	cases := ledgerCases()
	for _, q := range reference.Ledger {
		c, ok := cases[q.Case]
		if !ok || c.Semantics != ring.MLXLM || t.Info().Lacks(c) != "" {
			continue
		}
		got, err := observe(ctx, t, c, q)
		if err != nil {
			return changed, checked, fmt.Errorf("ledger %s: %w", q.ID, err)
		}
		checked++
		if got != q.MLXLM {
			changed = append(changed, fmt.Sprintf("%s: operation %d of case %s: %s was %s, and is %s (%s)", q.ID, q.Step, q.Case, q.Field, q.MLXLM, got, q.Sentence))
		}
	}
	return changed, checked, nil
}

// ledgerCases are the cases that rows of the ledger name.
func ledgerCases() map[string]corpus.Case {
	out := map[string]corpus.Case{}
	for f, err := range corpus.All(corpus.FS()) {
		if err == nil && f.Path == "known/"+f.Case.Name+".json" {
			out[f.Case.Name] = f.Case
		}
	}
	return out
}

// observe runs c and returns what row q of the ledger looks at.
func observe(ctx context.Context, t Target, c corpus.Case, q reference.Quirk) (string, error) {
	dir, err := os.MkdirTemp("", "ringcheck-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	steps, err := t.Run(ctx, c, dir)
	if err != nil {
		return "", err
	}
	if q.Step >= len(steps) {
		return "", errors.New("the answer is too short")
	}
	return observed(c, steps, q.Step, q.Field), nil
}

// observed is one field of the answer to operation i, of a want or of a state,
// as compact JSON. A refusal is "error:CODE"; where the operation was refused
// because an earlier refusal kept its cache from being made, the code is that
// one's.
func observed(c corpus.Case, steps []corpus.Step, i int, field string) string {
	s := steps[i]
	if s.Error != "" {
		return "error:" + steps[cause(c, steps, i)].Error
	}
	tokens := NewTokens(c)
	switch field {
	case "returned":
		return listText(tokens.IDs(s.Returned))
	case "stored":
		return listText(tokens.IDs(s.Stored))
	case "trimmed":
		if s.Trimmed != nil {
			return strconv.Itoa(*s.Trimmed)
		}
	case "mask":
		if s.Mask != nil {
			return string(corpus.AppendMask(nil, s.Mask))
		}
	}
	for _, f := range s.State {
		if name := f.Name.String(); name == field {
			text := string(corpus.AppendState(nil, corpus.State{f}))
			return text[len(`{"":`)+len(name) : len(text)-1]
		}
	}
	return ""
}

func listText(ids [][]int) string { return strings.ReplaceAll(fmt.Sprint(ids), " ", ",") }

// cause is the first refused operation that operation i could not go without.
func cause(c corpus.Case, steps []corpus.Step, i int) int {
	op := &c.Ops[i]
	for _, name := range append([]string{op.Cache, op.Other}, op.Caches...) {
		for j := range i {
			if made := &c.Ops[j]; name != "" && steps[j].Error != "" && (made.Out == name || slices.Contains(made.Outs, name)) {
				return cause(c, steps, j)
			}
		}
	}
	return i
}
