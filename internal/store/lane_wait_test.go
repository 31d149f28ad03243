package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// Somebody's open transaction makes one kind of write wait for a second. What cannot meet its lock goes on meanwhile.
func TestWriteThatWaitsForALockHoldsUpNoOtherKind(t *testing.T) {
	held := row.Ref{ID: 1}
	tests := []struct {
		name    string
		waiters int64 // more than the lane has connections
		waits   func(context.Context, *store.Store, int64) error
		goesOn  func(context.Context, *store.Store) error
	}{
		{"a plain save behind saves with a key", 8,
			func(ctx context.Context, s *store.Store, n int64) error {
				return s.Insert(ctx, nil, []row.Row{task(100+n, ""), task(200+n, "held")})
			},
			saveMany,
		},
		{"a plain save behind saves with a key that is being given up", 8,
			func(ctx context.Context, s *store.Store, n int64) error {
				return s.Insert(ctx, nil, []row.Row{task(100+n, ""), task(200+n, "given up")})
			},
			saveMany,
		},
		{"a heartbeat behind a renewal", 2,
			func(ctx context.Context, s *store.Store, _ int64) error {
				_, err := s.Renew(ctx, []row.Lease{{Ref: held, TTR: time.Minute}})
				return err
			},
			func(ctx context.Context, s *store.Store) error {
				joined, err := s.Join(ctx, row.Node{Number: 1, Token: "x"}, time.Hour)
				if err != nil || !joined {
					return fmt.Errorf("joined %v: %w", joined, err)
				}
				_, err = s.Beat(ctx, row.Node{Number: 1, Token: "x"})
				return err
			},
		},
		{"a look for locked tasks behind the repair of one", 2,
			func(ctx context.Context, s *store.Store, _ int64) error {
				return s.Discard(ctx, []row.Broken{{Ref: held}})
			},
			func(ctx context.Context, s *store.Store) error {
				_, err := s.Locked(ctx, []int64{held.ID})
				return err
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
				s, pool := open(t, d)
				insertOne(t, s, held.ID)
				if err := s.Insert(t.Context(), nil, []row.Row{task(3, "given up")}); err != nil {
					t.Fatal(err)
				}
				tx, err := pool.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, change := range []string{"priority = 1 WHERE id = 1", "status = 4 WHERE id = 3"} {
					if _, err := tx.ExecContext(t.Context(), "UPDATE delay_task_message SET "+change); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.Insert(t.Context(), tx, []row.Row{task(2, "held")}); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, tt.waiters)
				for n := range tt.waiters {
					go func() { ended <- tt.waits(t.Context(), s, n) }()
				}
				waitForWrite(t, pool)
				if err := tt.goesOn(t.Context(), s); err != nil || len(ended) > 0 {
					t.Errorf("it ended with %v, after %d of the waits", err, len(ended))
				}
				_ = tx.Rollback()
				for range tt.waiters {
					if err := <-ended; err != nil {
						t.Log("a wait ended with", err)
					}
				}
			})
		})
	}
}

// saveMany saves rows without a key, in statements of their own.
func saveMany(ctx context.Context, s *store.Store) error {
	for id := range int64(20) {
		if err := s.Insert(ctx, nil, []row.Row{task(300+id, "")}); err != nil {
			return err
		}
	}
	return nil
}

func task(id int64, key string) row.Row {
	return row.Row{ID: id, Tag: "a", Key: key, TTR: time.Minute, Expected: row.MinTime, Due: row.MinTime}
}
