package store_test

import (
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// Somebody writes by hand what the columns' types let pass. Each such row comes out alone, is claimed like any
// other (which may mend it), and can be set to failed; its neighbours do not notice.
func TestGarbageInAnyColumnIsThatRowsAlone(t *testing.T) {
	onSQLite := []struct{ column, value string }{
		{"version", "9223372036854775807"}, {"attempt", "'many'"}, {"attempt", "-1"}, {"max_attempts", "'none'"}, {"crash_count", "x'ff'"},
		{"ttr", "1.5"}, {"priority", "'high'"},
		{"headers", "'{'"}, {"headers", "'[]'"}, {"max_late_ms", "-5"}, {"late_policy", "9"}, {"ip_address", "'::1'"},
		{"delay_time", "'soon'"}, {"delay_time", "9223372036854775807"}, {"expected_time", "'tomorrow'"},
		{"execution_time", "'2026'"},
		{"finish_time", "12"}, {"errors", "'oops'"}, {"create_time", "''"}, {"update_time", "'-'"}, {"status", "9"},
	}
	onServers := []struct{ column, value string }{
		{"delay_time", "-1"}, {"delay_time", "9223372036854775807"}, {"late_policy", "9"}, {"errors", "'oops'"},
		{"headers", "'[1]'"},
		{"attempt", "4294967295"}, {"ip_address", "18446744073709551615"}, {"version", "18446744073709551615"},
		{"expected_time", "'0000-00-00'"}, {"execution_time", "'0000-00-00'"}, {"create_time", "'0000-00-00'"}, {"status", "9"},
	}
	lender.Each(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		garbage := onServers
		if d.Kind == dbtest.SQLite {
			garbage = onSQLite
		} else {
			pool = callersPool(t, d, "sql_mode", "''") // strict servers refuse the zero date
		}
		for _, g := range garbage {
			t.Run(g.column+"="+g.value, func(t *testing.T) {
				exec(t, pool.DB, "DELETE FROM delay_task_message")
				insert(t, s, task(1, ""), task(2, ""))
				exec(t, pool.DB, "UPDATE delay_task_message SET "+g.column+" = "+g.value+" WHERE id = 2")
				rows, broken, err := s.Get(t.Context(), nil, []int64{1, 2})
				if err != nil || len(rows) != 1 || rows[0].ID != 1 || len(broken) != 1 || broken[0].ID != 2 ||
					!strings.Contains(broken[0].Reason, g.column) {
					t.Fatalf("read %v, broken %+v, %v", rows, broken, err)
				}
				if _, err := s.Due(t.Context(), row.Window{Tags: []string{"a"}, To: row.MaxTime, Limit: 10}); err != nil {
					t.Errorf("due: %v", err)
				}
				if g.column == "status" {
					discarded(t, s, broken)
					return
				}
				refs := []row.Ref{{ID: 1}, broken[0].Ref}
				claimed, err := s.Claim(t.Context(), row.Claim{Rows: refs, Executor: "e"})
				if err != nil || len(claimed.Rows) == 0 {
					t.Fatalf("claimed %+v, %v", claimed, err)
				}
				if len(claimed.Rows) == 1 { // a claim mends what it writes
					discarded(t, s, claimed.Broken)
				}
			})
		}
	})
}

func discarded(t *testing.T, s *store.Store, broken []row.Broken) {
	t.Helper()
	if err := s.Discard(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	states, err := s.States(t.Context(), []int64{2})
	if err != nil || len(states) != 1 || states[0].Status != row.Failed {
		t.Errorf("the broken row is %+v (%v), want it failed", states, err)
	}
}
