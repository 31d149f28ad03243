package bench

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestWhatWasNotMeasuredIsAbsent(t *testing.T) {
	report, err := Run(t.Context(), Measurements, tiny(dbtest.New(t, dbtest.SQLite), "save_bulk"))
	servertest.OK(t, err)
	text, err := json.Marshal(report)
	servertest.OK(t, err)
	var root map[string]map[string]any
	servertest.OK(t, json.Unmarshal(text, &root))
	_, ratio := root["save_bulk"]["ratio"]
	_, rate := root["save_bulk"]["per_s"].(float64)
	_, spread := root["spread"]["save_bulk"]
	if len(root) != 3 || ratio || !rate || !spread || root["meta"]["server"] != "SQLite" {
		t.Errorf("%s", text)
	}
}

// TestNothingIsLeftBehind ends measurements in every way there is.
func TestNothingIsLeftBehind(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		before := scratches(t, db)
		for _, f := range []func(context.Context, *Database) error{
			func(context.Context, *Database) error { return errOnFire },
			func(ctx context.Context, d *Database) error {
				if len(scratches(t, db)) != len(before)+1 {
					t.Errorf("there is no database more, but %v", scratches(t, db))
				}
				cancel()
				_, err := d.Fill(ctx, 1, Filling{})
				return err
			},
		} {
			err := runner(tiny(db)).OnFresh(ctx, f)
			if !errors.Is(err, errOnFire) && !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v", err)
			}
			if left := scratches(t, db); len(left) > len(before) {
				t.Errorf("it leaves %v", left)
			}
		}
	})
}

func TestAnInterruptedRunSaysSo(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		ctx, cancel := context.WithCancel(t.Context())
		o := tiny(db, "raw.insert_single", "drain")
		o.Progress = func(_, _ int, next string) {
			if next == "drain" {
				cancel()
			}
		}
		report, err := Run(ctx, Measurements, o)
		if !errors.Is(err, context.Canceled) || report == nil || len(report.Lines) != 2 {
			t.Errorf("it ended with %v and %+v", err, report)
		}
	})
}

func TestWhatCannotBeDroppedIsNamed(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) {
		var name string
		err := runner(tiny(db)).OnFresh(t.Context(), func(ctx context.Context, d *Database) error {
			name = d.Name
			_, err := connect(t, db).ExecContext(ctx, "DROP DATABASE "+name)
			return err
		})
		if !errors.Is(err, ErrLeftBehind) || !strings.Contains(err.Error(), name) {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestTheDatabaseThatIsNamedNeedNotBeThere(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) {
		o := tiny(db, "save")
		o.DSN = db.DSN[:strings.LastIndex(db.DSN, "/")+1] + "delaytask_nowhere"
		if _, err := Run(t.Context(), Measurements, o); err != nil {
			t.Error(err)
		}
	})
}

func TestAUserWithoutTheRightToCreateIsRefused(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) {
		pool := connect(t, db)
		own, _, _ := strings.Cut(db.DSN[strings.LastIndex(db.DSN, "/")+1:], "?")
		name := "bench_" + own[len("delaytask_test_"):][:20] // users' names are short
		for _, statement := range []string{
			"CREATE USER " + name + " IDENTIFIED BY 'Few-rights-1'",
			"GRANT ALL ON " + own + ".* TO " + name,
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
		o := tiny(db, "save")
		o.DSN = name + ":Few-rights-1@" + db.DSN[strings.LastIndex(db.DSN, "@")+1:]
		_, err := Run(t.Context(), Measurements, o)
		if err == nil || !strings.Contains(err.Error(), "wants GRANT ALL ON") ||
			strings.Contains(err.Error(), "Few-rights") {
			t.Errorf("it ended with %v", err)
		}
	})
}

// scratches lists the databases and files of runs.
func scratches(t *testing.T, db dbtest.Database) (names []string) {
	t.Helper()
	if db.Kind == dbtest.SQLite {
		names, err := filepath.Glob(filepath.Join(filepath.Dir(strings.TrimPrefix(db.DSN, "sqlite:")),
			"delaytask-bench-*"))
		servertest.OK(t, err)
		return names
	}
	rows, err := connect(t, db).QueryContext(context.WithoutCancel(t.Context()),
		`SHOW DATABASES LIKE 'delaytask\_bench\_%'`)
	servertest.OK(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		servertest.OK(t, rows.Scan(&name))
		names = append(names, name)
	}
	servertest.OK(t, rows.Err())
	return names
}

func connect(t *testing.T, db dbtest.Database) *sql.DB {
	t.Helper()
	pool, err := sql.Open("mysql", db.DSN)
	servertest.OK(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}
