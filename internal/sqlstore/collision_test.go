package sqlstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// The server takes the claim back for a transaction that has changed more, and the claim goes on row by row.
func TestClaimThatIsTakenBackGoesOnRowByRow(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		insertTasks(t, s, 100)
		for tries := range 20 {
			claimed, err := claimAgainst(t, s, pool, int64(1+3*tries))
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

func insertTasks(t *testing.T, s *sqlstore.Store, n int64) (refs []row.Ref, ids []int64) {
	t.Helper()
	var rows []row.Row
	for id := range n {
		rows, refs, ids = append(rows, task(id+1, "")), append(refs, row.Ref{ID: id + 1}), append(ids, id+1)
	}
	insert(t, s, rows...)
	return refs, ids
}

// claimAgainst claims three rows while a larger transaction wants the first two of them in the other order.
func claimAgainst(t *testing.T, s *sqlstore.Store, pool *sqlx.DB, first int64) (claimed row.Claimed, err error) {
	t.Helper()
	touch := func(where string) string { return "UPDATE delay_task_message SET headers = '{}' WHERE id " + where }
	tx := begin(t, pool, touch("BETWEEN 70 AND 100"), touch(fmt.Sprint("= ", first+1)))
	defer tx.Rollback() // does nothing when it was rolled back before
	done, end := context.WithCancel(context.Background())
	go func() {
		defer end()
		refs := []row.Ref{{ID: first}, {ID: first + 1}, {ID: first + 2}}
		claimed, err = s.Claim(t.Context(), row.Claim{Rows: refs, Executor: fmt.Sprint("host:1:t:", first)})
	}()
	// A claim that is seen again and again waits for the lock. INNODB_TRX would tell at once, but is not brought up to
	// date while somebody reads it more often than ten times a second.
	const updates = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'UPDATE%'"
	for seen := 0; seen < 10 && done.Err() == nil; {
		seen += number(t, pool.DB, updates)
	}
	if done.Err() != nil {
		return claimed, err
	}
	if _, err := tx.ExecContext(t.Context(), touch(fmt.Sprint("= ", first))); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	<-done.Done()
	return claimed, err
}

// All members claim the same rows at once, in batches: none is won twice, and none is left.
func TestMembersOfAClusterShareABacklog(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		if d.Members == nil {
			t.Skip("no cluster")
		}
		const tasks = 200
		var stores []*sqlstore.Store
		for _, dsn := range d.Members {
			s, _ := open(t, dbtest.Database{Kind: d.Kind, DSN: dsn})
			stores = append(stores, s)
		}
		refs, ids := insertTasks(t, stores[0], tasks)
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
