package props

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/models"
)

// Folder returns where failures are filed: the folder found of the corpus in
// the module that the working folder is part of, where that can be written to;
// else ringcheck-found in the working folder.
func Folder() string {
	dir, err := os.Getwd()
	for err == nil {
		cases := filepath.Join(dir, "corpus", "cases")
		found := filepath.Join(cases, "found")
		if writable(found) || notThere(found) && writable(cases) {
			return found
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	return "ringcheck-found"
}

func notThere(name string) bool {
	_, err := os.Stat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// writable reports whether a file can be made in a folder.
func writable(dir string) bool {
	f, err := os.CreateTemp(dir, ".case-*")
	if err != nil {
		return false
	}
	f.Close()
	return os.Remove(f.Name()) == nil
}

// File puts the case of a finding into the folder dir, under its content id and
// with what it should have answered, and returns the path. Where it was not
// answered as it wants, it goes on to want just that. Filing the same case
// again changes nothing. The file is there whole or not at all, also where the
// process is killed.
func File(dir string, f *Finding, seed uint64) (string, error) {
	c := f.Case
	if f.Property != "corpus" {
		c = expected(corpus.Unwanted(c))
	}
	c.Name = c.Content()
	c.Found = &corpus.Found{Property: f.Property, Target: f.Target, Seed: seed, Version: Version()}
	return corpus.Add(dir, c)
}

// expected returns c with what the reference answers as wants, up to the first
// operation of which package models says otherwise: there nobody is believed.
func expected(c corpus.Case) corpus.Case {
	answers, err := referenceAnswers(c)
	if err != nil {
		return c
	}
	j := models.NewJudge(&c)
	wants := Observed(c, answers)
	for i := range wants {
		if j.Step(&c.Ops[i], &wants[i]) != nil {
			answers = answers[:i]
			break
		}
	}
	return WithWants(c, answers)
}
