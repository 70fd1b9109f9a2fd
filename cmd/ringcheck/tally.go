package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
)

// tally counts what a verb did.
type tally struct {
	passed, failed, skipped int
	broken                  int            // what could not be judged
	why                     map[string]int // how often each reason to skip occurred
	gaveUp                  error          // the target's, nil while it answers
}

// skip counts what is not judged, for the reason why.
func (t *tally) skip(why string) {
	if t.why == nil {
		t.why = map[string]int{}
	}
	t.why[why]++
	t.skipped++
}

// count adds what came of one case.
func (t *tally) count(j judged) {
	switch {
	case j.gaveUp():
		t.gaveUp = j.err
	case j.err != nil:
		t.broken++
	case j.finding != nil:
		t.failed++
	case j.skip != "":
		t.skip(j.skip)
	default:
		t.passed++
	}
}

// end ends the target. One that does not end as the protocol says has failed;
// the error, which is told, says how.
func (t *tally) end(cmd *cobra.Command, closeTarget func() error) error {
	err := closeTarget()
	if err != nil {
		fmt.Fprintln(cmd.OutOrStdout(), err)
		t.failed++
	}
	return err
}

// close prints why cases were skipped, then the last line, the one that machines
// read, and returns what the verb returns. ctx says whether the verb ran to its
// end; failures are what went wrong besides, which is told after that line.
func (t *tally) close(ctx context.Context, out io.Writer, failures ...error) error {
	for _, why := range slices.Sorted(maps.Keys(t.why)) {
		fmt.Fprintf(out, "skipped %d: %s\n", t.why[why], why)
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
	err := t.outcome(ctx)
	if len(failures) == 0 {
		return err
	}
	if err != nil && err != errFindings {
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// outcome is what the counts amount to.
func (t *tally) outcome(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted before the end; the counts are of what was done")
	case t.gaveUp != nil:
		return fmt.Errorf("the target does nothing but fail, and no further case was run: mend it, then begin again\n%w", t.gaveUp)
	case t.broken > 0:
		return fmt.Errorf("%d could not be judged; see above", t.broken)
	case t.failed > 0:
		return errFindings
	case t.passed+t.why[knownFailure] == 0:
		return errors.New("nothing was judged")
	}
	return nil
}
