// Command planted is the program that the mutants are built into; its first
// argument is the number of the mutant that it runs, or 0.
//
//	planted N TARGET replay          prints the cases of the corpus that TARGET fails, a panic included
//	planted N TARGET serve           answers the protocol for TARGET
//	planted N TARGET attend SEEDS    looks for the bug by the property attention, and prints what it found as JSON
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/accelerated/kernels/host"
	"example.com/ringcheck/ci/mutants/look"
	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
)

func main() {
	if err := run(os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func run(name, what string, more []string) error {
	t, err := target(name)
	if err != nil {
		return err
	}
	switch what {
	case "serve":
		return props.Serve(context.Background(), t, os.Stdin, os.Stdout)
	case "attend":
		seeds, err := strconv.Atoi(more[0])
		if err != nil {
			return err
		}
		found, err := look.For(context.Background(), t, seeds, "attention")
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(found)
	}
	return replay(t)
}

func target(name string) (props.Target, error) {
	switch name {
	case "plain":
		return props.AcceleratedTarget(name, cpu.Open(cpu.Options{PlainGo: true})), nil
	case "host":
		dev, err := host.Open()
		if err != nil {
			return nil, err
		}
		return props.AcceleratedTarget(name, dev), nil
	}
	for _, t := range props.BuiltinTargets() {
		if t.Info().Name == name {
			return t, nil
		}
	}
	return nil, fmt.Errorf("there is no target %s", name)
}

func replay(t props.Target) error {
	dir, err := os.MkdirTemp("", "ringcheck-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for f, err := range corpus.All(corpus.FS()) {
		if err != nil {
			return err
		}
		if t.Info().Lacks(f.Case) != "" {
			continue
		}
		steps, err := t.Run(context.Background(), f.Case, dir)
		if err != nil || props.CompareWants(f.Case, steps, t.Info().Level) != nil {
			fmt.Println(f.Case.Name)
		}
	}
	return nil
}
