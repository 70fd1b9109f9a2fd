package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"example.com/ringcheck/corpus"
)

func corpusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "corpus",
		Short: "Work with the cases that come with ringcheck",
		Long: `corpus has one command, export, which writes the cases that come with ringcheck
to a folder.`,
		Example: "  ringcheck corpus export cases",
		RunE: func(*cobra.Command, []string) error {
			return errors.New("corpus takes a command of its own: ringcheck corpus export DIR")
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "export DIR",
		Short: "Write the corpus and its schema to a folder, for use without Go",
		Long: `export writes every case of the corpus, and the JSON Schema of the format, under
DIR, which is made if it is not there. Files of the same names are replaced; each
is written whole or not at all.`,
		Example: "  ringcheck corpus export cases",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var total tally
			if err := export(args[0], &total); err != nil {
				return err
			}
			return total.close(cmd.Context(), cmd.OutOrStdout())
		},
	})
	return cmd
}

// export writes the corpus and the schema under dir and counts the files.
func export(dir string, total *tally) error {
	cases := corpus.FS()
	err := fs.WalkDir(cases, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(cases, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		total.passed++
		return writeBytes(to, text)
	})
	if err != nil {
		return fmt.Errorf("the corpus could not be written: %w", err)
	}
	total.passed++
	return writeBytes(filepath.Join(dir, "case.schema.json"), corpus.JSONSchema())
}
