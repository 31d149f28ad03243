package migrations

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/golden"
)

const statementsFile = "testdata/statements.sql"

// test/sqlcheck checks the list against other servers that are compatible with MySQL. DELAYTASK_UPDATE=1 writes it
// anew.
func TestStatementsThatMigrationsSendAreListed(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		if d.Members != nil {
			t.Skip("it sends what each of its members is sent")
		}
		cfg, err := mysql.ParseDSN(d.DSN)
		must(t, err)
		connector, err := mysql.NewConnector(cfg)
		must(t, err)
		recorder := dbtest.Record(connector)
		db := sql.OpenDB(recorder)
		defer db.Close()
		must(t, Up(t.Context(), db, sqlstore.MySQL))
		for range 8 {
			must(t, Down(t.Context(), db, sqlstore.MySQL))
		}
		must(t, one(Status(t.Context(), db, sqlstore.MySQL)))
		conn, err := db.Conn(t.Context())
		must(t, err)
		defer conn.Close()
		var l lease
		must(t, l.take(t.Context(), conn))
		must(t, l.release(t.Context(), conn))
		trimmed := recorder.Statements()
		for i, s := range trimmed {
			trimmed[i] = strings.TrimSuffix(strings.TrimSpace(s), ";")
		}
		golden.Check(t, statementsFile, strings.Join(trimmed, ";\n")+";\n")
	})
}
