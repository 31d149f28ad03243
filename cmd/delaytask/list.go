package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/scheduler"
)

// filterFlags select tasks, for list and for the bulk forms.
type filterFlags struct {
	delaytask.Filter
	older, newer relative
}

// addFlags adds the flags. happened says what is meant by the time of a task.
func (f *filterFlags) addFlags(cmd *cobra.Command, happened string) {
	flags := cmd.Flags()
	flags.StringVar(&f.Tag, "tag", "", "only tasks of this tag")
	flags.StringVar((*string)(&f.Status), "status", "", "only tasks with this status")
	flags.StringVar(&f.Key, "key", "", "only tasks with this key")
	flags.StringVar(&f.App, "app", "", "with --key: the application that the key belongs to")
	const examples = " 1h (ago), 2027-01-31 or 08:30 (today)"
	agoVar(cmd, &f.older, "older", "only tasks that "+happened+" before"+examples)
	agoVar(cmd, &f.newer, "newer", "only tasks that "+happened+" since"+examples)
	durationVar(cmd, &f.LateBy, "late-by", "only tasks that began more than so late, or have not begun")
	flags.StringVar(&f.Error, "error", "", "only tasks whose last error contains it")
}

// given reports whether any of the flags narrows the tasks.
func (f *filterFlags) given() bool { return *f != filterFlags{} }

// addGroup adds the flag for commands that may name failed tasks.
func (f *filterFlags) addGroup(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Group, "group", "", "only failed tasks of this group, see failures")
}

// filter returns a filter of tasks by the database's clock. It refuses a flag that would not filter: a variable of a
// script may be empty, and all tasks would match.
func (f *filterFlags) filter(cmd *cobra.Command) (func(now time.Time) delaytask.Filter, error) {
	for _, name := range []string{"tag", "status", "key", "app", "error", "group"} {
		if cmd.Flags().Changed(name) && cmd.Flag(name).Value.String() == "" {
			return nil, misusedf("--%s is empty: give it a value, or leave it out", name)
		}
	}
	if _, err := parseStatus(string(f.Status)); err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("late-by") && f.LateBy == 0 {
		return nil, misusedf("--late-by 0: want more than 0")
	}
	return func(now time.Time) delaytask.Filter {
		filter := f.Filter
		filter.DueFrom, filter.DueBefore = f.newer.from(now), f.older.from(now)
		return filter
	}, nil
}

func (a *app) listCommand() *cobra.Command {
	var f filterFlags
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tasks",
		Long: `List tasks. Unfinished tasks come by due time, finished ones and tasks of a tag the latest first, and all
tasks the newest first; --order says otherwise. LATE is how much later than expected the first attempt started. Of
failed tasks, by --status failed or --group, it shows when they FINISHED and the first line of the last ERROR. A page
ends after it has looked at 10,000 tasks, or for 0.1 s, and says where to go on.`,
		Example: `  delaytask list --status failed
  delaytask list --tag order.close --status pending --older 1m
  delaytask list --status failed --newer 1h --error 'connection refused'
  delaytask list --status failed --newer '2027-01-31 08:30' --older 2027-02-01
  delaytask list --status completed --late-by 1s --limit 5000 --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filterAt, err := f.filter(cmd)
			if err != nil {
				return err
			}
			if limit < 1 {
				return misusedf("--limit %d: want 1 or more", limit)
			}
			return a.onTasks(cmd, reads, func(ctx context.Context, s *scheduler.Scheduler) error {
				filter := filterAt(s.Now())
				filter.Bodies = filter.Bodies && a.json
				page, err := a.pages(ctx, filter, limit)
				if err != nil {
					return err
				}
				return a.printPage(page, filter.Status == delaytask.Failed || filter.Group != "")
			})
		},
	}
	f.addFlags(cmd, "were due, or have finished,")
	f.addGroup(cmd)
	values(cmd, "status", statuses...)
	flags := cmd.Flags()
	flags.IntVar(&limit, "limit", 100, "at most this many; it says when there are more")
	flags.StringVar(&f.After, "after", "", "the next page: what this list has said at its end")
	flags.StringVar((*string)(&f.Order), "order", "", "due; -due: the latest first; -id: the newest saves first")
	values(cmd, "order", string(delaytask.OrderDue), string(delaytask.OrderLatest), string(delaytask.OrderNewest))
	flags.BoolVar(&f.Bodies, "bodies", false, "with --json: the bodies too")
	return a.withRaw(cmd)
}

// pages reads up to limit tasks, in as many pages as that takes. It ends with a page that has stopped.
func (a *app) pages(ctx context.Context, filter delaytask.Filter, limit int) (all operate.Page, err error) {
	view := a.view()
	if !a.json { // a table shows few texts
		view = view.Bare()
	}
	for {
		filter.Limit = limit - len(all.Tasks)
		page, err := view.List(ctx, filter)
		if err != nil {
			return all, err
		}
		all.Tasks, all.Next, all.Stopped = append(all.Tasks, page.Tasks...), page.Next, page.Stopped
		a.busy.counts(len(all.Tasks), limit, "tasks")
		if page.Next == "" || page.Stopped || len(all.Tasks) >= limit {
			return all, nil
		}
		filter.After = page.Next
	}
}

// printPage prints a part of a list. Of failed tasks it tells why they failed.
func (a *app) printPage(page operate.Page, failed bool) error {
	if a.json {
		return a.printJSON(list[taskView]{Items: viewsOf(page.Tasks, viewOf), Next: page.Next, Stopped: page.Stopped})
	}
	if len(page.Tasks) == 0 && !page.Stopped {
		return a.printf("No task matches.\n")
	}
	t := a.newTable("ID", "TAG", "KEY", "STATUS", "ATTEMPT", "EXPECTED", "LATE").mayCut(1, 2)
	if failed {
		t = a.newTable("ID", "TAG", "KEY", "STATUS", "ATTEMPT", "FINISHED", "ERROR").mayCut(1, 2, 6)
	}
	masked := false
	for i := range page.Tasks {
		task := &page.Tasks[i].TaskRow
		at, last := task.Expected, ""
		switch {
		case task.Broken != "":
			why := a.view().Text(task.Tag, task.Broken)
			t.row(id(task.ID), "", "", string(task.Status), "", "", "cannot be read: "+why)
			continue
		case failed:
			at, last = task.Finished, a.firstLine(task)
			masked = masked || redact.Holds([]byte(last))
		case !task.Started.IsZero():
			last = lateness(task.Lateness())
		}
		t.row(id(task.ID), task.Tag, task.Key, string(task.Status), attemptOf(task), moment(at), last)
		t.paint(3, styleOf(task.Status))
	}
	if err := t.flush(); err != nil {
		return err
	}
	switch {
	case page.Stopped:
		a.note("It has looked at 10,000 tasks, or for 0.1 s; to go on, add --after %s.\n", page.Next)
	case page.Next != "":
		a.note("There is more: add --after %s.\n", page.Next)
	}
	a.noteRedacted(masked)
	return nil
}

const mostOfLine = 500 // bytes of an error in a list

// firstLine is the beginning of the last error of a task.
func (a *app) firstLine(t *delaytask.TaskRow) string {
	line, _, _ := strings.Cut(strings.TrimSpace(t.LastError()), "\n")
	return a.view().Beginning(t.Tag, line, mostOfLine)
}
