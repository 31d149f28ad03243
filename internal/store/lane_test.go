package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

func TestReservedConnectionsNeverGoBackToTheCallersPool(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		open(t, d)
		callers := callersPool(t, d, "innodb_lock_wait_timeout", "49")
		s := store.New(callers, store.MySQL)
		insertOne(t, s, 1)
		if _, err := s.Claim(t.Context(), row.Claim{Rows: []row.Ref{{ID: 1}}, Executor: "e"}); err != nil {
			t.Fatal(err)
		}
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

func TestClaimWaitsForALockAtMostASecondWhateverThePoolSays(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, own := open(t, d)
		s := store.New(callersPool(t, d, "innodb_lock_wait_timeout", "49"), store.MySQL)
		defer s.Close(t.Context())
		insertOne(t, s, 1)
		defer lock(t, own, []int64{1})()
		_, err := s.Claim(t.Context(), row.Claim{Rows: []row.Ref{{ID: 1}}, Executor: "e"})
		if row.ClassOf(err) != row.ClassLocked {
			t.Errorf("error %v of class %s, want locked", err, row.ClassOf(err))
		}
	})
}

func TestConnectionThatTheServerClosedIsReplaced(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		for id := range int64(4) {
			insertOne(t, s, id+1)
			killOthers(t, pool)
		}
		if rows, _, err := s.List(t.Context(), row.Filter{Limit: 10}, false); err != nil || len(rows) != 4 {
			t.Errorf("stored %d tasks (%v), want 4", len(rows), err)
		}
	})
}

func TestStatementThatWasInterruptedLeavesNoConnectionBehind(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		insertOne(t, s, 1)
		unlock := lock(t, pool, []int64{1})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := s.Claim(ctx, row.Claim{Rows: []row.Ref{{ID: 1}}, Executor: "e1"})
			done <- err
		}()
		waitForWrite(t, pool)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || row.ClassOf(err) != row.ClassUnknown {
			t.Errorf("error %v of class %s, want the context's and an unknown outcome", err, row.ClassOf(err))
		}
		unlock()
		if _, err := s.Claim(t.Context(), row.Claim{Rows: []row.Ref{{ID: 1}}, Executor: "e2"}); err != nil {
			t.Errorf("the next claim: %v", err)
		}
	})
}

// The machine may stand still for the second that the wait lasts, so there are several tries.
func TestRenewalThatWaitsForALockHoldsUpNoOther(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		insertOne(t, s, 1)
		insertOne(t, s, 2)
		defer lock(t, pool, []int64{1})()
		renew := func(id int64) error {
			_, err := s.Renew(t.Context(), []row.Lease{{Ref: row.Ref{ID: id}, TTR: time.Second}})
			return err
		}
		for range 5 {
			waited := make(chan error, 1)
			go func() { waited <- renew(1) }()
			waitForWrite(t, pool)
			if err := renew(2); err != nil {
				t.Fatal(err)
			}
			beside := len(waited) == 0
			if err := <-waited; row.ClassOf(err) != row.ClassLocked {
				t.Fatalf("error %v, want locked", err)
			}
			if beside {
				return
			}
		}
		t.Error("every renewal came after the one that waits")
	})
}

// waitForWrite returns when another connection of this database is in the midst of a write.
func waitForWrite(t *testing.T, pool *sqlx.DB) {
	t.Helper()
	for {
		var n int
		query := "SELECT COUNT(*) FROM information_schema.processlist" +
			" WHERE db = DATABASE() AND id <> CONNECTION_ID() AND (info LIKE 'UPDATE%' OR info LIKE 'INSERT%')"
		if err := pool.GetContext(t.Context(), &n, query); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
	}
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

func insertOne(t *testing.T, s *store.Store, id int64) {
	t.Helper()
	due := row.Time(1_800_000_000_000_000)
	if err := s.Insert(t.Context(), nil, []row.Row{{ID: id, Tag: "a", TTR: 15e9, Expected: due, Due: due}}); err != nil {
		t.Fatal(err)
	}
}
