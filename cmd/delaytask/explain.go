package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
)

func (a *app) explainCommand() *cobra.Command {
	var name taskName
	cmd := &cobra.Command{
		Use:   "explain ID",
		Short: "Say why a task has not run",
		Long: `Say why a task has not run: it is not due, its tag is paused, nobody serves its tag, it waits for its next
attempt, its row is locked, or an executor holds it; or else what has become of it.`,
		Example: `  delaytask explain 911619959676096449
  delaytask explain --tag order.close --key order-42 --json`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := name.ref(args)
			if err != nil {
				return err
			}
			return a.onTasks(cmd, reads, func(ctx context.Context, s *delaytask.Scheduler) error {
				e, err := s.Explain(ctx, ref)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(struct {
						Reason delaytask.Reason `json:"reason"`
						Text   string           `json:"text"`
						Task   taskView         `json:"task"`
					}{e.Reason, e.Text, viewOf(&e.Task)})
				}
				tag := ""
				if e.Task.Tag != "" { // that of a row that cannot be read is not known
					tag = " (" + e.Task.Tag + ")"
				}
				return a.printf("%s\n", oneLine(fmt.Sprintf("Task %d%s is %s. %s", e.Task.ID, tag, e.Task.Status, e.Text)))
			})
		},
	}
	name.addFlags(cmd)
	a.jsonFlag(cmd)
	return cmd
}
