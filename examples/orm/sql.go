package orm

import (
	"context"
	"database/sql"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

func PlaceOrder(ctx context.Context, db *sql.DB, tasks *scheduler.Scheduler, id int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	task, err := CloseOrder.SaveTx(ctx, tasks, tx, id, 30*time.Minute)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id, close_task) VALUES (?, ?)", id, task); err != nil {
		return err
	}
	return tx.Commit()
}

// PayOrder deletes a paid order from the open ones, and cancels the task that would have closed it.
func PayOrder(ctx context.Context, db *sql.DB, tasks *scheduler.Scheduler, order Order) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tasks.CancelTx(ctx, tx, delaytask.ID(order.CloseTask)); err != nil {
		return err // ErrFinished: the order is closed
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM orders WHERE id = ?", order.ID); err != nil {
		return err
	}
	return tx.Commit()
}

func ProcessCloseOrder(db *sql.DB, tasks *scheduler.Scheduler) error {
	return CloseOrder.Process(tasks, func(ctx context.Context, _ *delaytask.Task, id int64) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET closed = TRUE WHERE id = ?", id); err != nil {
			return err
		}
		if err := processor.CompleteTx(ctx, tx); err != nil {
			return err // ErrLeaseLost: another process has the task; the rollback undoes the work
		}
		return tx.Commit()
	})
}
