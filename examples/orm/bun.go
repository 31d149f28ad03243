package orm

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/delaytask/delaytask/scheduler"
)

func PlaceOrderBun(ctx context.Context, db *bun.DB, tasks *scheduler.Scheduler, id int64) error {
	return db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		task, err := CloseOrder.SaveTx(ctx, tasks, tx.Tx, id, 30*time.Minute)
		if err != nil {
			return err
		}
		_, err = tx.NewInsert().Model(&Order{ID: id, CloseTask: task}).Exec(ctx)
		return err
	})
}
