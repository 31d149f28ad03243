package scheduler

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
	"github.com/delaytask/delaytask/internal/schedules/plan"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

// SaveSchedule stores a schedule: a task of the tag with the body runs at each tick of the spec, whichever processes
// live by then. A schedule of the name gets this definition: what is planted and has not begun is planted anew, and
// nothing that was due before runs at once. Saving the definition that is stored already writes nothing.
//
// The options are those of the runs, such as [delaytask.WithTTR] and [delaytask.WithPriority], and those of the
// schedule, such as [delaytask.WithOverlap] and [delaytask.WithMissed].
//
// It returns [delaytask.ErrInvalidScheduleName], [delaytask.ErrInvalidSpec] with a [delaytask.SpecError], also when no
// tick is to come, what [Scheduler.SaveDelayTask] returns for the tag, the body and the options, and
// [delaytask.ErrScheduleOwned] when a program declares a schedule of the name.
func (s *Scheduler) SaveSchedule(
	ctx context.Context, name string, when delaytask.Spec, tag string, body any, opts ...delaytask.Option,
) (delaytask.Schedule, error) {
	if err := s.enter(ctx); err != nil {
		return delaytask.Schedule{}, err
	}
	to, read, err := s.newSchedule(name, when, tag, body, opts)
	if err != nil {
		return delaytask.Schedule{}, err
	}
	stored, err := s.engine.Schedules().Save(ctx, to, read)
	if err != nil {
		return delaytask.Schedule{}, fmt.Errorf("save schedule %s: %w", name, err)
	}
	return scheduleOf(&stored), nil
}

// DeclareSchedule declares a schedule in code, beside Register and before [Scheduler.Start]: the table is to hold it as
// long as live programs declare it. It has the arguments of [Scheduler.SaveSchedule].
//
// The schedules of a program are a set, which belongs to [Config].ScheduleOwner. Among the live processes of an owner
// those of the newest [Config].Revision say what is stored, so that a deployment and a rollback both end with the
// schedules of the programs that run. A schedule that the set lacks is retired when all live processes of the owner
// have agreed for a minute. It runs no more, and comes back with its state when it is declared again within 30 days.
//
// It returns what SaveSchedule returns without a database, [delaytask.ErrStarted] after Start, and
// [delaytask.ErrInvalidOption] when the name is declared already. Start returns [delaytask.ErrNoRevision] when the
// revision of the program is not known.
func (s *Scheduler) DeclareSchedule(
	name string, when delaytask.Spec, tag string, body any, opts ...delaytask.Option,
) error {
	to, read, err := s.newSchedule(name, when, tag, body, opts)
	if err != nil {
		return err
	}
	return s.declared.add(plan.Declared{Schedule: plan.Define(to, read), Spec: read})
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
		return delaytask.ErrStarted
	}
	if d.set.Schedules == nil {
		d.set.Schedules = map[string]plan.Declared{}
	}
	d.set.Schedules[name] = s
	return nil
}

// check returns ErrNoRevision where schedules are declared by a program of unknown revision.
func (d *declared) check() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.set.Schedules) > 0 && d.set.Revision.IsZero() {
		return delaytask.ErrNoRevision
	}
	return nil
}

// take returns the set, which is that of no owner for a program of unknown revision. So it is for a program that
// declares none, unless its owner was named: a web process must not retire the schedules of the worker that was built
// from the same package.
func (d *declared) take() plan.Set {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out = true
	if d.set.Revision.IsZero() || len(d.set.Schedules) == 0 && !d.named {
		return plan.Set{}
	}
	return d.set
}

// build returns what is known of the program: the path of its main package, and the commit time of its build.
func build() (owner string, revision time.Time) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", time.Time{}
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.time" {
			revision, _ = time.Parse(time.RFC3339, setting.Value)
		}
	}
	return ownerOf(info.Path), revision
}

// ownerOf makes the name of an owner of an import path, which may hold other characters.
func ownerOf(path string) string {
	owner := strings.Map(func(r rune) rune {
		if !delaytask.ValidTag(string(r)) {
			return '_'
		}
		return r
	}, path)
	return owner[max(0, len(owner)-maxOwner):]
}

