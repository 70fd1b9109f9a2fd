package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
)

func addCommand() *cobra.Command {
	target := targetFlags{name: "reference"}
	var dir string
	cmd := &cobra.Command{
		Use:   "add FILE…",
		Short: "Put cases into the corpus, in canonical form and with expectations",
		Long: `add writes each case in canonical form into the corpus, under its name. An
operation that wants nothing gets what the target answers; what it wants already
must be what the target answers. Nothing is written of a case that lint
complains of. A case that is there already stays as it is.`,
		Example: "  ringcheck add my-case.json\n  ringcheck add -dir cases ringcheck-found",
		Args:    someFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, closeTarget, err := target.builtin()
			if err != nil {
				return err
			}
			defer closeTarget()
			var total tally
			for f, err := range filesIn(args) {
				switch refusal, err := add(cmd.Context(), cmd.OutOrStdout(), t, dir, f, err); {
				case err != nil:
					fmt.Fprintln(cmd.ErrOrStderr(), err)
					total.broken++
				case refusal != nil:
					fmt.Fprintln(cmd.OutOrStdout(), refusal)
					total.failed++
				default:
					total.passed++
				}
			}
			return total.close(cmd.Context(), cmd.OutOrStdout())
		},
	}
	target.addName(cmd, "built-in implementation whose answers are what a case should want")
	cmd.Flags().StringVar(&dir, "dir", "", "folder to write to (default: known or found in the corpus of the module here)")
	return cmd
}

// add adds the case of one file. The refusal says what is wrong with the case;
// the error, why it could not be tried.
func add(ctx context.Context, out io.Writer, t props.Target, dir string, f corpus.File, readErr error) (refusal, err error) {
	switch {
	case readErr != nil && unreadable(readErr):
		return nil, readErr
	case !lintFile(out, f, readErr):
		return fmt.Errorf("%s: not added", f.Path), nil
	}
	scratch, done, err := props.Scratch(f.Case)
	if err != nil {
		return nil, err
	}
	defer done()
	answers, err := t.Run(ctx, f.Case, scratch)
	if err != nil {
		return nil, fmt.Errorf("%s: the %s cannot run it: %w", f.Path, t.Info().Name, err)
	}
	c := props.WithWants(f.Case, answers)
	if d := props.CompareWants(c, answers, t.Info().Level); d != nil {
		return fmt.Errorf("%s: not added; the %s answers differently: %w", f.Path, t.Info().Name, d), nil
	}
	if !lintFile(out, corpus.File{Path: f.Path + ", with expectations", Case: c}, nil) {
		return fmt.Errorf("%s: not added", f.Path), nil
	}
	if dir == "" {
		if dir, err = homeOf(c); err != nil {
			return nil, err
		}
	}
	file, err := corpus.Add(dir, c)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(out, file)
	return nil, nil
}

// homeOf is the folder of the corpus that c belongs in.
func homeOf(c corpus.Case) (string, error) {
	cases := corpusFolder()
	if cases == "" {
		return "", fmt.Errorf("the working folder is in no module with a corpus; say with -dir where to write")
	}
	if c.Found != nil {
		return filepath.Join(cases, "found"), nil
	}
	return filepath.Join(cases, "known"), nil
}
