package scheduler

import (
	"context"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/report"
)

// Overview returns what needs attention now, and how every tag stands. One reading serves all callers of the process
// for 5 s, and nothing is read without a call. A reading takes two connections for 1.9 s at most.
//
// When a reading fails, or takes longer than ctx, it returns the last one, with its age and the class of the error.
// Before the first reading it returns the error or the cause of ctx. A part that fails by itself is missing. It returns
// [delaytask.ErrClosed] after Stop.
func (s *Scheduler) Overview(ctx context.Context) (report.Overview, error) {
	return s.OverviewFor(ctx, report.OverviewFilter{})
}

// OverviewFor is Overview for a viewer that may not see everything. It costs no reading of its own.
func (s *Scheduler) OverviewFor(ctx context.Context, f report.OverviewFilter) (report.Overview, error) {
	return s.core.Overview(ctx, f)
}

// Stats returns counts of every tag that has tasks, is served or is paused, sorted by tag. It counts up to 10,000 tasks
// of a tag and status, and about 30,000 in all, but 100 of each, so its cost does not grow with the table. A count that
// ends there is Capped. Package metrics is for monitoring.
func (s *Scheduler) Stats(ctx context.Context) ([]report.TagStats, error) { return s.core.Stats(ctx) }

// Lateness returns how late the first attempts of the tag's tasks started: of those tasks that completed within the
// window before now by the database's clock, at most of the newest 10,000. A task that was purged after its retention
// is not counted.
//
// It returns [delaytask.ErrInvalidTag], and [delaytask.ErrInvalidOption] for a window that is not positive.
func (s *Scheduler) Lateness(ctx context.Context, tag string, window time.Duration) (report.Lateness, error) {
	return s.core.Lateness(ctx, tag, window)
}

// Series returns results and lateness over time, of all processes together, and what may explain them: nodes that came
// and went, pauses, failovers of the database. It reads few rows, however many tasks there are.
//
// It returns [delaytask.ErrInvalidTag], and [delaytask.ErrInvalidOption] for an invalid time.
func (s *Scheduler) Series(ctx context.Context, f report.SeriesFilter) (report.Series, error) {
	return s.core.Series(ctx, f)
}

// Forecast returns how many pending tasks are overdue, and how many fall due in each step of a span, by tag. Ticks of
// schedules that have no task yet are in it, unless their schedule is paused. A retry counts from its next attempt on.
//
// It takes a connection for 0.2 s at most, however many tasks there are, and each number says what it is worth. Small
// tags are counted. MySQL and MariaDB estimate large ones, and SQLite counts them up to a bound.
//
// It returns [delaytask.ErrInvalidTag], and [delaytask.ErrInvalidOption] for an invalid span.
func (s *Scheduler) Forecast(ctx context.Context, f report.ForecastFilter) (report.Forecast, error) {
	return s.core.Forecast(ctx, f)
}

// Failures groups the newest 1,000 failed tasks of the tag, or of all tags when it is "". To list or retry the tasks of
// a group, also older ones, use [delaytask.Filter] with its id. It returns [delaytask.ErrInvalidTag].
func (s *Scheduler) Failures(ctx context.Context, tag string) (report.Failures, error) {
	return s.core.Failures(ctx, tag)
}

// Explain returns why a task has not run, and why one that has run was late. It returns [delaytask.ErrNotFound] when
// there is no such task.
func (s *Scheduler) Explain(ctx context.Context, ref delaytask.Ref) (report.Explanation, error) {
	e, _, err := s.core.Explain(ctx, ref)
	return e, err
}

// ExplainSchedule returns what became of a tick of a schedule, and why: "why did yesterday's 02:30 not run". With a
// zero tick it returns how the schedule stands: why it does not run, and what it waits for. It returns
// [delaytask.ErrScheduleNotFound], and [delaytask.ErrNotFound] when the task of an open run was deleted meanwhile.
func (s *Scheduler) ExplainSchedule(
	ctx context.Context, name string, tick time.Time,
) (report.ScheduleExplanation, error) {
	e, _, err := s.core.ExplainSchedule(ctx, name, tick)
	return e, err
}

// Audit returns what people have changed through the service, the command and the dashboard, the newest first. Calls of
// this package are not recorded: a program knows who has asked it. A page looks at 10,000 entries at most.
//
// It returns [delaytask.ErrInvalidOption] for a negative Before or Limit.
func (s *Scheduler) Audit(ctx context.Context, f report.AuditFilter) (report.AuditPage, error) {
	return s.core.Audit(ctx, f)
}
