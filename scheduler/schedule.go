package scheduler

import (
	"context"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
)

// SaveSchedule stores a schedule: a task of the tag with the body runs at each tick of the spec, whichever processes
// live by then. A schedule of the name gets this definition: what is planted and has not begun is planted anew, and
// nothing that was due before runs at once. Saving the definition that is stored already writes nothing.
//
// The options are of the runs, such as [delaytask.WithTTR] and [delaytask.WithPriority], and of the
// schedule, such as [delaytask.WithOverlap] and [delaytask.WithMissed].
//
// It returns [delaytask.ErrInvalidScheduleName], [delaytask.ErrInvalidSpec] with a [delaytask.SpecError], also when no
// tick is to come, what [Scheduler.SaveDelayTask] returns for the tag, the body and the options,
// [delaytask.ErrScheduleOwned] when a program declares a schedule of the name, [delaytask.ErrScheduleState] when a
// backfill has it, [delaytask.ErrScheduleExists] with [delaytask.WithIfNew], and [delaytask.ErrScheduleChanged] with
// [delaytask.WithIfVersion].
func (s *Scheduler) SaveSchedule(
	ctx context.Context, name string, when delaytask.Spec, tag string, body any, opts ...delaytask.Option,
) (delaytask.Schedule, error) {
	return s.core.SaveSchedule(ctx, name, when, tag, body, opts...)
}

// DeclareSchedule declares a schedule in code, beside Register and before [Scheduler.Start]: the table is to hold it as
// long as live programs declare it. It has the arguments of [Scheduler.SaveSchedule].
//
// The schedules of a program are a set, which belongs to [Config].ScheduleOwner. Among the live processes of an owner
// the ones of the newest [Config].Revision say what is stored, so that a deployment and a rollback both end with the
// schedules of the programs that run. A schedule that the set lacks is retired when all live processes of the owner
// have agreed for a minute. It runs no more, and comes back with its state when it is declared again within 30 days.
// Programs without a revision add schedules, change them while all live processes of the owner declare the same, and
// retire none.
//
// It returns what SaveSchedule returns without a database, [delaytask.ErrStarted] after Start, and
// [delaytask.ErrInvalidOption] when the name is declared already.
func (s *Scheduler) DeclareSchedule(
	name string, when delaytask.Spec, tag string, body any, opts ...delaytask.Option,
) error {
	return s.core.DeclareSchedule(name, when, tag, body, opts...)
}

// GetSchedule returns a schedule. It returns [delaytask.ErrScheduleNotFound] when no schedule has the name.
func (s *Scheduler) GetSchedule(ctx context.Context, name string) (delaytask.Schedule, error) {
	return s.core.GetSchedule(ctx, name)
}

// ListSchedules returns the schedules that match, page by page and by name. It returns [delaytask.ErrInvalidOption]
// when the limit is out of range.
func (s *Scheduler) ListSchedules(ctx context.Context, f delaytask.ScheduleFilter) (delaytask.SchedulePage, error) {
	return s.core.ListSchedules(ctx, f)
}

// PauseSchedule stops a schedule until [Scheduler.ResumeSchedule]. A run that is planted and has not begun is
// withdrawn, and one that executes goes on. Ticks of the pause do not count as missed. It returns
// [delaytask.ErrScheduleNotFound], and [delaytask.ErrScheduleState] for a schedule that has ended.
func (s *Scheduler) PauseSchedule(ctx context.Context, name string, opts ...delaytask.PauseOption) error {
	return s.core.PauseSchedule(ctx, name, opts...)
}

// ResumeSchedule ends a pause. The schedule goes on with the first tick that is to come, a backfill where it was. It
// returns [delaytask.ErrScheduleNotFound], and [delaytask.ErrScheduleState] for a schedule that is not paused.
func (s *Scheduler) ResumeSchedule(ctx context.Context, name string) error {
	return s.core.ResumeSchedule(ctx, name)
}

// ResetSchedule sets the schedule to its first tick that is to come, whatever was decided. It is for a database whose
// clock was ahead: decided ticks do not run again by themselves. It returns [delaytask.ErrScheduleNotFound],
// and [delaytask.ErrScheduleState] for a backfill.
func (s *Scheduler) ResetSchedule(ctx context.Context, name string) error {
	return s.core.ResetSchedule(ctx, name)
}

// SkipTick decides that the next tick of a schedule does not run, and returns it. It returns
// [delaytask.ErrScheduleNotFound], and [delaytask.ErrScheduleState] when no tick is to come.
func (s *Scheduler) SkipTick(ctx context.Context, name string) (tick time.Time, err error) {
	return s.core.SkipTick(ctx, name)
}

// TriggerSchedule runs the schedule once, now and in any state, and returns the id of the run. Its ticks stay as they
// are. It returns [delaytask.ErrScheduleNotFound], and [delaytask.ErrScheduleBusy] while a run executes, unless the new
// run may be open beside it.
func (s *Scheduler) TriggerSchedule(ctx context.Context, name string, beside bool) (id int64, err error) {
	return s.core.TriggerSchedule(ctx, name, beside)
}

// DeleteSchedule deletes a schedule, its history, and its backfills. A run that executes goes on. It returns
// [delaytask.ErrScheduleNotFound], and [delaytask.ErrScheduleOwned] for a schedule that a program declares.
func (s *Scheduler) DeleteSchedule(ctx context.Context, name string) error {
	return s.core.DeleteSchedule(ctx, name)
}

// Backfill runs the past ticks of a schedule from one time to another, both included: each once, the oldest first, and
// as many at once as given. The runs have the lowest priority. They belong to a schedule of their own, whose name
// Backfill returns: it can be paused, resumed and deleted, and goes on after a crash.
//
// It returns [delaytask.ErrScheduleNotFound], and [delaytask.ErrInvalidRange] when there is no tick in the range, when
// one is to come, or when there are more than 100,000.
func (s *Scheduler) Backfill(ctx context.Context, name string, from, to time.Time, atOnce int) (string, error) {
	return s.core.Backfill(ctx, name, from, to, atOnce)
}

// ScheduleTicks returns what became of the ticks of a schedule before a moment, the newest first. A zero moment is the
// end of time. It returns [delaytask.ErrScheduleNotFound], and [delaytask.ErrInvalidOption] when the limit is out of
// range.
func (s *Scheduler) ScheduleTicks(
	ctx context.Context, name string, before time.Time, limit int,
) ([]delaytask.ScheduleTick, error) {
	return s.core.ScheduleTicks(ctx, name, before, limit)
}

// Preview returns the next n ticks after a moment. Between them are those that the DST rule drops, which are not
// counted. There are fewer than n when the spec ends. The warnings say what a line may mean unexpectedly. It needs no
// database and takes milliseconds.
//
// It returns [delaytask.ErrInvalidSpec] with a [delaytask.SpecError], and [delaytask.ErrInvalidOption] when n is not in
// 1 to 1,000.
func Preview(s delaytask.Spec, after time.Time, n int) (ticks []delaytask.Tick, warnings []string, err error) {
	return core.Preview(s, after, n)
}
