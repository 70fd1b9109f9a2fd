// Command replay runs the cases of the corpus on the reference and prints the
// name of each that fails, a panic included.
package main

import (
	"context"
	"fmt"
	"os"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
)

func main() {
	if err := replay(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func replay() error {
	dir, err := os.MkdirTemp("", "ringcheck-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t := props.ReferenceTarget()
	for f, err := range corpus.All(corpus.FS()) {
		if err != nil {
			return err
		}
		steps, err := t.Run(context.Background(), f.Case, dir)
		if err != nil || props.CompareWants(f.Case, steps, props.Layout) != nil {
			fmt.Println(f.Case.Name)
		}
	}
	return nil
}
