package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"example.com/ringcheck/corpus"
)

func lintCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lint FILE…",
		Short: "Say what is wrong with case files",
		Long: `lint reads case files and prints a line for everything that is wrong with them:
text that is no case, names used before they are made, tokens that stand for two
columns, wants that can never hold. A folder counts as the .json files under it.`,
		Example: "  ringcheck lint my-case.json\n  ringcheck lint corpus/cases",
		Args:    someFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			var t tally
			for f, err := range filesIn(args) {
				if err != nil && unreadable(err) {
					fmt.Fprintln(cmd.ErrOrStderr(), err)
					t.broken++
					continue
				}
				if lintFile(cmd.OutOrStdout(), f, err) {
					t.passed++
				} else {
					t.failed++
				}
			}
			return t.close(cmd.Context(), cmd.OutOrStdout())
		},
	}
}

// lintFile prints what is wrong with f, which is that it does not parse where
// err says so, and reports whether nothing is.
func lintFile(out io.Writer, f corpus.File, err error) (ok bool) {
	if err != nil {
		fmt.Fprintln(out, err)
		return false
	}
	problems := corpus.Lint(f.Case)
	for _, p := range problems {
		fmt.Fprintf(out, "%s: %v\n", f.Path, p)
	}
	return len(problems) == 0
}

// someFiles asks for at least one file.
func someFiles(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("name at least one case file or folder: %s", cmd.UseLine())
	}
	return nil
}
