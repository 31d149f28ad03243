package sqlstore

import (
	"context"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func TestServerEndsAReadWhoseCallerHasLeft(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db := withNumbers(t, d)
		leaves, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		query := mysqlDialect.ended(leaves, clause{sql: "SELECT COUNT(*) FROM numbers AS a JOIN numbers AS b" +
			" JOIN numbers AS c WHERE SIN(a.n + b.n) = COS(c.n)"})
		if _, err := firsts[int64](t.Context(), db, query); !outOfTime(err) { // here nothing else ends it
			t.Errorf("got %v", err)
		}
	})
}
