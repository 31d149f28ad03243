package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
)

func (a *app) pauseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pause TAG...",
		Short: "Stop all nodes from starting tasks of a tag",
		Long: `Stop all nodes from starting tasks of the tags, within 2 seconds. What runs goes on; tasks that fall due
meanwhile wait. Tasks can be saved as before.`,
		Example: `  delaytask pause mail.send
  delaytask pause mail.send sms.send`,
		RunE: func(cmd *cobra.Command, tags []string) error {
			return a.setTags(cmd, tags, "paused", (*delaytask.Scheduler).Pause)
		},
	}
	return a.tagsCommand(cmd)
}

func (a *app) resumeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "resume TAG...",
		Short:   "End the pause of a tag",
		Long:    "End the pause of the tags on all nodes, within 2 seconds. Tasks that fell due meanwhile start at once.",
		Example: "  delaytask resume mail.send",
		RunE: func(cmd *cobra.Command, tags []string) error {
			return a.setTags(cmd, tags, "resumed", (*delaytask.Scheduler).Resume)
		},
	}
	return a.tagsCommand(cmd)
}

func (a *app) tagsCommand(cmd *cobra.Command) *cobra.Command {
	cmd.Args = wanted(1, -1, "one or more tags")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	a.jsonFlag(cmd)
	return cmd
}

// setTags pauses or resumes tag by tag. One that cannot be changed does not keep the others from it.
func (a *app) setTags(
	cmd *cobra.Command, tags []string, past string, set func(*delaytask.Scheduler, context.Context, string) error,
) error {
	return a.onTasks(cmd, changes, func(ctx context.Context, s *delaytask.Scheduler) error {
		done, failures := make([]string, 0, len(tags)), make([]error, 0)
		for _, tag := range tags {
			if err := set(s, ctx, tag); err != nil {
				failures = append(failures, err)
			} else {
				done = append(done, tag)
			}
			if ctx.Err() != nil {
				break
			}
		}
		if err := a.printTags(done, past); err != nil {
			return err
		}
		return a.eachFailed(failures, counted(len(tags), "tag"), past)
	})
}

func (a *app) printTags(done []string, past string) error {
	switch {
	case a.json:
		return a.printJSON(map[string][]string{past: done})
	case len(done) == 0:
		return nil
	default:
		return a.printf("%s %s; all nodes follow within 2 seconds.\n", title(past), strings.Join(done, ", "))
	}
}
