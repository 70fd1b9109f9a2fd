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
can be taken. The small case is stored, and shown.`,
		Example: "  ringcheck reduce ringcheck-found/0123456789abcdef.json -- python3 target.py",
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := target.split(cmd, args)
			if err != nil {
				return err
			}
			if len(args) != 1 {
				return fmt.Errorf("reduce takes one case file, not %d", len(args))
			}
			c, err := oneCase(args[0])
			if err != nil {
				return err
			}
			if len(names) == 0 && c.Found != nil {
				names = []string{c.Found.Property}
			}
			list, err := props.Named(names)
			if err != nil {
				return err
			}
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			t, closeTarget, err := target.open(ctx)
			if err != nil {
				return err
			}
			defer closeTarget()
			suite := &props.Suite{Target: t, Domain: props.Domain{Info: t.Info()}, Properties: list, Folder: dir}
			f, err := suite.Check(ctx, c)
			if err != nil {
				return err
			}
			var total tally
			if f == nil {
				total.passed++
				fmt.Fprintln(cmd.OutOrStdout(), "no property fails; there is nothing to reduce")
				return total.close(ctx, cmd.OutOrStdout())
			}
			total.failed++
			small, file, err := suite.Keep(ctx, f, 0)
			fmt.Fprint(cmd.OutOrStdout(), small.Report())
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "repeat: ringcheck replay %s %s\n", file, target.arguments())
			return total.close(ctx, cmd.OutOrStdout())
		},
	}
	target.add(cmd)
	cmd.Flags().StringSliceVar(&names, "property", nil, "properties to ask for, separated by commas (default: the one that the file names, or all)")
	cmd.Flags().StringVar(&dir, "dir", foundFolder, "folder for the small case")
	return cmd
}
