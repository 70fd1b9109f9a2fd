package main

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how far a verb is, on a terminal only.
type progress struct{ bar *progressbar.ProgressBar }

// newProgress draws on errs. total is -1 where the end is not known.
func newProgress(errs io.Writer, total int, unit string) progress {
	f, ok := errs.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return progress{}
	}
	return progress{progressbar.NewOptions(total,
		progressbar.OptionSetWriter(f),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(unit),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(100e6), // nanoseconds
		progressbar.OptionClearOnFinish(),
	)}
}

// step counts one more.
func (p progress) step() {
	if p.bar != nil {
		_ = p.bar.Add(1) // drawing only
	}
}

// clear makes room for a line of output.
func (p progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
