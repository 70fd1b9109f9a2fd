package props

import (
	"fmt"
	"slices"
	"strings"

	"example.com/ringcheck/corpus"
)

// Report is all there is to read of a finding: what is wrong, the first step
// whose columns are not the reference's, drawn, and the operations up to where
// it shows, with the target's answers; of a fault all operations.
func (f *Finding) Report() string {
	var b strings.Builder
	b.WriteString(f.Error() + "\n")
	if f.Fault != nil {
		return b.String() + Unanswered(f.Run)
	}
	if i, want, got := f.columns(); i >= 0 {
		fmt.Fprintf(&b, "columns at #%d:\n%s", i, DrawColumns(want, got))
	}
	upto := f.Run
	upto.Ops = upto.Ops[:f.Step+1]
	b.WriteString("operations:\n" + Listing(upto, f.Answers))
	return b.String()
}

// columns returns the first step, up to where the finding shows, at which the
// target's columns are not the reference's, or else the last one with columns;
// -1 if there is none.
func (f *Finding) columns() (step int, want, got [][]int) {
	var wants []corpus.Want // none where the reference cannot run the case
	if steps, err := referenceAnswers(f.Run); err == nil {
		wants = Observed(f.Run, steps)
	}
	step = -1
	for i, g := range Observed(f.Run, f.Answers) {
		if i > f.Step || i >= len(wants) {
			break
		}
		w := &wants[i]
		for _, side := range [2]struct{ want, got [][]int }{{w.Returned, g.Returned}, {w.Stored, g.Stored}} {
			if len(side.got) == 0 {
				continue
			}
			step, want, got = i, side.want, side.got
			if !slices.EqualFunc(want, got, slices.Equal[[]int]) {
				return step, want, got
			}
		}
	}
	return step, want, got
}
