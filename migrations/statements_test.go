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

// The list is what test/sqlcheck holds against other servers that speak like MySQL: DELAYTASK_UPDATE=1 writes it anew.
func TestStatementsThatMigrationsSendAreListed(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		if d.Members != nil {
			t.Skip("it sends what each of its members is sent")
		}
		cfg, err := mysql.ParseDSN(d.DSN)
		if err != nil {
			t.Fatal(err)
		}
		connector, err := mysql.NewConnector(cfg)
		if err != nil {
			t.Fatal(err)
		}
		recorder := dbtest.Record(connector)
		db := sql.OpenDB(recorder)
		defer db.Close()
		if err := Up(t.Context(), db, sqlstore.MySQL); err != nil {
			t.Fatal(err)
		}
		for range 8 {
			if err := Down(t.Context(), db, sqlstore.MySQL); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Status(t.Context(), db, sqlstore.MySQL); err != nil {
			t.Fatal(err)
		}
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var l lease
		if err := l.take(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
		if err := l.release(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
		trimmed := recorder.Statements()
		for i, s := range trimmed {
			trimmed[i] = strings.TrimSuffix(strings.TrimSpace(s), ";")
		}
		golden.Check(t, statementsFile, strings.Join(trimmed, ";\n")+";\n")
	})
}
