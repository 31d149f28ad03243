package sqlstore_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

var aRollup = []row.Rollup{{Span: row.SpanMinute, Begin: row.SpanMinute.Begin(row.MinTime), Node: "n", Completed: 1}}

// warned reports whether a check at the start of a process warns so, and says what to do.
func warned(t *testing.T, s *sqlstore.Store, code, mend string) bool {
	t.Helper()
	warnings, err := s.Check(t.Context(), bodyLimit)
	must(t, err)
	return slices.ContainsFunc(warnings, func(w sqlstore.Warning) bool {
		return w.Code == code && strings.Contains(w.Mend, mend)
	})
}

// without checks a store that works without rollups: the first call says why, the others cost nothing.
func without(t *testing.T, s *sqlstore.Store, mend string) {
	t.Helper()
	refused := func(err error) {
		t.Helper()
		if row.ClassOf(err) != row.ClassOperator || !strings.Contains(err.Error(), mend) {
			t.Errorf("the error is %v, of class %v; it does not say %s", err, row.ClassOf(err), mend)
		}
	}
	refused(s.PutRollups(t.Context(), aRollup))
	for range 3 {
		must(t, s.PutRollups(t.Context(), aRollup))
		must(t, one(s.TrimRollups(t.Context(), row.SpanMinute, row.MaxTime, 10)))
		refused(one(s.Rollups(t.Context(), row.SpanMinute, nil, row.MinTime, row.MaxTime)))
	}
	if !warned(t, s, "rollup", mend) {
		t.Error("no warning names it")
	}
}

// has checks that rollups are written and read.
func has(t *testing.T, s *sqlstore.Store) {
	t.Helper()
	must(t, s.PutRollups(t.Context(), aRollup))
	found, err := s.Rollups(t.Context(), row.SpanMinute, nil, row.MinTime.Add(-time.Hour), row.MaxTime)
	must(t, err)
	if len(found) != 1 || warned(t, s, "rollup", "") {
		t.Errorf("there are %+v", found)
	}
}

// Migrations may run after the programs are new.
func TestStoreWorksWithoutTheTableOfRollups(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		s, pool := openNew(t, d)
		has(t, s)
		exec(t, pool.DB, "ALTER TABLE delay_task_rollup RENAME TO away")
		without(t, s, "delaytask migrate up")
		exec(t, pool.DB, "ALTER TABLE away RENAME TO delay_task_rollup")
		has(t, s)
	})
}

// An account that was made before there were rollups and an audit log goes on with its tasks, and no connection is lost
// for it.
func TestAccountWithoutPrivilegesOnYoungerTablesGoesOn(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, pool := open(t, d)
		cfg := config(t, d)
		limited, _ := limitedUser(t, d, pool, "CREATE")
		user := limitedUserOf(t, limited)
		grant := func(table string) {
			exec(t, pool.DB, "GRANT SELECT, INSERT, UPDATE, DELETE ON `"+cfg.DBName+"`.delay_task_"+table+" TO "+user)
		}
		for _, table := range []string{"message", "node", "tag", "schedule", "schedule_run"} {
			grant(table)
		}
		s := sqlstore.New(limited, sqlstore.MySQL)
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		must(t, one(s.Purge(t.Context(), row.Completed, row.MinTime, 1))) // a chore, as writing rollups is
		var before, after string
		// A server answers a statement before it shows the connection as idle, so all of them are awaited.
		connection := func(ids *string) {
			servertest.Eventually(t, "all connections are idle", func() bool {
				var found struct {
					IDs  string `db:"ids"`
					Busy int    `db:"busy"`
				}
				must(t, pool.GetContext(t.Context(), &found, "SELECT GROUP_CONCAT(id ORDER BY id) AS ids,"+
					" SUM(command <> 'Sleep') AS busy FROM information_schema.processlist WHERE user = ?",
					strings.Split(user, "'")[1]))
				*ids = found.IDs
				return found.Busy == 0
			})
		}
		without(t, s, "SELECT, INSERT, UPDATE and DELETE on the table delay_task_rollup")
		connection(&before)
		for range 5 {
			must(t, s.PutRollups(t.Context(), aRollup))
		}
		if connection(&after); after != before {
			t.Errorf("the connections were %s and are %s", before, after)
		}
		_, err := sqlstore.Inspect(s).Plans(t.Context(), nil)
		must(t, err)
		grant("rollup")
		has(t, s)
		withoutAudit(t, s, "SELECT, INSERT, UPDATE and DELETE on the table delay_task_audit")
		grant("audit")
		audits(t, s)
	})
}
