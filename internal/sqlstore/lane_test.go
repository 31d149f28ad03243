package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func claimOne(ctx context.Context, s *sqlstore.Store, executor string) error {
	_, err := s.Claim(ctx, row.Claim{Rows: []row.Ref{{ID: 1}}, Executor: executor})
	return err
}

func TestReservedConnectionsWaitASecondForALockAndNeverGoBackToTheCallersPool(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, own := open(t, d)
		callers := callersPool(t, d, "innodb_lock_wait_timeout", "49")
		s := sqlstore.New(callers, sqlstore.MySQL)
		insert(t, s, task(1, ""))
		unlock := lock(t, own, []int64{1})
		if err := claimOne(t.Context(), s, "e"); row.ClassOf(err) != row.ClassLocked {
			t.Errorf("error %v of class %s, want locked", err, row.ClassOf(err))
		}
		unlock()
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if open := callers.Stats().InUse; open != 0 {
			t.Errorf("%d connections are in use after Close", open)
		}
		for range 20 {
			conn, err := callers.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			var wait int
			err = conn.QueryRowContext(t.Context(), "SELECT @@innodb_lock_wait_timeout").Scan(&wait)
			if err != nil || wait != 49 {
				t.Fatalf("a connection of the pool waits %d s for locks (%v), want the caller's 49", wait, err)
			}
		}
		if err := s.Insert(t.Context(), nil, []row.Row{{ID: 2}}); row.ClassOf(err) != row.ClassNotApplied {
			t.Errorf("a closed store answers %v, want not applied", err)
		}
	})
}

func TestConnectionThatTheServerClosedIsReplaced(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		for id := range int64(4) {
			insert(t, s, task(id+1, ""))
			killOthers(t, pool)
		}
		if rows, _, err := s.List(t.Context(), row.Filter{Limit: 10}, false); err != nil || len(rows) != 4 {
			t.Errorf("stored %d tasks (%v), want 4", len(rows), err)
		}
	})
}

func killOthers(t *testing.T, pool *sqlx.DB) {
	t.Helper()
	var ids []int64
	query := "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
	if err := pool.SelectContext(t.Context(), &ids, query); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		_, _ = pool.ExecContext(t.Context(), fmt.Sprint("KILL ", id)) // it may be gone by now
	}
}

func TestStatementThatWasInterruptedLeavesNoConnectionBehind(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		insert(t, s, task(1, ""))
		unlock := lock(t, pool, []int64{1})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- claimOne(ctx, s, "e1") }()
		waitForWrite(t, pool)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || row.ClassOf(err) != row.ClassUnknown {
			t.Errorf("error %v of class %s, want the context's and an unknown outcome", err, row.ClassOf(err))
		}
		unlock()
		if err := claimOne(t.Context(), s, "e2"); err != nil {
			t.Errorf("the next claim: %v", err)
		}
	})
}

// An open transaction makes one kind of write wait for a second. What cannot meet its lock goes on meanwhile. The
// machine may stand still for the second that the wait lasts, so there are several tries.
func TestWriteThatWaitsForALockHoldsUpNoOther(t *testing.T) {
	const held = 1
	renew := func(ctx context.Context, s *sqlstore.Store, id int64) error {
		_, err := s.Renew(ctx, []row.Lease{{Ref: row.Ref{ID: id}, TTR: time.Minute}})
		return err
	}
	renewsHeld := func(ctx context.Context, s *sqlstore.Store, _ int64) error { return renew(ctx, s, held) }
	keyed := func(key string) func(context.Context, *sqlstore.Store, int64) error {
		return func(ctx context.Context, s *sqlstore.Store, n int64) error {
			return s.Insert(ctx, nil, []row.Row{task(100+n, ""), task(200+n, key)})
		}
	}
	saves := func(ctx context.Context, s *sqlstore.Store) error { // in statements of their own
		for id := range int64(20) {
			if err := s.Insert(ctx, nil, []row.Row{task(300+id, "")}); err != nil {
				return err
			}
		}
		return nil
	}
	tests := []struct {
		name    string
		waiters int64 // more than the lane has connections, if what goes on is of another lane
		waits   func(context.Context, *sqlstore.Store, int64) error
		goesOn  func(context.Context, *sqlstore.Store) error
	}{
		{"a plain save behind saves with a key", 8, keyed("held"), saves},
		{"a plain save behind saves with a key that is being given up", 8, keyed("given up"), saves},
		{"a renewal behind another", 1, renewsHeld,
			func(ctx context.Context, s *sqlstore.Store) error { return renew(ctx, s, 4) }},
		{"a heartbeat behind renewals", 2, renewsHeld,
			func(ctx context.Context, s *sqlstore.Store) error {
				joined, err := s.Join(ctx, row.Node{Number: 1, Token: "x"}, time.Hour)
				if err != nil || !joined {
					return fmt.Errorf("joined %v: %w", joined, err)
				}
				_, err = s.Beat(ctx, row.Node{Number: 1, Token: "x"})
				return err
			}},
		{"a look for locked tasks behind the repair of one", 2,
			func(ctx context.Context, s *sqlstore.Store, _ int64) error {
				return s.Discard(ctx, []row.Broken{{Ref: row.Ref{ID: held}}})
			},
			func(ctx context.Context, s *sqlstore.Store) error {
				_, err := s.Locked(ctx, []int64{held})
				return err
			}},
	}
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				for range 5 {
					exec(t, pool.DB, "DELETE FROM delay_task_message")
					insert(t, s, task(held, ""), task(3, "given up"), task(4, ""))
					tx := begin(t, pool, "UPDATE delay_task_message SET priority = 1 WHERE id = 1",
						"UPDATE delay_task_message SET status = 4 WHERE id = 3")
					if err := s.Insert(t.Context(), tx, []row.Row{task(2, "held")}); err != nil {
						t.Fatal(err)
					}
					ended := make(chan struct{}, tt.waiters)
					for n := range tt.waiters {
						go func() {
							_ = tt.waits(t.Context(), s, n) // it ends as it may
							ended <- struct{}{}
						}()
					}
					waitForWrite(t, pool)
					err, beside := tt.goesOn(t.Context(), s), len(ended) == 0
					_ = tx.Rollback()
					for range tt.waiters {
						<-ended
					}
					if err != nil {
						t.Fatal(err)
					}
					if beside {
						return
					}
				}
				t.Error("every write came after one that waits")
			})
		}
	})
}
