package sqlstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/migrations"
)

// bodyLimit is what a scheduler checks for when nothing is configured.
const bodyLimit = 1 << 20

// ofService matches changes of tables that only the HTTP service needs.
var ofService = regexp.MustCompile("request|token|worker|session")

// Each change breaks something. A check says what, and mending it satisfies the checks again.
func TestChecksSayWhatIsWrongAndWhatToDo(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		s, pool := openNew(t, d)
		exec(t, pool.DB, "ALTER TABLE delay_task_message ADD COLUMN customer VARCHAR(20) NULL")
		exec(t, pool.DB, "ALTER TABLE delay_task_worker ADD COLUMN customer VARCHAR(20) NULL")
		accepted(t, s)
		f := func(change, mend string, want ...string) {
			t.Helper()
			exec(t, pool.DB, change)
			_, err := s.Check(t.Context(), bodyLimit)
			if ofService.MatchString(change) {
				if err != nil {
					t.Errorf("%s: tasks cannot run without the service: %v", change, err)
				}
				err = s.CheckService(t.Context())
			}
			hint := operatorsHint(t, err, want...)
			if mend == "" {
				mend = strings.TrimPrefix(hint, "run: ")
			}
			exec(t, pool.DB, mend)
			accepted(t, s)
		}
		for _, table := range sqlstore.Tables() {
			f("ALTER TABLE "+table+" RENAME TO away", "ALTER TABLE away RENAME TO "+table,
				table, "missing", "delaytask migrate up")
		}
		f("ALTER TABLE delay_task_node DROP COLUMN leaving",
			"ALTER TABLE delay_task_node ADD COLUMN leaving INT NOT NULL DEFAULT 0",
			"lacks", "leaving", "delaytask migrate up")
		f("ALTER TABLE delay_task_worker DROP COLUMN secret",
			"ALTER TABLE delay_task_worker ADD COLUMN secret BLOB NULL",
			"lacks", "secret", "delaytask migrate up")
		if d.Kind == dbtest.SQLite {
			return
		}
		for _, table := range []string{"delay_task_tag", "delay_task_token"} {
			f("ALTER TABLE "+table+" ADD COLUMN owner INT NOT NULL", "ALTER TABLE "+table+" DROP COLUMN owner",
				table+".owner", "default")
		}
		f("ALTER TABLE delay_task_tag ENGINE=MyISAM", "", "MyISAM", "ENGINE=InnoDB")
		if d.Kind != dbtest.Group { // which takes no write to such a table
			f("ALTER TABLE delay_task_request ENGINE=MyISAM", "", "MyISAM", "ENGINE=InnoDB")
		}
		for _, c := range []struct{ table, column, definition string }{
			{"delay_task_message", "tag", "VARCHAR(128) %s NOT NULL COMMENT 'which processor''s'"},
			{"delay_task_message", "task_key", "VARCHAR(255) %s NULL"},
			{"delay_task_tag", "tag", "VARCHAR(128) %s NOT NULL"},
			{"delay_task_schedule", "name", "VARCHAR(128) %s NOT NULL"},
			{"delay_task_token", "name", "VARCHAR(128) %s NOT NULL"},
			{"delay_task_worker", "app", "VARCHAR(128) %s NOT NULL"},
		} {
			inexact := "ALTER TABLE " + c.table + " MODIFY " + c.column + " " +
				fmt.Sprintf(c.definition, "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
			exec(t, pool.DB, strings.ReplaceAll(inexact, "general_ci", "bin"))
			before := described(t, pool, c.table, c.column)
			const has = "column %s.%s has the collation utf8mb4_general_ci instead of utf8mb4_bin"
			f(inexact, "", fmt.Sprintf(has, c.table, c.column))
			if after := described(t, pool, c.table, c.column); after != before {
				t.Errorf("the hint made %s of %s", after, before)
			}
		}
	})
}

func accepted(t *testing.T, s *sqlstore.Store) {
	t.Helper()
	warnings, err := s.Check(t.Context(), bodyLimit)
	must(t, errors.Join(err, s.CheckService(t.Context())))
	for _, w := range warnings { // a server may be set up for speed
		if !strings.Contains(w.String(), "set it to 1") {
			t.Errorf("warning %q", w)
		}
	}
}

// described returns everything about a column.
func described(t *testing.T, pool *sqlx.DB, table, column string) (all string) {
	t.Helper()
	query := "SELECT CONCAT_WS(' ', column_type, collation_name, is_nullable, column_comment)" +
		" FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ? AND column_name = ?"
	must(t, pool.GetContext(t.Context(), &all, query, table, column))
	return all
}

