package props

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/models"
	"example.com/ringcheck/reference/ring"
)

// Property is one thing that must be true of a target, whatever the case.
type Property struct {
	Name string
	Doc  string // one sentence
	// Level is the lowest level of a target at which the property is asked; below
	// it holds of anything.
	Level Level
	// look judges one run of the case itself, which all such properties share.
	look func(r *run) *Finding
	// more judges by further runs, of cases that are made from the case. It
	// returns nil, too, where the case does not lend itself to it.
	more func(ctx context.Context, x *examination) (*Finding, error)
}

// Finding is a property that does not hold. It is an error; [Finding.Report]
// has more.
type Finding struct {
	Property string
	Target   string
	Case     corpus.Case   // that was checked
	Run      corpus.Case   // that shows it: Case, or what the property has made of it
	Step     int           // the operation of Run at which it shows
	What     string        // what is wrong, in one or more lines
	Answers  []corpus.Step // the target's answers to Run, as far as there are any
	Fault    *Fault        // why there are no more, where the target is to blame; else nil
}

func (f *Finding) Error() string {
	return fmt.Sprintf("property %q does not hold of %s: %s", f.Property, f.Target, f.Text())
}

// Text is what is wrong, after the operation at which it shows; a fault is of
// the case as a whole.
func (f *Finding) Text() string {
	if f.Fault != nil {
		return f.What
	}
	return fmt.Sprintf("#%d %s: %s", f.Step, opText(f.Run.Ops[f.Step]), f.What)
}

// Leaker is a target that can say what it still holds after a run.
type Leaker interface {
	// Leaked describes what is held that should not be; "" if nothing is.
	Leaked() string
}

// Properties returns all properties, those that share one run first.
func Properties() []Property {
	list := []Property{
		{Name: "answers", Doc: "every operation is answered, a refusal with a code", look: answered},
		{Name: "corpus", Doc: "every answer is what the case itself wants", look: meetsWants},
		{Name: "reference", Doc: "every answer is the reference's, at the level that the target claims", look: equalsReference},
	}
	for rule := models.Rule(0); rule < models.NumRules; rule++ {
		p := Property{Name: rule.String(), Doc: ruleDocs[rule], look: func(r *run) *Finding { return r.rule(rule) }}
		if columnRules.Has(rule) {
			p.Level = Columns
		}
		list = append(list, p)
	}
	list = append(list,
		Property{Name: "pair", Doc: "the key and the value of a column, in all heads, are one token's", look: paired},
		Property{Name: "finite", Doc: "what is returned holds finite numbers, also in columns that nobody may see", look: finite},
		Property{Name: "no leak", Doc: "nothing is held after a run", look: leaks},
	)
	return append(list, rewrites()...)
}

// columnRules are those of where columns lie, which is a target's own affair at
// Visible.
var columnRules = models.Rules(models.RulePositions, models.RuleConservation, models.RuleReturned, models.RuleMaskFits)

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

