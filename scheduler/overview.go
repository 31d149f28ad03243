package scheduler

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/eyes/overview"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/report"
)

// Overview returns what needs attention now, and how every tag stands. One reading serves all callers of the process
// for 5 s, and nothing is read without a call. A reading takes two connections for 1.9 s at most.
//
// When a reading fails, or takes longer than ctx, it returns the last one, with its age and the class of the error.
// When there is none, it returns the error or the cause of ctx. A part that fails by itself is missing. It returns
// [delaytask.ErrClosed] after Stop.
func (s *Scheduler) Overview(ctx context.Context) (report.Overview, error) {
	return s.OverviewFor(ctx, report.OverviewFilter{})
}

// OverviewFor is Overview for a viewer that may not see everything. It costs no reading of its own.
func (s *Scheduler) OverviewFor(ctx context.Context, f report.OverviewFilter) (report.Overview, error) {
	found, err := s.readOverview(ctx)
	if err != nil {
		return report.Overview{}, err
	}
	return found.Overview(f), nil
}

func (s *Scheduler) readOverview(ctx context.Context) (overview.Reading, error) {
	if err := s.enter(ctx); err != nil {
		return overview.Reading{}, err
	}
	return s.overview.Snapshot(ctx)
}

// newOverview returns the reader of a process. On SQLite there are no locks on rows.
func newOverview(e *engine.Engine, built engine.Config) *overview.Reader {
	process := overview.Process{
		Clock: func() overview.Clock {
			width, anchored := e.ClockWidth()
			return overview.Clock{Width: width, Held: !anchored}
		},
		Hanging: func() (all []overview.Hanging) {
			for _, h := range e.Hanging() {
				all = append(all, overview.Hanging(h))
			}
			return all
		},
		Retention: map[row.Status]time.Duration{
			row.Completed: built.Retention.Completed, row.Cancelled: built.Retention.Cancelled,
			row.Failed: built.Retention.Failed,
		},
	}
	if st, ok := built.Store.(*sqlstore.Store); ok && sqlstore.Inspect(st).HasRowLocks() {
		process.Locks = func(ctx context.Context) (all []overview.Lock, err error) {
			found, err := sqlstore.Inspect(st).Lockers(ctx, overview.LockedFor)
			for _, l := range found {
				all = append(all, overview.Lock(l))
			}
			return all, err
		}
	}
	return overview.New(overview.Config{Store: built.Store, Process: process})
}
