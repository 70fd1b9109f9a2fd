package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"example.com/ringcheck/corpus"
)

// knownFailures is a list of cases that must fail. An entry is a case's name, or
// the content id of a case as it was made or as check files it, which is
// smaller. Only a case that fails is made smaller, so that an entry of that
// sort matches failures alone.
type knownFailures struct {
	any  bool
	mu   sync.Mutex      // of seen: one goroutine makes the work, another takes the verdicts
	seen map[string]bool // by entry, a name or a content id: whether a case matched it
}

// readKnown reads a list; without a file it is empty.
func readKnown(file string) (*knownFailures, error) {
	k := &knownFailures{seen: map[string]bool{}}
	if file == "" {
		return k, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("-known: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		entry, _, _ := strings.Cut(line, "#")
		if entry = strings.TrimSpace(entry); entry != "" {
			k.any, k.seen[entry] = true, false
		}
	}
	return k, nil
}

// knownFailure is why a listed case that fails counts as skipped.
const knownFailure = "known failures"

// errKnownPassed is the finding on a listed case that passes.
var errKnownPassed = errors.New("is listed as a known failure, and passes; take it off the list")

// notJudged begins why a listed case that could not be judged counts as skipped.
const notJudged = "listed as known failures, and not judged: "

// judge turns what came of a listed case round.
func (k *knownFailures) judge(j judged) judged {
	if j.err != nil || !k.lists(j.c) {
		return j
	}
	switch {
	case j.finding != nil:
		j.finding, j.skip = nil, knownFailure
	case j.skip == "":
		j.finding = errKnownPassed
	default:
		j.skip = notJudged + j.skip
	}
	return j
}

// judgeSmall does the same by the smaller case that is to be filed.
func (k *knownFailures) judgeSmall(j judged) judged {
	if j.small != nil && k.lists(j.small.Case) {
		j.finding, j.small, j.skip = nil, nil, knownFailure
	}
	return j
}

// seeElsewhere notes work that another shard does, so that an entry which
// matches it is not taken for one that matches nothing.
func (k *knownFailures) seeElsewhere(w work) {
	if !k.any {
		return
	}
	if c, err := w.load(); err == nil {
		k.lists(c)
	}
}

// lists reports whether an entry matches c.
func (k *knownFailures) lists(c corpus.Case) bool {
	if !k.any {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	listed := false
	for _, entry := range []string{c.Name, c.Content()} {
		if _, ok := k.seen[entry]; ok {
			k.seen[entry], listed = true, true
		}
	}
	return listed
}

var contentID = regexp.MustCompile(`^[0-9a-f]{16}$`)

// unmatched returns the entries that matched no case. Where not all failures
// were made smaller here, since others do a part of the work or there were too
// many, a content id that matches nothing proves nothing.
func (k *knownFailures) unmatched(all bool) []string {
	var out []string
	for _, entry := range slices.Sorted(maps.Keys(k.seen)) {
		if !k.seen[entry] && (all || !contentID.MatchString(entry)) {
			out = append(out, entry)
		}
	}
	return out
}