// Turn returns what to hold against case number i of a run that does not judge
// each case by everything: of the properties given, those that share one run of
// the case, and two of the others, in turn.
func Turn(list []Property, i int) []Property {
	var out, more []Property
	for _, p := range list {
		if p.look != nil {
			out = append(out, p)
		} else {
			more = append(more, p)
		}
	}
	if n := len(more); n > 0 {
		if out = append(out, more[i%n]); n > 1 {
			out = append(out, more[(i+n/2)%n])
		}
	}
	return out
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
// property holds. Where the target could not answer at all (a [*Fault]), that
// is a finding too. The error is for a case that could not be run.
func (p Property) Check(ctx context.Context, t Target, c corpus.Case) (*Finding, error) {
	return Check(ctx, t, c, []Property{p})
}

// Check holds t against several properties on one case, and returns the first
// finding. Properties of one run share it.
func Check(ctx context.Context, t Target, c corpus.Case, list []Property) (*Finding, error) {
	return newExamination(t, c).check(ctx, list)
}

func newExamination(t Target, c corpus.Case) *examination {
	return &examination{t: t, info: t.Info(), c: c}
}

func (x *examination) check(ctx context.Context, list []Property) (*Finding, error) {
	if len(x.c.Ops) == 0 {
		return nil, nil // nothing is asked
	}
	for _, p := range list {
		f, err := x.one(ctx, p)
		var broken *unanswered
		if errors.As(err, &broken) {
			f, err = broken.finding(), nil
		}
		if err != nil {
			return nil, err
		}
		if f != nil {
			f.Property, f.Target, f.Case = p.Name, x.info.Name, x.c
			return f, nil
		}
	}
	return nil, nil
}

// one holds the target against one property.
func (x *examination) one(ctx context.Context, p Property) (*Finding, error) {
	if p.more != nil {
		return p.more(ctx, x)
	}
	r, err := x.base(ctx)
	if err != nil {
		return nil, err
	}
	return p.look(r), nil
}

// unanswered is a run that ended with a fault of the target.
type unanswered struct {
	*Fault
	run *run // with the answers until then
}

func (u *unanswered) Unwrap() error { return u.Fault }

func (u *unanswered) finding() *Finding {
	f := u.run.finding(min(len(u.run.steps), len(u.run.c.Ops)-1), "%v", u.Fault)
	f.Fault = u.Fault
	return f
}

// examination is one case under one target.
type examination struct {
	t     Target
	info  Info
	c     corpus.Case
	own   *run    // of c itself
	legal []bool  // see legality
	asked *asking // see ask
}

// run is the answers to one case.
type run struct {
	x     *examination
	c     *corpus.Case
	steps []corpus.Step // no more than there are operations
	count int           // of the answers that came
	names *Tokens       // see tokens
	wants []corpus.Want // see ids
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
	r := &run{x: x, c: &c}
	r.steps, err = x.t.Run(ctx, c, dir)
	var fault *Fault
	if errors.As(err, &fault) {
		return nil, &unanswered{fault, r}
	}
	if err != nil {
		return nil, err
	}
	r.count = len(r.steps)
	r.steps = r.steps[:min(r.count, len(c.Ops))]
	return r, nil
}

// finding is what is wrong at a step.
func (r *run) finding(step int, format string, args ...any) *Finding {
	return &Finding{Run: *r.c, Step: step, What: fmt.Sprintf(format, args...), Answers: r.steps}
}

// differs is the finding of a difference. It has the case and the operation, so
// that of the difference's text the rest remains.
func (r *run) differs(d *Difference) *Finding {
	_, what, _ := strings.Cut(d.Error(), opText(d.Op)+": ")
	return r.finding(d.Step, "%s", what)
}

// tokens turns the run's bytes into token ids.
func (r *run) tokens() *Tokens {
	if r.names == nil {
		r.names = NewTokens(*r.c)
	}
	return r.names
}

// ids returns the run's answers with token ids in place of bytes.
func (r *run) ids() []corpus.Want {
	if r.wants == nil {
		r.wants = translated(r.c, r.steps, r.tokens())
	}
	return r.wants
}

// Observed returns answers as token ids: what a want names them by. A column
// that is no token's is [Unknown].
func Observed(c corpus.Case, steps []corpus.Step) []corpus.Want {
	return translated(&c, steps, NewTokens(c))
}

func translated(c *corpus.Case, steps []corpus.Step, tokens *Tokens) []corpus.Want {
	wants := make([]corpus.Want, len(steps))
	for i := range steps {
		s := &steps[i]
		wants[i] = corpus.Want{
			Returned: tokens.IDs(s.Returned), State: s.State, Mask: s.Mask,
			Trimmed: s.Trimmed, Offsets: s.Offsets, Bytes: s.Bytes, Error: s.Error,
		}
		if v := c.Ops[i].Verb; v == corpus.Extract || len(s.Stored) > 0 && slot(s.Stored[0].Name) >= 0 {
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
			j.Skip = columnRules
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

func answered(r *run) *Finding {
	for i := range r.steps {
		if e := r.steps[i].Error; e != "" && !slices.Contains(ring.Codes, e) {
			return r.finding(i, "refused with %s, which is no code", quoted(e))
		}
		if r.steps[i].Unsupported != "" {
			return nil
		}
	}
	if got, want := r.count, len(r.c.Ops); got != want {
		return r.finding(min(got, want-1), "%d answers to %d operations", got, want)
	}
	return nil
}

func meetsWants(r *run) *Finding {
	if d := CompareWants(*r.c, r.steps, r.x.info.Level); d != nil {
		return r.differs(d)
	}
	return nil
}

func equalsReference(r *run) *Finding {
	if _, ok := r.x.t.(referenceTarget); ok {
		return nil // it is not held against itself; "repeatable" runs it twice
	}
	want, err := referenceAnswers(*r.c)
	if err != nil {
		return r.finding(0, "the reference could not run the case: %v", err)
	}
	if d := CompareRuns(*r.c, want, r.steps, r.x.info.Level); d != nil {
		return r.differs(d)
	}
	return nil
}

// referenceAnswers are the reference's answers to c.
func referenceAnswers(c corpus.Case) ([]corpus.Step, error) {
	dir, done, err := Scratch(c)
	if err != nil {
		return nil, err
	}
	defer done()
	return ReferenceTarget().Run(context.Background(), c, dir)
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
			if e := notFinite(p.Array); e >= 0 {
				return r.finding(i, "element %d of %s is infinite or no number", e, p.Name)
			}
		}
	}
	return nil
}

// notFinite returns the first element of a that is an infinity or a NaN, which
// have all bits of the exponent set; -1 if there is none.
func notFinite(a ring.Array) int {
	exponent := map[ring.DType]byte{ring.BFloat16: 0x7F, ring.Float16: 0x7C, ring.Float32: 0x7F}[a.DType]
	if exponent == 0 {
		return -1 // codes of quantized columns
	}
	size := a.DType.Size()
	for e := range len(a.Data) / size {
		high := a.Data[e*size : (e+1)*size]
		if high[size-1]&exponent == exponent && (a.DType == ring.Float16 || high[size-2]&0x80 != 0) {
			return e
		}
	}
	return -1
}

func leaks(r *run) *Finding {
	if l, ok := r.x.t.(Leaker); ok {
		if what := l.Leaked(); what != "" {
			return r.finding(len(r.c.Ops)-1, "%s", what)
		}
	}
	return nil
}
