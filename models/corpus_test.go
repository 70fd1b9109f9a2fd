package models

import (
	"slices"
	"strings"
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// tally is what one folder of the corpus proves.
type tally struct {
	cases, ops, unknown, real int
	checks                    [NumRules]int
}

// files reads the corpus.
func files(t testing.TB) []corpus.File {
	var out []corpus.File
	for f, err := range corpus.All(corpus.FS()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

// TestCorpus holds every case of the corpus against the model: what mlx-lm
// answered, and what was written for exact.
func TestCorpus(t *testing.T) {
	sums := map[string]*tally{}
	for _, f := range files(t) {
		folder, _, _ := strings.Cut(f.Path, "/")
		s := sums[folder]
		if s == nil {
			s = &tally{}
			sums[folder] = s
		}
		s.cases++
		j := NewJudge(&f.Case)
		for i := range f.Case.Ops {
			op := &f.Case.Ops[i]
			want := op.Want
			if want == nil {
				want = &corpus.Want{}
				if ok, code := j.Model.Legal(op); !ok {
					want.Error = code
				}
			}
			s.ops++
			if v := j.Step(op, want); v != nil {
				t.Errorf("%s: operation %d, %s: %v", f.Path, i, op.Verb, v)
				break
			}
			if op.Verb == corpus.MaskOp {
				for _, r := range j.Model.out.Rows {
					s.real += r.Real
				}
			}
		}
		s.unknown += j.Unknown
		for r, n := range j.Checks {
			s.checks[r] += n
		}
	}
	for folder, s := range sums {
		t.Logf("%s: %d cases, %d operations, not predicted %d; mask rows of real queries %d", folder, s.cases, s.ops, s.unknown, s.real)
		for r, n := range s.checks {
			if n > 0 {
				t.Logf("  %-16v %6d", Rule(r), n)
			}
		}
	}
	// The corpus grows only, so less than this proves less than it did.
	for folder, least := range map[string]struct{ cases, window, extract, known int }{
		"mlx-lm": {200, 11700, 590, 96},
		"exact":  {80, 6700, 370, 100},
	} {
		s := sums[folder]
		if s == nil || s.cases < least.cases || s.checks[RuleWindow] < least.window || s.checks[RuleExtract] < least.extract {
			t.Errorf("%s: too little was checked: %+v", folder, s)
		} else if (s.ops-s.unknown)*100 < s.ops*least.known {
			t.Errorf("%s: %d of %d operations are not predicted, want at most %d%%", folder, s.unknown, s.ops, 100-least.known)
		}
	}
}

// TestJudgeBites spoils every observation of the recorded cases in one way at a
// time, and wants the rule that is broken named.
func TestJudgeBites(t *testing.T) {
	field := func(w *corpus.Want, n corpus.FieldName, change func(*corpus.Field)) bool {
		w.State = slices.Clone(w.State)
		for i := range w.State {
			if w.State[i].Name == n && w.State[i].Kind != corpus.Null {
				w.State[i].Ints = slices.Clone(w.State[i].Ints)
				change(&w.State[i])
				return true
			}
		}
		return false
	}
	bump := func(f *corpus.Field) {
		f.Int ^= 1
		if f.Kind == corpus.Ints && len(f.Ints) > 0 {
			f.Int ^= 1
			f.Ints[len(f.Ints)-1]++
		}
	}
	state := func(n corpus.FieldName) func(*Expect, *corpus.Want) bool {
		return func(_ *Expect, w *corpus.Want) bool { return field(w, n, bump) }
	}
	rows := func(v *[][]int) bool {
		*v = slices.Clone(*v)
		for i := range *v {
			(*v)[i] = slices.Clone((*v)[i])
		}
		return len(*v) > 0 && len((*v)[0]) > 0
	}
	mask := func(m **ring.Mask) bool {
		if *m == nil || (*m).N == 0 {
			return false
		}
		n := **m
		n.Data = slices.Clone(n.Data)
		*m = &n
		return true
	}
	// query finds a real query that sees something and not everything; its row
	// of the mask starts at the index returned.
	query := func(e *Expect, m *ring.Mask) (at, yes, no int) {
		for i := range e.Rows {
			for q := range e.Rows[i].Real {
				at := (i*m.N + e.Rows[i].Lead + q) * m.S
				yes, no := slices.Index(m.Data[at:at+m.S], true), slices.Index(m.Data[at:at+m.S], false)
				if yes >= 0 && no >= 0 {
					return at, yes, no
				}
			}
		}
		return 0, -1, -1
	}

	all := files(t)
	for name, test := range map[string]struct {
		rules RuleSet
		verb  corpus.Verb // "": any
		spoil func(e *Expect, w *corpus.Want) bool
		least int
	}{
		"refused": {Rules(RuleRefusal), "", func(_ *Expect, w *corpus.Want) bool {
			if w.Error != "" {
				return false
			}
			w.Error = "busy"
			return true
		}, 7000},
		"not refused": {Rules(RuleRefusal), "", func(_ *Expect, w *corpus.Want) bool {
			refused := w.Error != ""
			w.Error = ""
			return refused
		}, 120},
		"offset":       {Rules(RuleOffsets), "", state(corpus.FOffset), 4000},
		"size":         {Rules(RuleSize), "", state(corpus.FSize), 4000},
		"trimmable":    {Rules(RuleSize), "", state(corpus.FTrimmable), 4000},
		"idx":          {Rules(RulePositions), "", state(corpus.FIdx), 4000},
		"total":        {Rules(RulePositions), "", state(corpus.FTotal), 2000},
		"rotated":      {Rules(RulePositions), "", state(corpus.FRotated), 2000},
		"ends":         {Rules(RulePositions), "", state(corpus.FEnds), 200},
		"right":        {Rules(RulePositions), "", state(corpus.FRightPadding), 20},
		"left padding": {Rules(RuleConservation), "", state(corpus.FLeftPadding), 2000},
		"trimmed": {Rules(RuleTrimmed), corpus.Trim, func(_ *Expect, w *corpus.Want) bool {
			if w.Trimmed == nil {
				return false
			}
			n := *w.Trimmed + 1
			w.Trimmed = &n
			return true
		}, 20},
		"a column too many": {Rules(RuleReturned), corpus.Update, func(_ *Expect, w *corpus.Want) bool {
			if !rows(&w.Returned) {
				return false
			}
			w.Returned[0] = append([]int{0}, w.Returned[0]...)
			return true
		}, 3000},
		"a token lost": {Rules(RuleReturned), corpus.Update, func(e *Expect, w *corpus.Want) bool {
			for i := range e.Rows {
				if t := e.Rows[i].Tail; len(t) > 0 && rows(&w.Returned) {
					w.Returned[i][slices.Index(w.Returned[i], t[0])] = 0
					return true
				}
			}
			return false
		}, 3000},
		"mask of another width": {Rules(RuleMaskFits), corpus.MaskOp, func(_ *Expect, w *corpus.Want) bool {
			if !mask(&w.Mask) || w.Mask.B == 0 { // a mask of no rows has no width
				return false
			}
			w.Mask.S++
			w.Mask.Data = append(w.Mask.Data, make([]bool, w.Mask.B*w.Mask.N)...)
			return true
		}, 3000},
		"no mask": {Rules(RuleMaskFits), corpus.MaskOp, func(_ *Expect, w *corpus.Want) bool {
			there := w.Mask != nil && w.Mask.N > 0
			w.Mask = &ring.Mask{}
			return there
		}, 3000},
		"a column more": {Rules(RuleMaskFits), corpus.MaskOp, func(e *Expect, w *corpus.Want) bool {
			if e.Mask.Window < 0 || !mask(&w.Mask) {
				return false
			}
			at, _, no := query(e, w.Mask)
			if no >= 0 {
				w.Mask.Data[at+no] = true
			}
			return no >= 0
		}, 1500},
		"another column": {Rules(RuleWindow, RuleNoGhost), corpus.MaskOp, func(e *Expect, w *corpus.Want) bool {
			if e.Mask.Window < 0 || !mask(&w.Mask) {
				return false
			}
			at, yes, no := query(e, w.Mask)
			if no >= 0 {
				w.Mask.Data[at+yes], w.Mask.Data[at+no] = false, true
			}
			return no >= 0
		}, 1500},
		"another token": {Rules(RuleExtract), corpus.Extract, func(e *Expect, w *corpus.Want) bool {
			if len(e.Contents) == 0 || len(e.Contents[0].Tail) == 0 || !rows(&w.Stored) {
				return false
			}
			w.Stored[0][len(w.Stored[0])-1]++
			return true
		}, 800},
		"extract with a column more": {Rules(RuleExtract), corpus.Extract, func(e *Expect, w *corpus.Want) bool {
			if e.Slots != nil || !rows(&w.Stored) {
				return false
			}
			w.Stored[0] = append([]int{0}, w.Stored[0]...)
			return true
		}, 800},
	} {
		t.Run(name, func(t *testing.T) {
			spoiled := 0
			for _, f := range all {
				j := NewJudge(&f.Case)
				var want *Violation // due at the next write of the mask's cache
				spoiledMask := ""
				for i := range f.Case.Ops {
					op := &f.Case.Ops[i]
					if op.Want == nil {
						break
					}
					got := *op.Want
					e := j.Model.Apply(op)
					due := want != nil && isWrite(op.Verb) && op.Cache == spoiledMask
					hit := want == nil && e.Known && (test.verb == "" || test.verb == op.Verb) && test.spoil(e, &got)
					delayed := hit && op.Verb == corpus.MaskOp && test.rules.Has(RuleWindow)
					v := j.observe(e, op, &got)
					switch {
					case delayed:
						want, spoiledMask = &Violation{}, op.Cache
					case hit || due && v != nil:
						want = nil
						spoiled++
						if v == nil || !test.rules.Has(v.Rule) {
							t.Fatalf("%s: operation %d, %s: judged %v", f.Path, i, op.Verb, v)
						}
					case due: // the write did not fit the mask
						want = nil
					case v != nil:
						t.Fatalf("%s: operation %d, %s: %v", f.Path, i, op.Verb, v)
					}
				}
			}
			if spoiled < test.least {
				t.Fatalf("%d observations were spoiled, want at least %d", spoiled, test.least)
			}
		})
	}
}
