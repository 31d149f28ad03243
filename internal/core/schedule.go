package core

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
	"github.com/delaytask/delaytask/internal/schedules/plan"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

func (c *Core) SaveSchedule(
	ctx context.Context, name string, when delaytask.Spec, tag string, body any, opts ...delaytask.Option,
) (delaytask.Schedule, error) {
	if err := c.enter(ctx); err != nil {
		return delaytask.Schedule{}, err
	}
	to, read, only, err := c.newSchedule(name, when, tag, body, opts)
	if err != nil {
		return delaytask.Schedule{}, err
	}
	stored, err := c.engine.Schedules().Save(ctx, to, read, only)
	if err != nil {
		return delaytask.Schedule{}, fmt.Errorf("save schedule %s: %w", name, err)
	}
	return scheduleOf(&stored), nil
}

func (c *Core) DeclareSchedule(
	name string, when delaytask.Spec, tag string, body any, opts ...delaytask.Option,
) error {
	to, read, only, err := c.newSchedule(name, when, tag, body, opts)
	switch {
	case err != nil:
		return err
	case only != plan.Only{}:
		return fmt.Errorf("%w: a condition is for SaveSchedule: the newest program says what a declared schedule is",
			delaytask.ErrInvalidOption)
	}
	return c.declared.add(plan.Declared{Schedule: plan.Define(to, read), Spec: read})
}

// declared collects the schedules that the program declares.
type declared struct {
	mu    sync.Mutex
	set   plan.Set
	named bool // the config names the owner
	out   bool // the set was handed to the engine
}

func (d *declared) add(s plan.Declared) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := s.Schedule.Name
	if _, there := d.set.Schedules[name]; there {
		return fmt.Errorf("%w: schedule %s is declared already", delaytask.ErrInvalidOption, name)
	}
	if d.out {
		return fmt.Errorf("%w; SaveSchedule stores a schedule at any time", delaytask.ErrStarted)
	}
	if d.set.Schedules == nil {
		d.set.Schedules = map[string]plan.Declared{}
	}
	d.set.Schedules[name] = s
	return nil
}

// take returns the set. It has no owner for a program that declares nothing, unless its owner was named and its
// revision is known: a web process must not retire the schedules of the worker that was built from the same package.
func (d *declared) take() plan.Set {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out = true
	if len(d.set.Schedules) == 0 && (d.set.Revision.IsZero() || !d.named) {
		return plan.Set{}
	}
	return d.set
}

// newSchedule checks all that can be checked without the database.
func (c *Core) newSchedule(
	name string, when delaytask.Spec, tag string, body any, opts []delaytask.Option,
) (row.Schedule, *spec.Spec, plan.Only, error) {
	save, err := request.NewSchedule(name, when, tag, body, request.Limits{Body: c.bodyLimit}, opts...)
	if err != nil {
		return row.Schedule{}, nil, plan.Only{}, err
	}
	read, err := readSpec(when)
	if err != nil {
		return row.Schedule{}, nil, plan.Only{}, err
	}
	return c.engine.NewSchedule(&save), read, plan.Only{New: save.Settings.IfNew, Version: save.Settings.IfVersion}, nil
}

func (c *Core) GetSchedule(ctx context.Context, name string) (delaytask.Schedule, error) {
	if err := c.enter(ctx); err != nil {
		return delaytask.Schedule{}, err
	}
	stored, err := c.engine.Schedules().Get(ctx, name)
	if err != nil {
		return delaytask.Schedule{}, fmt.Errorf("get schedule %s: %w", name, err)
	}
	return scheduleOf(&stored), nil
}

func (c *Core) ListSchedules(ctx context.Context, f delaytask.ScheduleFilter) (delaytask.SchedulePage, error) {
	if err := c.enter(ctx); err != nil {
		return delaytask.SchedulePage{}, err
	}
	limit, err := limitOf(f.Limit, defaultPage)
	if err != nil {
		return delaytask.SchedulePage{}, err
	}
	found, err := c.engine.Schedules().List(ctx, row.ScheduleFilter{
		Prefix: f.Prefix, Owner: f.Owner, AfterName: f.AfterName, Limit: limit, NoBodies: f.NoBodies,
	})
	if err != nil {
		return delaytask.SchedulePage{}, fmt.Errorf("list schedules: %w", err)
	}
	page := delaytask.SchedulePage{Schedules: make([]delaytask.Schedule, len(found))}
	for i := range found {
		page.Schedules[i] = scheduleOf(&found[i])
	}
	if len(found) == limit {
		page.Next = found[limit-1].Name
	}
	return page, nil
}

func (c *Core) PauseSchedule(ctx context.Context, name string, opts ...delaytask.PauseOption) error {
	pause, err := request.NewPause(opts...)
	if err != nil {
		return err
	}
	return c.changeSchedule(ctx, "pause", name, func(st decide.State) (row.Decision, error) {
		return decide.Pause(st, pause.Reason)
	})
}

