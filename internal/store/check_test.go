package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// bodyLimit is what a scheduler checks for when nothing is configured.
const bodyLimit = 1 << 20

func TestCheckAcceptsAMigratedDatabase(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		exec(t, pool.DB, "ALTER TABLE delay_task_message ADD COLUMN customer VARCHAR(20) NULL")
		warnings, err := s.Check(t.Context(), bodyLimit)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range warnings { // a server may be set up for speed
			if d.Kind == dbtest.SQLite || !strings.Contains(string(w), "set it to 1") {
				t.Errorf("warning %q", w)
			}
		}
	})
}

// The servers show the counter in more than one place, and MySQL shows an old one in one of them.
func TestCheckWarnsWhilePlainInsertsGetIDsBeyondTheLast(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		const insert = "INSERT INTO delay_task_message (tag, message_body, id) VALUES ('t', '', "
		mend := "ALTER TABLE delay_task_message AUTO_INCREMENT = 1"
		if d.Kind == dbtest.SQLite {
			mend = "UPDATE sqlite_sequence SET seq = (SELECT MAX(id) FROM delay_task_message) WHERE name = 'delay_task_message'"
		} else {
			exec(t, pool.DB, "ALTER TABLE delay_task_message COMMENT ') AUTO_INCREMENT=18446744073709551615'")
		}
		for _, step := range []struct {
			statement string
			warned    bool
		}{
			{"DELETE FROM delay_task_message", false},
			{insert + "1152921504606846976)", false},
			{insert + "9223372036854775807)", true},
			{"DELETE FROM delay_task_message WHERE id > 1152921504606846976", true},
			{mend, false},
			{insert + "8070450532247928831)", true}, // the next one would be beyond
			{"DELETE FROM delay_task_message", true},
			{mend, false},
		} {
			exec(t, pool.DB, step.statement)
			warnings, err := s.Check(t.Context(), bodyLimit)
			says := func(w store.Warning) bool { return strings.HasSuffix(string(w), "run: "+mend) }
			if warned := slices.ContainsFunc(warnings, says); err != nil || warned != step.warned {
				t.Errorf("after %s: warnings %q, %v; want one: %t", step.statement, warnings, err, step.warned)
			}
		}
	})
}

func TestCheckSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	tests := []struct {
		name, change string
		want         []string
	}{
		{"table missing", "DROP TABLE delay_task_tag", []string{"delay_task_tag", "missing", "delaytask migrate up"}},
		{"column missing", "ALTER TABLE delay_task_node DROP COLUMN leaving", []string{"leaving", "delaytask migrate up"}},
		{"column that must be given", "ALTER TABLE delay_task_tag ADD COLUMN owner INT NOT NULL", []string{"owner", "default"}},
		{"wrong engine", "ALTER TABLE delay_task_tag ENGINE=MyISAM", []string{"MyISAM", "ENGINE=InnoDB"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
				s, pool := open(t, d)
				exec(t, pool.DB, tt.change)
				refused(t, s, tt.want...)
			})
		})
	}
	t.Run("table missing on SQLite", func(t *testing.T) {
		s, pool := open(t, dbtest.New(t, dbtest.SQLite))
		exec(t, pool.DB, tests[0].change)
		refused(t, s, tests[0].want...)
	})
}

func TestCheckRefusesAPoolThatIsTooSmall(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, pool := open(t, d)
		for _, c := range []struct{ workers, least int }{{1, 6}, {4, 6}, {5, 7}, {19, 21}, {64, 21}} {
			pool.SetMaxOpenConns(c.least - 1)
			refused(t, store.NewFor(pool, store.MySQL, c.workers), fmt.Sprintf("%d connections", c.least-1),
				fmt.Sprintf("%d workers need %d: 2, and one for each", c.workers, c.least))
			pool.SetMaxOpenConns(c.least)
			if _, err := store.NewFor(pool, store.MySQL, c.workers).Check(t.Context(), bodyLimit); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestCheckLooksAtTheSessionsOfTheCallersPool(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		open(t, d)
		refused(t, store.New(callersPool(t, d, "autocommit", "0"), store.MySQL), "autocommit")
		warnings, err := store.New(callersPool(t, d, "sql_mode", "''"), store.MySQL).Check(t.Context(), bodyLimit)
		aboutMode := func(w store.Warning) bool { return strings.Contains(string(w), "sql_mode") }
		if err != nil || !slices.ContainsFunc(warnings, aboutMode) {
			t.Errorf("warnings %q, %v; want one about sql_mode", warnings, err)
		}
	})
}

