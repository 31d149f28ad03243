package orm

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	entdialect "entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jmoiron/sqlx"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"github.com/uptrace/bun/schema"
	gormmysql "gorm.io/driver/mysql"
	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	gormlogger "gorm.io/gorm/logger"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/examples/orm/ent"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
	_ "github.com/delaytask/delaytask/sqlite"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

//go:embed queries/schema.sql
var createOrders string

// library is one way to talk to the database.
type library struct {
	place func(ctx context.Context, tasks *scheduler.Scheduler, id int64) error
	pool  delaytask.Tx // what the library gives outside of a transaction
}

// libraries returns all of them on the application's pool, by name.
func libraries(t *testing.T, db *sql.DB, embedded bool) map[string]library {
	t.Helper()
	name, gormDialect := entdialect.MySQL, gormmysql.New(gormmysql.Config{Conn: db})
	var bunDialect schema.Dialect = mysqldialect.New()
	if embedded {
		name, gormDialect = entdialect.SQLite, gormsqlite.New(gormsqlite.Config{Conn: db})
		bunDialect = sqlitedialect.New()
	}
	gorms := map[bool]*gorm.DB{}
	for _, prepare := range []bool{false, true} {
		g, err := gorm.Open(gormDialect, &gorm.Config{PrepareStmt: prepare, Logger: gormlogger.Discard})
		servertest.OK(t, err)
		gorms[prepare] = g
	}
	x, b := sqlx.NewDb(db, name), bun.NewDB(db, bunDialect)
	client := ent.NewClient(ent.Driver(entsql.OpenDB(name, db)))
	return map[string]library{
		"database/sql":                   on(PlaceOrder, db, db),
		"sqlx":                           on(PlaceOrderSQLX, x, x),
		"sqlc":                           on(PlaceOrderSQLC, db, db),
		"bun":                            on(PlaceOrderBun, b, b),
		"ent":                            on(PlaceOrderEnt, client, client),
		"GORM":                           on(PlaceOrderGORM, gorms[false], gorms[false].Statement.ConnPool),
		"GORM, with prepared statements": on(PlaceOrderGORM, gorms[true], gorms[true].Statement.ConnPool),
	}
}

func on[DB any](place func(context.Context, DB, *scheduler.Scheduler, int64) error, db DB, pool delaytask.Tx) library {
	return library{func(ctx context.Context, tasks *scheduler.Scheduler, id int64) error {
		return place(ctx, db, tasks, id)
	}, pool}
}

func TestTransactionOfEachLibraryDecides(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		shop := open(t, d)
		var order int64
		for name, l := range libraries(t, shop.db, d.Kind == dbtest.SQLite) {
			order++
			t.Run(name, func(t *testing.T) {
				shop.T = t
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				servertest.OK(t, l.place(ctx, shop.tasks, order))
				task := shop.pending(order)
				// It saves a task, and then meets the order.
				if err := l.place(ctx, shop.tasks, order); err == nil {
					t.Error("an order was placed twice")
				}
				if got := shop.pending(order); got != task {
					t.Errorf("after the rollback the task is %d, want %d", got, task)
				}
				shop.runs(order, task)
				_, err := CloseOrder.SaveTx(t.Context(), shop.tasks, l.pool, order, time.Hour)
				if !errors.Is(err, delaytask.ErrNoTransaction) {
					t.Errorf("outside of a transaction: got %v, want %v", err, delaytask.ErrNoTransaction)
				}
			})
		}
	})
}

func TestPaidOrderIsNotClosed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		shop := open(t, d)
		for order := range int64(2) {
			servertest.OK(t, PlaceOrder(t.Context(), shop.db, shop.tasks, order))
		}
		paid, unpaid := shop.pending(0), shop.pending(1)
		shop.runs(1, unpaid)
		err := PayOrder(t.Context(), shop.db, shop.tasks, Order{ID: 1, CloseTask: unpaid})
		if !errors.Is(err, delaytask.ErrFinished) {
			t.Errorf("pay a closed order: got %v, want %v", err, delaytask.ErrFinished)
		}
		servertest.OK(t, PayOrder(t.Context(), shop.db, shop.tasks, Order{ID: 0, CloseTask: paid}))
		row, err := shop.tasks.Get(t.Context(), delaytask.ID(paid))
		servertest.OK(t, err)
		if row.Status != delaytask.Cancelled {
			t.Errorf("the task of a paid order is %s, want %s", row.Status, delaytask.Cancelled)
		}
	})
}

// open returns a shop whose tasks run.
func open(t *testing.T, d dbtest.Database) *shop {
	t.Helper()
	db := servertest.SQL(t, d.DSN)
	_, err := db.ExecContext(t.Context(), createOrders)
	servertest.OK(t, err)
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	tasks, err := scheduler.New(t.Context(), db, scheduler.Config{Migrate: true, Logger: log})
	servertest.OK(t, err)
	t.Cleanup(func() { servertest.Stop(t, tasks) })
	servertest.OK(t, ProcessCloseOrder(db, tasks))
	servertest.OK(t, tasks.Start(t.Context()))
	return &shop{t, db, tasks}
}

// shop looks at the database as no library does.
type shop struct {
	*testing.T
	db    *sql.DB
	tasks *scheduler.Scheduler
}

// pending returns the one task that closes the order, which its row names.
func (s *shop) pending(order int64) (task int64) {
	s.Helper()
	const query = "SELECT MAX(m.id), COUNT(*), MAX(o.close_task) FROM delay_task_message m, orders o " +
		"WHERE m.tag = ? AND m.message_body = ? AND m.status = 0 AND o.id = ?"
	var count, named int64
	row := s.db.QueryRowContext(s.Context(), query, CloseOrder.Tag(), fmt.Sprint(order), order)
	servertest.OK(s.T, row.Scan(&task, &count, &named))
	if count != 1 || named != task {
		s.Fatalf("order %d has %d tasks, the last is %d and its row names %d", order, count, task, named)
	}
	return task
}

// runs makes the task due, and waits until it has closed the order.
func (s *shop) runs(order, task int64) {
	s.Helper()
	_, err := s.tasks.Reschedule(s.Context(), delaytask.ID(task), 0)
	servertest.OK(s.T, err)
	servertest.Eventually(s.T, "the task is completed", func() bool {
		row, err := s.tasks.Get(s.Context(), delaytask.ID(task))
		servertest.OK(s.T, err)
		return row.Status == delaytask.Completed
	})
	var closed bool
	servertest.OK(s.T, s.db.QueryRowContext(s.Context(), "SELECT closed FROM orders WHERE id = ?", order).Scan(&closed))
	if !closed {
		s.Errorf("order %d is open after its task", order)
	}
}
