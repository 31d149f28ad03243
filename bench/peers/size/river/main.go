// The least program that runs a job with River, for the comparison of what a program links.
package main

import (
	"context"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

type Args struct {
	N int `json:"n"`
}

func (Args) Kind() string { return "order.close" }

type worker struct{ river.WorkerDefaults[Args] }

func (*worker) Work(context.Context, *river.Job[Args]) error { return nil }

func main() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DSN"))
	if err != nil {
		panic(err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{})
	c, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}},
	})
	if err != nil {
		panic(err)
	}
	_ = c.Start(ctx)
	_, _ = c.Insert(ctx, Args{1}, nil)
	_ = c.Stop(ctx)
}
