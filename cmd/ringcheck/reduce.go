package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"example.com/ringcheck/props"
)

func reduceCommand() *cobra.Command {
	target := targetFlags{name: "reference"}
	var names []string
	var dir string
	cmd := &cobra.Command{
		Use:   "reduce [flags] FILE [-- CMD…]",
		Short: "Make a failing case as small as it can be",
		Long: `reduce runs a case and, where a property does not hold, leaves out operations and
lowers sizes as long as the same property fails, down to a case of which nothing
can be taken. The small case is stored, and shown. A case that is not answered as
it wants is made smaller as long as it is not answered as the reference does; where
it is, it stays as it is, since what it wants is part of it. So does one on which
the target hangs.`,
		Example: "  ringcheck reduce ringcheck-found/0123456789abcdef.json -- python3 target.py\n  ringcheck reduce -property window -target cpu my-case.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := target.split(cmd, args)
			if err != nil {
				return err
			}
			if len(args) != 1 {
				return fmt.Errorf("name one case file, not %d: %s", len(args), cmd.UseLine())
			}
			c, err := oneCase(args[0])
			if err != nil {
				return err
			}
			var seed uint64
			if c.Found != nil {
				seed = c.Found.Seed
				if len(names) == 0 {
					names = []string{reducible(c.Found.Property)}
				}
			}
			list, err := props.Named(names)
			if err != nil {
				return fmt.Errorf("%w; ringcheck check -help lists them, and -property chooses another", err)
			}
			collectRarely()
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			t, closeTarget, err := target.open(ctx)
			if err != nil {
				return err
			}
			var total tally
			suite := &props.Suite{Target: t, Domain: props.Domain{Info: t.Info()}, Properties: list, Folder: dir}
			f, err := suite.Check(ctx, c)
			if err != nil {
				closeTarget()
				return err
			}
			out := cmd.OutOrStdout()
			if f == nil {
				total.passed++
				fmt.Fprintln(out, "no property fails; there is nothing to reduce")
				total.end(cmd, closeTarget)
				return total.close(ctx, out)
			}
			total.failed++
			small, file, err := suite.Keep(ctx, f, seed)
			fmt.Fprint(out, small.Report())
			switch {
			case f.Fault != nil && f.Fault.Slow:
				fmt.Fprintln(out, "it is as it was: to try a smaller case would take as long each time; -timeout sets how long")
			case small.Property == corpusProperty:
				fmt.Fprintln(out, "it is as it was: what it wants is part of it, and the target answers as the reference does")
			}
			if file != "" {
				fmt.Fprintf(out, "repeat: ringcheck replay %s %s\n", file, target.arguments())
			}
			total.end(cmd, closeTarget)
			if err != nil && ctx.Err() == nil {
				return total.close(ctx, out, err)
			}
			return total.close(ctx, out)
		},
	}
	target.add(cmd)
	cmd.Flags().StringSliceVar(&names, "property", nil, "properties to ask for, separated by commas (default: the one that the file names, or all)")
	cmd.Flags().StringVar(&dir, "dir", foundFolder, "folder for the small case")
	return cmd
}

// reducible is the property by which to reduce what was filed for one.
func reducible(property string) string {
	if property == literalProperty {
		return "reference"
	}
	return property
}
