package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
	"example.com/ringcheck/props/draw"
)

func showCommand() *cobra.Command {
	f := showFlags{targetFlags: targetFlags{name: "reference"}}
	cmd := &cobra.Command{
		Use:   "show [flags] FILE [-- CMD…]",
		Short: "Draw a case, step by step",
		Long: `show draws what the caches of a case hold after each operation, the masks beside
their keys, and where the next token is written: in the terminal, as a web page
(-html) or as a picture of one step (-svg).

It draws what the case wants, and the reference's answers where the case is
silent. The answers of the target are compared with that; the first step that
differs is drawn as wanted and as it came, and without -step it is the last one
in the terminal and the one that a picture shows.`,
		Example: `  ringcheck show ringcheck-found/5a1b6c0d2e3f4a5b.json -- python3 target.py
  ringcheck show -html case.html my-case.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := f.split(cmd, args)
			if err != nil {
				return err
			}
			if len(files) != 1 {
				return fmt.Errorf("name one case file: %s", cmd.UseLine())
			}
			return f.run(cmd, files[0])
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&f.step, "step", 0, "draw only this step, the number after its # (default: all, up to the failing one)")
	cmd.Flags().StringVar(&f.page, "html", "", "write a web page to this file")
	cmd.Flags().StringVar(&f.picture, "svg", "", "write a picture of one step to this file")
	return cmd
}

// showFlags are what show was asked for.
type showFlags struct {
	targetFlags
	step          int
	page, picture string
}

// run does the work of show.
func (f *showFlags) run(cmd *cobra.Command, name string) error {
	c, err := oneCase(name)
	if err != nil {
		return err
	}
	given := cmd.Flags().Changed("step")
	if given && (f.step < 0 || f.step >= len(c.Ops)) {
		return fmt.Errorf("-step is %d; the case has %d operations, numbered from 0", f.step, len(c.Ops))
	}
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	t, closeTarget, err := f.open(ctx)
	if err != nil {
		return err
	}

	var total tally
	j := work{name: name, load: func() (corpus.Case, error) { return c, nil }, judge: judgeShown}.run(ctx, t)
	total.count(j)
	total.end(cmd, closeTarget)
	if j.err != nil {
		return j.err
	}
	d, err := drawn(ctx, t, c, j)
	if err != nil {
		return total.close(ctx, cmd.OutOrStdout(), err)
	}
	from, to := 0, len(c.Ops)
	switch {
	case given:
		from, to = f.step, f.step+1
	case d.Failing >= 0:
		to = d.Failing + 1
	}
	if err := f.write(cmd.OutOrStdout(), d, from, to); err != nil {
		return total.close(ctx, cmd.OutOrStdout(), err)
	}
	return total.close(ctx, cmd.OutOrStdout())
}

// oneCase reads the case in a file.
func oneCase(name string) (corpus.Case, error) {
	if isDir(name) {
		return corpus.Case{}, fmt.Errorf("%s is a folder; name one case file in it", name)
	}
	for file, err := range corpus.Dir(name) {
		return file.Case, err
	}
	return corpus.Case{}, fmt.Errorf("%s: no case", name)
}

// judgeShown asks for what the case wants or, where it wants nothing, for the
// reference's answers.
func judgeShown(ctx context.Context, t props.Target, c corpus.Case) (verdict, error) {
	if slices.ContainsFunc(c.Ops, func(op corpus.Op) bool { return op.Want != nil }) {
		return judgeFiled(ctx, t, c)
	}
	return judgeLiteral(ctx, t, c)
}

// drawn draws c and what a target answered to it.
func drawn(ctx context.Context, t props.Target, c corpus.Case, j judged) (*draw.Drawing, error) {
	if f, ok := j.finding.(*props.Finding); ok {
		c = f.Run // the case made from c by which the property does not hold
	}
	if j.small != nil {
		c, j.finding, j.answers = j.small.Run, j.small, j.small.Answers
	}
	dir, done, err := props.Scratch(c)
	if err != nil {
		return nil, err
	}
	defer done()
	reference, err := props.ReferenceTarget().Run(ctx, c, dir)
	if err != nil {
		return nil, fmt.Errorf("the reference: %w", err)
	}
	info := t.Info()
	return draw.New(draw.Input{
		Case: c, Reference: reference, Target: info.Name + " " + info.Version, Level: info.Level,
		Answers: j.answers, Finding: j.finding,
	}), nil
}

// write writes the files asked for or, where there are none, the steps from
// from to to as text.
func (f *showFlags) write(out io.Writer, d *draw.Drawing, from, to int) error {
	if f.page != "" {
		if err := writeFile(f.page, d.Page); err != nil {
			return err
		}
		fmt.Fprintln(out, "drawn:", f.page)
	}
	if f.picture != "" {
		if to == 0 {
			return errors.New("the case has no operation of which there could be a picture")
		}
		svg := d.SVG(to - 1)
		if err := writeFile(f.picture, func(w io.Writer) error { _, err := w.Write(svg); return err }); err != nil {
			return err
		}
		fmt.Fprintln(out, "drawn:", f.picture)
	}
	if f.page != "" || f.picture != "" {
		return nil
	}
	o := draw.TextOptions{Width: 80, From: from, To: to}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		if w, _, err := term.GetSize(int(file.Fd())); err == nil && w > 0 {
			o.Width = w
		}
		o.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	if err := d.Text(out, o); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return nil
}
