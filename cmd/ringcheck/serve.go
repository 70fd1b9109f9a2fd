package main

import (
	"github.com/spf13/cobra"

	"example.com/ringcheck/props"
)

func serveCommand() *cobra.Command {
	target := targetFlags{name: "reference"}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer the protocol's requests for a built-in implementation",
		Long: `serve is the other end of check: it reads one request a line from standard input
and writes one answer a line to standard output (docs/wire.md), until the input
ends. It is a pattern for a target of your own, and what a port without Go can
compare itself with.`,
		Example: `  echo '{"cmd":"hello","protocol":1}' | ringcheck serve
  ringcheck check -- ringcheck serve`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, closeTarget, err := target.builtin()
			if err != nil {
				return err
			}
			defer closeTarget()
			return props.Serve(cmd.Context(), t, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	target.addName(cmd, "built-in implementation to answer for")
	return cmd
}
