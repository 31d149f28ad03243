package dbtest_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "modernc.org/sqlite" // registers the driver

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// hangEnv makes the test binary start its servers, print the address of one, and wait to be killed.
const hangEnv = "DBTEST_HANG"

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestEveryDatabaseIsEmptyAndIsWhatItSays(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		db := open(t, d)
		must(t, one(db.ExecContext(t.Context(), "CREATE TABLE thing (id INT PRIMARY KEY)")))
		version := "SELECT VERSION()"
		if d.Kind == dbtest.SQLite {
			version = "SELECT sqlite_version()"
		}
		var v string
		must(t, db.QueryRowContext(t.Context(), version).Scan(&v))
		if got := strings.Contains(v, "MariaDB"); got != (d.Kind == dbtest.MariaDB) {
			t.Errorf("%s says that it is %s", d.Kind, v)
		}
	})
}

func TestDatabaseIsGoneAfterItsTest(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, outer dbtest.Database) {
		var inner dbtest.Database
		t.Run("inner", func(t *testing.T) { inner = dbtest.New(t, outer.Kind) })
		cfg, err := mysql.ParseDSN(inner.DSN)
		must(t, err)
		var n int
		err = open(t, outer).QueryRowContext(t.Context(),
			"SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?", cfg.DBName).Scan(&n)
		if err != nil || n != 0 {
			t.Errorf("%d databases named %s, error %v; want it dropped", n, cfg.DBName, err)
		}
	})
}

// TestKilledTestProcessLeavesNoServer is what the supervisors are for.
func TestKilledTestProcessLeavesNoServer(t *testing.T) {
	servers := map[dbtest.Kind]func(dbtest.Kind) dbtest.Database{
		dbtest.MariaDB: func(kind dbtest.Kind) dbtest.Database { return dbtest.New(t, kind) },
		dbtest.MySQL:   func(kind dbtest.Kind) dbtest.Database { return dbtest.NewDisposable(t, kind).Database(t) },
	}
	if kind := dbtest.Kind(os.Getenv(hangEnv)); kind != "" {
		_, _ = os.Stdout.WriteString("DSN " + servers[kind](kind).DSN + "\n")
		select {}
	}
	if os.Getenv("DELAYTASK_TEST_DSN") == "sqlite" {
		t.Skip("the child starts servers")
	}
	for kind := range servers {
		t.Run(string(kind), func(t *testing.T) { killTestProcess(t, kind) })
	}
}

func killTestProcess(t *testing.T, kind dbtest.Kind) {
	child := servertest.Self(t, []string{hangEnv + "=" + string(kind), "DELAYTASK_TEST_DSN="},
		"-test.run=^TestKilledTestProcessLeavesNoServer$")
	dsn := child.Says("^(?:DSN (.+)|PASS)$") // it passes where it is skipped
	if dsn == "" {
		t.Skipf("no private %s here", kind)
	}
	conn := open(t, dbtest.Database{Kind: kind, DSN: dsn})
	must(t, conn.PingContext(t.Context()))
	child.Kill()

	// The statement ends when its server does; a server that stayed would let it sleep on and answer.
	var slept int
	if err := conn.QueryRowContext(t.Context(), "SELECT SLEEP(20)").Scan(&slept); err == nil {
		t.Error("the server outlives the test process that started it")
	}
}

func TestDisposableServerComesBackWithItsDataAndLeavesItWhenSpared(t *testing.T) {
	for _, kind := range []dbtest.Kind{dbtest.MariaDB, dbtest.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			left := filepath.Join(t.TempDir(), "left")
			t.Cleanup(func() { // after the server is closed
				if !t.Skipped() {
					holdsDataAndLog(t, left)
				}
			})
			m := dbtest.NewDisposable(t, kind)
			db := open(t, m.Database(t))
			must(t, one(db.ExecContext(t.Context(), "CREATE TABLE thing AS SELECT 7 AS id")))
			const read = "SELECT id FROM thing"
			m.Kill(t)
			if err := db.PingContext(t.Context()); err == nil {
				t.Error("the killed server answers")
			}
			m.Start(t)
			var id int
			if err := db.QueryRowContext(t.Context(), read).Scan(&id); err != nil || id != 7 {
				t.Errorf("after the crash: %d, %v", id, err)
			}
			m.Freeze(t)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if err := db.QueryRowContext(ctx, read).Scan(&id); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the frozen server: got %v, want %v", err, context.DeadlineExceeded)
			}
			m.Thaw(t)
			if err := db.QueryRowContext(t.Context(), read).Scan(&id); err != nil {
				t.Error(err)
			}
			must(t, m.Spare(left))
			if err := db.PingContext(t.Context()); err == nil {
				t.Error("the server that was ended answers")
			}
		})
	}
}

// holdsDataAndLog wants the files in the folder that tell why a server failed.
func holdsDataAndLog(t *testing.T, folder string) {
	found := map[string]bool{"ibdata1": false, "supervisor.log": false}
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if _, wanted := found[filepath.Base(path)]; wanted {
			found[filepath.Base(path)] = true
		}
		return err
	})
	if err != nil || !found["ibdata1"] || !found["supervisor.log"] {
		t.Errorf("found %v, %v", found, err)
	}
}

func open(t *testing.T, d dbtest.Database) *sql.DB {
	t.Helper()
	driver, dsn := "mysql", d.DSN
	if d.Kind == dbtest.SQLite {
		driver, dsn = "sqlite", strings.TrimPrefix(d.DSN, "sqlite:")
	}
	db, err := sql.Open(driver, dsn)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func one[A any](_ A, err error) error { return err }
