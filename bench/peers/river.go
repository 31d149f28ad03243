package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	riverqueue "github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

var river = system{
	name: "River on PostgreSQL", durable: "power loss",
	settings: "`MaxWorkers` 200, `FetchCooldown` 2 ms and `FetchPollInterval` 20 ms (defaults 100 ms and 1 s)," +
		" LISTEN/NOTIFY on; bulk by `InsertManyFast`. Its scheduler's 5 s have no setting",
	start: startPostgres,
	open:  openRiver,
}

// Kind names the job to River.
func (task) Kind() string { return tag }

type riverQueue struct {
	pool *pgxpool.Pool
	*riverqueue.Client[pgx.Tx]
	working *riverqueue.Client[pgx.Tx] // once it works
}

func openRiver(ctx context.Context, dsn string) (queue, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 64
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	client, err := riverqueue.NewClient(driver, &riverqueue.Config{Logger: slog.New(slog.DiscardHandler)})
	return &riverQueue{pool: pool, Client: client}, err
}

func riverOptions(t task) *riverqueue.InsertOpts { return &riverqueue.InsertOpts{ScheduledAt: t.Due} }

func (q *riverQueue) save(ctx context.Context, t task) error {
	_, err := q.Insert(ctx, t, riverOptions(t))
	return err
}

func (q *riverQueue) saveMany(ctx context.Context, tasks []task) error {
	jobs := make([]riverqueue.InsertManyParams, len(tasks))
	for i, t := range tasks {
		jobs[i] = riverqueue.InsertManyParams{Args: t, InsertOpts: riverOptions(t)}
	}
	_, err := q.InsertManyFast(ctx, jobs)
	return err
}

func (q *riverQueue) work(ctx context.Context, run func(context.Context, task) error) error {
	registry := riverqueue.NewWorkers()
	riverqueue.AddWorker(registry, riverqueue.WorkFunc(func(ctx context.Context, job *riverqueue.Job[task]) error {
		return run(ctx, job.Args)
	}))
	client, err := riverqueue.NewClient(riverpgxv5.New(q.pool), &riverqueue.Config{
		Logger:        slog.New(slog.DiscardHandler),
		Queues:        map[string]riverqueue.QueueConfig{riverqueue.QueueDefault: {MaxWorkers: workers}},
		Workers:       registry,
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	q.Client, q.working = client, client
	return client.Start(ctx)
}

func (q *riverQueue) unfinished(ctx context.Context) (n int, err error) {
	err = q.pool.QueryRow(ctx,
		"SELECT count(*) FROM river_job WHERE state NOT IN ('completed', 'cancelled', 'discarded')").Scan(&n)
	return n, err
}

func (q *riverQueue) clear(ctx context.Context) error {
	_, err := q.pool.Exec(ctx, "DELETE FROM river_job")
	_, vacuumErr := q.pool.Exec(ctx, "VACUUM ANALYZE river_job")
	return errors.Join(err, vacuumErr)
}

func (q *riverQueue) close() {
	if q.working != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = q.working.StopAndCancel(ctx)
	}
	q.pool.Close()
}
