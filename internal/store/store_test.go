package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/storetest"
	"github.com/delaytask/delaytask/migrations"
)

func TestStoreKeepsTheContract(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		storetest.Run(t, func(t *testing.T) engine.Store {
			t.Parallel()
			s, _ := open(t, dbtest.New(t, db.Kind).Spread())
			return s
		})
	})
}

func TestStoreBehavesLikeItsModel(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		storetest.Model(t, func(t *testing.T) engine.Store {
			s, _ := open(t, dbtest.New(t, db.Kind).Spread())
			return s
		})
	})
}

func TestStoreKeepsToTheCallersTransaction(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		storetest.RunTx(t, func(t *testing.T) (engine.Store, func() storetest.Tx) {
			db := dbtest.New(t, db.Kind)
			s, _ := open(t, db)
			// A pool of its own: what the suite reads beside the transaction must not wait for its connection.
			_, callers := open(t, db)
			return s, func() storetest.Tx {
				tx, err := callers.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				return tx
			}
		})
	})
}

func TestStoreWaitsForNobodysLockForLong(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) {
		storetest.RunLocks(t, func(t *testing.T) (engine.Store, func(ids ...int64) func()) {
			t.Parallel()
			s, pool := open(t, dbtest.New(t, db.Kind))
			return s, func(ids ...int64) func() { return lock(t, pool, ids) }
		})
	})
}

func TestStoreSetsBrokenRowsApart(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		storetest.RunBroken(t, func(t *testing.T) (engine.Store, func(int64)) {
			s, pool := open(t, dbtest.New(t, db.Kind))
			return s, func(id int64) { exec(t, pool.DB, "UPDATE delay_task_message SET late_policy = 9 WHERE id = ?", id) }
		})
	})
}

func lock(t *testing.T, pool *sqlx.DB, ids []int64) func() {
	t.Helper()
	tx, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")
	_, err = tx.ExecContext(t.Context(), "UPDATE delay_task_message SET update_time = update_time WHERE id IN ("+list+")")
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}

// open migrates the database and returns a store on it, with the pool that it works on.
func open(t *testing.T, db dbtest.Database) (*store.Store, *sqlx.DB) {
	t.Helper()
	pool, kind, err := store.Connect(t.Context(), db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	if err := migrations.Up(t.Context(), pool.DB, kind); err != nil {
		t.Fatal(err)
	}
	s := store.New(pool, kind)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s, pool
}

func exec(t *testing.T, on *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := on.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
