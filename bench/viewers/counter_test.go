package viewers

import (
	"testing"

	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	_ "github.com/delaytask/delaytask/sqlite"
)

func TestWhatADashboardAsksIsCountedApart(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		counter := new(Counter)
		pool, _, err := sqlstore.Connect(t.Context(), db.DSN, counter.Through)
		servertest.OK(t, err)
		defer pool.Close()
		counter.Take()
		one, err := pool.QueryContext(t.Context(), "SELECT 1 UNION ALL SELECT ?", uint64(2))
		servertest.OK(t, err)
		defer one.Close()
		var n int
		own := counter.LeftOut(t.Context())
		servertest.OK(t, pool.QueryRowContext(own, "SELECT 1").Scan(&n))
		servertest.OK(t, pool.QueryRowContext(t.Context(), "SELECT 1").Scan(&n))
		for one.Next() {
			servertest.OK(t, one.Scan(&n))
		}
		servertest.OK(t, one.Err())
		servertest.OK(t, pool.QueryRowContext(t.Context(), "SELECT 1").Scan(&n))
		if statements, connections := counter.Take(); statements != 3 || connections != 2 {
			t.Errorf("%d statements, %d at once, want 3 and 2", statements, connections)
		}
		if statements, connections := counter.Take(); statements != 0 || connections != 0 {
			t.Errorf("%d statements and %d connections are counted again", statements, connections)
		}
		tx, err := pool.BeginTx(t.Context(), nil)
		servertest.OK(t, err)
		servertest.OK(t, tx.QueryRowContext(t.Context(), "SELECT 1").Scan(&n))
		servertest.OK(t, tx.Commit())
		if statements, _ := counter.Take(); statements != 3 {
			t.Errorf("a transaction counts as %d statements, want 3", statements)
		}
	})
}