func TestCheckNamesMissingPrivileges(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, pool := open(t, d)
		limited, grant := limitedUser(t, d, pool, "SELECT, INSERT, UPDATE")
		s := store.New(limited, store.MySQL)
		refused(t, s, "delay_task_message", "grant", "DELETE")
		grant("DELETE")
		if _, err := s.Check(t.Context(), bodyLimit); err != nil {
			t.Errorf("once it is granted: %v", err)
		}
	})
}

// A session keeps the privileges that it had when it logged in.
func TestPrivilegesThatAreGivenBackAreUsedAtOnce(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, pool := open(t, d)
		limited, grant := limitedUser(t, d, pool, "CREATE")
		s := store.New(limited, store.MySQL)
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		write := func() error { return s.Leave(t.Context(), []string{"nobody"}) }
		save := func() error {
			return s.Insert(t.Context(), nil, []row.Row{{ID: 1 + rand.Int64N(1<<60), Tag: "t", Expected: 1, Due: 1}})
		}
		read := func() error { _, _, err := s.Get(t.Context(), nil, []int64{1}); return err }
		for range 10 {
			for what, call := range map[string]func() error{"write": write, "save": save, "read": read} {
				if err := call(); row.ClassOf(err) != row.ClassOperator {
					t.Fatalf("%s without privileges: %v", what, err)
				}
			}
		}
		grant("ALL")
		for range 10 {
			if err := errors.Join(write(), save(), read()); err != nil {
				t.Error(err)
			}
		}
	})
}

// limitedUser opens a pool of a user of the test's own, and returns what grants it more.
func limitedUser(t *testing.T, d dbtest.Database, root *sqlx.DB, privileges string) (*sqlx.DB, func(string)) {
	t.Helper()
	cfg := config(t, d)
	user := "dt" + cfg.DBName[len(cfg.DBName)-12:]
	exec(t, root.DB, "CREATE USER '"+user+"'@'%'")
	t.Cleanup(func() { _, _ = root.Exec("DROP USER '" + user + "'@'%'") })
	grant := func(privileges string) {
		exec(t, root.DB, "GRANT "+privileges+" ON `"+cfg.DBName+"`.* TO '"+user+"'@'%'")
	}
	grant(privileges)
	cfg.User, cfg.Passwd = user, ""
	limited, err := sqlx.Open("mysql", cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = limited.Close() })
	return limited, grant
}

func refused(t *testing.T, s *store.Store, want ...string) {
	t.Helper()
	refusedFor(t, s, bodyLimit, want...)
}

func refusedFor(t *testing.T, s *store.Store, bodyLimit int, want ...string) {
	t.Helper()
	_, err := s.Check(t.Context(), bodyLimit)
	if err == nil || row.ClassOf(err) != row.ClassOperator {
		t.Errorf("error %v of class %s, want one for the operator", err, row.ClassOf(err))
		return
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

// callersPool is a pool as an application opens it, with one session variable.
func callersPool(t *testing.T, d dbtest.Database, variable, value string) *sqlx.DB {
	t.Helper()
	cfg := config(t, d)
	cfg.Params = map[string]string{variable: value}
	db, err := sqlx.Open("mysql", cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func config(t *testing.T, d dbtest.Database) *mysql.Config {
	t.Helper()
	cfg, err := mysql.ParseDSN(d.DSN)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
