package props

import (
	"context"
	"slices"
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// buggy is the reference with a bug: it spoils the answers to a case.
type buggy struct{ spoil func(a *answersTo) }

// answersTo are the right answers to a case, to be spoiled in place.
type answersTo struct {
	c     *corpus.Case
	steps []corpus.Step
	ids   []corpus.Want // the steps as token ids
}

func (b buggy) Info() Info {
	info := ReferenceTarget().Info()
	info.Name = "buggy"
	return info
}

func (b buggy) Run(ctx context.Context, c corpus.Case, dir string) ([]corpus.Step, error) {
	steps, err := ReferenceTarget().Run(ctx, c, dir)
	if err != nil {
		return steps, err
	}
	a := &answersTo{c: &c, steps: steps, ids: Observed(c, steps)}
	b.spoil(a)
	return a.steps, nil
}

// leaky claims to hold something for ever.
type leaky struct{ buggy }

func (leaky) Leaked() string { return "1 buffer" }

// moody answers every second run with an offset too high.
type moody struct {
	buggy
	runs *int
}

func (m moody) Run(ctx context.Context, c corpus.Case, dir string) ([]corpus.Step, error) {
	if *m.runs++; *m.runs%2 == 0 {
		return m.buggy.Run(ctx, c, dir)
	}
	return ReferenceTarget().Run(ctx, c, dir)
}

// state spoils a field of every state.
func state(name corpus.FieldName, spoil func(*corpus.Field)) func(a *answersTo) {
	return func(a *answersTo) {
		for i := range a.steps {
			shift(a.steps[i].State, name, spoil)
		}
	}
}

func shift(s corpus.State, name corpus.FieldName, spoil func(*corpus.Field)) {
	for k := range s {
		if s[k].Name == name {
			spoil(&s[k])
		}
	}
}

func oneMore(f *corpus.Field) {
	f.Int++
	f.Ints = slices.Clone(f.Ints)
	for i := range f.Ints {
		f.Ints[i]++
	}
}

// each spoils the answers that are not refusals.
func each(spoil func(op *corpus.Op, s *corpus.Step, ids *corpus.Want)) func(a *answersTo) {
	return func(a *answersTo) {
		for i := range a.steps {
			if a.steps[i].Error == "" {
				spoil(&a.c.Ops[i], &a.steps[i], &a.ids[i])
			}
		}
	}
}

// column is the bytes of one column of one head.
func column(a ring.Array, b, h, s int) []byte {
	width := a.Shape[3] * a.DType.Size()
	return a.Data[((b*a.Shape[1]+h)*a.Shape[2]+s)*width:][:width]
}

// loses spoils every later answer of a cache: the columns of tokens that when
// names at some step come back as zeros.
func loses(when func(a *answersTo, i int) (cache string, ids []int)) func(a *answersTo) {
	return func(a *answersTo) {
		lost := map[string][]int{}
		for i := range a.steps {
			op, s := &a.c.Ops[i], &a.steps[i]
			if s.Error != "" {
				continue
			}
			for b, row := range a.ids[i].Returned {
				for j, id := range row {
					if !slices.Contains(lost[op.Cache], id) {
						continue
					}
					for _, p := range s.Returned {
						for h := range p.Array.Shape[1] {
							clear(column(p.Array, b, h, j))
						}
					}
				}
			}
			cache, ids := when(a, i)
			lost[cache] = append(lost[cache], ids...)
		}
	}
}

// afterwards loses what is written to a cache right after an operation.
func afterwards(verb corpus.Verb) func(a *answersTo) {
	return func(a *answersTo) {
		armed := map[string]bool{}
		loses(func(a *answersTo, i int) (string, []int) {
			op := &a.c.Ops[i]
			switch {
			case op.Verb == verb:
				armed[op.Cache] = true
			case op.Tokens != nil && armed[op.Cache]:
				armed[op.Cache] = false
				return op.Cache, slices.Concat(op.Tokens...)
			}
			return "", nil
		})(a)
	}
}

// tracked calls when with what was written last to the cache that an operation
// is done to, or to those that it makes one of.
func tracked(when func(op *corpus.Op, newest func(name string) []int) (cache string, ids []int)) func(a *answersTo) {
	return func(a *answersTo) {
		written := map[string][]int{}
		loses(func(a *answersTo, i int) (string, []int) {
			op := &a.c.Ops[i]
			made := slices.Concat([]string{op.As, op.Out, op.File}, op.Outs)
			for _, name := range made {
				written[name] = nil
				for _, source := range slices.Concat([]string{op.Cache, op.From, op.File}, op.Caches) {
					if source != name {
						written[name] = append(written[name], written[source]...)
					}
				}
			}
			if op.Other != "" {
				written[op.Cache] = append(written[op.Cache], written[op.Other]...)
			}
			cache, ids := when(op, func(name string) []int { return written[name] })
			if op.Tokens != nil {
				written[op.Cache] = slices.Concat(op.Tokens...)
			}
			return cache, ids
		})(a)
	}
}

// forgets loses, at an operation, what was written last.
func forgets(verb corpus.Verb) func(a *answersTo) {
	return tracked(func(op *corpus.Op, newest func(string) []int) (string, []int) {
		if op.Verb != verb {
			return "", nil
		}
		name := op.Cache
		if out := slices.Concat([]string{op.Out}, op.Outs); op.Out != "" || len(op.Outs) > 0 {
			name = out[len(out)-1]
		}
		return name, newest(name)
	})
}

// shares loses, when a cache is written to, what was written last to those that
// were copied from it.
func shares(a *answersTo) {
	copies := map[string][]string{}
	tracked(func(op *corpus.Op, newest func(string) []int) (string, []int) {
		switch {
		case op.As != "":
			copies[op.Cache] = append(copies[op.Cache], op.As)
		case op.Verb == corpus.Adopt:
			copies[op.From] = append(copies[op.From], op.Out)
		case op.Verb == corpus.Extract:
			copies[op.Cache] = append(copies[op.Cache], op.Out)
		case op.Tokens != nil:
			for _, name := range copies[op.Cache] {
				for _, c := range append(copies[name], name) {
					return c, newest(c)
				}
			}
		}
		return "", nil
	})(a)
}

// swapped exchanges, in a row of a mask, the first column seen with the first
// one not seen of which is says that its token is of that sort.
func swapped(is func(id int) bool) func(a *answersTo) {
	return func(a *answersTo) {
		for i := range a.steps {
			if a.c.Ops[i].Verb != corpus.MaskOp || a.steps[i].Mask == nil || i+1 == len(a.steps) || a.c.Ops[i+1].Cache != a.c.Ops[i].Cache {
				continue
			}
			m, ids := a.steps[i].Mask, a.ids[i+1].Returned
			for b := range min(m.B, len(ids)) {
				if len(ids[b]) != m.S {
					continue
				}
				for q := range m.N {
					row := m.Data[(b*m.N+q)*m.S:][:m.S]
					seen := slices.Index(row, true)
					hidden := slices.IndexFunc(row, func(see bool) bool { return !see })
					for hidden >= 0 && hidden < m.S && (row[hidden] || !is(ids[b][hidden])) {
						hidden++
					}
					if seen >= 0 && hidden >= 0 && hidden < m.S {
						row[seen], row[hidden] = false, true
					}
				}
			}
		}
	}
}

// bugs has, for each property, a target that it must find fault with.
var bugs = map[string]func() Target{
	"answers": func() Target { return buggy{spoil: func(a *answersTo) { a.steps = a.steps[:len(a.steps)-1] }} },
	"corpus":  func() Target { return buggy{spoil: state(corpus.FSize, oneMore)} },
	"reference": func() Target {
		return buggy{spoil: each(func(_ *corpus.Op, s *corpus.Step, _ *corpus.Want) {
			for _, p := range s.Stored { // only the buffer, which the model does not know
				p.Array.Data[0]++
				break
			}
		})}
	},
	"refusal": func() Target {
		return buggy{spoil: func(a *answersTo) {
			for i := range a.steps {
				a.steps[i].Error = ""
			}
		}}
	},
	"offsets":      func() Target { return buggy{spoil: state(corpus.FOffset, oneMore)} },
	"size":         func() Target { return buggy{spoil: state(corpus.FTrimmable, func(f *corpus.Field) { f.Int = 1 })} },
	"positions":    func() Target { return buggy{spoil: state(corpus.FIdx, oneMore)} },
	"conservation": func() Target { return buggy{spoil: state(corpus.FLeftPadding, oneMore)} },
	"returned": func() Target {
		return buggy{spoil: each(func(op *corpus.Op, s *corpus.Step, _ *corpus.Want) {
			if op.Verb == corpus.Update && len(op.Tokens[0]) > 1 { // all of a block but its own columns is gone
				for _, p := range s.Returned {
					for j := range p.Array.Columns() - len(op.Tokens[0]) {
						for b := range p.Array.Rows() {
							for h := range p.Array.Shape[1] {
								clear(column(p.Array, b, h, j))
							}
						}
					}
				}
			}
		})}
	},
	"mask fits keys": func() Target {
		return buggy{spoil: each(func(_ *corpus.Op, s *corpus.Step, _ *corpus.Want) {
			if s.Mask != nil { // padding is seen, too
				for i := range s.Mask.Data {
					s.Mask.Data[i] = true
				}
			}
		})}
	},
	"window":   func() Target { return buggy{spoil: swapped(func(id int) bool { return id > 0 })} },
	"no ghost": func() Target { return buggy{spoil: swapped(func(id int) bool { return id <= 0 })} },
	"extract": func() Target {
		return buggy{spoil: each(func(op *corpus.Op, s *corpus.Step, ids *corpus.Want) {
			if op.Verb == corpus.Extract && len(ids.Stored) == 1 && len(ids.Stored[0]) > 1 {
				for _, p := range s.Stored { // the two newest columns change places
					n := p.Array.Columns()
					if n < 2 {
						continue // a slot of recurrent state
					}
					for h := range p.Array.Shape[1] {
						a, b := column(p.Array, 0, h, n-2), column(p.Array, 0, h, n-1)
						for k := range a {
							a[k], b[k] = b[k], a[k]
						}
					}
				}
			}
		})}
	},
	"temporal view": func() Target {
		return buggy{spoil: each(func(op *corpus.Op, s *corpus.Step, _ *corpus.Want) {
			if op.Verb == corpus.TemporalView && len(s.Returned) > 0 && s.Returned[0].Array.Columns() > 1 {
				for _, p := range s.Returned {
					for h := range p.Array.Shape[1] {
						copy(column(p.Array, 0, h, 0), column(p.Array, 0, h, p.Array.Columns()-1))
					}
				}
			}
		})}
	},
	"trimmed": func() Target {
		return buggy{spoil: each(func(_ *corpus.Op, s *corpus.Step, _ *corpus.Want) {
			if s.Trimmed != nil {
				*s.Trimmed++
			}
		})}
	},
	"valid offset": func() Target {
		return buggy{spoil: each(func(_ *corpus.Op, s *corpus.Step, _ *corpus.Want) {
			for i := range s.Offsets {
				s.Offsets[i]++
			}
		})}
	},
	"projected bytes": func() Target {
		return buggy{spoil: each(func(_ *corpus.Op, s *corpus.Step, _ *corpus.Want) {
			if s.Bytes != nil {
				*s.Bytes++
			}
		})}
	},
	"slots": func() Target {
		return buggy{spoil: each(func(op *corpus.Op, s *corpus.Step, _ *corpus.Want) {
			for _, p := range s.Stored { // of the filtered rows all are the first
				if op.Verb == corpus.Filter && p.Name == "slot.0" {
					n := len(p.Array.Data) / max(1, p.Array.Rows())
					for b := range p.Array.Rows() {
						copy(p.Array.Data[b*n:], p.Array.Data[:n])
					}
				}
			}
		})}
	},
	"pair": func() Target {
		return buggy{spoil: each(func(_ *corpus.Op, s *corpus.Step, _ *corpus.Want) {
			if len(s.Returned) == 2 && s.Returned[1].Array.Columns() > 1 { // a value under another key
				v := s.Returned[1].Array
				copy(column(v, 0, 0, 0), column(v, 0, 0, 1))
			}
		})}
	},
	"finite": func() Target {
		return buggy{spoil: each(func(_ *corpus.Op, s *corpus.Step, ids *corpus.Want) {
			for b, row := range ids.Returned {
				if j := slices.Index(row, 0); j >= 0 && len(s.Returned) == 2 { // memory that nobody has cleared
					c := column(s.Returned[0].Array, b, 0, j)
					for k := range c {
						c[k] = 0xFF
					}
				}
			}
		})}
	},
	"no leak":    func() Target { return leaky{buggy{spoil: func(*answersTo) {}}} },
	"repeatable": func() Target { return moody{buggy{spoil: state(corpus.FOffset, oneMore)}, new(int)} },
	"bits": func() Target {
		return buggy{spoil: func(a *answersTo) {
			if a.c.Fill == corpus.Bits { // every number is positive
				each(func(_ *corpus.Op, s *corpus.Step, _ *corpus.Want) {
					for _, p := range s.Returned {
						for k := p.Array.DType.Size() - 1; k < len(p.Array.Data); k += p.Array.DType.Size() {
							p.Array.Data[k] &= 0x7F
						}
					}
				})(a)
			}
		}}
	},
	"renaming": func() Target {
		return buggy{spoil: func(a *answersTo) {
			for _, id := range a.c.TokenIDs() {
				if id > 400_000 { // a large token disturbs the count
					state(corpus.FOffset, oneMore)(a)
					return
				}
			}
		}}
	},
	"padding is silent": func() Target {
		return buggy{spoil: func(a *answersTo) {
			for _, id := range a.c.TokenIDs() {
				if id < -400_000 {
					state(corpus.FOffset, oneMore)(a)
					return
				}
			}
		}}
	},
	"refused means unchanged": func() Target {
		return buggy{spoil: func(a *answersTo) {
			refused := false
			for i := range a.steps {
				if refused {
					shift(a.steps[i].State, corpus.FOffset, oneMore)
				}
				refused = refused || a.steps[i].Error != ""
			}
		}}
	},
	"chunking": func() Target {
		return buggy{spoil: loses(func(a *answersTo, i int) (string, []int) {
			op := &a.c.Ops[i]
			if op.Verb == corpus.Update && len(op.Tokens[0]) > 2 { // the middle of a block
				return op.Cache, []int{op.Tokens[0][len(op.Tokens[0])/2]}
			}
			return "", nil
		})}
	},
	"trim undone":            func() Target { return buggy{spoil: forgets(corpus.Trim)} },
	"rollback undone":        func() Target { return buggy{spoil: afterwards(corpus.Rollback)} },
	"snapshot round trip":    func() Target { return buggy{spoil: forgets(corpus.Restore)} },
	"adopt round trip":       func() Target { return buggy{spoil: forgets(corpus.Adopt)} },
	"prompt file round trip": func() Target { return buggy{spoil: forgets(corpus.Load)} },
	"apart":                  func() Target { return buggy{spoil: shares} },
	"rows": func() Target {
		return buggy{spoil: loses(func(a *answersTo, i int) (string, []int) {
			op := &a.c.Ops[i]
			if op.Verb == corpus.Update && len(op.Tokens) > 1 { // the last row of a batch
				return op.Cache, op.Tokens[len(op.Tokens)-1]
			}
			return "", nil
		})}
	},
	"filter commutes":    func() Target { return buggy{spoil: forgets(corpus.Filter)} },
	"extend":             func() Target { return buggy{spoil: forgets(corpus.Extend)} },
	"merge then extract": func() Target { return buggy{spoil: forgets(corpus.Merge)} },
	"attention": func() Target {
		return buggy{spoil: each(func(_ *corpus.Op, s *corpus.Step, _ *corpus.Want) {
			for i := range s.Attended {
				s.Attended[i] += 0.01
			}
		})}
	},
}

// caught returns what a property finds wrong with a target on one of some
// cases.
func caught(t *testing.T, target Target, p Property) *Finding {
	t.Helper()
	d := Domain{Info: target.Info()}
	for i := range 4000 {
		c := Generate(RandomSource(11, i), d)
		if p.Name == "corpus" {
			answers, err := referenceAnswers(c)
			if err != nil {
				t.Fatal(err)
			}
			c = WithWants(c, answers)
		}
		f, err := p.Check(t.Context(), target, c)
		if err != nil {
			t.Fatal(err)
		}
		if f != nil {
			return f
		}
	}
	t.Fatalf("4000 cases do not show what is wrong")
	return nil
}

// TestPropertiesBite shows of each property that it finds a bug, and that what it
// finds is reduced to a small case, always the same one, that shows it still.
func TestPropertiesBite(t *testing.T) {
	for _, p := range Properties() {
		t.Run(p.Name, func(t *testing.T) {
			bug, ok := bugs[p.Name]
			if !ok {
				t.Fatal("there is no broken target for it")
			}
			f := caught(t, bug(), p)
			if f.Property != p.Name || f.Target != "buggy" {
				t.Errorf("the finding is of %q and %q", f.Property, f.Target)
			}
			small, err := Reduce(t.Context(), bug(), f)
			if err != nil {
				t.Fatal(err)
			}
			if again, _ := Reduce(t.Context(), bug(), f); string(corpus.Format(again.Case)) != string(corpus.Format(small.Case)) {
				t.Error("another reduction ends at another case")
			}
			if p.Name == "corpus" {
				return // what a case wants is part of it
			}
			if n := len(small.Case.Ops); n > 6 {
				t.Errorf("%d operations are left:\n%s", n, small.Report())
			}
			checkFiled(t, bug(), small)
		})
	}
}

// checkFiled files a finding, twice, and replays it.
func checkFiled(t *testing.T, target Target, f *Finding) {
	t.Helper()
	dir := t.TempDir()
	file, err := File(dir, f, 11)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := File(dir, f, 12); again != file || err != nil {
		t.Errorf("filed again as %s: %v", again, err)
	}
	n := 0
	for there, err := range corpus.Dir(dir) {
		n++
		c := there.Case
		if err != nil {
			t.Fatal(err)
		}
		if problems := corpus.Lint(c); problems != nil || there.Path != file {
			t.Errorf("%s: %v", there.Path, problems)
		}
		if c.Found == nil || *c.Found != (corpus.Found{Property: f.Property, Target: "buggy", Seed: 11, Version: Version()}) {
			t.Errorf("filed as found by %+v", c.Found)
		}
		if got, err := NewSuite(target).Replay(t.Context(), c); got == nil || err != nil {
			t.Errorf("the bug does not show in the filed case: %v", err)
		}
		if got, err := NewSuite(ReferenceTarget()).Replay(t.Context(), c); got != nil || err != nil {
			t.Errorf("the reference fails the filed case: %v, %v", got, err)
		}
	}
	if n != 1 {
		t.Errorf("there are %d files", n)
	}
}

// TestPropertiesHostile: answers that are no answers make no property panic.
func TestPropertiesHostile(t *testing.T) {
	for name, spoil := range map[string]func(a *answersTo){
		"none":     func(a *answersTo) { a.steps = nil },
		"too many": func(a *answersTo) { a.steps = append(a.steps, a.steps...) },
		"empty":    func(a *answersTo) { clear(a.steps) },
		"unsupported": func(a *answersTo) {
			a.steps = append(a.steps[:len(a.steps)/2:len(a.steps)/2], corpus.Step{Unsupported: "x"})
		},
		"of other operations": func(a *answersTo) { slices.Reverse(a.steps) },
		"of no rows": each(func(_ *corpus.Op, s *corpus.Step, _ *corpus.Want) {
			for i := range s.Returned {
				s.Returned[i].Array = ring.Array{DType: s.Returned[i].Array.DType}
			}
			if s.Mask != nil {
				s.Mask = &ring.Mask{N: 1, S: 1}
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			found := map[string]bool{}
			d := Domain{Info: ReferenceTarget().Info()}
			for i := range 12 {
				c := Generate(RandomSource(13, i), d)
				for _, p := range Properties() {
					f, err := p.Check(t.Context(), buggy{spoil}, c)
					if err != nil {
						t.Fatal(err)
					}
					if f != nil {
						found[p.Name] = true
						if f.Report() == "" {
							t.Error("an empty report")
						}
					}
				}
			}
			if want := name == "none" || name == "too many"; found["answers"] != want || len(found) == 0 && name != "unsupported" {
				t.Errorf("found by %v", found)
			}
		})
	}
}
