package draw

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
)

// Drawing is a case, drawn.
type Drawing struct {
	Name    string
	About   []Fact // what the case says of itself, and whose answers are drawn
	Link    string // an http or https address; "" for none
	Finding string // what is wrong with the answers; "" if nothing is
	Failing int    // the step that the finding is about; -1 for none
	Steps   []Step
}

// Step is one operation and what was observed of it.
type Step struct {
	Index   int
	Call    string // the operation as a call
	Verdict string // at the failing step: what is wrong
	Facts   []Fact // what was answered in numbers and words
	Diffs   []Diff // at the failing step: lists of which single elements differ
	Tables  []Table
	Notes   []string
}

// Fact is a named value. Got is what came where that may differ from Want, and
// is drawn; else it is "".
type Fact struct {
	Name, Want, Got string
	Differs         bool
}

// text is a fact in one line.
func (f Fact) text() string {
	text := f.Name + " " + f.Want
	if f.Got != "" {
		text += " (came: " + f.Got + ")"
	}
	if f.Differs {
		text = "✗ " + text
	}
	return text
}

// Diff is two lists of words, those marked that the other list lacks.
type Diff struct {
	Name      string
	Want, Got []Word
}

// Word is an element of a Diff.
type Word struct {
	Text    string
	Differs bool
}

// bracketed writes words, those that differ in brackets.
func bracketed(words []Word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		if texts[i] = w.Text; w.Differs {
			texts[i] = "[" + w.Text + "]"
		}
	}
	return strings.Join(texts, " ")
}

// Input is what a Drawing is made of.
type Input struct {
	Case corpus.Case
	// Reference are the answers of the reference. They stand in wherever the
	// case itself does not say what it wants, and may end early.
	Reference []corpus.Step
	// Target names the implementation that was judged, Level is how closely,
	// and Answers are its own, which may end early.
	Target  string
	Level   props.Level
	Answers []corpus.Step
	// Finding is what is wrong with the answers: a [*props.Difference] or a
	// [*props.Finding], which say at which step, or another error; nil if
	// nothing is.
	Finding error
}

// New draws a case. What was wanted is drawn at every step; what came, from the
// failing step on, where it is not the same.
func New(in Input) *Drawing {
	d := &Drawing{Name: clean(in.Case.Name), About: about(&in), Link: link(in.Case.Link), Failing: -1}
	difference := d.find(&in)
	a := newArtist(&in)
	calls := strings.SplitAfter(props.Listing(in.Case, nil), "\n")
	for i := range in.Case.Ops {
		s := Step{Index: i, Call: callOf(calls[i], in.Case.Ops[i].Tokens)}
		if d.Failing >= 0 && i >= d.Failing {
			a.compare = true
		}
		if i == d.Failing {
			s.Verdict = d.Finding
			if a.difference = difference; difference != nil {
				s.Diffs = diffs(difference)
			}
		}
		a.step(i, &s)
		a.difference = nil
		d.Steps = append(d.Steps, s)
	}
	return d
}

// find takes the finding apart. The difference is what can be marked of it; nil
// if nothing can.
func (d *Drawing) find(in *Input) *props.Difference {
	failing := func(step int, text string) {
		if d.Finding = text; step < len(in.Case.Ops) {
			d.Failing = step
		}
	}
	switch f := in.Finding.(type) {
	case nil:
	case *props.Difference:
		failing(f.Step, headline(f))
		return f
	case *props.Finding:
		if f.Fault != nil { // of the case as a whole
			d.Finding = cleanLines(f.Error())
			break
		}
		what, _, _ := strings.Cut(f.What, "\n")
		failing(f.Step, clean(f.Property+": "+what))
		if x := props.CompareRuns(in.Case, in.Reference, in.Answers, in.Level); x != nil && x.Step == f.Step {
			return x
		}
	default:
		d.Finding = cleanLines(f.Error())
	}
	return nil
}

