package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/scheduler"
)

func (a *app) pauseCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "pause TAG...",
		Short: "Stop all nodes from starting tasks of a tag",
		Long: `Stop all nodes from starting tasks of the tags, within 2 seconds. What runs goes on; tasks that fall due
meanwhile wait. Tasks can be saved as before. A tag that no process, task or schedule has is paused, too, and a
warning says so.`,
		Example: `  delaytask pause mail.send
  delaytask pause mail.send sms.send --reason 'the provider is down'`,
		RunE: func(cmd *cobra.Command, tags []string) error {
			return a.setTags(cmd, tags, true, func(ctx context.Context, tag string) (operate.TagMet, error) {
				return a.operator.PauseTag(ctx, by(), tag, delaytask.Reason(reason))
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "kept, and shown to people")
	return a.tagsCommand(cmd)
}

func (a *app) resumeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume TAG...",
		Short: "End the pause of a tag",
		Long: "End the pause of the tags on all nodes, within 2 seconds. Tasks that fell due meanwhile start " +
			"at once.",
		Example: "  delaytask resume mail.send",
		RunE: func(cmd *cobra.Command, tags []string) error {
			return a.setTags(cmd, tags, false, func(ctx context.Context, tag string) (operate.TagMet, error) {
				return a.operator.ResumeTag(ctx, by(), tag)
			})
		},
	}
	return a.tagsCommand(cmd)
}

func (a *app) tagsCommand(cmd *cobra.Command) *cobra.Command {
	cmd.Args = wanted(1, -1, "one or more tags")
	return a.withJSON(cmd)
}

// tagView is the outcome of a pause or resume for one tag.
type tagView struct {
	Tag     string   `json:"tag"`
	Paused  bool     `json:"paused"`
	Changed bool     `json:"changed"` // false: it was so before
	Warning string   `json:"warning,omitempty"`
	Error   *failure `json:"error,omitempty"`
}

// setTags pauses or resumes tag by tag. It goes on after one that cannot be changed.
func (a *app) setTags(
	cmd *cobra.Command, tags []string, paused bool, set func(context.Context, string) (operate.TagMet, error),
) error {
	past := "resumed"
	if paused {
		past = "paused"
	}
	return a.onTasks(cmd, changes, func(ctx context.Context, _ *scheduler.Scheduler) error {
		views, failures := make([]tagView, 0, len(tags)), make([]error, 0)
		for _, tag := range tags {
			met, err := set(ctx, tag)
			v := tagView{Tag: tag, Paused: paused, Changed: met.Paused != paused}
			if met.Unseen {
				v.Warning = operate.Unseen
			}
			if err != nil {
				failures = append(failures, err)
				v = tagView{Tag: tag, Paused: met.Paused, Error: failureOf(err)}
			}
			views = append(views, v)
			if ctx.Err() != nil {
				break
			}
		}
		if err := a.printTags(views, past); err != nil {
			return err
		}
		return a.eachFailed(failures, counted(len(tags), "tag"), past)
	})
}

func (a *app) printTags(views []tagView, past string) error {
	if a.json {
		return a.printJSON(list[tagView]{Items: views})
	}
	var done []string
	for _, v := range views {
		if v.Changed {
			done = append(done, v.Tag)
		}
		if v.Changed || v.Error != nil {
			continue
		}
		was := "was not paused"
		if v.Paused {
			was = "was paused already"
		}
		if err := a.printf("%s %s; nothing has changed.\n", v.Tag, was); err != nil {
			return err
		}
	}
	if len(done) == 0 {
		return nil
	}
	err := a.printf("%s %s; all nodes follow within 2 seconds.\n", title(past), strings.Join(done, ", "))
	for _, v := range views {
		if v.Warning != "" && err == nil {
			_, err = fmt.Fprintf(a.stderr, "Warning: %s: %s\n", v.Tag, v.Warning)
		}
	}
	return err
}
