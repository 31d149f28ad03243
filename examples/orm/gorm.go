package orm

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/delaytask/delaytask/scheduler"
)

func PlaceOrderGORM(ctx context.Context, db *gorm.DB, tasks *scheduler.Scheduler, id int64) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		task, err := CloseOrder.SaveTx(ctx, tasks, tx.Statement.ConnPool, id, 30*time.Minute)
		if err != nil {
			return err
		}
		return tx.Create(&Order{ID: id, CloseTask: task}).Error
	})
}
