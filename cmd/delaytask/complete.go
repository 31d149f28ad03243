package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
)

var statuses = []string{
	string(delaytask.Pending), string(delaytask.Executing), string(delaytask.Completed), string(delaytask.Failed),
	string(delaytask.Cancelled),
}

// values lets the shell complete a flag from a list.
func values(cmd *cobra.Command, flag string, list ...string) {
	complete(cmd, flag, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
}

// noFiles keeps the shell from offering file names for flags that take none.
func noFiles(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		complete(cmd, flag, cobra.NoFileCompletions)
	}
}

func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(fmt.Sprintf("completion of --%s: %v", flag, err)) // the flag does not exist, or was given two
	}
}

func parseStatus(s string) (delaytask.Status, error) {
	if s != "" && !slices.Contains(statuses, s) {
		return "", misusedf("--status %q: want pending, executing, completed, failed or cancelled", s)
	}
	return delaytask.Status(s), nil
}
