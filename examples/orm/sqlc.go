package orm

import (
	"context"
	"database/sql"
	"time"

	"github.com/delaytask/delaytask/examples/orm/queries"
	"github.com/delaytask/delaytask/scheduler"
)

func PlaceOrderSQLC(ctx context.Context, db *sql.DB, tasks *scheduler.Scheduler, id int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	task, err := CloseOrder.SaveTx(ctx, tasks, tx, id, 30*time.Minute)
	if err != nil {
		return err
	}
	order := queries.InsertOrderParams{ID: id, CloseTask: task}
	if err := queries.New(db).WithTx(tx).InsertOrder(ctx, order); err != nil {
		return err
	}
	return tx.Commit()
}
