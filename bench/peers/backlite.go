package main

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"time"

	"github.com/mikestefanello/backlite"
)

var backliteSystem = system{
	name: "backlite on SQLite", durable: "power loss", alone: true,
	settings: "`NumWorkers` 200, `ReleaseAfter` 10 min as its README has it; WAL, `synchronous=FULL`, one connection;" +
		" modernc.org/sqlite",
	start: func(_ context.Context, dir string) (*server, error) {
		return &server{dsn: filepath.Join(dir, "backlite.db"), version: "SQLite, embedded"}, nil
	},
	open: openBacklite,
}

// Config names the queue to backlite.
func (task) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: tag, MaxAttempts: 5, Backoff: time.Second}
}

type backliteQueue struct {
	db     *sql.DB
	client *backlite.Client
}

func openBacklite(_ context.Context, path string) (queue, error) {
	db, err := sql.Open("sqlite", path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"+
		"&_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	client, err := backlite.NewClient(backlite.ClientConfig{
		DB: db, NumWorkers: workers, ReleaseAfter: 10 * time.Minute, CleanupInterval: time.Hour,
	})
	if err != nil {
		return nil, err
	}
	return &backliteQueue{db, client}, client.Install()
}

func (q *backliteQueue) add(ctx context.Context, due time.Time, tasks ...backlite.Task) error {
	add := q.client.Add(tasks...).Ctx(ctx)
	if !due.IsZero() {
		add = add.At(due)
	}
	_, err := add.Save()
	return err
}

func (q *backliteQueue) save(ctx context.Context, t task) error { return q.add(ctx, t.Due, t) }

// saveMany has one due time for all that it stores.
func (q *backliteQueue) saveMany(ctx context.Context, tasks []task) error {
	all := make([]backlite.Task, len(tasks))
	for i, t := range tasks {
		if all[i] = t; !t.Due.Equal(tasks[0].Due) {
			return errors.ErrUnsupported
		}
	}
	return q.add(ctx, tasks[0].Due, all...)
}

func (q *backliteQueue) work(ctx context.Context, run func(context.Context, task) error) error {
	q.client.Register(backlite.NewQueue(run))
	q.client.Start(ctx)
	return nil
}

func (q *backliteQueue) unfinished(ctx context.Context) (n int, err error) {
	err = q.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM backlite_tasks").Scan(&n)
	return n, err
}

func (q *backliteQueue) clear(ctx context.Context) error {
	_, err := q.db.ExecContext(ctx, "DELETE FROM backlite_tasks")
	return err
}

func (q *backliteQueue) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	q.client.Stop(ctx)
	_ = q.db.Close()
}
