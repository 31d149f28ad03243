package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func claimOne(ctx context.Context, s *sqlstore.Store) error {
	_, err := s.Claim(ctx, row.Claim{Rows: []row.Ref{{ID: 1}}, Executor: row.Executor{Process: 9, Claim: 1}})
	return err
}

func TestReservedConnectionsWaitASecondForALockAndNeverGoBackToTheCallersPool(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, own := open(t, d)
		callers := callersPool(t, d, "innodb_lock_wait_timeout", "49")
		s := sqlstore.New(callers, sqlstore.MySQL)
		insert(t, s, task(1, ""))
		unlock := lock(t, own, []int64{1})
		if err := claimOne(t.Context(), s); row.ClassOf(err) != row.ClassLocked {
			t.Errorf("error %v of class %s, want locked", err, row.ClassOf(err))
		}
		unlock()
		must(t, s.Close(t.Context()))
		if open := callers.Stats().InUse; open != 0 {
			t.Errorf("%d connections are in use after Close", open)
		}
		for range 20 {
			conn, err := callers.Conn(t.Context())
			must(t, err)
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
		if rows, _, err := s.Rows(t.Context(), []int64{1, 2, 3, 4}, false); err != nil || len(rows) != 4 {
			t.Errorf("stored %d tasks (%v), want 4", len(rows), err)
		}
	})
}

func killOthers(t *testing.T, pool *sqlx.DB) {
	t.Helper()
	var ids []int64
	query := "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
	must(t, pool.SelectContext(t.Context(), &ids, query))
	for _, id := range ids {
		_, _ = pool.ExecContext(t.Context(), fmt.Sprint("KILL ", id)) // it may be gone by now
	}
}

// An open transaction makes one kind of write wait for a second. Writes that do not need its lock go on meanwhile. The
// machine may stall for the second of the wait, so there are several tries.
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
		{"a plain save behind saves with a key that is being released", 8, keyed("released"), saves},
		{"a plain save behind entries of the audit log", 8,
			func(ctx context.Context, s *sqlstore.Store, _ int64) error {
				_, err := s.BeginAudit(ctx, row.AuditEntry{Who: "w", Action: "cancel"})
				return err
			}, saves},
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
				_, err := s.Discard(ctx, []row.Broken{{Ref: row.Ref{ID: held}}})
				return err
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
					insert(t, s, task(held, ""), task(3, "released"), task(4, ""))
					tx := begin(t, pool, "UPDATE delay_task_message SET priority = 1 WHERE id = 1",
						"UPDATE delay_task_message SET status = 4 WHERE id = 3",
						"UPDATE delay_task_audit SET who = who")
					must(t, s.Insert(t.Context(), tx, []row.Row{task(2, "held")}))
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
					must(t, err)
					if beside {
						return
					}
				}
				t.Error("every write came after one that waits")
			})
		}
	})
}

// The server rolls the claim back in favour of a transaction that has changed more, and the claim goes on row by row.
func TestClaimThatIsRolledBackGoesOnRowByRow(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		rows := make([]row.Row, 100)
		for i := range rows {
			rows[i] = task(int64(i)+1, "")
		}
		insert(t, s, rows...)
		for tries := range 20 {
			claimed, err := claimAgainst(t, s, pool, int64(1+3*tries))
			switch {
			case err != nil && row.ClassOf(err) != row.ClassLocked:
				t.Fatalf("claim: %v", err)
			case err == nil && len(claimed.Rows) == 3:
				return
			}
			// The machine stalled, so that the claim's lock wait has ended.
		}
		t.Error("no claim that was rolled back has won all its rows")
	})
}

// claimAgainst claims three rows while a larger transaction wants the first two of them in the other order.
func claimAgainst(t *testing.T, s *sqlstore.Store, pool *sqlx.DB, first int64) (claimed row.Claimed, err error) {
	t.Helper()
	update := func(where string) string { return "UPDATE delay_task_message SET headers = '{}' WHERE id " + where }
	tx := begin(t, pool, update("BETWEEN 70 AND 100"), update(fmt.Sprint("= ", first+1)))
	defer tx.Rollback() // does nothing when it was rolled back before
	done, end := context.WithCancel(context.Background())
	go func() {
		defer end()
		refs := []row.Ref{{ID: first}, {ID: first + 1}, {ID: first + 2}}
		claimed, err = s.Claim(t.Context(), row.Claim{Rows: refs, Executor: row.Executor{Process: 9, Claim: first}})
	}()
	// A claim that is seen again and again waits for the lock. INNODB_TRX would show it at once, but is not updated
	// while it is read more often than ten times a second.
	const updates = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'UPDATE%'"
	for seen := 0; seen < 10 && done.Err() == nil; {
		seen += number(t, pool.DB, updates)
	}
	if done.Err() != nil {
		return claimed, err
	}
	must(t, one(tx.ExecContext(t.Context(), update(fmt.Sprint("= ", first)))))
	must(t, tx.Rollback())
	<-done.Done()
	return claimed, err
}

