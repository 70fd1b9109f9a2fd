package props

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/models"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// Property is one thing that must be true of a target, whatever the case.
type Property struct {
	Name string
	Doc  string // one sentence
	// look judges one run of the case itself, which all such properties share.
	look func(r *run) *Finding
	// more judges by further runs, of cases that are made from the case. It
	// returns nil, too, where the case does not lend itself to it.
	more func(ctx context.Context, x *examination) (*Finding, error)
}

// Finding is a property that does not hold. It is an error.
type Finding struct {
	Property string
	Target   string
	Case     corpus.Case   // that shows it
	Step     int           // the operation of Case at which it shows
	What     string        // what is wrong, in one or more lines
	Answers  []corpus.Step // the target's answers to Case, as far as there are any
}

func (f *Finding) Error() string {
	return fmt.Sprintf("property %q does not hold of %s: #%d %s: %s", f.Property, f.Target, f.Step, opText(f.Case.Ops[f.Step]), f.What)
}

// Leaker is a target that can say what it still holds after a run.
type Leaker interface {
	// Leaked describes what is held that should not be; "" if nothing is.
	Leaked() string
}

// Properties returns all properties, those that share one run first.
func Properties() []Property {
	list := []Property{{
		Name: "reference",
		Doc:  "every answer is the reference's, at the level that the target claims",
		look: equalsReference,
	}}
	for rule := models.Rule(0); rule < models.NumRules; rule++ {
		list = append(list, Property{Name: rule.String(), Doc: ruleDocs[rule], look: func(r *run) *Finding { return r.rule(rule) }})
	}
	list = append(list,
		Property{Name: "pair", Doc: "the key and the value of a column, in all heads, are one token's", look: paired},
		Property{Name: "finite", Doc: "what is returned holds finite numbers, also in columns that nobody may see", look: finite},
		Property{Name: "no leak", Doc: "nothing is held after a run", look: leaks},
	)
	return append(list, rewrites()...)
}

var ruleDocs = [models.NumRules]string{
	models.RuleRefusal:      "an operation is refused, with its code, exactly where it must be",
	models.RuleOffsets:      "each row's offset is the number of its tokens, padding while it is pending included",
	models.RuleSize:         "size and trimmable are what the tokens held say",
	models.RulePositions:    "write index, total, rotation and what is pending follow the specification",
	models.RuleConservation: "left padding follows from offset and columns",
	models.RuleReturned:     "a write returns as many columns as it must, every held token among them",
	models.RuleMaskFits:     "a mask has a column for every column returned, and as many set as its query may see",
	models.RuleWindow:       "each query of a real token sees exactly the tokens of its window",
	models.RuleNoGhost:      "no query of a real token sees padding, a token that is gone, another row's, or one twice",
	models.RuleExtract:      "an extracted cache ends with the tokens that its row holds",
	models.RuleView:         "a temporal view is the newest tokens of every row, in order",
	models.RuleTrimmed:      "a trim takes as many tokens as it says",
	models.RuleValidOffset:  "valid_offset counts real tokens",
	models.RuleBytes:        "projected_bytes is what a row would take",
	models.RuleSlots:        "recurrent state holds what was written to it",
}

// Named returns the properties of those names, or all where there are none.
func Named(names []string) ([]Property, error) {
	all := Properties()
	if len(names) == 0 {
		return all, nil
	}
	var list []Property
	for _, name := range names {
		i := slices.IndexFunc(all, func(p Property) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no property %q", name)
		}
		list = append(list, all[i])
	}
	return list, nil
}

// Check holds t against one property on one case. The finding is nil if the
// property holds; a [*Fault] of the target is a finding of the property
// "answers". The error is for a case that could not be run.
func (p Property) Check(ctx context.Context, t Target, c corpus.Case) (*Finding, error) {
	return Check(ctx, t, c, []Property{p})
}

// Check holds t against several properties on one case, and returns the first
// finding. Properties of one run share it.
func Check(ctx context.Context, t Target, c corpus.Case, list []Property) (*Finding, error) {
	x := &examination{t: t, info: t.Info(), c: c}
	for _, p := range list {
		var f *Finding
		var err error
		if p.look != nil {
			var r *run
			if r, err = x.base(ctx); err == nil {
				f = p.look(r)
			}
		} else {
			f, err = p.more(ctx, x)
		}
		var fault *Fault
		if errors.As(err, &fault) {
			f, err = &Finding{Case: c, Step: min(len(c.Ops)-1, 0), What: fault.Error()}, nil
			f.Property = "answers"
		}
		if err != nil {
			return nil, err
		}
		if f != nil {
			f.Target = x.info.Name
			if f.Property == "" {
				f.Property = p.Name
			}
			return f, nil
		}
	}
	return nil, nil
}

