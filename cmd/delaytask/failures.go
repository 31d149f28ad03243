package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

func (a *app) failuresCommand() *cobra.Command {
	var tag string
	cmd := &cobra.Command{
		Use:   "failures",
		Short: "Group failed tasks by their errors",
		Long: `Group the newest 1,000 failed tasks by tag and error. Errors of a group are the
same but for numbers, addresses and quoted texts, which are shown as *. GROUP is for list --group
and retry --group, which find older tasks too.`,
		Example: `  delaytask failures
  delaytask failures --tag mail.send
  delaytask retry --tag mail.send --group 9f86d081884c7d65 --dry-run`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onTasks(cmd, reads, func(ctx context.Context, s *scheduler.Scheduler) error {
				found, err := a.view().Failures(ctx, tag)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(wire.FromFailures(&found))
				}
				return a.printFailures(found)
			})
		},
	}
	cmd.Flags().StringVar(&tag, "tag", "", "only tasks of this tag")
	return a.withRaw(cmd)
}

func (a *app) printFailures(found report.Failures) error {
	if len(found.Groups) == 0 {
		return a.printf("No task has failed.\n")
	}
	t := a.newTable("GROUP", "TAG", "TASKS", "FIRST", "LAST", "EXAMPLE", "ERROR").mayCut(1, 6)
	for _, g := range found.Groups {
		t.row(g.ID, g.Tag, grouped(g.Tasks), moment(g.First), moment(g.Last), id(g.ExampleID), g.Error)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if found.More {
		a.note("Of the newest %s; there are older ones.\n", grouped(found.Tasks))
	}
	return nil
}
