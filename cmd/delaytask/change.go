package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate"
	runs "github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/scheduler"
)

// bulkFlags are the flags of a command that can change all tasks that match.
type bulkFlags struct {
	filterFlags
	dryRun, yes bool
}

func (f *bulkFlags) addFlags(cmd *cobra.Command, happened string) {
	f.filterFlags.addFlags(cmd, happened)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only count the tasks that match")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask; needed where nobody can be asked, as in a script")
}

// bulk is one such change.
type bulk struct {
	verb   string           // cancel
	past   string           // cancelled
	status delaytask.Status // that it changes
}

// changeAll counts, asks, and changes. Counting first is what makes the question and the progress bar meaningful.
func (a *app) changeAll(cmd *cobra.Command, f *bulkFlags, b bulk) error {
	if f.Status != "" && f.Status != b.status {
		return misusedf("--status %s: only %s tasks can be %s", f.Status, b.status, b.past)
	}
	filterAt, err := f.filter(cmd)
	if err != nil {
		return err
	}
	if !f.yes && !f.dryRun && !a.interactive {
		return misusedf("there is nobody to ask whether to %s all tasks that match: add --yes", b.verb)
	}
	return a.onTasks(cmd, changes, func(ctx context.Context, s *scheduler.Scheduler) error {
		change, err := a.operator.Bulk(by(), b.verb, filterAt(s.Now()))
		if err != nil {
			return err
		}
		matched, err := change.Count(ctx, delaytask.Bulk{})
		if err != nil {
			return err
		}
		if f.dryRun || matched.Tasks == 0 && !matched.Capped {
			if matched.Tasks == 0 && !a.json {
				a.noteAhead(ctx, change.Filter, s.Now())
			}
			return a.printBulk(b, matched, 0, f.dryRun)
		}
		if !f.yes {
			question := fmt.Sprintf("%s %s?", title(b.verb), matching(matched, string(b.status)+" task"))
			if err := a.confirm(ctx, question); err != nil {
				return err
			}
		}
		bar := a.newBar(matched.Tasks, matched.Capped, time.Now)
		about := runs.About{Tasks: matched.Tasks, Capped: matched.Capped, AsOf: matched.AsOf}
		changed, err := change.Run(ctx, about, bar.set)
		bar.end()
		if err != nil && ctx.Err() != nil {
			err = errInterrupted
		}
		if err != nil {
			return fmt.Errorf("%s %s, then: %w", b.past, counted(changed, "task"), err)
		}
		return a.printBulk(b, matched, changed, false)
	})
}

// noteAhead tells of a task that matches and was left out, because it seems to be saved later.
func (a *app) noteAhead(ctx context.Context, filter delaytask.Filter, now time.Time) {
	filter.Limit = 1
	page, err := a.view().Bare().List(ctx, filter)
	if err != nil || len(page.Tasks) == 0 || !page.Tasks[0].Created.After(now) {
		return
	}
	a.note("Task %d matches, but was left out: its create_time, %s, lies ahead of the database's clock, as after an\n"+
		"INSERT in local time. Name such tasks by their ids, or write create_time in UTC.\n",
		page.Tasks[0].ID, moment(page.Tasks[0].Created))
}

// matching formats how many tasks a dry run has counted.
func matching(matched delaytask.BulkResult, what string) string {
	if matched.Capped {
		return "at least " + counted(matched.Tasks, what)
	}
	return counted(matched.Tasks, what)
}

func (a *app) printBulk(b bulk, matched delaytask.BulkResult, changed int, dryRun bool) error {
	switch {
	case a.json:
		return a.printJSON(struct {
			Matched int  `json:"matched"`
			Capped  bool `json:"capped,omitempty"` // there are more
			Changed int  `json:"changed"`
			DryRun  bool `json:"dry_run"`
		}{matched.Tasks, matched.Capped, changed, dryRun})
	case matched.Tasks == 0 && !matched.Capped:
		return a.printf("No %s task matches.\n", b.status)
	case dryRun:
		return a.printf("%s would be %s.\n", title(matching(matched, string(b.status)+" task")), b.past)
	case changed < matched.Tasks:
		return a.printf("%s %s of %s. The others changed meanwhile, or delaytask %s ID says why not.\n", title(b.past),
			grouped(changed), matching(matched, "task"), b.verb)
	default:
		return a.printf("%s %s.\n", title(b.past), counted(changed, "task"))
	}
}

