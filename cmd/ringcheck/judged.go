package main

import (
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
	property string // what the judge asks for
	load     func() (corpus.Case, error)
	judge    judge
}

// judged is what came of one piece of work.
type judged struct {
	work
	verdict
	c   corpus.Case
	err error // could not be judged
}

// judgeAll judges all of works on all cores and yields what came of them, in
// the order of works. Once ctx has ended it yields no more.
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
			if j := <-result; ctx.Err() != nil || !yield(j) {
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

// line says in one line what came of j.
func (j judged) line() string {
	what := j.err
	if what == nil {
		what = j.finding
	}
	first, _, _ := strings.Cut(what.Error(), "\n")
	line := []rune(j.name + ": " + strings.TrimSuffix(first, " (-want +got):"))
	if len(line) > 2*widest { // a long operation in front of what is wrong with it
		return string(line[:widest]) + " … " + string(line[len(line)-widest:])
	}
	return string(line)
}

// details prints all of a finding: what differs, drawn where it is columns, and
// the operations up to there with the target's answers.
func (j judged) details(out io.Writer) {
	if f, ok := j.finding.(*props.Finding); ok {
		fmt.Fprint(out, j.name+": "+indent(f.Report()))
		return
	}
	_, more, _ := strings.Cut(j.finding.Error(), "\n")
	c := j.wanted
	c.Ops = c.Ops[:min(len(c.Ops), len(j.answers)+1)] // the one without an answer too
	if d, ok := j.finding.(*props.Difference); ok {
		c.Ops = c.Ops[:d.Step+1]
		want, ids := d.Want.([][]int)
		got, too := d.Got.([][]int)
		if ids && too {
			more = props.DrawColumns(want, got)
		}
	}
	fmt.Fprintln(out, j.line())
	fmt.Fprint(out, indent(more), indent(props.Listing(c, j.answers)))
}

// widest is the characters that are printed of a line of a listing, and of each
// end of any other; the whole case is in its file.
const widest = 160

// indent sets text off and cuts what is too long to be read.
func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if r := []rune(line); len(r) > widest {
			line = string(r[:widest]) + "…"
		}
		b.WriteString("  " + line + "\n")
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
