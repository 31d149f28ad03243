package bench

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

func TestFilledRowsAreTasks(t *testing.T) {
	onFresh(t, func(ctx context.Context, _ *Runner, d *Database) error {
		for _, f := range []Filling{
			{Status: row.Pending, From: time.Now().Add(FarDelay), Apart: time.Millisecond},
			{Status: row.Executing, From: time.Now().Add(FarDelay), Tag: "other"},
			{Status: row.Completed, From: time.Now()},
		} {
			const n = 1001 // more than one statement
			ids, err := d.Fill(ctx, n, f)
			if err != nil {
				return err
			}
			if len(ids) != n || !slices.IsSorted(ids) {
				t.Errorf("%v: %d ids, sorted: %t", f.Status, len(ids), slices.IsSorted(ids))
			}
			err = d.OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) error {
				first, err := s.Get(ctx, delaytask.ID(ids[0]))
				last, also := s.Get(ctx, delaytask.ID(ids[n-1]))
				if string(last.Status) != f.Status.String() || last.Finished.IsZero() == (f.Status == row.Completed) ||
					last.Tag != cmp.Or(f.Tag, Tag) || last.Due.Sub(first.Due) != (n-1)*f.apart() ||
					len(last.Body) != 100 || last.TTR != 15*time.Second {
					t.Errorf("%v: the last task is %+v", f.Status, last)
				}
				return errors.Join(err, also)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func TestAStatementThatMissesRowsIsAnError(t *testing.T) {
	onFresh(t, func(ctx context.Context, _ *Runner, d *Database) error {
		_, err := d.run(ctx, 1, untilDone, []statement{{text: "DELETE FROM delay_task_message", rows: 20}})
		if err == nil || !strings.Contains(err.Error(), "a statement for 20 rows changed 0") {
			t.Errorf("it ended with %v", err)
		}
		return nil
	})
}

func TestADrainOfTasksThatNeverCompleteIsAnError(t *testing.T) {
	onFresh(t, func(ctx context.Context, _ *Runner, d *Database) error {
		return d.OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) error {
			servertest.OK(t, s.Stop(ctx))
			if _, err := d.Drain(ctx, s, 10); !errors.Is(err, delaytask.ErrClosed) {
				t.Errorf("it ended with %v", err)
			}
			return nil
		})
	})
}
