package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// mutant is one planted bug.
type mutant struct {
	name     string
	file     string   // in the module
	old, new string   // old occurs in file exactly once
	kills    []string // the cases of the corpus that fail for it, among others
	attend   bool     // it is in attention, which the protocol does not carry: the program judges itself
	blind    string   // why no model can know of it, so that the corpus alone kills it
}

// mutants are all planted bugs.
var mutants = slices.Concat(ofReference, ofAccelerated)

// target is the implementation that has the bug.
func (m *mutant) target() string {
	switch {
	case strings.HasPrefix(m.file, "reference/"):
		return "reference"
	case strings.HasPrefix(m.file, "accelerated/kernels/"):
		return "host"
	case strings.HasPrefix(m.file, "accelerated/cpu/"):
		return "plain"
	}
	return "cpu"
}

const (
	workers  = 2
	patience = 5 * time.Minute // for one mutant
)

func main() {
	run := flag.String("run", "", "only the mutants whose name matches this `regexp`")
	seeds := flag.Int("seeds", 5, "how many `N` times properties look for each mutant; 0: the corpus alone")
	flag.Parse()
	killed, survived, err := judge(os.Stdout, *run, *seeds)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Printf("%d killed, %d survived\n", killed, survived)
	if survived > 0 {
		os.Exit(1)
	}
}
