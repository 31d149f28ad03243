package main

import "github.com/spf13/cobra"

func (a *app) scheduleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Work with schedules",
		Example: `  delaytask schedule preview '30 2 * * MON-FRI' --zone Europe/Berlin
  delaytask schedule create report.daily '30 2 * * MON-FRI' --zone Europe/Berlin --tag report.build
  delaytask schedule show report.daily`,
	}
	cmd.AddCommand(a.schedulePreviewCommand(), a.scheduleCreateCommand(), a.scheduleListCommand(),
		a.scheduleShowCommand(), a.scheduleUpdateCommand(), a.schedulePauseCommand(), a.scheduleResumeCommand(),
		a.scheduleTriggerCommand(), a.scheduleSkipCommand(), a.scheduleResetCommand(), a.scheduleBackfillCommand(),
		a.scheduleTicksCommand(), a.scheduleExplainCommand(), a.scheduleDeleteCommand())
	return cmd
}