// outcome is the result of a change for one task.
type outcome struct {
	ID    int64            `json:"id,string,omitempty"`
	Tag   string           `json:"tag,omitempty"` // with Key where the task was named by them
	Key   string           `json:"key,omitempty"`
	App   string           `json:"app,omitempty"`
	Met   delaytask.Status `json:"met,omitempty"` // absent when it was not changed
	Error *failure         `json:"error,omitempty"`
}

// changeEach changes the named tasks one by one. It goes on after one that cannot be changed.
func (a *app) changeEach(
	cmd *cobra.Command, args []string, name *taskName, past string,
	change func(context.Context, delaytask.Ref) (operate.Met, error),
) error {
	refs, outcomes, err := named(args, name)
	if err != nil {
		return err
	}
	return a.onTasks(cmd, changes, func(ctx context.Context, _ *scheduler.Scheduler) error {
		var failures []error
		for i, ref := range refs {
			met, err := change(ctx, ref)
			outcomes[i].Met = met.Status
			if err != nil {
				outcomes[i].Met, outcomes[i].Error = "", failureOf(err)
				failures = append(failures, err)
			} else if !a.json {
				if err := a.printf("%s\n", changed(ref, past, met.Status)); err != nil {
					return err
				}
			}
			if ctx.Err() != nil {
				break
			}
		}
		if a.json {
			if err := a.printJSON(list[outcome]{Items: outcomes}); err != nil {
				return err
			}
		}
		return a.eachFailed(failures, counted(len(refs), "task"), past)
	})
}

// eachFailed reports one failure as it is, and several one by one. In JSON the items contain them.
func (a *app) eachFailed(failures []error, all, past string) error {
	if len(failures) <= 1 {
		return errors.Join(failures...)
	}
	if !a.json {
		for _, err := range failures {
			a.note("delaytask: %s\n", sentence(err))
		}
	}
	return fmt.Errorf("%d of %s were not %s, %w", len(failures), all, past, errPartly)
}

func named(args []string, name *taskName) ([]delaytask.Ref, []outcome, error) {
	if len(args) == 0 || name.byKey() {
		ref, err := name.ref(args)
		return []delaytask.Ref{ref}, []outcome{{Tag: name.tag, Key: name.key, App: name.app}}, err
	}
	numbers, err := parseIDs(args)
	refs, outcomes := make([]delaytask.Ref, len(numbers)), make([]outcome, len(numbers))
	for i, n := range numbers {
		refs[i], outcomes[i] = delaytask.ID(n), outcome{ID: n}
	}
	return refs, outcomes, err
}

func changed(ref delaytask.Ref, past string, was delaytask.Status) string {
	if was == delaytask.Executing {
		return fmt.Sprintf("%s %v while it was executing: it may have done its work.", title(past), ref)
	}
	return fmt.Sprintf("%s %v.", title(past), ref)
}

