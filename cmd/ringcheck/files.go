package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"example.com/ringcheck/corpus"
)

// filesIn yields the cases in the files and folders named, as [corpus.Dir] does.
// A folder without cases is an error too: what was meant is not there.
func filesIn(names []string) iter.Seq2[corpus.File, error] {
	return func(yield func(corpus.File, error) bool) {
		for _, name := range names {
			any := false
			for f, err := range corpus.Dir(name) {
				any = true
				if !yield(f, err) {
					return
				}
			}
			if !any && !yield(corpus.File{Path: name}, fmt.Errorf("%s: no case in this folder; cases are files that end in .json", name)) {
				return
			}
		}
	}
}

// corpusFolder is where the cases of the module stand that the working folder
// is part of, "" where it is part of none that has a corpus.
func corpusFolder() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		cases := filepath.Join(dir, "corpus", "cases")
		if isFile(filepath.Join(dir, "go.mod")) && isDir(cases) {
			return cases
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// unreadable reports whether err is about the file and not about what it holds.
func unreadable(err error) bool {
	var e *corpus.Error
	return !errors.As(err, &e) || e.Err != nil
}

// writeFile makes or replaces a file, which appears whole or not at all.
func writeFile(name string, write func(io.Writer) error) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(name), ".ringcheck-*")
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", name, err)
	}
	defer os.Remove(tmp.Name()) // gone already, where all went well
	err = write(tmp)
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", name, err)
	}
	return nil
}

// writeBytes writes a file, whole or not at all.
func writeBytes(name string, content []byte) error {
	return writeFile(name, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}
