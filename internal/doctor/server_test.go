package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

// healthy is what a server without fault says, of all kinds at once.
const healthy = "session.transaction_isolation=REPEATABLE-READ session.innodb_snapshot_isolation=OFF" +
	" global.sql_mode=STRICT_TRANS_TABLES global.innodb_doublewrite=ON global.wait_timeout=28800" +
	" global.max_connections=151 global.max_user_connections=0 status.max_used_connections=30" +
	" status.connection_errors_max_connections=0"

func TestSettingsOfAServerAreJudged(t *testing.T) {
	for _, tt := range []struct {
		changed, code string
		severity      Severity
		fix           string
	}{
		{"", "", OK, ""},
		{"session.transaction_isolation=SERIALIZABLE", "isolation", Warning, "SET PERSIST transaction_isolation"},
		{"session.transaction_isolation=SERIALIZABLE session.tx_isolation=SERIALIZABLE", "isolation", Warning, ""},
		{"session.transaction_isolation= session.tx_isolation=READ-UNCOMMITTED", "isolation", Warning, ""},
		{"session.transaction_isolation=READ-COMMITTED session.innodb_snapshot_isolation=ON", "", OK, ""},
		{"session.innodb_snapshot_isolation=ON", "snapshot_isolation", Info, "READ COMMITTED"},
		{"global.sql_mode=", "sql_mode", Warning, "STRICT_TRANS_TABLES"},
		{"global.innodb_doublewrite=OFF", "doublewrite", Warning, "innodb_doublewrite = ON"},
		{"global.innodb_doublewrite=DETECT_AND_RECOVER", "", OK, ""},
		{"global.wait_timeout=59", "wait_timeout", Warning, "SET PERSIST wait_timeout = 600"},
		{"session.max_statement_time=2.500000", "statement_time", Warning, "SET PERSIST max_statement_time = 0"},
		{"session.max_statement_time=60.000000", "statement_time", Info, "max_statement_time=0 to the DSN"},
		{"session.max_statement_time=0.000000 session.max_execution_time=0", "", OK, ""},
		{"session.max_execution_time=9999", "statement_time", Warning, "SET PERSIST max_execution_time = 0"},
		{"session.max_execution_time=10000", "statement_time", Info, ""},
		{"global.max_connections=149", "connections", Warning, "SET PERSIST max_connections = 300"}, // 30 × 4 / 0.8
		{"global.max_connections=150", "", OK, ""},
		{"global.max_user_connections=149", "connections", Warning, "SET PERSIST max_user_connections = 300"},
		{"global.max_user_connections=150 status.max_used_connections=150", "", OK, ""},
		{"status.max_used_connections=151", "connections", Warning, "SET PERSIST max_connections = 302"},
		{"status.connection_errors_max_connections=1", "connections", Warning, ""},
		{"session.wsrep_on=ON status.wsrep_cluster_status=Primary status.wsrep_ready=ON", "", OK, ""},
		{"session.wsrep_on=ON status.wsrep_cluster_status=non-Primary", "cluster", Critical, ""},
		{"session.wsrep_on=ON status.wsrep_flow_control_paused=0.2", "flow_control", Warning, ""},
		{"session.wsrep_on=ON session.wsrep_sync_wait=0", "read_your_writes", Info, "wsrep_sync_wait=7"},
		{"session.group_replication_group_name=a session.group_replication_consistency=EVENTUAL", "read_your_writes",
			Info, "%27BEFORE%27"},
	} {
		told := settings{session: map[string]string{}, global: map[string]string{}, status: map[string]string{},
			nodes: 30}
		of := map[string]map[string]string{"session": told.session, "global": told.global, "status": told.status}
		for setting := range strings.FieldsSeq(healthy + " " + tt.changed) {
			name, value, _ := strings.Cut(setting, "=")
			scope, name, _ := strings.Cut(name, ".")
			of[scope][name] = value
		}
		found := (&Subject{account: sqlstore.Account{Server: "MySQL"}}).judge(told)
		is := func(f Finding) bool {
			return f.Code == tt.code && f.Severity == tt.severity && strings.Contains(f.Fix, tt.fix)
		}
		if tt.code == "" && len(found) > 0 || tt.code != "" && (len(found) != 1 || !slices.ContainsFunc(found, is)) {
			t.Errorf("%s: found %+v, want %s %q", tt.changed, found, tt.severity, tt.code)
		}
	}
}
