package main

import (
	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/server/config"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Show the settings that are in force",
		Example: "  delaytask config print",
	}
	cmd.AddCommand(a.configPrintCommand())
	return cmd
}

func (a *app) configPrintCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the settings that are in force",
		Long: `Print the settings that are in force, as YAML that can be used as a settings file: the
defaults, overridden by the file, by the environment (DELAYTASK_ and the key in upper case) and by flags, in
this order. The password in the DSN is hidden.`,
		Example: `  delaytask config print
  DELAYTASK_CONCURRENCY=16 delaytask config print --ttr 30s
  delaytask config print --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.settings(cmd)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(c)
			}
			return c.Print(a.stdout)
		},
	}
	addSettings(cmd, config.Keys()[1:]...) // the first is dsn, which every command has
	return a.withJSON(cmd)
}
