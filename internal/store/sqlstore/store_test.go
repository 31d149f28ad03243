package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/storetest"
	"github.com/delaytask/delaytask/migrations"
)

func TestStoreKeepsTheContract(t *testing.T) {
	lender.Each(t, func(t *testing.T, db dbtest.Database) {
		storetest.Run(t, func(t *testing.T) store.Store {
			t.Parallel()
			s, _ := open(t, lender.New(t, db.Kind).Spread())
			return s
		})
	})
}

func TestStoreBehavesLikeItsModel(t *testing.T) {
	lender.Each(t, func(t *testing.T, db dbtest.Database) {
		t.Parallel()
		storetest.Model(t, func(t *testing.T) store.Store {
			s, _ := open(t, db.Spread())
			return s
		})
	})
}

func TestStoreKeepsToTheCallersTransaction(t *testing.T) {
	lender.Each(t, func(t *testing.T, db dbtest.Database) {
		storetest.RunTx(t, func(t *testing.T) (store.Store, func() storetest.Tx) {
			db := lender.New(t, db.Kind)
			s, _ := open(t, db)
			// A pool of its own: what the suite reads beside the transaction must not wait for its connection.
			_, callers := open(t, db)
			return s, func() storetest.Tx {
				tx, err := callers.BeginTx(t.Context(), nil)
				must(t, err)
				return tx
			}
		})
	})
}

func TestStoreWaitsForALockOnce(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, db dbtest.Database) {
		storetest.RunLocks(t, 250*time.Millisecond, func(t *testing.T) (store.Store, func(ids ...int64) func()) {
			t.Parallel()
			s, pool := open(t, lender.New(t, db.Kind))
			return s, func(ids ...int64) func() { return lock(t, pool, ids) }
		})
	})
}

func TestStoreReportsBrokenRows(t *testing.T) {
	lender.Each(t, func(t *testing.T, db dbtest.Database) {
		storetest.RunBroken(t, func(t *testing.T) (store.Store, func(int64)) {
			s, pool := open(t, lender.New(t, db.Kind))
			const spoil = "UPDATE delay_task_message SET late_policy = 9 WHERE id = ?"
			return s, func(id int64) { exec(t, pool.DB, spoil, id) }
		})
	})
}

// lender lends migrated databases to tests that change rows alone, and not where plain INSERTs go on counting.
var lender = &dbtest.Lender{Prepare: migrate, Empty: empty}

