package integration

import (
	"strings"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
)

// garbage is what somebody writes by hand that the columns' types let pass. It is harmless in columns that a claim overwrites, or that
// no attempt needs: there the task runs.
type garbage struct {
	column, value string
	harmless      bool
}

var garbageOnSQLite = []garbage{
	{"version", "9223372036854775807", false},
	{"attempt", "'many'", false},
	{"attempt", "-5", false},
	{"attempt", "9223372036854775807", false},
	{"max_attempts", "'none'", false},
	{"crash_count", "x'ff'", false},
	{"crash_count", "'often'", false},
	{"ttr", "1.5", false},
	{"ttr", "'long'", false},
	{"priority", "'high'", false},
	{"headers", "'{'", false},
	{"headers", "'[]'", false},
	{"max_late_ms", "-5", false},
	{"late_policy", "9", false},
	{"ip_address", "'::1'", true},
	{"delay_time", "'soon'", true},
	{"delay_time", "9223372036854775807", true},
	{"expected_time", "'tomorrow'", false},
	{"execution_time", "'2026'", false},
	{"finish_time", "12", false},
	{"due_time", "'0'", true},
	{"errors", "'oops'", false},
	{"create_time", "''", true},
	{"update_time", "'-'", true},
}

var garbageOnServers = []garbage{
	{"version", "9223372036854775807", false},
	{"version", "18446744073709551615", false},
	{"attempt", "4294967295", false},
	{"ttr", "4294967295", true},
	{"delay_time", "-1", true},
	{"delay_time", "9223372036854775807", true},
	{"max_late_ms", "18446744073709551615", false},
	{"late_policy", "9", false},
	{"ip_address", "18446744073709551615", true},
	{"headers", "'[1]'", false},
	{"errors", "'oops'", false},
	{"expected_time", "'0000-00-00'", false},
	{"execution_time", "'0000-00-00'", false},
	{"finish_time", "'0000-00-00'", false},
	{"due_time", "'0000-00-00'", true},
	{"create_time", "'0000-00-00'", true},
	{"update_time", "'0000-00-00'", true},
}

func TestGarbageInAnyColumnFailsThatTaskAlone(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		all, db := garbageOnSQLite, pool(t, d)
		if d.Kind != dbtest.SQLite {
			all, db = garbageOnServers, pool(t, d, "sql_mode=%27%27") // a strict server refuses the zero date
		}
		s := open(t, d)
		spoilt, neighbours := make([]int64, len(all)), make([]int64, len(all))
		for i, g := range all {
			spoilt[i], neighbours[i] = save(t, s, "t", 0), save(t, s, "t", 0)
			execute(t, db, "UPDATE delay_task_message SET "+g.column+" = "+g.value+" WHERE id = ?", spoilt[i])
		}
		serve(t, s, "t", nothing)
		for i, g := range all {
			if task := reaches(t, s, neighbours[i], delaytask.Completed); task.Attempt != 1 {
				t.Errorf("the neighbour of %s was tried %d times", g.column, task.Attempt)
			}
			var row map[string]string
			eventually(t, g.column+" = "+g.value+" has come to its end", func() bool {
				row = columns(t, db, spoilt[i])
				return row["status"] == "1" || row["status"] == "2"
			})
			switch reason := row["error_stack"]; {
			case g.harmless && row["status"] != "1":
				t.Errorf("%s = %s: status %s, %q; want it completed", g.column, g.value, row["status"], reason)
			case !g.harmless && (row["status"] != "2" || !strings.Contains(reason, g.column)):
				t.Errorf("%s = %s: status %s, %q; want it failed with the column's name",
					g.column, g.value, row["status"], reason)
			}
		}
	})
}
