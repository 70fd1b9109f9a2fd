package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/props"
)

// best names the accelerated cache on the best device that there is.
const best = "auto"

// targetFlags choose the implementation that a verb works with.
type targetFlags struct {
	name    string
	timeout time.Duration
	command []string // after "--"
}

// addName declares -target alone.
func (f *targetFlags) addName(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&f.name, "target", f.name, usage+": "+strings.Join(targetNames(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("target", cobra.FixedCompletions(targetNames(), cobra.ShellCompDirectiveNoFileComp))
}

// add declares -target and what a child needs.
func (f *targetFlags) add(cmd *cobra.Command) {
	f.addName(cmd, "built-in implementation to be judged")
	cmd.Flags().DurationVar(&f.timeout, "timeout", time.Minute, "what a child may take for one case")
}

// split takes the child's command from args and returns the arguments before it.
func (f *targetFlags) split(cmd *cobra.Command, args []string) ([]string, error) {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		return args, nil
	}
	if cmd.Flags().Changed("target") {
		return nil, errors.New("-target and a command after -- exclude each other; leave one out")
	}
	if dash == len(args) {
		return nil, errors.New("nothing follows --; give the command that runs your implementation, for example: -- python3 target.py")
	}
	f.command = args[dash:]
	return args[:dash], nil
}

// open returns the target. The caller must call close.
func (f *targetFlags) open(ctx context.Context) (t props.Target, closer func() error, err error) {
	if f.timeout <= 0 {
		return nil, nil, fmt.Errorf("-timeout is %v; give a positive time such as 60s", f.timeout)
	}
	if f.command == nil {
		return f.builtin()
	}
	child, err := props.StartChild(ctx, f.command, props.ChildOptions{Timeout: f.timeout})
	var fault *props.Fault
	switch {
	case errors.As(err, &fault):
		return nil, nil, fmt.Errorf("%w\n(a target reads one request a line and answers with one line, hello first: docs/wire.md)", err)
	case err != nil && strings.ContainsAny(f.command[0], " \t"):
		return nil, nil, fmt.Errorf("%w\n(%q is one word; give the program and its arguments as separate words: -- %s)", err, f.command[0], strings.Join(f.command, " "))
	case err != nil:
		return nil, nil, err
	}
	return child, child.Close, nil
}

// builtin returns the target that -target names. The caller must call close.
func (f *targetFlags) builtin() (t props.Target, closer func() error, err error) {
	switch {
	case f.name == "reference":
		return props.ReferenceTarget(), func() error { return nil }, nil
	case !slices.Contains(targetNames(), f.name):
		return nil, nil, fmt.Errorf("-target is %q; use one of: %s", f.name, strings.Join(targetNames(), ", "))
	}
	dev, err := accelerated.Open(f.name)
	if err != nil {
		return nil, nil, err
	}
	name := f.name
	if name == best {
		name, _, _ = strings.Cut(dev.Name(), " ")
	}
	return props.AcceleratedTarget(name, dev), dev.Close, nil
}

// arguments are those that choose the same target again.
func (f *targetFlags) arguments() string {
	if f.command == nil {
		return "-target " + f.name
	}
	words := []string{"--"}
	for _, w := range f.command {
		words = append(words, shellQuote(w))
	}
	return strings.Join(words, " ")
}

func targetNames() []string { return append([]string{"reference", best}, props.Devices...) }

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// shellQuote writes s so that a shell reads it as one word.
func shellQuote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
