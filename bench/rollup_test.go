package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/eyes/rollup"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

func TestWhatResultsOverTimeCostIsMeasured(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		o := tiny(db, "rollup")
		if db.Kind != dbtest.SQLite {
			o.Only = []string{"rollup.drain"} // both take too long
		}
		if _, values := measure(t, o); values["rollup.drain.ratio"] <= 0 {
			t.Errorf("figures %v", values)
		}
	})
}

// onOverTime gives f a database and a scheduler on it.
func onOverTime(
	t *testing.T, db dbtest.Database, f func(context.Context, *bench.Database, *scheduler.Scheduler, *sqlstore.Store),
) {
	t.Helper()
	o := tiny(db)
	d, err := (&bench.Runner{Options: o.Options}).Create(t.Context())
	servertest.OK(t, err)
	defer func() { servertest.OK(t, d.Drop()) }()
	pool, err := d.Connect(t.Context(), 1)
	servertest.OK(t, err)
	defer pool.Close()
	st := sqlstore.New(pool, d.Kind)
	defer st.Close(context.WithoutCancel(t.Context()))
	servertest.OK(t, d.OnScheduler(t.Context(), scheduler.Config{}, func(s *scheduler.Scheduler) error {
		f(t.Context(), d, s, st)
		return nil
	}))
}

func TestTheWorkForResultsOverTimeIsThatOfABusyProcess(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		onOverTime(t, db, func(ctx context.Context, d *bench.Database, s *scheduler.Scheduler, st *sqlstore.Store) {
			began := row.SpanMinute.Begin(row.At(time.Now()))
			minutes := func(from row.Time) []row.Rollup {
				found, err := st.Rollups(ctx, row.SpanMinute, nil, from, row.MaxTime)
				servertest.OK(t, err)
				return found
			}
			times, err := newOverTime().beside(ctx, d, s, func(ctx context.Context) error {
				for len(minutes(began.Add(time.Minute))) < rollup.MaxTags+1 { // the second one
					if err := lateness.Pass(ctx, time.Millisecond); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil || times <= 0 || times > rollupTimes {
				t.Errorf("the work was done %v times, %v", times, err)
			}
			left := minutes(row.MinTime)
			if len(left) != rollup.MaxTags+1 {
				t.Errorf("%d rows of minutes are left, want the rows of the last", len(left))
			}
			for _, r := range left {
				of := int64(rollupClasses)
				if r.Tag == row.EveryTag {
					of *= rollup.MaxTags
				}
				if r.Completed != of || len(r.Late) != rollupClasses {
					t.Errorf("row %+v", r)
				}
			}
		})
	})
}

func TestAMinuteThatIsNotWrittenEndsTheMeasurement(t *testing.T) {
	onOverTime(t, dbtest.New(t, dbtest.SQLite),
		func(ctx context.Context, d *bench.Database, s *scheduler.Scheduler, _ *sqlstore.Store) {
			pool, err := d.Connect(ctx, 1)
			servertest.OK(t, err)
			defer pool.Close()
			_, err = pool.ExecContext(ctx, "DROP TABLE delay_task_rollup")
			servertest.OK(t, err)
			_, err = newOverTime().beside(ctx, d, s, func(ctx context.Context) error {
				return lateness.Pass(ctx, time.Minute)
			})
			if refused, ok := errors.AsType[*row.Error](err); !ok || refused.Class != row.ClassOperator {
				t.Errorf("it ended with %v", err)
			}
		})
}

func TestEachTaskIsCountedAsOftenAsMinutesAreWritten(t *testing.T) {
	o := &overTime{counts: rollup.NewCounts()}
	ran := 0
	p := o.counting(processor.Func(func(context.Context, *delaytask.Task) error {
		ran++
		return nil
	}))
	servertest.OK(t, p.Process(t.Context(), &delaytask.Task{Tag: "a", Expected: time.Now()}))
	counted := o.counts.Take()
	if ran != 1 || len(counted) != 1 || counted[0].Completed != rollupTimes || counted[0].Late.Count() != rollupTimes {
		t.Errorf("it ran %d times, and %+v was counted", ran, counted)
	}
}
