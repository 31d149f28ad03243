package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
	_ "github.com/delaytask/delaytask/sqlite"
)

func delaytaskOn(database, kind string) system {
	s := system{
		name: "delaytask on " + database, durable: "power loss",
		settings: "defaults, `Concurrency` 200", open: openDelaytask,
	}
	switch kind {
	case "sqlite":
		s.start = func(_ context.Context, dir string) (*server, error) {
			return &server{dsn: "sqlite:" + filepath.Join(dir, "delaytask.db"), version: "SQLite, embedded"}, nil
		}
	default:
		s.start = func(ctx context.Context, dir string) (*server, error) { return startMySQL(ctx, kind, dir) }
	}
	return s
}

type delaytaskQueue struct {
	*scheduler.Scheduler
	db *sql.DB
}

func openDelaytask(ctx context.Context, dsn string) (queue, error) {
	s, err := scheduler.Open(ctx, dsn, scheduler.Config{
		Migrate: true, Concurrency: workers, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	driver, name := "mysql", dsn
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, name = "sqlite", path+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, name)
	return delaytaskQueue{s, db}, err
}

const tag = "bench"

func timed(t task) []delaytask.Option {
	if t.Due.IsZero() {
		return nil
	}
	return []delaytask.Option{delaytask.WithTime(t.Due)}
}

func (q delaytaskQueue) save(ctx context.Context, t task) error {
	_, err := q.SaveDelayTask(ctx, tag, t, 0, timed(t)...)
	return err
}

func (q delaytaskQueue) saveMany(ctx context.Context, tasks []task) error {
	items := make([]delaytask.Item, len(tasks))
	for i, t := range tasks {
		items[i] = delaytask.Item{Tag: tag, Body: t, Options: timed(t)}
	}
	_, err := q.SaveDelayTasks(ctx, items)
	return err
}

func (q delaytaskQueue) work(ctx context.Context, run func(context.Context, task) error) error {
	err := q.Register(tag, processor.Func(func(ctx context.Context, job *delaytask.Task) error {
		var t task
		if err := json.Unmarshal(job.Body, &t); err != nil {
			return err
		}
		return run(ctx, t)
	}))
	if err != nil {
		return err
	}
	return q.Start(ctx)
}

func (q delaytaskQueue) unfinished(ctx context.Context) (n int, err error) {
	err = q.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM delay_task_message WHERE status IN (0, 3)").Scan(&n)
	return n, err
}

func (q delaytaskQueue) clear(ctx context.Context) error {
	_, err := q.db.ExecContext(ctx, "DELETE FROM delay_task_message")
	return err
}

func (q delaytaskQueue) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = q.Stop(ctx)
	_ = q.db.Close()
}