// InnoDB locks the ranges that a transaction searches at REPEATABLE READ, its default: nothing can be inserted there.
// The index is led by the tag, so such a range ends at rows of its own tag, or at the edge of one other.
func TestALockedRangeOfATagHoldsUpAtMostOneOther(t *testing.T) {
	const locked = "m"
	tags := []string{"a", "l", locked, "n", "z"}
	all := []row.Status{row.Pending, row.Completed, row.Failed, row.Executing, row.Cancelled}
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		for search, statuses := range map[string][]row.Status{
			"status = 0": all, "status = 0 AND due_time < UTC_TIMESTAMP(6)": all, "status = 1": all, "status = 2": all,
			"status = 3": all, "task_key = 'none' AND status IN (0, 3)": all,
			"status = 0 AND priority = 0": {row.Pending, row.Completed, row.Executing},
			"status = 3 AND priority = 0": {row.Pending, row.Completed, row.Executing},
		} {
			t.Run(search, func(t *testing.T) {
				exec(t, pool.DB, "DELETE FROM delay_task_message")
				for i, tag := range tags {
					for _, status := range statuses {
						exec(t, pool.DB, "INSERT INTO delay_task_message (id, tag, status) VALUES (?, ?, ?), (?, ?, ?)",
							100*i+10*int(status)+1, tag, status, 100*i+10*int(status)+2, tag, status)
					}
				}
				// On a table of this size the server would read, and lock, all rows.
				tx := begin(t, pool, "UPDATE delay_task_message FORCE INDEX (delay_task_message_due) SET priority = 1"+
					" WHERE tag = '"+locked+"' AND message_body = 'none' AND "+search)
				defer tx.Rollback()
				covered := map[string]bool{}
				for i, tag := range tags {
					if tag == locked {
						continue
					}
					at := func(status row.Status) int64 { return int64(100*i + 10*int(status) + 1) }
					later := row.At(time.Now().Add(time.Hour))
					saved := task(int64(100*i+99), "")
					saved.Tag, saved.Due = tag, later
					settled := row.Change{ID: at(row.Executing), From: row.Executing, To: row.Completed, Due: later}
					retried := row.Change{ID: at(row.Executing) + 1, From: row.Executing, To: row.Pending, Due: later}
					for _, err := range []error{
						s.Insert(t.Context(), nil, []row.Row{saved}),
						one(s.Claim(t.Context(), row.Claim{
							Rows: []row.Ref{{ID: at(row.Pending)}}, Executor: row.Executor{Process: 9, Claim: 1}})),
						one(s.Update(t.Context(), nil, []row.Change{settled})),
						one(s.Update(t.Context(), nil, []row.Change{retried})),
					} {
						if err != nil && row.ClassOf(err) != row.ClassLocked {
							t.Fatal(err)
						}
						covered[tag] = covered[tag] || err != nil
					}
				}
				most := 0
				if len(statuses) < len(all) {
					most = 1
				}
				maps.DeleteFunc(covered, func(_ string, waits bool) bool { return !waits })
				if len(covered) > most {
					t.Errorf("tasks of other tags wait: %v, want at most %d of them", covered, most)
				}
			})
		}
	})
}

// Where the account may not see who waits for whom, the server ends the wait.
func TestAWaitIsCutOffForAnAccountThatMaySeeLocks(t *testing.T) {
	grants := map[dbtest.Kind][]string{
		dbtest.MariaDB: {"PROCESS ON *.*"},
		dbtest.MySQL: {
			"SELECT ON performance_schema.data_lock_waits", "SELECT ON performance_schema.data_locks",
			"SELECT ON performance_schema.threads",
		},
	}
	const timeout, interrupted = 1205, 1317
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, root := open(t, d)
		insert(t, s, task(1, ""))
		defer lock(t, root, []int64{1})()
		pool, _ := limitedUser(t, d, root, "SELECT, INSERT, UPDATE, DELETE")
		claim := func() uint16 {
			limited := sqlstore.New(pool, sqlstore.MySQL)
			defer func() { must(t, limited.Close(t.Context())) }()
			e, _ := errors.AsType[*mysql.MySQLError](claimOne(t.Context(), limited))
			return e.Number
		}
		if got := claim(); got != timeout {
			t.Errorf("without the privilege the claim ends with %d, want %d", got, timeout)
		}
		var user string
		must(t, pool.GetContext(t.Context(), &user, "SELECT SUBSTRING_INDEX(USER(), '@', 1)"))
		for _, grant := range grants[d.Kind] {
			exec(t, root.DB, "GRANT "+grant+" TO '"+user+"'@'%'")
		}
		pool.SetMaxIdleConns(0) // a session keeps the privileges of its login
		if got := claim(); got != interrupted {
			t.Errorf("with the privilege the claim ends with %d, want %d", got, interrupted)
		}
	})
}

// TestNamesOfProcessesHoldUpNoReader locks their table, as a backup does.
func TestNamesOfProcessesHoldUpNoReader(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		must(t, s.Introduce(t.Context(), row.Process{ID: 9, Name: "here", PID: 1}))
		rows := []row.Row{{ID: 1, Executor: row.Executor{Process: 9, Claim: 1}}}
		must(t, store.NameProcesses(t.Context(), s, rows))
		if rows[0].Process != "here:1" {
			t.Fatalf("the process is called %q", rows[0].Process)
		}
		conn, err := pool.Conn(t.Context())
		must(t, err)
		defer conn.Close()
		_, err = conn.ExecContext(t.Context(), "LOCK TABLES delay_task_process WRITE")
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // a lock would be waited for to its end
		defer cancel()
		err = store.NameProcesses(ctx, s, rows)
		if err == nil || ctx.Err() != nil || rows[0].Process != "" {
			t.Errorf("with the table locked: %v, and the process is called %q; want an error", err, rows[0].Process)
		}
		_, err = conn.ExecContext(t.Context(), "UNLOCK TABLES")
		must(t, err)
		must(t, store.NameProcesses(t.Context(), s, rows))
	})
}
