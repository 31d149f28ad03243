package sqlstore

import (
	"maps"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// safe holds the variables of a server without fault.
var safe = map[string]string{
	"version": "8.4.6", "autocommit": "ON", "sql_mode": "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION",
	"read_only": "OFF", "super_read_only": "OFF", "innodb_read_only": "OFF",
	"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "1", "max_allowed_packet": "16777216",
}

func TestServerThatWouldLoseOrCutTasksIsWarnedAbout(t *testing.T) {
	f := func(variables string, want ...string) { // part of each warning
		t.Helper()
		got, err := judgeServer(saying(variables), 1<<20)
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: warnings %q, %v; want %d", variables, got, err, len(want))
			return
		}
		for i, want := range want {
			if !strings.Contains(got[i].String(), want) {
				t.Errorf("%s: warning %q does not say %q", variables, got[i], want)
			}
		}
	}
	f("")
	f("innodb_flush_log_at_trx_commit=0", "innodb_flush_log_at_trx_commit is 0: accepted tasks can be lost")
	f("innodb_flush_log_at_trx_commit=2", "innodb_flush_log_at_trx_commit is 2: accepted tasks can be lost")
	f("innodb_flush_log_at_trx_commit=3") // as old MariaDB synced
	f("sync_binlog=0", "sync_binlog is 0: accepted tasks can be lost")
	f("sync_binlog=100", "sync_binlog is 100: accepted tasks")
	f("sync_binlog=0 log_bin=OFF")
	f("sql_mode=NO_ENGINE_SUBSTITUTION", "add STRICT_TRANS_TABLES to sql_mode")
	f("sql_mode=", "sql_mode is not strict")
	f("sql_mode=STRICT_ALL_TABLES")
	f("max_allowed_packet=16776192", "max_allowed_packet is 16776192: a batch of saves or a long body can be refused; "+
		"set max_allowed_packet to at least 16777216")
	f("max_allowed_packet=1114112", "max_allowed_packet is 1114112") // just holds the longest body
	f("sql_mode= innodb_flush_log_at_trx_commit=2 sync_binlog=0 max_allowed_packet=4194304",
		"sql_mode", "innodb_flush_log_at_trx_commit", "sync_binlog", "max_allowed_packet")
}

func TestServerThatCannotServeIsRefused(t *testing.T) {
	const readOnly = "the server is read-only (connect to the primary"
	for variable, want := range map[string]string{
		"version=5.7.44-log":      "MySQL 5.7 is too old (use MySQL 8.0",
		"version=10.5.29-MariaDB": "MariaDB 10.5 is too old (use MySQL 8.0",
		"autocommit=OFF":          "remove autocommit=0",
		"read_only=ON":            readOnly,
		"read_only=NO_LOCK":       readOnly, // of MariaDB 12
		"super_read_only=ON":      readOnly,
		"innodb_read_only=ON":     readOnly,
		"max_allowed_packet=1114111": "bodies of up to 1048576 bytes are to be saved (BodyLimit), and" +
			" max_allowed_packet of the server is 1114111 (run: SET GLOBAL max_allowed_packet = 16777216 /*" +
			" and in the option file of the server; or lower BodyLimit by at least 1 */)",
	} {
		_, err := judgeServer(saying(variable), 1<<20)
		if err == nil || row.ClassOf(err) != row.ClassOperator || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one for the operator that says %q", variable, err, want)
		}
	}
}

func TestWhatAServerDoesNotSayIsNotJudged(t *testing.T) {
	warnings, err := judgeServer(map[string]string{"version": "8.0.11-TiDB-v8.5.0"}, 1<<30)
	if err != nil || len(warnings) > 0 {
		t.Errorf("warnings %q, %v", warnings, err)
	}
}

func TestServersTellEveryVariableThatIsJudged(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, kind := connect(t, d)
		variables, err := Inspect(New(db, kind)).Show(t.Context(), SessionVariables, judged...)
		must(t, err)
		mariaDB := strings.Contains(variables["version"], "MariaDB")
		for name := range safe {
			if _, there := variables[name]; !there && (name != "super_read_only" || !mariaDB) {
				t.Errorf("%s is missing", name)
			}
		}
	})
}

// saying returns the variables of a safe server with changes.
func saying(changed string) map[string]string {
	variables := maps.Clone(safe)
	for change := range strings.FieldsSeq(changed) {
		name, value, _ := strings.Cut(change, "=")
		variables[name] = value
	}
	return variables
}
