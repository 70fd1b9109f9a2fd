package main

import (
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"example.com/ringcheck/corpus"
)

func replayCommand() *cobra.Command {
	target := targetFlags{name: "reference"}
	cmd := &cobra.Command{
		Use:   "replay [flags] [FILE…] [-- CMD…]",
		Short: "Run cases and compare each answer with what the case wants",
		Long: `replay runs cases on an implementation and compares its answers with what the
cases want, at the level that the implementation claims. It prints a line for
each case that differs, with the first differing step; for a single case all
there is to see. A folder counts as the .json files under it; without a FILE the
cases of the built-in corpus are run.`,
		Example: `  ringcheck replay -target reference
  ringcheck replay ringcheck-found -- python3 target.py`,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := target.split(cmd, args)
			if err != nil {
				return err
			}
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			t, closeTarget, err := target.open(ctx)
			if err != nil {
				return err
			}

			files := corpus.All(corpus.FS())
			if len(args) > 0 {
				files = filesIn(args)
			}
			single := len(args) == 1 && isFile(args[0])
			var total tally
			bar := newProgress(cmd.ErrOrStderr(), -1, "cases")
			for j := range judgeAll(ctx, t, filed(files)) {
				bar.step()
				total.count(j)
				if j.finding == nil && j.err == nil {
					continue
				}
				bar.clear()
				switch {
				case j.gaveUp(): // the last line says so
				case j.err != nil:
					fmt.Fprintln(cmd.ErrOrStderr(), j.line())
				case single:
					j.details(cmd.OutOrStdout())
				default:
					fmt.Fprintln(cmd.OutOrStdout(), j.line())
				}
			}
			bar.clear()
			total.end(cmd, closeTarget)
			return total.close(ctx, cmd.OutOrStdout())
		},
	}
	target.add(cmd)
	return cmd
}

// filed makes the work of judging case files.
func filed(files iter.Seq2[corpus.File, error]) iter.Seq[work] {
	return func(yield func(work) bool) {
		for f, err := range files {
			w := work{name: f.Path, load: func() (corpus.Case, error) { return f.Case, err }, judge: judgeFiled}
			if !yield(w) {
				return
			}
		}
	}
}
