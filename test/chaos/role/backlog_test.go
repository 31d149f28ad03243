package role

import (
	"database/sql"
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.WithServers(m)) }

func TestWhatIsOverdueIsCountedUpToABound(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, err := delaytask.Open(t.Context(), d.DSN, delaytask.Config{Migrate: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("mysql", d.DSN)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), `INSERT INTO delay_task_message (id, tag, message_body, status, delay_time, due_time) VALUES
			(1, 'a', '', 0, 0, UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE), (2, 'b', '', 0, 0, UTC_TIMESTAMP(6) - INTERVAL 1 HOUR),
			(3, 'a', '', 0, 0, UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE), (4, 'a', '', 1, 0, UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE)`); err != nil {
			t.Fatal(err)
		}
		for most, want := range []int{0, 1, 2, 2} {
			if n, err := overdue(t.Context(), db, most); n != want || err != nil {
				t.Errorf("of %d at most: %d, %v", most, n, err)
			}
		}
	})
}
