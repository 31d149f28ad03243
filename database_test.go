package delaytask

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/processor"
)

// On every kind of database: an application's own pool, a task saved in a transaction, completed in one, and found again.
func TestTransactionsOfAnApplicationOnEveryDatabase(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, database dbtest.Database) {
		driver, dsn := "mysql", database.DSN
		if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
			driver, dsn = "sqlite", path+"?_pragma=busy_timeout(5000)&_txlock=immediate"
		}
		db, err := sql.Open(driver, dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE effects (task BIGINT)"); err != nil {
			t.Fatal(err)
		}
		s, err := New(t.Context(), db, Config{
			Migrate: true, Backoff: processor.Constant(0), Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stopOK(t, s) })

		done := make(chan struct{})
		work := processor.Func(func(ctx context.Context, task *processor.Task) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if _, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES (?)", task.ID); err != nil {
				return err
			}
			if err := CompleteTx(ctx, tx); err != nil {
				return err
			}
			if task.Attempt == 1 {
				return errors.New("the first attempt rolls back")
			}
			defer close(done)
			return tx.Commit()
		})
		if err := s.Register("t", work); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		tx := begin(t, db)
		id, err := s.SaveDelayTaskTx(t.Context(), tx, "t", "body", 0, WithKey("k"))
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		<-done
		var effects int
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM effects").Scan(&effects); err != nil || effects != 1 {
			t.Errorf("%d effects, %v, want 1", effects, err)
		}
		task, err := s.Get(t.Context(), ID(id))
		if err != nil || task.Status != Completed || task.Attempt != 2 || len(task.Errors) != 1 ||
			task.Started.Before(task.Expected) {
			t.Errorf("got %+v, %v", task, err)
		}
		stats, err := s.Stats(t.Context())
		if err != nil || len(stats) != 1 || stats[0].Lateness.Samples != 1 || stats[0].Lateness.Max > time.Minute {
			t.Errorf("got %+v, %v", stats, err)
		}
		if late, err := s.Lateness(t.Context(), "t", time.Hour); late != stats[0].Lateness || err != nil {
			t.Errorf("of the last hour: got %+v, %v; want %+v", late, err, stats[0].Lateness)
		}
	})
}
