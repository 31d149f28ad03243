package sqlstore

import (
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func TestServersAreRecognizedByWhatTheyDo(t *testing.T) {
	usual, one := []string{"MEMORY", "INNODB", "MYISAM"}, []string{"INNODB"}
	for _, c := range []struct {
		says    string
		engines []string
		answers string
		want    string
	}{
		{aMySQL, usual, "", aMySQL},
		{aMariaDB, usual, "", aMariaDB},
		{aMySQL, one, "SHOW VITESS_TARGET", aVitess},
		{aMariaDB, one, "SELECT TIDB_VERSION()", aTiDB},
		{aMySQL, one, "", ""},
		{aMySQL, []string{"MEMORY", "OLAP"}, "", ""},
		{aMySQL, nil, "", ""},
		{aVitess, one, "", aVitess},
		{aTiDB, one, "", aTiDB},
	} {
		v := unmasked(version{name: c.says}, c.engines, func(query string) bool { return query == c.answers })
		if v.name != c.want {
			t.Errorf("says %q, has %q, answers %q: got %q, want %q", c.says, c.engines, c.answers, v.name, c.want)
		}
	}
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, _ := connect(t, d)
		said, err := firsts[string](t.Context(), db, clause{sql: "SELECT VERSION()"})
		must(t, err)
		if v, err := recognize(t.Context(), db); err != nil || v != parseVersion(said[0], "") {
			t.Errorf("got %v, %v; it says %s", v, err, said[0])
		}
	})
}

func TestShardsAreSeenInPlans(t *testing.T) {
	for _, c := range []struct{ plan, want string }{
		{`{"OperatorType": "Route", "Variant": "Unsharded", "Keyspace": {"Name": "shop", "Sharded": false}}`, ""},
		{`{"OperatorType": "Route", "Variant": "Scatter", "Keyspace": {"Name": "shop", "Sharded": true}}`, "shop"},
		{`{"OperatorType": "Limit", "Inputs": [{"Keyspace": {"Name": "b", "Sharded": true}}]}`, "b"},
		{`no plan`, ""},
	} {
		if got := shardedIn(c.plan); got != c.want {
			t.Errorf("%s: got %q", c.plan, got)
		}
	}
	for target, want := range map[string]string{"shop": "shop", "shop@primary": "shop", "shop:-80@replica": "shop",
		"shop/-80": "shop", "": ""} {
		if got := keyspaceOf(target); got != want {
			t.Errorf("%q is for %q", target, got)
		}
	}
}
