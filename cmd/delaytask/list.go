package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
)

// filterFlags select tasks, for list and for the bulk forms.
type filterFlags struct{ tag, status, key, app, older string }

func (f *filterFlags) addFlags(cmd *cobra.Command, older string) {
	flags := cmd.Flags()
	flags.StringVar(&f.tag, "tag", "", "only tasks of this tag")
	flags.StringVar(&f.status, "status", "", "only tasks with this status")
	flags.StringVar(&f.key, "key", "", "only tasks with this key")
	flags.StringVar(&f.app, "app", "", "with --key: the application that the key belongs to")
	flags.StringVar(&f.older, "older", "", older)
	noFiles(cmd, "tag", "key", "app", "older")
}

// filter returns a filter of tasks by the database's clock.
func (f *filterFlags) filter(cmd *cobra.Command) (func(now time.Time) delaytask.Filter, error) {
	status, err := parseStatus(f.status)
	if err != nil {
		return nil, err
	}
	var age time.Duration
	byAge := cmd.Flags().Changed("older")
	if byAge {
		if age, err = parseDuration("older", f.older); err != nil {
			return nil, err
		}
	}
	return func(now time.Time) delaytask.Filter {
		filter := delaytask.Filter{Tag: f.tag, Status: status, Key: f.key, App: f.app}
		if byAge {
			filter.DueBefore = now.Add(-age)
		}
		return filter
	}, nil
}

func (a *app) listCommand() *cobra.Command {
	var f filterFlags
	var limit int
	var after string
	var bodies bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tasks",
		Long: `List tasks in the order of their ids, which is the order of their saves. LATE is how much later than expected the
first attempt started.`,
		Example: `  delaytask list --status failed
  delaytask list --tag order.close --status pending --older 1m
  delaytask list --limit 5000 --after 911619959676096449 --json`,
		Args: wanted(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filterAt, err := f.filter(cmd)
			if err != nil {
				return err
			}
			if limit < 1 {
				return misusedf("--limit %d: want 1 or more", limit)
			}
			var from int64
			if after != "" {
				if from, err = parseID(after); err != nil {
					return err
				}
			}
			return a.onTasks(cmd, reads, func(ctx context.Context, s *delaytask.Scheduler) error {
				filter := filterAt(s.Now())
				filter.After, filter.Bodies = from, bodies && a.json
				page, err := a.pages(ctx, s, filter, limit)
				if err != nil {
					return err
				}
				return a.printPage(page)
			})
		},
	}
	f.addFlags(cmd, "only tasks that were due, or have finished, longer ago")
	values(cmd, "status", statuses...)
	flags := cmd.Flags()
	flags.IntVar(&limit, "limit", 100, "at most this many; it says when there are more")
	flags.StringVar(&after, "after", "", "only tasks with a larger id: the next page")
	flags.BoolVar(&bodies, "bodies", false, "with --json: the bodies too")
	noFiles(cmd, "limit", "after")
	return a.withJSON(cmd)
}

// pages reads up to limit tasks, in as many pages as that takes.
func (a *app) pages(
	ctx context.Context, s *delaytask.Scheduler, filter delaytask.Filter, limit int,
) (all delaytask.Page, err error) {
	for {
		filter.Limit = limit - len(all.Tasks)
		page, err := s.List(ctx, filter)
		if err != nil {
			return all, err
		}
		all.Tasks, all.Next = append(all.Tasks, page.Tasks...), page.Next
		a.busy.counts(len(all.Tasks), limit, "tasks")
		if page.Next == 0 || len(all.Tasks) >= limit {
			return all, nil
		}
		filter.After = page.Next
	}
}

func (a *app) printPage(page delaytask.Page) error {
	if a.json {
		views := list[taskView]{Items: viewsOf(page.Tasks)}
		if page.Next != 0 {
			views.Next = id(page.Next) // for --after
		}
		return a.printJSON(views)
	}
	if len(page.Tasks) == 0 {
		return a.printf("No task matches.\n")
	}
	t := a.newTable("ID", "TAG", "KEY", "STATUS", "ATTEMPT", "EXPECTED", "LATE").mayCut(1, 2)
	for i := range page.Tasks {
		task := &page.Tasks[i]
		late := ""
		if !task.Started.IsZero() {
			late = lateness(task.Lateness())
		}
		if task.Broken != "" {
			t.row(id(task.ID), "", "", string(task.Status), "", "", "cannot be read: "+task.Broken)
			continue
		}
		t.row(id(task.ID), task.Tag, task.Key, string(task.Status), attemptOf(task), moment(task.Expected), late)
		t.paint(3, styleOf(task.Status))
	}
	if err := t.flush(); err != nil {
		return err
	}
	if page.Next != 0 {
		a.note("There is more: add --after %d.\n", page.Next)
	}
	return nil
}
