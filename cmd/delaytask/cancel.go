package main

import (
	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
)

func (a *app) cancelCommand() *cobra.Command {
	var f bulkFlags
	var onlyPending bool
	cmd := &cobra.Command{
		Use:   "cancel [ID...]",
		Short: "Cancel tasks that are not finished",
		Long: `Cancel tasks by id, one task by --tag and --key, or all pending tasks that match --tag, --key, --status
and --older.

A pending task will not start. A task that is executing may have done its work already: its context ends within 3 seconds and
its result is refused. The bulk form counts first and asks; where there is no terminal it wants --yes or --dry-run.`,
		Example: `  delaytask cancel 911619959676096449
  delaytask cancel --tag order.close --key order-42
  delaytask cancel --tag mail.send --older 24h --dry-run
  delaytask cancel --tag mail.send --status pending --yes`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			var options []delaytask.ChangeOption
			if onlyPending {
				options = append(options, delaytask.OnlyPending())
			}
			cancel := func(s *delaytask.Scheduler, ref delaytask.Ref) (delaytask.Status, error) {
				return s.Cancel(cmd.Context(), ref, options...)
			}
			single := f.key != "" && f.status == "" && f.older == ""
			switch {
			case len(args) > 0 && !f.given(), single:
				return a.changeEach(cmd, args, &taskName{f.tag, f.key, f.app}, "cancelled", cancel)
			case len(args) == 0 && f.given():
				return a.changeAll(cmd, &f, bulk{
					verb: "cancel", past: "cancelled", status: delaytask.Pending, all: (*delaytask.Scheduler).CancelAll,
				})
			default:
				return misusedf("want the ids of tasks, or --tag and --key, or a filter: --tag, --key, --status, --older")
			}
		},
	}
	f.addFlags(cmd, "only tasks that were due longer ago")
	values(cmd, "status", string(delaytask.Pending))
	cmd.Flags().BoolVar(&onlyPending, "only-pending", false, "leave a task alone that is executing")
	a.jsonFlag(cmd)
	return cmd
}