func (c *Core) ResumeSchedule(ctx context.Context, name string) error {
	return c.changeSchedule(ctx, "resume", name, decide.Resume)
}

func (c *Core) ResetSchedule(ctx context.Context, name string) error {
	return c.changeSchedule(ctx, "reset", name, decide.Reset)
}

func (c *Core) SkipTick(ctx context.Context, name string) (tick time.Time, err error) {
	err = c.changeSchedule(ctx, "skip a tick of", name, func(st decide.State) (row.Decision, error) {
		d, skipped, err := decide.SkipNext(st, "skipped by an operator")
		tick = skipped.Std()
		return d, err
	})
	return tick, err
}

func (c *Core) TriggerSchedule(ctx context.Context, name string, beside bool) (id int64, err error) {
	err = c.changeSchedule(ctx, "trigger", name, func(st decide.State) (row.Decision, error) {
		d, run, err := decide.Trigger(st, beside)
		id = run.ID
		return d, err
	})
	return id, err
}

func (c *Core) changeSchedule(
	ctx context.Context, op, name string, change func(decide.State) (row.Decision, error),
) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	if _, err := c.engine.Schedules().Change(ctx, name, change); err != nil {
		return fmt.Errorf("%s schedule %s: %w", op, name, err)
	}
	return nil
}

func (c *Core) DeleteSchedule(ctx context.Context, name string) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	if err := c.engine.Schedules().Delete(ctx, name); err != nil {
		return fmt.Errorf("delete schedule %s: %w", name, err)
	}
	return nil
}

func (c *Core) Backfill(ctx context.Context, name string, from, to time.Time, atOnce int) (string, error) {
	if err := c.enter(ctx); err != nil {
		return "", err
	}
	if atOnce < 1 || atOnce > mostBackfilledAtOnce {
		return "", fmt.Errorf("%w: at once: want 1 to %d, got %d", delaytask.ErrInvalidOption, mostBackfilledAtOnce,
			atOnce)
	}
	child, err := c.engine.Schedules().Backfill(ctx, name, row.At(from), row.At(to), atOnce)
	if err != nil {
		return "", fmt.Errorf("backfill schedule %s: %w", name, err)
	}
	return child, nil
}

const mostBackfilledAtOnce = 1000

func (c *Core) ScheduleTicks(
	ctx context.Context, name string, before time.Time, limit int,
) ([]delaytask.ScheduleTick, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	limit, err := limitOf(limit, defaultPage)
	if err != nil {
		return nil, err
	}
	runs, err := c.engine.Schedules().Runs(ctx, name, bound(before), limit)
	if err != nil {
		return nil, fmt.Errorf("read the history of schedule %s: %w", name, err)
	}
	ticks := make([]delaytask.ScheduleTick, len(runs))
	for i := range runs {
		ticks[i] = tickOf(&runs[i])
	}
	return ticks, nil
}

// scheduleOf is the public view of a stored schedule. A spec that this program cannot read is shown as it is stored.
func scheduleOf(s *row.Schedule) delaytask.Schedule {
	view := delaytask.Schedule{
		ID: s.ID, Name: s.Name, Parent: s.Parent, Owner: s.Owner, Revision: s.Revision.Std(), Version: s.Version,
		Tag: s.Tag, Body: s.Body, Headers: row.DecodeHeaders(s.Headers), MaxAttempts: s.MaxAttempts, TTR: s.TTR,
		Priority: s.Priority, Overlap: s.Overlap, MaxOpen: s.MaxOpen,
		Missed: s.Missed, StartWithin: s.StartWithin, Jitter: s.Jitter,
		PauseAfter: s.PauseAfter, MaxRuns: s.MaxRuns, KeepRuns: s.KeepRuns, RetryPastNext: s.RetryPastNext,
		State: s.State.Text(), Reason: s.Reason, Since: s.Since.Std(), By: s.By, NextTick: s.Next.Std(),
		LastTick: s.Last.Std(), RunID: s.RunID, Runs: s.Runs, Skipped: s.MissedTicks, Failures: s.Failures,
		LastSuccess: s.Success.Std(), Created: s.Created.Std(), Updated: s.Updated.Std(),
	}
	if !s.Next.IsZero() {
		view.NextDue = s.Next.Add(decide.Jitter(s.Name, s.Jitter)).Std()
	}
	read, err := spec.ParseText(s.Spec)
	if err != nil {
		view.Spec.Lines = []string{s.Spec}
		return view
	}
	view.Spec = read.Definition()
	return view
}

func tickOf(r *row.ScheduleRun) delaytask.ScheduleTick {
	return delaytask.ScheduleTick{
		Tick: r.Tick.Std(), Until: r.Until.Std(), Ticks: r.Ticks, Cause: r.Cause.Text(),
		Outcome: r.Outcome.Text(), TaskID: r.TaskID, Note: r.Note, Start: r.Start.Std(),
		Finish: r.Finish.Std(),
	}
}
