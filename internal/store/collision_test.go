package store_test

import (
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// The server takes the claim back for a transaction that has changed more, and the claim goes on row by row.
func TestClaimThatIsTakenBackGoesOnRowByRow(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		due := clock(t, s)
		rows := make([]row.Row, 100)
		for i := range rows {
			rows[i] = row.Row{ID: int64(i + 1), Tag: "t", TTR: time.Minute, Expected: due, Due: due}
		}
		if err := s.Insert(t.Context(), nil, rows); err != nil {
			t.Fatal(err)
		}
		for tries := range 20 {
			first := int64(1 + 3*tries)
			claimed, err := claimAgainst(t, s, pool.DB, first)
			switch {
			case err != nil && row.ClassOf(err) != row.ClassLocked:
				t.Fatalf("claim: %v", err)
			case err == nil && len(claimed.Rows) == 3:
				return
			}
			// This machine took so long over a step that the claim has waited long enough for a lock.
		}
		t.Error("no claim that was taken back has won all its rows")
	})
}

// claimAgainst claims three rows while a larger transaction wants the first two of them in the other order.
func claimAgainst(t *testing.T, s *store.Store, db *sql.DB, first int64) (claimed row.Claimed, err error) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() // does nothing when it was rolled back before
	touched := func(id int64) {
		t.Helper()
		if _, err := tx.ExecContext(t.Context(), "UPDATE delay_task_message SET headers = '{}' WHERE id = ?", id); err != nil {
			t.Fatal(err)
		}
	}
	for id := int64(70); id <= 100; id++ {
		touched(id)
	}
	touched(first + 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		refs := []row.Ref{{ID: first}, {ID: first + 1}, {ID: first + 2}}
		claimed, err = s.Claim(t.Context(), row.Claim{Rows: refs, Executor: fmt.Sprint("host:1:t:", first)})
	}()
	// A claim that is seen again and again waits for the lock. INNODB_TRX would tell at once, but is not brought up to date while
	// somebody reads it more often than ten times a second.
	updates := "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'UPDATE%'"
	for seen := 0; seen < 10 && !closed(done); {
		seen += number(t, db, updates)
	}
	if closed(done) {
		return claimed, err
	}
	touched(first)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	<-done
	return claimed, err
}

// All members claim the same rows at once, in batches: none is won twice, and none is left.
func TestMembersOfAClusterShareABacklog(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		members := d.Members
		if members == nil {
			t.Skip("no cluster")
		}
		const tasks = 200
		var stores []*store.Store
		for _, dsn := range members {
			s, _ := open(t, dbtest.Database{Kind: d.Kind, DSN: dsn})
			stores = append(stores, s)
		}
		due := clock(t, stores[0])
		rows := make([]row.Row, tasks)
		refs, ids := make([]row.Ref, tasks), make([]int64, tasks)
		for i := range rows {
			rows[i] = row.Row{ID: int64(i + 1), Tag: "t", TTR: time.Minute, Expected: due, Due: due}
			refs[i], ids[i] = row.Ref{ID: rows[i].ID}, rows[i].ID
		}
		if err := stores[0].Insert(t.Context(), nil, rows); err != nil {
			t.Fatal(err)
		}
		for _, s := range stores {
			for stored := 0; stored < tasks; {
				states, err := s.States(t.Context(), ids)
				if err != nil {
					t.Fatal(err)
				}
				stored = len(states)
			}
		}
		wonBy := map[int64]string{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i, s := range stores {
			wg.Go(func() {
				executor := fmt.Sprint("host:1:t:", i)
				claimed, err := s.Claim(t.Context(), row.Claim{Rows: refs, Executor: executor})
				if err != nil {
					t.Errorf("member %d: %v", i, err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, r := range claimed.Rows {
					if other, twice := wonBy[r.ID]; twice {
						t.Errorf("task %d is won by %s and %s", r.ID, other, executor)
					}
					wonBy[r.ID] = executor
				}
			})
		}
		wg.Wait()
		if len(wonBy) != tasks {
			t.Errorf("%d of %d rows are won", len(wonBy), tasks)
		}
	})
}

func clock(t *testing.T, s *store.Store) row.Time {
	t.Helper()
	reading, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return reading.Time
}

func number(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
