package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/spf13/cobra"
)

// The exit statuses.
const (
	exitPassed = iota
	exitFindings
	exitCouldNotRun
)

// errFindings ends a verb that did its work and found something. What it found
// is printed already.
var errFindings = errors.New("there are findings")

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit status.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	root := rootCommand()
	root.SetArgs(goFlags(args))
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	switch cmd, err := root.ExecuteContextC(context.Background()); {
	case err == nil:
		return exitPassed
	case errors.Is(err, errFindings):
		return exitFindings
	default:
		fmt.Fprintf(errs, "%s: %v\n", cmd.CommandPath(), err)
		return exitCouldNotRun
	}
}

// rootCommand joins the verbs.
func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "ringcheck",
		Short:         "Hold an implementation of mlx-lm's ring KV caches against the specification",
		Long:          rootHelp,
		Example:       "  ringcheck check\n  ringcheck check -- python3 target.py",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(checkCommand(), replayCommand(), reduceCommand(), showCommand(), lintCommand(), corpusCommand(), addCommand(), serveCommand(), benchCommand(), versionCommand())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; %s -help lists the flags", err, cmd.CommandPath())
	})
	// Its own commands say how they are used; who names another shell is told so,
	// and gets no help text for a script.
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Example = "  ringcheck completion bash >ringcheck.bash"
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(*cobra.Command, []string) error {
			return errors.New("name a shell: bash, zsh, fish or powershell")
		}
		for _, shell := range cmd.Commands() {
			shell.Example = "  ringcheck completion " + shell.Name()
		}
	}
	return root
}

const rootHelp = `ringcheck asks an implementation of mlx-lm's ring KV caches the same questions
as mlx-lm itself and shows the first step at which the answers differ.

Flags may be written with one dash or two. Exit status: 0 all passed, 1 there
are findings, 2 could not run. The last line counts what passed, failed and was
skipped.`

var oneDash = regexp.MustCompile(`^-[a-z]{2}`)

// goFlags gives long flags that are written as Go programs take them, with one
// dash, the second dash that the flag library wants. What follows "--" belongs
// to another program.
func goFlags(args []string) []string {
	out := make([]string, 0, len(args))
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		if oneDash.MatchString(a) {
			a = "-" + a
		}
		out = append(out, a)
	}
	return out
}
