package props

import (
	"os"
	"slices"

	"example.com/ringcheck/corpus"
)

// Scratch makes a folder for what c saves; none, and dir is "", where c saves
// and loads nothing. done removes it.
func Scratch(c corpus.Case) (dir string, done func(), err error) {
	if !slices.ContainsFunc(c.Ops, func(op corpus.Op) bool { return op.Verb == corpus.Save || op.Verb == corpus.Load }) {
		return "", func() {}, nil
	}
	dir, err = os.MkdirTemp("", "ringcheck-")
	return dir, func() { os.RemoveAll(dir) }, err
}
