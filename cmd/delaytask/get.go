package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

func (a *app) getCommand() *cobra.Command {
	var name taskName
	var wait time.Duration
	var bodyOnly bool
	cmd := &cobra.Command{
		Use:   "get ID",
		Short: "Show everything about a task",
		Long: "Show everything about a task: its times, its body, and the errors of its last ten unsuccessful " +
			"attempts.\nSecrets are hidden; --raw shows them.",
		Example: `  delaytask get 911619959676096449
  delaytask get --tag order.close --key order-42
  delaytask get 911619959676096449 --wait 30s
  delaytask get 911619959676096449 --json | jq .failed_attempts
  delaytask get 911619959676096449 --body > body.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := name.ref(args)
			if err != nil {
				return err
			}
			if bodyOnly && a.json {
				return misusedf("--body and --json exclude each other; with --json the body is a text among the fields")
			}
			return a.onTasks(cmd, reads, func(ctx context.Context, s *scheduler.Scheduler) error {
				task, err := a.getEnded(ctx, s, ref, wait)
				if err != nil {
					return err
				}
				if bodyOnly {
					return a.printBody(&task)
				}
				if a.json {
					return a.printJSON(viewOf(&task))
				}
				if err := a.printTask(&task.TaskRow); err != nil {
					return err
				}
				a.noteRedacted(task.Redacted)
				return nil
			})
		},
	}
	name.addFlags(cmd)
	durationVar(cmd, &wait, "wait", "wait this long until the task is completed, failed or cancelled")
	cmd.Flags().BoolVar(&bodyOnly, "body", false, "print the body alone; into a file or a pipe it comes byte for byte")
	return a.withRaw(cmd)
}

// printBody prints nothing but the body. Its bytes are escaped for a terminal alone: another program needs all of them.
func (a *app) printBody(t *operate.Task) error {
	if t.Broken != "" {
		return fmt.Errorf("%w: %s", delaytask.ErrBroken, t.Broken)
	}
	text := string(t.Body)
	if a.shown {
		text = escaped(text) + "\n"
	}
	if err := a.painted(text); err != nil {
		return err
	}
	a.noteRedacted(redact.Holds(t.Body))
	return nil
}

// getEnded returns the task, once it has ended where the command waits.
func (a *app) getEnded(
	ctx context.Context, s *scheduler.Scheduler, ref delaytask.Ref, wait time.Duration,
) (operate.Task, error) {
	task, err := a.view().Task(ctx, ref)
	if err != nil || wait == 0 || task.Broken != "" {
		return task, err
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ended, err := s.Wait(waiting, task.ID)
	if err != nil && ctx.Err() == nil && waiting.Err() != nil {
		return task, fmt.Errorf("task %d has not ended within %v; what it waits for says: delaytask explain %d",
			task.ID, wait, task.ID)
	}
	if err != nil {
		return task, err
	}
	return a.view().Seen(ref, &ended)
}

// printTask leaves out fields that are not set.
func (a *app) printTask(t *delaytask.TaskRow) error {
	fields := a.newTable().mayCut(1)
	field := func(name, value string) {
		if value != "" {
			fields.row(name, value)
		}
	}
	field("id", id(t.ID))
	field("tag", t.Tag)
	field("key", t.Key)
	field("app", t.App())
	field("status", string(t.Status))
	fields.paint(1, styleOf(t.Status))
	field("version", id(t.Version))
	if t.Broken != "" {
		field("broken", t.Broken)
		return fields.flush()
	}
	field("attempt", attemptOf(t))
	if t.CrashCount > 0 {
		field("crashes", strconv.Itoa(t.CrashCount))
	}
	if of := t.Schedule; of != nil {
		field("schedule", fmt.Sprintf("%s, tick of %s (%s)", of.Name, momentIn(of.Tick, of.Tick.Location()), of.Cause))
	}
	field("priority", strconv.Itoa(t.Priority))
	field("delay", span(t.Delay))
	field("ttr", span(t.TTR))
	if t.MaxLate > 0 {
		field("max lateness", span(t.MaxLate)+", then "+wire.LatePolicy(t.LatePolicy))
	}
	field("expected", moment(t.Expected))
	if !t.Started.IsZero() {
		late := lateness(t.Lateness()) + " late"
		if t.Late != "" {
			late += ": " + string(t.Late)
		}
		field("started", fmt.Sprintf("%s (%s)", moment(t.Started), late))
	}
	field("finished", moment(t.Finished))
	switch t.Status {
	case delaytask.Pending:
		field("next attempt", moment(t.Due))
	case delaytask.Executing:
		field("lease ends", moment(t.Due))
	}
	field("created", moment(t.Created))
	field("updated", moment(t.Updated))
	field("executor", t.Executor)
	for name, value := range sorted(wire.Headers(t.Headers)) {
		field("header "+name, value)
	}
	if err := fields.flush(); err != nil {
		return err
	}
	return a.printTexts(t)
}

// printTexts prints texts of several lines below the table.
func (a *app) printTexts(t *delaytask.TaskRow) error {
	if err := a.section("body", string(t.Body)); err != nil {
		return err
	}
	if err := a.section("last error", t.ErrorStack); err != nil {
		return err
	}
	if len(t.Errors) == 0 {
		return nil
	}
	if err := a.printf("\nunsuccessful attempts\n"); err != nil {
		return err
	}
	attempts := a.newTable("  N", "STARTED", "FINISHED", "EXECUTOR", "ERROR").mayCut(3, 4)
	for _, e := range t.Errors {
		attempts.row("  "+strconv.Itoa(e.N), moment(e.Started), moment(e.Finished), e.Executor,
			e.Error)
	}
	return attempts.flush()
}

func (a *app) section(title, text string) error {
	if text == "" {
		return nil
	}
	return a.printf("\n%s\n%s\n", title, indented(text))
}

// indented keeps the lines of a text.
func indented(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = "  " + escaped(line)
	}
	return strings.Join(lines, "\n")
}

func attemptOf(t *delaytask.TaskRow) string {
	if t.MaxAttempts == 0 {
		return fmt.Sprintf("%d, no limit", t.Attempt)
	}
	return fmt.Sprintf("%d of %d", t.Attempt, t.MaxAttempts)
}

// taskView is a task in JSON as in the HTTP API, except that the body is always the stored text.
type taskView struct {
	wire.Task
	Body *string `json:"body,omitempty"` // absent where it was not read
}

func viewOf(t *operate.Task) taskView {
	v := taskView{Task: wire.FromTask(&t.TaskRow)}
	v.Task.Body, v.Redacted = wire.Body{}, t.Redacted
	if t.Body != nil {
		body := string(t.Body)
		v.Body = &body
	}
	return v
}

func (a *app) explainCommand() *cobra.Command {
	var name taskName
	cmd := &cobra.Command{
		Use:   "explain ID",
		Short: "Say why a task has not run",
		Long: `Say why a task has not run: it is not due, its tag is paused, nobody serves its tag, it waits for its
next attempt, its row is locked, or an executor holds it; or else what has become of it.`,
		Example: `  delaytask explain 911619959676096449
  delaytask explain --tag order.close --key order-42 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := name.ref(args)
			if err != nil {
				return err
			}
			return a.onTasks(cmd, reads, func(ctx context.Context, s *scheduler.Scheduler) error {
				e, err := a.view().Explain(ctx, ref)
				if err != nil {
					return err
				}
				e.Task.Body = nil
				if a.json {
					return a.printJSON(struct {
						Reason report.Reason `json:"reason"`
						Text   string        `json:"text"`
						Task   taskView      `json:"task"`
					}{e.Reason, e.Text, viewOf(&e.Task)})
				}
				tag := ""
				if e.Task.Tag != "" { // unknown when the row cannot be read
					tag = " (" + e.Task.Tag + ")"
				}
				return a.printf("%s\n", oneLine(fmt.Sprintf("Task %d%s is %s. %s", e.Task.ID, tag, e.Task.Status,
					localTimes(e.Text))))
			})
		},
	}
	name.addFlags(cmd)
	return a.withRaw(cmd)
}
