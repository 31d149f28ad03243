// Package orm saves tasks in transactions of database/sql, sqlx, sqlc, GORM, bun and ent. Its tests run all of it on
// SQLite, MariaDB and MySQL:
//
//	make test-orm
package orm

import "github.com/delaytask/delaytask/processor"

//go:generate go tool ent generate --feature sql/execquery ./ent/schema
//go:generate env CGO_ENABLED=0 go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1 generate -f queries/sqlc.yaml

// CloseOrder closes an order that was not paid. Its body is the id of the order.
var CloseOrder = processor.NewKind[int64]("order.close")

// Order is a row of the table that queries/schema.sql creates.
type Order struct {
	ID        int64
	CloseTask int64 `db:"close_task"` // the id of the task that closes it
	Closed    bool
}