// operatorsHint wants an error for the operator that says all that, and returns its hint.
func operatorsHint(t *testing.T, err error, want ...string) string {
	t.Helper()
	e, ok := errors.AsType[*row.Error](err)
	if !ok || e.Class != row.ClassOperator {
		t.Fatalf("error %v of class %s, want one for the operator", err, row.ClassOf(err))
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	return e.Hint
}

func refused(t *testing.T, s *sqlstore.Store, bodyLimit int, want ...string) {
	t.Helper()
	_, err := s.Check(t.Context(), bodyLimit)
	operatorsHint(t, err, want...)
}

// The servers show the counter in several places, and MySQL an old one in one of them.
func TestCheckWarnsWhilePlainInsertsGetIDsBeyondTheLast(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		s, pool := openNew(t, d)
		const insert = "INSERT INTO delay_task_message (tag, message_body, id) VALUES ('t', '', "
		mend := "ALTER TABLE delay_task_message AUTO_INCREMENT = 1"
		if d.Kind == dbtest.SQLite {
			mend = "UPDATE sqlite_sequence SET seq = (SELECT MAX(id) FROM delay_task_message)" +
				" WHERE name = 'delay_task_message'"
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
			says := func(w sqlstore.Warning) bool { return strings.HasSuffix(w.String(), "run: "+mend) }
			if warned := slices.ContainsFunc(warnings, says); err != nil || warned != step.warned {
				t.Errorf("after %s: warnings %q, %v; want one: %t", step.statement, warnings, err, step.warned)
			}
		}
	})
}

func TestCheckRefusesAPoolThatIsTooSmall(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, pool := open(t, d)
		for _, c := range []struct{ concurrency, least int }{{1, 6}, {4, 6}, {5, 7}, {20, 22}, {64, 22}} {
			pool.SetMaxOpenConns(c.least - 1)
			s := sqlstore.NewFor(pool, sqlstore.MySQL, c.concurrency)
			operatorsHint(t, s.RoomToRun(), fmt.Sprintf("%d connections", c.least-1),
				fmt.Sprintf("concurrency of %d need %d: 2 for reads, and one for each", c.concurrency, c.least))
			pool.SetMaxOpenConns(5)
			refused(t, s, bodyLimit, "5 connections", "need 6: 2 for reads, and 4 for writes")
			pool.SetMaxOpenConns(c.least)
			must(t, s.RoomToRun())
			pool.SetMaxOpenConns(6)
			must(t, one(sqlstore.NewFor(pool, sqlstore.MySQL, c.concurrency).Check(t.Context(), bodyLimit)))
		}
	})
}

func TestCheckLooksAtTheSessionsOfTheCallersPool(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		refused(t, sqlstore.New(callersPool(t, d, "autocommit", "0"), sqlstore.MySQL), bodyLimit, "autocommit")
		warnings, err := sqlstore.New(callersPool(t, d, "sql_mode", "''"), sqlstore.MySQL).Check(t.Context(), bodyLimit)
		aboutMode := func(w sqlstore.Warning) bool { return strings.Contains(w.String(), "sql_mode") }
		if err != nil || !slices.ContainsFunc(warnings, aboutMode) {
			t.Errorf("warnings %q, %v; want one about sql_mode", warnings, err)
		}
	})
	for pragmas, want := range map[string]string{
		"busy_timeout(5000)&_pragma=synchronous(FULL)":   "",
		"busy_timeout(1)&_pragma=synchronous(EXTRA)":     "",
		"busy_timeout(5000)&_pragma=synchronous(NORMAL)": "_pragma=synchronous(FULL)",
		"busy_timeout(0)&_pragma=synchronous(FULL)":      "_pragma=busy_timeout(5000)",
	} {
		pool, err := sqlx.Open("sqlite", filepath.Join(t.TempDir(), "callers.db")+"?_pragma="+pragmas)
		must(t, err)
		defer pool.Close()
		must(t, migrations.Up(t.Context(), pool.DB, sqlstore.SQLite))
		warnings, err := sqlstore.New(pool, sqlstore.SQLite).Check(t.Context(), bodyLimit)
		text := fmt.Sprint(warnings)
		if err != nil || (want == "") != (len(warnings) == 0) || !strings.Contains(text, want) || len(warnings) > 1 {
			t.Errorf("%s: warnings %q, %v; want %q", pragmas, warnings, err, want)
		}
	}
}