func migrate(ctx context.Context, db dbtest.Database) error {
	pool, kind, err := sqlstore.Connect(ctx, db.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	return migrations.Up(ctx, pool.DB, kind)
}

func empty(ctx context.Context, db dbtest.Database) error {
	pool, _, err := sqlstore.Connect(ctx, db.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	for _, table := range []string{
		"message", "node", "tag", "schedule", "schedule_run", "rollup", "audit", "request", "token", "worker",
	} {
		if _, err := pool.ExecContext(ctx, "DELETE FROM delay_task_"+table); err != nil {
			return err
		}
	}
	return nil
}

// open returns a store on a migrated database, with the pool that it works on.
func open(t *testing.T, db dbtest.Database) (*sqlstore.Store, *sqlx.DB) {
	t.Helper()
	pool, kind, err := sqlstore.Connect(t.Context(), db.DSN)
	must(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	s := sqlstore.New(pool, kind)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s, pool
}

// openNew is open after the migrations.
func openNew(t *testing.T, db dbtest.Database) (*sqlstore.Store, *sqlx.DB) {
	t.Helper()
	must(t, migrate(t.Context(), db))
	return open(t, db)
}

// callersPool is a pool as an application opens it, with one session variable.
func callersPool(t *testing.T, d dbtest.Database, variable, value string) *sqlx.DB {
	t.Helper()
	cfg := config(t, d)
	cfg.Params = map[string]string{variable: value}
	return poolOf(t, cfg.FormatDSN())
}

func poolOf(t *testing.T, dsn string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("mysql", dsn)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func config(t *testing.T, d dbtest.Database) *mysql.Config {
	t.Helper()
	cfg, err := mysql.ParseDSN(d.DSN)
	must(t, err)
	return cfg
}

func task(id int64, key string) row.Row {
	return row.Row{ID: id, Tag: "a", Key: key, TTR: time.Minute, Expected: row.MinTime, Due: row.MinTime}
}

func insert(t *testing.T, s *sqlstore.Store, rows ...row.Row) {
	t.Helper()
	must(t, s.Insert(t.Context(), nil, rows))
}

func exec(t *testing.T, on *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := on.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func number(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	must(t, db.QueryRowContext(t.Context(), query).Scan(&n))
	return n
}

// waitForWrite returns when another connection of this database is executing a write.
func waitForWrite(t *testing.T, pool *sqlx.DB) {
	t.Helper()
	const writes = "SELECT COUNT(*) FROM information_schema.processlist" +
		" WHERE db = DATABASE() AND id <> CONNECTION_ID() AND (info LIKE 'UPDATE%' OR info LIKE 'INSERT%')"
	for number(t, pool.DB, writes) == 0 {
	}
}

func lock(t *testing.T, pool *sqlx.DB, ids []int64) func() {
	t.Helper()
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")
	tx := begin(t, pool, "UPDATE delay_task_message SET update_time = update_time WHERE id IN ("+list+")")
	return func() { _ = tx.Rollback() }
}

// begin opens a transaction that has run the statements.
func begin(t *testing.T, pool *sqlx.DB, statements ...string) *sql.Tx {
	t.Helper()
	tx, err := pool.BeginTx(t.Context(), nil)
	must(t, err)
	for _, statement := range statements {
		must(t, one(tx.ExecContext(t.Context(), statement)))
	}
	return tx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func one[A any](_ A, err error) error { return err }

func two[A, B any](_ A, _ B, err error) error { return err }

// No setting of a caller's pool changes what is stored, outside or inside of the caller's transaction.
func TestSettingsOfTheCallersPoolChangeNothing(t *testing.T) {
	settings := []string{
		"",
		"parseTime=true&loc=America%2FNew_York",
		"parseTime=true&loc=America%2FNew_York&interpolateParams=true&time_zone=%27-05:00%27",
		"clientFoundRows=true",
		"clientFoundRows=true&interpolateParams=true",
		"charset=latin1",
		"charset=latin1&interpolateParams=true",
		"sql_mode=%27ANSI_QUOTES,NO_BACKSLASH_ESCAPES%27&interpolateParams=true",
		"sql_mode=%27%27",
		"columnsWithAlias=true&collation=utf8mb4_general_ci&transaction_isolation=%27SERIALIZABLE%27",
	}
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, own := open(t, d)
		plain, _, _ := strings.Cut(d.DSN, "?")
		for _, params := range settings {
			if d.Kind == dbtest.Group { // which refuses that level
				params = strings.ReplaceAll(params, "SERIALIZABLE", "READ-COMMITTED")
			}
			if d.Kind == dbtest.MariaDB || d.Kind == dbtest.Galera {
				params = strings.ReplaceAll(params, "transaction_isolation", "tx_isolation")
			}
			t.Run(params, func(t *testing.T) {
				callers := poolOf(t, plain+"?"+params)
				storetest.RunColumns(t, func(t *testing.T) (store.Store, func() storetest.Tx) {
					exec(t, own.DB, "DELETE FROM delay_task_message")
					s := sqlstore.New(callers, sqlstore.MySQL)
					t.Cleanup(func() { _ = s.Close(context.Background()) })
					reading, err := s.Now(t.Context())
					if skew := time.Since(reading.Time.Std()).Abs(); err != nil || skew > 10*time.Second {
						t.Errorf("the clock reads %+v, %v from the machine's: %v", reading, skew, err)
					}
					return s, func() storetest.Tx { return begin(t, callers) }
				})
			})
		}
	})
}