// callOf takes a line of a listing apart, such as "#3 b1.finalize\n", and
// shortens the tokens in it.
func callOf(line string, tokens [][]int) string {
	_, call, _ := strings.Cut(strings.TrimSpace(line), " ")
	if long := fmt.Sprint(tokens); len(long) > 80 {
		rows := make([]string, 0, maxRows)
		for _, row := range tokens[:min(len(tokens), maxRows)] {
			rows = append(rows, "["+ranges(row)+"]")
		}
		if len(tokens) > maxRows {
			rows = append(rows, fmt.Sprintf("… %d rows", len(tokens)-maxRows))
		}
		call = strings.Replace(call, long, "["+strings.Join(rows, " ")+"]", 1)
	}
	return clean(call)
}

// headline says in one line what differs.
func headline(d *props.Difference) string {
	text := d.Field + ": not as wanted"
	switch {
	case d.Says != "":
		text = d.Says
	case single(d.Want) && single(d.Got):
		text = fmt.Sprintf("%s is %s, want %s", d.Field, word(d.Got), word(d.Want))
	}
	if d.Detail != "" {
		text += "; " + d.Detail
	}
	return clean(text)
}

func single(v any) bool {
	switch v.(type) {
	case nil, int, bool, string:
		return true
	}
	return false
}

func word(v any) string {
	switch v {
	case nil:
		return "absent"
	case "":
		return "none"
	}
	return fmt.Sprint(v)
}

// diffs shows a difference between two lists of numbers. Differences between
// columns and masks show in their tables, those between single values in the
// verdict.
func diffs(d *props.Difference) []Diff {
	want, ok := d.Want.([]int)
	got, too := d.Got.([]int)
	if !ok || !too {
		return nil
	}
	return []Diff{{Name: d.Field, Want: words(want, got), Got: words(got, want)}}
}

// words lists ids, and marks those that other has fewer of.
func words(ids, other []int) []Word {
	left := map[int]int{}
	for _, id := range other {
		left[id]++
	}
	out := make([]Word, len(ids))
	for i, id := range ids {
		out[i] = Word{Text: idText(id), Differs: left[id] == 0}
		left[id]--
	}
	return out
}

func idText(id int) string {
	if id == props.Unknown {
		return "?"
	}
	return strconv.Itoa(id)
}

// about is what stands above a drawing.
func about(in *Input) []Fact {
	c := &in.Case
	shape := fmt.Sprintf("%s, %s, keys %d and values %d wide", c.Shape.DType, plural(c.Shape.KVHeads, "head"), c.Shape.KeyDim, c.Shape.ValueDim)
	if c.Quant != nil {
		shape += fmt.Sprintf(", quantized to %d bits in groups of %d", c.Quant.Bits, c.Quant.GroupSize)
	}
	facts := []Fact{
		{Name: "semantics", Want: c.Semantics.String()},
		{Name: "shape", Want: shape},
		{Name: "id", Want: clean(c.ID)},
		{Name: "source", Want: clean(c.Source)},
		{Name: "notes", Want: clean(c.Notes)},
	}
	if link(c.Link) == "" { // nothing to follow: show it as it is
		facts = append(facts, Fact{Name: "link", Want: clean(c.Link)})
	}
	if f := c.Found; f != nil {
		facts = append(facts, Fact{Name: "found by", Want: clean(fmt.Sprintf("property %s on %s, seed %d, version %s", f.Property, f.Target, f.Seed, f.Version))})
	}
	wants := "the reference's answers"
	if slices.ContainsFunc(c.Ops, func(op corpus.Op) bool { return op.Want != nil }) {
		wants = "what the case wants; where it is silent, the reference's answers"
	}
	facts = append(facts, Fact{Name: "drawn", Want: wants})
	if in.Target != "" {
		facts = append(facts, Fact{Name: "judged", Want: clean(in.Target) + ", " + levelText[in.Level]})
	}
	return slices.DeleteFunc(facts, func(f Fact) bool { return f.Want == "" })
}

var levelText = map[props.Level]string{
	props.Visible: "by what a query can see",
	props.Columns: "by its columns, the spare ones apart",
	props.Layout:  "to the last byte",
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
