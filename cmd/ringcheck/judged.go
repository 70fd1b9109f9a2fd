package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
)

// work is one case, and who judges it.
type work struct {
	name     string // of its file, or of how it was made
	number   int    // by which it is dealt out to shards
	property string // what the judge asks for
	load     func() (corpus.Case, error)
	judge    judge
}

// judged is what came of one piece of work.
type judged struct {
	work
	verdict
	c    corpus.Case
	err  error // could not be judged
	left bool  // nobody has tried to make the case of the finding smaller
}

// judgeAll judges all of works on all cores and yields what came of them, in
// the order of works. Once ctx has ended, or the target has given up, it yields
// no more.
func judgeAll(ctx context.Context, t props.Target, works iter.Seq[work]) iter.Seq[judged] {
	return func(yield func(judged) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		queue := make(chan chan judged, runtime.GOMAXPROCS(0)) // bounds what runs at once
		go func() {
			defer close(queue)
			for w := range works {
				result := make(chan judged, 1)
				select {
				case queue <- result:
				case <-ctx.Done():
					return
				}
				go func() { result <- w.run(ctx, t) }()
			}
		}()
		for result := range queue {
			if j := <-result; ctx.Err() != nil || !yield(j) || j.gaveUp() {
				cancel()
				for result := range queue { // let all that began end before the target is closed
					<-result
				}
				return
			}
		}
	}
}

func (w work) run(ctx context.Context, t props.Target) judged {
	j := judged{work: w}
	if j.c, j.err = w.load(); j.err != nil {
		return j
	}
	if len(j.c.Ops) == 0 {
		j.skip = "no case can be made of what the target claims"
		return j
	}
	if lacks := t.Info().Lacks(j.c); lacks != "" {
		j.skip = "the target does not claim " + lacks
		return j
	}
	j.verdict, j.err = w.judge(ctx, t, j.c)
	var f *props.Finding
	if errors.As(j.finding, &f) {
		j.property = f.Property
	}
	return j
}

// gaveUp reports whether there is no use in asking the target any more.
func (j judged) gaveUp() bool {
	var e *props.GaveUp
	return errors.As(j.err, &e)
}

// line says in one line what came of j.
func (j judged) line() string {
	var what string
	if f, ok := j.finding.(*props.Finding); ok { // of the property that stands before this line
		what = f.Text()
	} else {
		what = cmp.Or(j.err, j.finding).Error()
	}
	line, _, _ := strings.Cut(what, "\n")
	line = strings.TrimSuffix(line, " (-want +got):")
	if !strings.HasPrefix(line, j.name+": ") { // an error about a file names it
		line = j.name + ": " + line
	}
	return cutMiddle(line)
}

// details prints all of a finding: what differs, drawn where it is columns, and
// the operations up to there with the target's answers.
func (j judged) details(out io.Writer) {
	f, whole := j.finding.(*props.Finding)
	if j.small != nil {
		f = j.small
	}
	if f != nil {
		what := f.Error() + "\n"
		rest := indent(strings.TrimPrefix(f.Report(), what), cutEnd)
		if whole {
			what = f.Text() + "\n"
		} else {
			fmt.Fprintln(out, j.line())
			if f.Fault != nil { // which that line has told
				_, what, _ = strings.Cut(what, "\n")
			}
		}
		if what = indent(what, cutMiddle); whole {
			what = j.name + ":" + what[1:]
		}
		fmt.Fprint(out, what, rest)
		return
	}
	_, more, _ := strings.Cut(j.finding.Error(), "\n")
	c := j.wanted
	listing := func() string { return props.Listing(c, j.answers) }
	switch d := j.finding.(type) {
	case *props.Fault:
		listing = func() string { return props.Unanswered(c) }
	case *props.Difference:
		c.Ops = c.Ops[:d.Step+1]
		want, ids := d.Want.([][]int)
		got, too := d.Got.([][]int)
		if ids && too {
			more = props.DrawColumns(want, got)
		}
	}
	fmt.Fprintln(out, j.line())
	fmt.Fprint(out, indent(more, cutMiddle), indent(listing(), cutEnd))
}

// widest is the characters that are printed of a line of a listing, and of the
// beginning of any other; longest, of the end of such a line, which says why.
// The whole case is in its file.
const (
	widest  = 160
	longest = 640
)

// cutEnd cuts a line of a listing.
func cutEnd(line string) string {
	if r := []rune(line); len(r) > widest {
		return string(r[:widest]) + "…"
	}
	return line
}

// cutMiddle cuts what else is too long to be read: a long operation in front of
// what is wrong with it, or what a program had to say about its end.
func cutMiddle(line string) string {
	if r := []rune(line); len(r) > widest+longest {
		return string(r[:widest]) + " … " + string(r[len(r)-longest:])
	}
	return line
}

// indent sets text off, each of its lines cut.
func indent(text string, cut func(line string) string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + cut(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}

// untilInterrupted returns a context that ends when the user or the system asks
// the program to stop. A second request ends the program at once.
func untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
