package orm

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/scheduler"
)

func PlaceOrderSQLX(ctx context.Context, db *sqlx.DB, tasks *scheduler.Scheduler, id int64) error {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	task, err := CloseOrder.SaveTx(ctx, tasks, tx, id, 30*time.Minute)
	if err != nil {
		return err
	}
	const insert = "INSERT INTO orders (id, close_task) VALUES (:id, :close_task)"
	if _, err := tx.NamedExecContext(ctx, insert, Order{ID: id, CloseTask: task}); err != nil {
		return err
	}
	return tx.Commit()
}
