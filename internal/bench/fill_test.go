package bench

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/row"
)

func TestFilledRowsAreTasks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		r := newRun(t, tiny(db.DSN))
		err := r.onFresh(t.Context(), func(ctx context.Context, d *database) error {
			for _, f := range []filling{
				{status: row.Pending, due: dueTomorrow()},
				{status: row.Executing, due: dueTomorrow(), tag: "other"},
				{status: row.Completed, due: dueNow()},
			} {
				const n = fillRows + 1 // more than one statement
				ids, err := d.fill(ctx, n, f)
				if err != nil {
					return err
				}
				if len(ids) != n || !slices.IsSorted(ids) {
					t.Errorf("%v: %d ids, sorted: %t", f.status, len(ids), slices.IsSorted(ids))
				}
				err = r.withScheduler(ctx, d, delaytask.Config{}, func(ctx context.Context, s *delaytask.Scheduler) error {
					last, err := s.Get(ctx, delaytask.ID(ids[n-1]))
					if err != nil {
						return err
					}
					first, err := s.Get(ctx, delaytask.ID(ids[0]))
					if err != nil {
						return err
					}
					wait := time.Duration(n-1) * time.Microsecond
					if f.status != row.Completed {
						wait = time.Duration(n-1) * time.Millisecond
					}
					finished := !last.Finished.IsZero()
					if string(last.Status) != f.status.String() || finished != (f.status == row.Completed) ||
						last.Tag != cmp.Or(f.tag, benchTag) || last.Due.Sub(first.Due) != wait || len(last.Body) != 100 ||
						last.TTR != 15*time.Second {
						t.Errorf("%v: the last task is %+v", f.status, last)
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
