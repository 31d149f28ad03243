package bench

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestFilledRowsAreTasks(t *testing.T) {
	onFresh(t, func(ctx context.Context, r *run, d *database) error {
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
			done, apart := f.status == row.Completed, time.Millisecond
			if done {
				apart = time.Microsecond
			}
			err = r.withScheduler(ctx, d, delaytask.Config{}, func(ctx context.Context, s *delaytask.Scheduler) error {
				first, err := s.Get(ctx, delaytask.ID(ids[0]))
				last, also := s.Get(ctx, delaytask.ID(ids[n-1]))
				if string(last.Status) != f.status.String() || last.Finished.IsZero() == done ||
					last.Tag != cmp.Or(f.tag, benchTag) || last.Due.Sub(first.Due) != (n-1)*apart ||
					len(last.Body) != 100 || last.TTR != 15*time.Second {
					t.Errorf("%v: the last task is %+v", f.status, last)
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

func TestAnUpdateThatMissesRowsIsAnError(t *testing.T) {
	onRaw(t, func(ctx context.Context, d *database, raw *raw) {
		ids, err := d.fill(ctx, 20, filling{status: row.Executing, due: dueNow()})
		servertest.OK(t, err)
		for _, form := range known(ctx, t, d, claimForms) { // whose rows are executing already
			_, err := raw.update(ctx, ids, form)
			if err == nil || !strings.Contains(err.Error(), "a statement for 20 rows changed 0") {
				t.Errorf("%s: %v", form.name, err)
			}
		}
	})
}

// TestEveryFormWritesTheSame checks that the forms differ in their speed alone.
func TestEveryFormWritesTheSame(t *testing.T) {
	onRaw(t, func(ctx context.Context, d *database, raw *raw) {
		settles := known(ctx, t, d, settleForms)
		for _, claim := range known(ctx, t, d, claimForms) {
			for _, settle := range settles {
				ids, err := d.fill(ctx, 3, filling{status: row.Pending, due: dueNow()})
				servertest.OK(t, err)
				for _, form := range []updateForm{claim, settle} {
					if _, err := raw.update(ctx, ids, form); err != nil {
						t.Error(err)
					}
				}
				var rows int
				err = raw.conns[0].QueryRowContext(ctx, "SELECT COUNT(DISTINCT execution_time) FROM delay_task_message"+
					" WHERE id IN ("+list(ids)+
					") AND status = 1 AND version = 2 AND attempt = 1 AND due_time = finish_time").Scan(&rows)
				if err != nil || rows != len(ids) {
					t.Errorf("%s, %s: %d rows are as they should be, %v", claim.name, settle.name, rows, err)
				}
			}
		}
	})
}

// onRaw gives f a database and a raw connection to it.
func onRaw(t *testing.T, f func(context.Context, *database, *raw)) {
	t.Helper()
	onFresh(t, func(ctx context.Context, _ *run, d *database) error {
		return d.withRaw(ctx, 1, func(ctx context.Context, raw *raw) error {
			f(ctx, d, raw)
			return nil
		})
	})
}

// onFresh gives f a database on each server.
func onFresh(t *testing.T, f func(context.Context, *run, *database) error) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		r := newRun(t, tiny(t, db))
		if err := r.onFresh(t.Context(), func(ctx context.Context, d *database) error {
			return f(ctx, r, d)
		}); err != nil {
			t.Error(err)
		}
	})
}

// known lists the forms that the server knows.
func known(ctx context.Context, t *testing.T, d *database, forms []updateForm) (known []updateForm) {
	t.Helper()
	err := d.withRaw(ctx, 1, func(ctx context.Context, raw *raw) error {
		for _, form := range forms {
			if form.kind != d.kind {
				continue
			}
			_, err := raw.conns[0].ExecContext(ctx, form.text([]int64{1, 2}))
			if refused, ok := errors.AsType[*mysql.MySQLError](err); err == nil {
				known = append(known, form)
			} else if !ok || refused.Number != 1064 {
				t.Errorf("%s: %v", form.name, err)
			}
		}
		return nil
	})
	if err != nil || len(known) == 0 {
		t.Fatalf("it knows %d forms, %v", len(known), err)
	}
	return known
}
