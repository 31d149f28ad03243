package orm

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/examples/orm/ent"
	"github.com/delaytask/delaytask/scheduler"
)

func PlaceOrderEnt(ctx context.Context, client *ent.Client, tasks *scheduler.Scheduler, id int64) error {
	tx, err := client.Tx(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	task, err := CloseOrder.SaveTx(ctx, tasks, tx, id, 30*time.Minute)
	if err != nil {
		return err
	}
	if err := tx.Order.Create().SetID(id).SetCloseTask(task).Exec(ctx); err != nil {
		return err
	}
	return tx.Commit()
}
