package documents

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

type order struct{ Number int }

// CloseOrder is as in the first program.
var CloseOrder = processor.NewKind[order]("order.close", delaytask.WithMaxAttempts(5))

func placeOrder(ctx context.Context, db *sql.DB, tasks *scheduler.Scheduler, o order) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (number) VALUES (?)", o.Number); err != nil {
		return err
	}
	key := delaytask.WithKey(fmt.Sprint("order ", o.Number)) // at most one unfinished task carries it
	if _, err := CloseOrder.SaveTx(ctx, tasks, tx, o, 30*time.Minute, key); err != nil {
		return err
	}
	return tx.Commit()
}

func TestOrderAndItsTaskAreStoredTogether(t *testing.T) {
	t.Parallel()
	dsn := embedded(t)
	tasks := servertest.Open(t, dsn, scheduler.Config{})
	servertest.Exec(t, dsn, "CREATE TABLE orders (number INTEGER)")
	db := servertest.SQL(t, dsn)
	for _, want := range []error{nil, delaytask.ErrDuplicate} {
		if err := placeOrder(t.Context(), db, tasks, order{Number: 42}); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	var orders, saved int
	servertest.OK(t, db.QueryRowContext(t.Context(),
		"SELECT (SELECT COUNT(*) FROM orders), (SELECT COUNT(*) FROM delay_task_message)").Scan(&orders, &saved))
	if orders != 1 || saved != 1 {
		t.Errorf("%d orders, %d tasks", orders, saved)
	}
}

func embedded(t *testing.T) (dsn string) { return "sqlite:" + filepath.Join(t.TempDir(), "tasks.db") }
