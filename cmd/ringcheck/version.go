package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"example.com/ringcheck/props"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print which ringcheck this is",
		Example: "  ringcheck version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(cmd.OutOrStdout(), "ringcheck %s, %s, %s/%s\n", props.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
