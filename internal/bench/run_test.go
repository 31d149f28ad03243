package bench

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestWhatWasNotMeasuredIsAbsent(t *testing.T) {
	report, err := Run(t.Context(), tiny(t, dbtest.New(t, dbtest.SQLite), "save_tx", "save_bulk"))
	servertest.OK(t, err)
	text, err := json.Marshal(report)
	servertest.OK(t, err)
	var root map[string]map[string]any
	servertest.OK(t, json.Unmarshal(text, &root))
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
			r := newRun(t, tiny(t, db))
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
		o := tiny(t, db, "raw.insert_single", "drain")
		o.Progress = func(p Progress) {
			if p.Name == "drain" {
				cancel()
			}
		}
		report, err := Run(ctx, o)
		if !errors.Is(err, context.Canceled) || report == nil || len(report.Lines) != 1 {
			t.Errorf("it ended with %v and %+v", err, report)
		}
	})
}

func TestWhatCannotBeDroppedIsNamed(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) {
		o := tiny(t, db)
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
		o := tiny(t, db, "save")
		o.DSN = db.DSN[:strings.LastIndex(db.DSN, "/")+1] + "delaytask_nowhere"
		if _, err := Run(t.Context(), o); err != nil {
			t.Error(err)
		}
	})
}

func TestAUserWithoutTheRightToCreateIsRefused(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) {
		pool := connect(t, db)
		name := "bench_" + scratchOwner(db)[len("delaytask_test_"):][:20] // users' names are short
		for _, statement := range []string{
			"CREATE USER " + name + " IDENTIFIED BY 'Few-rights-1'",
			"GRANT ALL ON " + scratchOwner(db) + ".* TO " + name,
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
		o := tiny(t, db, "save")
		o.DSN = name + ":Few-rights-1@" + db.DSN[strings.LastIndex(db.DSN, "@")+1:]
		_, err := Run(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), "may not create") ||
			strings.Contains(err.Error(), "Few-rights") {
			t.Errorf("it ended with %v", err)
		}
	})
}

// scratches lists the databases and files of a run.
func scratches(t *testing.T, db dbtest.Database) (names []string) {
	t.Helper()
	if db.Kind == dbtest.SQLite {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(strings.TrimPrefix(db.DSN, "sqlite:")),
			"delaytask-bench-*"))
		servertest.OK(t, err)
		for _, folder := range found {
			files, err := os.ReadDir(folder)
			servertest.OK(t, err)
			for _, f := range files {
				if strings.HasSuffix(f.Name(), ".db") {
					names = append(names, f.Name())
				}
			}
		}
		return names
	}
	rows, err := connect(t, db).QueryContext(context.WithoutCancel(t.Context()),
		`SHOW DATABASES LIKE '`+scratchOwner(db)+`\_%'`)
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

// scratchOwner is the name of the test's own database. Others of a run begin with it, so that tests beside this one are
// not met.
func scratchOwner(db dbtest.Database) string {
	name := db.DSN[strings.LastIndex(db.DSN, "/")+1:]
	name, _, _ = strings.Cut(name, "?")
	return name
}
