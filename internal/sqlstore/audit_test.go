package sqlstore_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/processor"
)

// withoutAudit checks a store that has no audit log: each call says what to do, and the purge does nothing.
func withoutAudit(t *testing.T, s *sqlstore.Store, mend string) {
	t.Helper()
	for name, err := range map[string]error{
		"begin": one(s.BeginAudit(t.Context(), row.AuditEntry{Action: "a"})),
		"end":   s.EndAudit(t.Context(), 1, row.AuditEnd{Outcome: row.AuditDone}),
		"read":  one(s.AuditEntries(t.Context(), math.MaxInt64, 1)),
		"tell":  one(s.ReportAudit(t.Context(), 1, 7, "{}")),
		"stop":  s.StopAudit(t.Context(), 1),
		"list":  one(s.AuditEntriesOf(t.Context(), "bulk.cancel", math.MaxInt64, 1)),
	} {
		if !errors.Is(err, processor.ErrNoAudit) || row.ClassOf(err) != row.ClassOperator ||
			!strings.Contains(err.Error(), mend) {
			t.Errorf("%s: the error is %v, of class %v; it does not say %s", name, err, row.ClassOf(err), mend)
		}
	}
	must(t, one(s.PurgeAudit(t.Context(), row.MaxTime, 10)))
	if !warned(t, s, "audit", mend) {
		t.Error("no warning names it")
	}
}

// audits checks that entries are written and read.
func audits(t *testing.T, s *sqlstore.Store) {
	t.Helper()
	id, err := s.BeginAudit(t.Context(), row.AuditEntry{Action: "a"})
	must(t, err)
	must(t, s.EndAudit(t.Context(), id, row.AuditEnd{Outcome: row.AuditDone}))
	entries, err := s.AuditEntries(t.Context(), math.MaxInt64, 1)
	must(t, err)
	if len(entries) != 1 || entries[0].ID != id || entries[0].Outcome != row.AuditDone || warned(t, s, "audit", "") {
		t.Errorf("there are %+v", entries)
	}
}

// With a schema of before migration 16 acts are recorded, and bulk changes are known to their processes alone.
func TestActsAreRecordedWithoutTheColumnsOfBulkChanges(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		s, pool := openNew(t, d)
		on := ""
		if d.Kind != dbtest.SQLite {
			on = " ON delay_task_audit"
		}
		exec(t, pool.DB, "DROP INDEX delay_task_audit_action"+on)
		_, err := s.AuditEntriesOf(t.Context(), "bulk.cancel", math.MaxInt64, 1)
		if says := "delaytask doctor prints the statement"; !errors.Is(err, processor.ErrNoAudit) ||
			d.Kind != dbtest.SQLite && !strings.Contains(err.Error(), says) { // SQLite does not tell it from a table
			t.Errorf("without the index alone: %v", err)
		}
		for _, column := range []string{"bulk", "stop_time", "seen_time"} {
			exec(t, pool.DB, "ALTER TABLE delay_task_audit DROP COLUMN "+column)
		}
		id, err := s.BeginAudit(t.Context(), row.AuditEntry{Action: "bulk.cancel"})
		must(t, err)
		for name, err := range map[string]error{
			"read": one(s.AuditEntries(t.Context(), math.MaxInt64, 1)),
			"tell": one(s.ReportAudit(t.Context(), id, 7, "{}")),
			"stop": s.StopAudit(t.Context(), id),
			"list": one(s.AuditEntriesOf(t.Context(), "bulk.cancel", math.MaxInt64, 1)),
		} {
			if !errors.Is(err, processor.ErrNoAudit) || !strings.Contains(err.Error(), "delaytask migrate up") {
				t.Errorf("%s: the error is %v", name, err)
			}
		}
		must(t, s.EndAudit(t.Context(), id, row.AuditEnd{Outcome: row.AuditDone}))
		if !warned(t, s, "audit", "delaytask migrate up") {
			t.Error("no warning names the migration")
		}
	})
}

func TestStoreWorksWithoutTheTableOfTheAuditLog(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		s, pool := openNew(t, d)
		audits(t, s)
		exec(t, pool.DB, "ALTER TABLE delay_task_audit RENAME TO away")
		withoutAudit(t, s, "delaytask migrate up")
		exec(t, pool.DB, "ALTER TABLE away RENAME TO delay_task_audit")
		audits(t, s)
	})
}
