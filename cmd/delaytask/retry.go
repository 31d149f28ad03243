package main

import (
	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
)

func (a *app) retryCommand() *cobra.Command {
	var f bulkFlags
	cmd := &cobra.Command{
		Use:   "retry [ID...]",
		Short: "Run failed tasks again",
		Long: `Run failed tasks again, now: with all their attempts, and with the errors of the old ones kept. They are named
by their ids, or are all that match --tag, --key, --status and --older. The bulk form counts first and asks; where there is no
terminal it wants --yes or --dry-run.

A task whose key another unfinished task carries by now stays failed.`,
		Example: `  delaytask retry 911619959676096449
  delaytask retry --tag mail.send --dry-run
  delaytask retry --status failed --older 1h --yes`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && !f.given():
				return a.changeEach(cmd, args, &taskName{}, "retried",
					func(s *delaytask.Scheduler, ref delaytask.Ref) (delaytask.Status, error) {
						return delaytask.Failed, s.Retry(cmd.Context(), ref)
					})
			case len(args) == 0 && f.given():
				return a.changeAll(cmd, &f, bulk{
					verb: "retry", past: "retried", status: delaytask.Failed, all: (*delaytask.Scheduler).RetryAll,
				})
			default:
				return misusedf("want the ids of failed tasks, or a filter: --tag, --key, --status, --older")
			}
		},
	}
	f.addFlags(cmd, "only tasks that failed longer ago")
	values(cmd, "status", string(delaytask.Failed))
	a.jsonFlag(cmd)
	return cmd
}
