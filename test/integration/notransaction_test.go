//go:build unix

package integration

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
)

// Wrappers as libraries have them.
type (
	plain    struct{ delaytask.Tx } // ent's client, sqlc's DBTX: they hide the connection
	embedded struct{ *sql.DB }      // sqlx.DB, bun.DB
	begun    struct {               // bun.Tx
		*sql.Tx
		db *sql.DB
	}
	prepared struct{ plain }   // GORM's pool with prepared statements
	session  struct{ *sql.DB } // has both, whether a transaction is open or not
)

func (session) Commit() error   { return nil }
func (session) Rollback() error { return nil }

func (prepared) GetDBConn() (*sql.DB, error) { return nil, nil }
func (prepared) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	return nil, &mysql.MySQLError{Number: 1295} // a savepoint cannot be prepared
}

func TestOnlyATransactionIsTakenForOne(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		there := save(t, s, "t", time.Hour)
		use := func(c context.Context, tx delaytask.Tx) error {
			_, saved := s.SaveDelayTaskTx(c, tx, "t", nil, time.Hour)
			_, moved := s.RescheduleTx(c, tx, delaytask.ID(there), 2*time.Hour)
			_, cancelled := s.CancelTx(c, tx, delaytask.ID(there))
			for _, err := range []error{moved, cancelled} {
				if errors.Is(err, delaytask.ErrNoTransaction) != errors.Is(saved, delaytask.ErrNoTransaction) {
					t.Errorf("save: %v, another: %v", saved, err)
				}
			}
			return errors.Join(saved, moved, cancelled)
		}
		conn, err := db.Conn(t.Context())
		servertest.OK(t, err)
		defer conn.Close()
		for name, tx := range map[string]delaytask.Tx{
			"a pool":                         db,
			"what embeds a pool":             embedded{db},
			"what hides a pool":              plain{db},
			"what could end a transaction":   session{db},
			"what prepares":                  prepared{plain{db}},
			"a connection":                   conn,
			"what hides a connection":        plain{conn},
			"what embeds a hidden pool":      struct{ plain }{plain{embedded{db}}},
			"a pointer to what hides a pool": &plain{db},
		} {
			if err := use(t.Context(), tx); !errors.Is(err, delaytask.ErrNoTransaction) {
				t.Errorf("%s: got %v, want %v", name, err, delaytask.ErrNoTransaction)
			}
		}
		answer := make(chan error, 1)
		serve(t, s, "complete", func(ctx context.Context, _ *delaytask.Task) error {
			answer <- processor.CompleteTx(ctx, plain{db})
			return nil
		})
		id := save(t, s, "complete", 0)
		err = servertest.Receive(t, answer, "the completion is refused")
		if !errors.Is(err, delaytask.ErrNoTransaction) {
			t.Errorf("complete: got %v, want %v", err, delaytask.ErrNoTransaction)
		}
		reaches(t, s, id, delaytask.Completed) // by its result: the refusal has completed nothing
		unchanged := func(after string) {
			t.Helper()
			const query = "SELECT COUNT(*) FROM delay_task_message WHERE tag = 't' AND version = 0"
			all := number(t, db, "SELECT COUNT(*) FROM delay_task_message WHERE tag = 't'")
			if n := number(t, db, query); n != 1 || all != 1 {
				t.Errorf("after %s %d of %d tasks are as they were, want 1 of 1", after, n, all)
			}
		}
		unchanged("the refusals")

		tx := func() *sql.Tx { return begin(t, db) }
		for name, open := range map[string]func() delaytask.Tx{
			"a transaction":              func() delaytask.Tx { return tx() },
			"what embeds a transaction":  func() delaytask.Tx { return begun{tx(), db} },
			"what hides a transaction":   func() delaytask.Tx { return plain{tx()} },
			"a session with one":         func() delaytask.Tx { return plain{begun{tx(), db}} },
			"a connection after a BEGIN": func() delaytask.Tx { execute(t, conn, "BEGIN"); return conn },
		} {
			begun := open()
			if err := use(t.Context(), begun); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			execute(t, begun, "ROLLBACK") // undoes the save, so it was made in the transaction
			unchanged(name)
		}
	})
}