// examination is one case under one target.
type examination struct {
	t    Target
	info Info
	c    corpus.Case
	own  *run // of c itself
}

// run is the answers to one case.
type run struct {
	x     *examination
	c     *corpus.Case
	steps []corpus.Step
	wants []corpus.Want // the same as token ids; made on first use
	judge *models.Violation
	at    int // step of judge
	done  bool
}

// base is the run of the case itself.
func (x *examination) base(ctx context.Context) (*run, error) {
	if x.own == nil {
		r, err := x.run(ctx, x.c)
		if err != nil {
			return nil, err
		}
		x.own = r
	}
	return x.own, nil
}

// run runs a case in a folder of its own.
func (x *examination) run(ctx context.Context, c corpus.Case) (*run, error) {
	dir, done, err := Scratch(c)
	if err != nil {
		return nil, err
	}
	defer done()
	steps, err := x.t.Run(ctx, c, dir)
	if err != nil {
		return nil, err
	}
	return &run{x: x, c: &c, steps: steps}, nil
}

// finding is what is wrong at a step.
func (r *run) finding(step int, format string, args ...any) *Finding {
	return &Finding{Case: *r.c, Step: step, What: fmt.Sprintf(format, args...), Answers: r.steps}
}

// ids returns the run's answers with token ids in place of bytes.
func (r *run) ids() []corpus.Want {
	if r.wants == nil {
		r.wants = Observed(*r.c, r.steps)
	}
	return r.wants
}

// Observed returns answers as token ids: what a want names them by. A column
// that is no token's is [Unknown].
func Observed(c corpus.Case, steps []corpus.Step) []corpus.Want {
	tokens := NewTokens(c)
	wants := make([]corpus.Want, len(steps))
	for i := range steps {
		s := &steps[i]
		wants[i] = corpus.Want{
			Returned: tokens.IDs(s.Returned), State: s.State, Mask: s.Mask,
			Trimmed: s.Trimmed, Offsets: s.Offsets, Bytes: s.Bytes, Error: s.Error,
		}
		if v := c.Ops[i].Verb; v == corpus.Extract || s.Stored != nil && len(s.Stored) > 0 && slot(s.Stored[0].Name) >= 0 {
			wants[i].Stored = tokens.IDs(s.Stored)
		}
	}
	return wants
}

// rule judges the run by the model and reports a violation of one rule.
func (r *run) rule(rule models.Rule) *Finding {
	if !r.done {
		r.done = true
		j := models.NewJudge(r.c)
		if r.x.info.Level == Visible {
			j.Skip = models.Rules(models.RulePositions, models.RuleConservation, models.RuleReturned, models.RuleMaskFits)
		}
		wants := r.ids()
		for i := range wants {
			if r.steps[i].Unsupported != "" {
				break
			}
			if v := j.Step(&r.c.Ops[i], &wants[i]); v != nil {
				r.judge, r.at = v, i
				break
			}
		}
	}
	if r.judge == nil || r.judge.Rule != rule {
		return nil
	}
	return r.finding(r.at, "%v", r.judge)
}

func equalsReference(r *run) *Finding {
	dir, done, err := Scratch(*r.c)
	if err != nil {
		return r.finding(0, "%v", err)
	}
	defer done()
	want, err := ReferenceTarget().Run(context.Background(), *r.c, dir)
	if err != nil {
		return r.finding(0, "the reference could not run the case: %v", err)
	}
	if d := CompareRuns(*r.c, want, r.steps, r.x.info.Level); d != nil {
		return r.finding(d.Step, "%v", d)
	}
	return nil
}

func paired(r *run) *Finding {
	dropped := DropAfterRaises(*r.c, r.steps)
	for i, w := range r.ids() {
		if dropped != nil && dropped[i] || r.steps[i].Returned == nil {
			continue
		}
		for b, row := range w.Returned {
			if j := slices.Index(row, Unknown); j >= 0 {
				return r.finding(i, "row %d, column %d is no token's: its planes are not all of one token", b, j)
			}
		}
	}
	return nil
}

func finite(r *run) *Finding {
	if r.c.Fill != corpus.Grid {
		return nil
	}
	for i := range r.steps {
		for _, p := range r.steps[i].Returned {
			if p.Array.DType == ring.Uint32 {
				continue
			}
			floats, err := reference.Floats(p.Array)
			if err != nil {
				return r.finding(i, "%v", err)
			}
			for e, f := range floats {
				if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
					return r.finding(i, "element %d of %s is %v", e, p.Name, f)
				}
			}
		}
	}
	return nil
}

func leaks(r *run) *Finding {
	if l, ok := r.x.t.(Leaker); ok {
		if what := l.Leaked(); what != "" {
			return r.finding(len(r.c.Ops)-1, "%s", what)
		}
	}
	return nil
}
