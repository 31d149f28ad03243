//go:build unix

package integration

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestServerWithoutAFreeConnectionLosesNothingAccepted(t *testing.T) {
	t.Parallel()
	for _, kind := range []dbtest.Kind{dbtest.MariaDB, dbtest.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			d := dbtest.NewDisposable(t, kind).Database(t)
			server := outside(t, d)
			server.SetMaxOpenConns(1) // it keeps the one that it has
			outages(t, d, 2, func(c *callers) {
				leave := crowd(t, d, server)
				c.suffer(t, 2*time.Second)
				if err := c.s.Ready(t.Context()); err == nil {
					t.Error("it is ready without a connection")
				}
				leave()
			})
		})
	}
}

// crowd takes all connections of the server, this test's included, until leave.
func crowd(t *testing.T, d dbtest.Database, server *sql.DB) (leave func()) {
	t.Helper()
	const limit = "SET GLOBAL max_connections = ?"
	before := number(t, server, "SELECT @@max_connections")
	var taken []*sql.Conn
	more := outside(t, d)
	leave = func() {
		execute(t, server, limit, before)
		for _, c := range taken {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := more.Close(); err != nil { // idle connections would count for the next crowd
			t.Error(err)
		}
	}
	execute(t, server, limit, 10)
	calm := 0 // looks in a row that found no other connection: one that is being made is not counted yet
	servertest.Eventually(t, "no other connection is left", func() bool {
		killAll(t, d, server)
		more := takeAll(t, more)
		taken = append(taken, more...)
		if calm++; len(more) > 0 || connected(t, server) != len(taken)+1 {
			calm = 0
		}
		return calm == 20
	})
	return leave
}

// connected is how many connections the server has, with those that have not named a database.
func connected(t *testing.T, server *sql.DB) (n int) {
	t.Helper()
	var name string
	if err := server.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Threads_connected'").Scan(&name,
		&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// takeAll opens connections until none is left.
func takeAll(t *testing.T, db *sql.DB) (taken []*sql.Conn) {
	t.Helper()
	for {
		c, err := db.Conn(t.Context())
		if refused, ok := errors.AsType[*mysql.MySQLError](err); ok && refused.Number == 1040 {
			return taken
		}
		if err != nil {
			t.Fatalf("take all connections: %v", err)
		}
		taken = append(taken, c)
	}
}