const maxOwner = 128

// newSchedule checks all that can be checked without the database.
func (s *Scheduler) newSchedule(
	name string, when delaytask.Spec, tag string, body any, opts []delaytask.Option,
) (row.Schedule, *spec.Spec, error) {
	save, err := request.NewSchedule(name, when, tag, body, request.Limits{Body: s.bodyLimit}, opts...)
	if err != nil {
		return row.Schedule{}, nil, err
	}
	read, err := readSpec(when)
	if err != nil {
		return row.Schedule{}, nil, err
	}
	return s.engine.NewSchedule(&save), read, nil
}

// GetSchedule returns a schedule. It returns [delaytask.ErrScheduleNotFound] when there is none of the name.
func (s *Scheduler) GetSchedule(ctx context.Context, name string) (delaytask.Schedule, error) {
	if err := s.enter(ctx); err != nil {
		return delaytask.Schedule{}, err
	}
	stored, err := s.engine.Schedules().Get(ctx, name)
	if err != nil {
		return delaytask.Schedule{}, fmt.Errorf("get schedule %s: %w", name, err)
	}
	return scheduleOf(&stored), nil
}

// ListSchedules returns the schedules that match, page by page and by name. It returns [delaytask.ErrInvalidOption]
// when the limit is out of range.
func (s *Scheduler) ListSchedules(ctx context.Context, f delaytask.ScheduleFilter) (delaytask.SchedulePage, error) {
	if err := s.enter(ctx); err != nil {
		return delaytask.SchedulePage{}, err
	}
	limit, err := limitOf(f.Limit, defaultPage)
	if err != nil {
		return delaytask.SchedulePage{}, err
	}
	found, err := s.engine.Schedules().List(ctx, row.ScheduleFilter{
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

// PauseSchedule stops a schedule until [Scheduler.ResumeSchedule]. A run that is planted and has not begun is
// withdrawn, and one that executes goes on. The reason is kept. Ticks of the pause do not count as missed. It returns
// [delaytask.ErrScheduleNotFound], and [delaytask.ErrScheduleState] for a schedule that has ended.
func (s *Scheduler) PauseSchedule(ctx context.Context, name, reason string) error {
	return s.changeSchedule(ctx, "pause", name, func(st decide.State) (row.Decision, error) {
		return decide.Pause(st, reason)
	})
}

// ResumeSchedule ends a pause. The schedule goes on with the first tick that is to come. It returns
// [delaytask.ErrScheduleNotFound], and [delaytask.ErrScheduleState] for a schedule that is not paused.
func (s *Scheduler) ResumeSchedule(ctx context.Context, name string) error {
	return s.changeSchedule(ctx, "resume", name, decide.Resume)
}

// ResetSchedule sets the schedule to its first tick that is to come, whatever was decided. It is for a database whose
// clock was ahead: decided ticks do not run again by themselves. It returns [delaytask.ErrScheduleNotFound].
func (s *Scheduler) ResetSchedule(ctx context.Context, name string) error {
	return s.changeSchedule(ctx, "reset", name, decide.Reset)
}

// SkipTick decides that the next tick of a schedule does not run, and returns it. It returns
// [delaytask.ErrScheduleNotFound], and [delaytask.ErrScheduleState] when no tick is to come.
func (s *Scheduler) SkipTick(ctx context.Context, name string) (tick time.Time, err error) {
	err = s.changeSchedule(ctx, "skip a tick of", name, func(st decide.State) (row.Decision, error) {
		d, skipped, err := decide.SkipNext(st, "skipped by an operator")
		tick = skipped.Std()
		return d, err
	})
	return tick, err
}

// TriggerSchedule runs the schedule once, now and in any state, and returns the id of the run. Its ticks stay as they
// are. It returns [delaytask.ErrScheduleNotFound], and [delaytask.ErrScheduleBusy] while a run executes, unless the new
// run may be open beside it.
func (s *Scheduler) TriggerSchedule(ctx context.Context, name string, beside bool) (id int64, err error) {
	err = s.changeSchedule(ctx, "trigger", name, func(st decide.State) (row.Decision, error) {
		d, run, err := decide.Trigger(st, beside)
		id = run.ID
		return d, err
	})
	return id, err
}

func (s *Scheduler) changeSchedule(
	ctx context.Context, op, name string, change func(decide.State) (row.Decision, error),
) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if _, err := s.engine.Schedules().Change(ctx, name, change); err != nil {
		return fmt.Errorf("%s schedule %s: %w", op, name, err)
	}
	return nil
}

// DeleteSchedule deletes a schedule, its history, and its backfills. A run that executes goes on. It returns
// [delaytask.ErrScheduleNotFound], and [delaytask.ErrScheduleOwned] for a schedule that a program declares.
func (s *Scheduler) DeleteSchedule(ctx context.Context, name string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if err := s.engine.Schedules().Delete(ctx, name); err != nil {
		return fmt.Errorf("delete schedule %s: %w", name, err)
	}
	return nil
}

// Backfill runs the past ticks of a schedule from one time to another, both included: each once, the oldest first, and
// as many at once as given. The runs have the lowest priority. They are those of a schedule of their own, whose name
// Backfill returns: it can be paused, resumed and deleted, and goes on after a crash.
//
// It returns [delaytask.ErrScheduleNotFound], and [delaytask.ErrInvalidRange] when there is no tick in the range, when
// one is to come, or when there are more than 100,000.
func (s *Scheduler) Backfill(ctx context.Context, name string, from, to time.Time, atOnce int) (string, error) {
	if err := s.enter(ctx); err != nil {
		return "", err
	}
	if atOnce < 1 || atOnce > mostBackfilledAtOnce {
		return "", fmt.Errorf("%w: at once: want 1 to %d, got %d", delaytask.ErrInvalidOption, mostBackfilledAtOnce,
			atOnce)
	}
	child, err := s.engine.Schedules().Backfill(ctx, name, row.At(from), row.At(to), atOnce)
	if err != nil {
		return "", fmt.Errorf("backfill schedule %s: %w", name, err)
	}
	return child, nil
}

const mostBackfilledAtOnce = 1000

// ScheduleTicks returns what became of the ticks of a schedule before a moment, the newest first. A zero moment is the
// end of time. It returns [delaytask.ErrScheduleNotFound], and [delaytask.ErrInvalidOption] when the limit is out of
// range.
func (s *Scheduler) ScheduleTicks(
	ctx context.Context, name string, before time.Time, limit int,
) ([]delaytask.ScheduleTick, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	limit, err := limitOf(limit, defaultPage)
	if err != nil {
		return nil, err
	}
	runs, err := s.engine.Schedules().Runs(ctx, name, bound(before), limit)
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
		Priority: s.Priority, Overlap: delaytask.Overlap(s.Overlap.String()), MaxOpen: s.MaxOpen,
		Missed: delaytask.Missed(s.Missed.String()), StartWithin: s.StartWithin, Jitter: s.Jitter,
		PauseAfter: s.PauseAfter, MaxRuns: s.MaxRuns, KeepRuns: s.KeepRuns, RetryPastNext: s.RetryPastNext,
		State: delaytask.ScheduleState(s.State.String()), Reason: s.Reason, NextTick: s.Next.Std(),
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
	d := read.Definition()
	view.Spec = delaytask.Spec{Lines: d.Lines, Zone: d.Zone, DST: delaytask.DST(d.DST.String()), Start: d.Start,
		End: d.End}
	return view
}

func tickOf(r *row.ScheduleRun) delaytask.ScheduleTick {
	return delaytask.ScheduleTick{
		Tick: r.Tick.Std(), Until: r.Until.Std(), Ticks: r.Ticks, Cause: delaytask.Cause(r.Cause.String()),
		Outcome: delaytask.Outcome(r.Outcome.String()), TaskID: r.TaskID, Note: r.Note, Start: r.Start.Std(),
		Finish: r.Finish.Std(),
	}
}
