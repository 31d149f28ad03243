package bench

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func TestWhatWasNotMeasuredIsAbsent(t *testing.T) {
	report, err := Run(t.Context(), tiny(dbtest.New(t, dbtest.SQLite).DSN, "save_tx", "save_bulk"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	_, ratio := root["save_bulk"]["ratio"]
	_, rate := root["save_bulk"]["per_s"].(float64)
	_, spread := root["spread"]["save_tx"]
	if len(root) != 4 || ratio || !rate || !spread || root["meta"]["server"] != "SQLite" {
		t.Errorf("%s", text)
	}
}

// TestNothingIsLeftBehind ends measurements in every way there is.
func TestNothingIsLeftBehind(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, f := range []func(context.Context, *database) error{
			func(context.Context, *database) error { return errOnFire },
			func(ctx context.Context, d *database) error {
				if len(scratches(t, db)) != 1 {
					t.Errorf("there is no scratch database but %v", scratches(t, db))
				}
				cancel()
				return d.withRaw(ctx, 2, func(context.Context, *raw) error { return nil })
			},
		} {
			o := tiny(db.DSN)
			o.scratch = scratchOwner(db)
			r := newRun(t, o)
			if err := r.onFresh(ctx, f); !errors.Is(err, errOnFire) && !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v", err)
			}
			if err := r.place.leave(); err != nil {
				t.Error(err)
			}
			if left := scratches(t, db); len(left) > 0 {
				t.Errorf("it leaves %v", left)
			}
		}
	})
}

func TestAnInterruptedRunSaysSo(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		ctx, cancel := context.WithCancel(t.Context())
		o := tiny(db.DSN, "raw.insert_single", "drain")
		o.scratch = scratchOwner(db)
		o.Progress = func(p Progress) {
			if p.Name == "drain" {
				cancel()
			}
		}
		report, err := Run(ctx, o)
		if !errors.Is(err, context.Canceled) || report == nil || len(report.Lines) != 1 {
			t.Errorf("it ended with %v and %+v", err, report)
		}
		if left := scratches(t, db); len(left) > 0 {
			t.Errorf("it leaves %v", left)
		}
	})
}

func TestWhatCannotBeDroppedIsNamed(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) {
		o := tiny(db.DSN)
		o.scratch = scratchOwner(db)
		err := newRun(t, o).onFresh(t.Context(), func(ctx context.Context, _ *database) error {
			_, err := connect(t, db).ExecContext(ctx, "DROP DATABASE "+o.scratch+"_1")
			return err
		})
		if !errors.Is(err, ErrLeftBehind) || !strings.Contains(err.Error(), o.scratch+"_1") {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestTheDatabaseThatIsNamedNeedNotBeThere(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) {
		dsn := db.DSN[:strings.LastIndex(db.DSN, "/")+1] + "delaytask_nowhere"
		if _, err := Run(t.Context(), tiny(dsn, "save")); err != nil {
			t.Error(err)
		}
	})
}

func TestAUserWhoMayNotCreateIsTold(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) {
		pool := connect(t, db)
		name := "bench_" + scratchOwner(db)[len("delaytask_test_"):][:20] // users' names are short
		for _, statement := range []string{
			"CREATE USER " + name + " IDENTIFIED BY 'Few-rights-1'", "GRANT ALL ON " + scratchOwner(db) + ".* TO " + name,
		} {
			if _, err := pool.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		defer func() {
			if _, err := pool.ExecContext(context.WithoutCancel(t.Context()), "DROP USER "+name); err != nil {
				t.Error(err)
			}
		}()
		_, err := Run(t.Context(), tiny(name+":Few-rights-1@"+db.DSN[strings.LastIndex(db.DSN, "@")+1:], "save"))
		if err == nil || !strings.Contains(err.Error(), "may not create") || strings.Contains(err.Error(), "Few-rights") {
			t.Errorf("it ended with %v", err)
		}
	})
}

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
				if string(last.Status) != f.status.String() || last.Finished.IsZero() == done || last.Tag != cmp.Or(f.tag, benchTag) ||
					last.Due.Sub(first.Due) != (n-1)*apart || len(last.Body) != 100 || last.TTR != 15*time.Second {
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
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range known(ctx, t, d, claimForms) { // whose rows are executing already
			_, err := raw.update(ctx, ids, form)
			if err == nil || !strings.Contains(err.Error(), "a statement for 20 rows changed 0") {
				t.Errorf("%s: %v", form.name, err)
			}
		}
	})
}

// TestEveryFormWritesTheSame makes sure that the forms differ in nothing but their speed.
func TestEveryFormWritesTheSame(t *testing.T) {
	onRaw(t, func(ctx context.Context, d *database, raw *raw) {
		settles := known(ctx, t, d, settleForms)
		for _, claim := range known(ctx, t, d, claimForms) {
			for _, settle := range settles {
				ids, err := d.fill(ctx, 3, filling{status: row.Pending, due: dueNow()})
				if err != nil {
					t.Fatal(err)
				}
				for _, form := range []updateForm{claim, settle} {
					if _, err := raw.update(ctx, ids, form); err != nil {
						t.Error(err)
					}
				}
				var rows int
				err = raw.conns[0].QueryRowContext(ctx, "SELECT COUNT(DISTINCT execution_time) FROM delay_task_message"+
					" WHERE id IN ("+list(ids)+") AND status = 1 AND version = 2 AND attempt = 1 AND due_time = finish_time").Scan(&rows)
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
		r := newRun(t, tiny(db.DSN))
		if err := r.onFresh(t.Context(), func(ctx context.Context, d *database) error { return f(ctx, r, d) }); err != nil {
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

// scratches lists what a run has made.
func scratches(t *testing.T, db dbtest.Database) (names []string) {
	t.Helper()
	if db.Kind == dbtest.SQLite {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(strings.TrimPrefix(db.DSN, "sqlite:")), "delaytask-bench-*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range found {
			files, err := os.ReadDir(folder)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if strings.HasSuffix(f.Name(), ".db") {
					names = append(names, f.Name())
				}
			}
		}
		return names
	}
	rows, err := connect(t, db).QueryContext(context.WithoutCancel(t.Context()), `SHOW DATABASES LIKE '`+scratchOwner(db)+`\_%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}

func connect(t *testing.T, db dbtest.Database) *sql.DB {
	t.Helper()
	pool, err := sql.Open("mysql", db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// scratchOwner is the name of the test's own database. Others of a run begin with it, so that tests beside this one are not met.
func scratchOwner(db dbtest.Database) string {
	name := db.DSN[strings.LastIndex(db.DSN, "/")+1:]
	name, _, _ = strings.Cut(name, "?")
	return name
}