// Quotes grow most in a statement, and a caller's driver may assume larger packets than the server takes.
func TestCheckRefusesABodyLimitThatNoPacketHolds(t *testing.T) {
	const besideBody = 64 << 10
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, own := open(t, d)
		packet := number(t, own.DB, "SELECT @@max_allowed_packet")
		longest := packet - besideBody
		for id, pool := range []*sqlx.DB{own, poolOf(t, d.DSN)} {
			s := sqlstore.New(pool, sqlstore.MySQL)
			defer s.Close(t.Context())
			refused(t, s, longest+1,
				fmt.Sprint(longest+1), fmt.Sprint("is ", packet), fmt.Sprint("max_allowed_packet = ", packet+1024))
			must(t, one(s.Check(t.Context(), longest)))
			if packet > 16<<20 {
				continue // it would take long
			}
			saved := task(int64(id+1), "key")
			saved.Tag, saved.Body = fmt.Sprint("tag", id), bytes.Repeat([]byte{'"'}, longest)
			insert(t, s, saved)
			rows, _, err := s.Get(t.Context(), nil, []int64{saved.ID})
			if err != nil || len(rows) != 1 || !bytes.Equal(rows[0].Body, saved.Body) {
				t.Errorf("read %d tasks: %v", len(rows), err)
			}
		}
	})
}

func TestChecksNameMissingPrivileges(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, pool := open(t, d)
		limited, grant := limitedUser(t, d, pool, "SELECT, INSERT, UPDATE")
		s := sqlstore.New(limited, sqlstore.MySQL)
		refused(t, s, bodyLimit, "delay_task_message", "grant", "DELETE")
		operatorsHint(t, s.CheckService(t.Context()),
			"grant", "DELETE", "delay_task_request, delay_task_token, delay_task_worker and delay_task_session")
		grant("DELETE")
		accepted(t, s)
	})
}

func TestChecksNameATableWithoutPrivileges(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, pool := open(t, d)
		limited, _ := limitedUser(t, d, pool, "CREATE")
		s := sqlstore.New(limited, sqlstore.MySQL)
		for _, table := range sqlstore.Tables() {
			_, err := s.Check(t.Context(), bodyLimit)
			if ofService.MatchString(table) {
				must(t, err)
				err = s.CheckService(t.Context())
			}
			operatorsHint(t, err, "may not read "+table, "grant the user SELECT, INSERT, UPDATE and DELETE on")
			exec(t, pool.DB, "GRANT SELECT, INSERT, UPDATE, DELETE ON `"+config(t, d).DBName+"`."+table+" TO "+
				limitedUserOf(t, limited))
		}
		accepted(t, s)
	})
}

// limitedUserOf names the account of a pool as GRANT wants it.
func limitedUserOf(t *testing.T, pool *sqlx.DB) string {
	t.Helper()
	account, err := sqlstore.Inspect(sqlstore.New(pool, sqlstore.MySQL)).Account(t.Context())
	must(t, err)
	return account.Grantee()
}

// A session keeps the privileges of its login.
func TestPrivilegesThatAreGivenBackAreUsedAtOnce(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, pool := open(t, d)
		limited, grant := limitedUser(t, d, pool, "CREATE")
		s := sqlstore.New(limited, sqlstore.MySQL)
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		calls := map[string]func() error{
			"write": func() error { return s.Leave(t.Context(), []string{"unknown"}) },
			"save":  func() error { return s.Insert(t.Context(), nil, []row.Row{task(1+rand.Int64N(1<<60), "")}) },
			"read":  func() error { return two(s.Get(t.Context(), nil, []int64{1})) },
			"tags":  func() error { return two(s.Tags(t.Context())) },
		}
		for range 10 {
			for what, call := range calls {
				if err := call(); row.ClassOf(err) != row.ClassOperator {
					t.Fatalf("%s without privileges: %v", what, err)
				}
			}
		}
		grant("ALL")
		for range 10 {
			for what, call := range calls {
				if err := call(); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
	})
}

// limitedUser opens a pool of a new user, and returns a function that grants it more.
func limitedUser(t *testing.T, d dbtest.Database, root *sqlx.DB, privileges string) (*sqlx.DB, func(string)) {
	t.Helper()
	cfg := config(t, d)
	user := "dt" + strings.ToLower(fmt.Sprintf("%x", rand.Uint64()))
	exec(t, root.DB, "CREATE USER '"+user+"'@'%'")
	t.Cleanup(func() { _, _ = root.Exec("DROP USER '" + user + "'@'%'") })
	grant := func(privileges string) {
		exec(t, root.DB, "GRANT "+privileges+" ON `"+cfg.DBName+"`.* TO '"+user+"'@'%'")
	}
	grant(privileges)
	cfg.User, cfg.Passwd = user, ""
	return poolOf(t, cfg.FormatDSN()), grant
}
