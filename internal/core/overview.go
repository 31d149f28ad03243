package core

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/eyes/overview"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/report"
)

// Overview is [scheduler.Scheduler.Overview].
func (c *Core) Overview(ctx context.Context, f report.OverviewFilter) (report.Overview, error) {
	if err := c.enter(ctx); err != nil {
		return report.Overview{}, err
	}
	found, err := c.overview.Snapshot(ctx)
	if err != nil {
		return report.Overview{}, err
	}
	return found.Overview(f), nil
}

// newOverview returns the reader of a process. On SQLite there are no locks on rows.
func newOverview(e *engine.Engine, built engine.Config) *overview.Reader {
	process := overview.Process{
		Clock: func() overview.Clock {
			width, anchored := e.ClockWidth()
			return overview.Clock{Width: width, Held: !anchored}
		},
		Apart: e.TwoDatabases, LockedTags: e.LockedTags,
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
	if st, ok := store.Under(built.Store).(*sqlstore.Store); ok && sqlstore.Inspect(st).HasRowLocks() {
		process.Replica = func(ctx context.Context) (is overview.Replica, err error) {
			ask := sqlstore.Inspect(st)
			if source, sure, _ := ask.ReplicaOf(ctx, cluster.IsAlive); sure { // an account may not be allowed to ask
				is.Source = source
			}
			is.ReadOnly, err = ask.ReadOnly(ctx)
			return is, err
		}
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
