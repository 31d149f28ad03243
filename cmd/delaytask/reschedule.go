package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

func (a *app) rescheduleCommand() *cobra.Command {
	var name taskName
	var due dueFlags
	cmd := &cobra.Command{
		Use:   "reschedule ID",
		Short: "Move a pending task to another time",
		Long: `Move a pending task to a delay from now, or to a time. The task's promise moves with it: lateness is counted from
the new time. A task that is executing or finished is left alone.`,
		Example: `  delaytask reschedule 911619959676096449 --delay 2h
  delaytask reschedule --tag order.close --key order-42 --at 2027-01-31T08:30:00Z`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := name.ref(args)
			if err != nil {
				return err
			}
			delay, at, err := due.parse(cmd)
			if err != nil {
				return err
			}
			if due.delay == "" && due.at == "" {
				return misusedf("say to when: --delay or --at")
			}
			var options []delaytask.ChangeOption
			if !at.IsZero() {
				options = append(options, delaytask.To(at))
			}
			return a.onTasks(cmd, changes, func(ctx context.Context, s *delaytask.Scheduler) error {
				if _, err := s.Reschedule(ctx, ref, delay, options...); err != nil {
					return err
				}
				task, err := s.Get(ctx, ref)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(viewOf(&task))
				}
				return a.printf("Task %d is now due at %s.\n", task.ID, wire.Time(task.Expected))
			})
		},
	}
	name.addFlags(cmd)
	due.addFlags(cmd)
	a.jsonFlag(cmd)
	return cmd
}
