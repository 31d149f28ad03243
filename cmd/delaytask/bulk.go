package main

import (
	"context"

	"github.com/spf13/cobra"

	runs "github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/scheduler"
)

func (a *app) bulkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bulk",
		Short: "List bulk changes of all processes, and stop one",
		Long: `List the bulk changes of all processes that use the database, and stop one. The service, the dashboard,
and the commands "delaytask cancel" and "delaytask retry" make them.`,
		Example: `  delaytask bulk list
  delaytask bulk stop 4711`,
	}
	cmd.AddCommand(a.bulkListCommand(), a.bulkStopCommand())
	return cmd
}

func (a *app) bulkListCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "list",
		Short: "List bulk changes, the newest first",
		Long: `List the newest 100 bulk changes of all processes. "lost": the process was not seen at it for 30 s, so it
died or does not reach the database. "unknown": the process does not tell how far it is, as one of an older version.`,
		Example: `  delaytask bulk list
  delaytask bulk list --json | jq -r '.items[] | select(.outcome == "running") | .id'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onTasks(cmd, reads, func(ctx context.Context, _ *scheduler.Scheduler) error {
				found, err := a.view().Runs(ctx)
				if err != nil {
					return err
				}
				return a.printRuns(found)
			})
		},
	})
}

func (a *app) printRuns(found []runs.State) error {
	shown := viewsOf(found, a.view().BulkRun)
	switch {
	case a.json:
		return a.printJSON(list[wire.BulkRun]{Items: shown})
	case len(shown) == 0:
		return a.printf("There was no bulk change.\n")
	}
	t := a.newTable("ID", "BEGAN", "WHO", "ACTION", "CHANGED", "OUTCOME", "FILTER", "ERROR").mayCut(2, 6, 7)
	for i, r := range shown {
		outcome, failure := r.Outcome, r.Error
		switch {
		case r.Stopping:
			outcome = "stopping"
		case r.Outcome == string(runs.Lost):
			failure = "its process was not seen at it for 30 s; to go on, run the command again"
		}
		filter := a.view().Text(r.Filter.Tag, found[i].Detail)
		t.row(r.ID, moment(r.Began.Std()), r.Who, r.Action, grouped(r.Done), outcome, filter, failure)
	}
	return t.flush()
}

func (a *app) bulkStopCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "stop ID",
		Short: "Stop a bulk change of any process",
		Long: `Stop a bulk change. It ends within about a second, after the 500 tasks that it is at. What it has changed
stays so. One that has ended stays as it is.`,
		Example: "  delaytask bulk stop 4711",
		Args:    wanted(1, 1, "the id of the bulk change"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onTasks(cmd, changes, func(ctx context.Context, _ *scheduler.Scheduler) error {
				run, err := a.operator.StopRun(ctx, by(), args[0])
				if err != nil {
					return err
				}
				ended := !run.Ended.IsZero()
				switch {
				case a.json:
					return a.printJSON(struct {
						ID    string `json:"id"`
						Ended bool   `json:"ended"` // before it was to be stopped
					}{run.ID, ended})
				case ended:
					return a.printf("It has ended before (%s), with %s changed.\n", run.Outcome,
						counted(run.Done, "task"))
				case run.Outcome == runs.Lost:
					return a.printf("Its process was not seen at it for 30 s. If it is alive, it stops when it " +
						"reaches the database.\n")
				default:
					return a.printf("It stops within about a second; delaytask bulk list shows it.\n")
				}
			})
		},
	})
}