func (a *app) cancelCommand() *cobra.Command {
	var f bulkFlags
	var onlyPending bool
	cmd := &cobra.Command{
		Use:   "cancel [ID...]",
		Short: "Cancel tasks that are not finished",
		Long: `Cancel tasks by id, one task by --tag and --key, or all pending tasks that match --tag, --older and
other filters.

A pending task will not start. A task that is executing may have done its work already: its context
ends within 3 seconds and its result is refused. The bulk form counts first and asks; where there
is no terminal it wants --yes or --dry-run.`,
		Example: `  delaytask cancel 911619959676096449
  delaytask cancel --tag order.close --key order-42
  delaytask cancel --tag mail.send --older 24h --dry-run
  delaytask cancel --tag mail.send --status pending --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var options []delaytask.ChangeOption
			if onlyPending {
				options = append(options, delaytask.OnlyPending())
			}
			cancel := func(ctx context.Context, ref delaytask.Ref) (operate.Met, error) {
				return a.operator.Cancel(ctx, by(), ref, options...)
			}
			named := delaytask.Filter{Tag: f.Tag, Key: f.Key, App: f.App}
			single := f.Key != "" && f.filterFlags == filterFlags{Filter: named}
			switch {
			case len(args) > 0 && !f.given(), single:
				return a.changeEach(cmd, args, &taskName{f.Tag, f.Key, f.App}, "cancelled", cancel)
			case len(args) == 0 && f.given():
				return a.changeAll(cmd, &f, bulk{
					verb: "cancel", past: "cancelled", status: delaytask.Pending,
				})
			default:
				return misusedf("want the ids of tasks, or --tag and --key, or a filter: --tag, --key, --status, " +
					"--older, --newer, --late-by, --error")
			}
		},
	}
	f.addFlags(cmd, "were due")
	values(cmd, "status", string(delaytask.Pending))
	cmd.Flags().BoolVar(&onlyPending, "only-pending", false, "leave a task alone that is executing")
	return a.withJSON(cmd)
}

func (a *app) retryCommand() *cobra.Command {
	var f bulkFlags
	cmd := &cobra.Command{
		Use:   "retry [ID...]",
		Short: "Run failed tasks again",
		Long: `Run failed tasks again, now: with all their attempts, and with the errors of the old ones kept. They are
named by their ids, or are all that match --tag, --error, --group and other filters. The bulk form counts first and
asks; where there is no terminal it wants --yes or --dry-run.

A task whose key another unfinished task carries by now stays failed.`,
		Example: `  delaytask retry 911619959676096449
  delaytask retry --tag mail.send --dry-run
  delaytask retry --status failed --older 1h --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && !f.given():
				return a.changeEach(cmd, args, &taskName{}, "retried",
					func(ctx context.Context, ref delaytask.Ref) (operate.Met, error) {
						return a.operator.Retry(ctx, by(), ref)
					})
			case len(args) == 0 && f.given():
				return a.changeAll(cmd, &f, bulk{
					verb: "retry", past: "retried", status: delaytask.Failed,
				})
			default:
				return misusedf("want the ids of failed tasks, or a filter: --tag, --key, --status, --older, " +
					"--newer, --late-by, --error, --group")
			}
		},
	}
	f.addFlags(cmd, "failed")
	f.addGroup(cmd)
	values(cmd, "status", string(delaytask.Failed))
	return a.withJSON(cmd)
}

func (a *app) rescheduleCommand() *cobra.Command {
	var name taskName
	var due dueFlags
	var version int64
	cmd := &cobra.Command{
		Use:   "reschedule ID",
		Short: "Move a pending task to another time",
		Long: `Move a pending task to a delay from now, or to a time. The task's promise moves with it: lateness is
counted from the new time. A task that is executing or finished is left alone.`,
		Example: `  delaytask reschedule 911619959676096449 --delay 2h
  delaytask reschedule --tag order.close --key order-42 --at 2027-01-31T08:30:00Z`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := name.ref(args)
			if err != nil {
				return err
			}
			if err := due.check(cmd); err != nil {
				return err
			}
			if !cmd.Flags().Changed("delay") && !cmd.Flags().Changed("at") {
				return misusedf("say to when: --delay or --at")
			}
			var options []delaytask.ChangeOption
			if !due.at.IsZero() {
				options = append(options, delaytask.To(due.at))
			}
			if cmd.Flags().Changed("if-version") {
				options = append(options, delaytask.IfVersion(version))
			}
			return a.onTasks(cmd, changes, func(ctx context.Context, _ *scheduler.Scheduler) error {
				met, err := a.operator.Reschedule(ctx, by(), ref, due.delay, options...)
				if err != nil {
					return err
				}
				task, err := a.view().Task(ctx, delaytask.ID(met.ID))
				if err != nil {
					return err
				}
				return a.say(viewOf(&task), "Task %d is now due at %s.\n", task.ID, moment(task.Expected))
			})
		},
	}
	name.addFlags(cmd)
	due.addFlags(cmd)
	cmd.Flags().Int64Var(&version, "if-version", 0, "only if the task still has this version, which get shows")
	return a.withJSON(cmd)
}
