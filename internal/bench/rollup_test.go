package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/bridge"
	"github.com/delaytask/delaytask/internal/rollup"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
)

func TestWhatResultsOverTimeCostIsMeasured(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		o := tiny(t, db, "rollup")
		if db.Kind != dbtest.SQLite {
			o.Only = []string{"rollup.drain"} // both take too long
		}
		o.Repeats = 1
		if _, values := measure(t, o); values["rollup.drain.ratio"] <= 0 {
			t.Errorf("figures %v", values)
		}
	})
}

func TestTheWorkForResultsOverTimeIsThatOfABusyProcess(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		servertest.OK(t, newRun(t, tiny(t, db)).onOverTime(t.Context(), func(ctx context.Context, o *overTime) error {
			began := row.SpanMinute.Begin(row.At(time.Now()))
			minutes := func(from row.Time) ([]row.Rollup, error) {
				return bridge.Store(o.scheduler).Rollups(ctx, row.SpanMinute, nil, from, row.MaxTime)
			}
			times, err := o.beside(ctx, func(ctx context.Context) error {
				return await(ctx, rollup.MaxTags+1, func() (int, error) {
					second, err := minutes(began.Add(time.Minute))
					return min(len(second), rollup.MaxTags+1), err
				})
			})
			if err != nil || times <= 0 || times > rollupTimes {
				t.Errorf("the work was done %v times, %v", times, err)
			}
			left, err := minutes(row.MinTime)
			if err != nil || len(left) != rollup.MaxTags+1 {
				t.Errorf("%d rows of minutes are left, want those of the last; %v", len(left), err)
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
			return nil
		}))
	})
}

func TestAMinuteThatIsNotWrittenEndsTheMeasurement(t *testing.T) {
	r := newRun(t, tiny(t, dbtest.New(t, dbtest.SQLite)))
	servertest.OK(t, r.onOverTime(t.Context(), func(ctx context.Context, o *overTime) error {
		pool, err := o.database.connect(ctx, 1)
		if err != nil {
			return err
		}
		defer pool.Close()
		if _, err := pool.ExecContext(ctx, "DROP TABLE delay_task_rollup"); err != nil {
			return err
		}
		_, err = o.beside(ctx, func(ctx context.Context) error { return lateness.Pass(ctx, drainLimit) })
		if refused, ok := errors.AsType[*row.Error](err); !ok || refused.Class != row.ClassOperator {
			t.Errorf("it ended with %v", err)
		}
		return nil
	}))
}

func TestEachTaskIsCountedAsOftenAsMinutesAreWritten(t *testing.T) {
	o := &overTime{counts: rollup.NewCounts()}
	ran := 0
	p := o.counting(processor.Func(func(context.Context, *processor.Task) error {
		ran++
		return nil
	}))
	servertest.OK(t, p.Process(t.Context(), &processor.Task{Tag: "a", Expected: time.Now()}))
	counted := o.counts.Take()
	if ran != 1 || len(counted) != 1 || counted[0].Completed != rollupTimes || counted[0].Late.Count() != rollupTimes {
		t.Errorf("it ran %d times, and %+v was counted", ran, counted)
	}
}
