package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

func asynqWith(fsync, durable string) system {
	return system{
		name: "Asynq on Redis, " + fsync, durable: durable,
		settings: "`appendfsync " + fsync + "`, `Concurrency` 200, `TaskCheckInterval` 10 ms and" +
			" `DelayedTaskCheckInterval` 20 ms (defaults 1 s and 5 s)",
		start: func(ctx context.Context, dir string) (*server, error) { return startRedis(ctx, dir, fsync) },
		open:  openAsynq,
	}
}

type asynqQueue struct {
	redis  redis.UniversalClient
	client *asynq.Client
	server *asynq.Server // once it works
}

func openAsynq(_ context.Context, address string) (queue, error) {
	client := redis.NewClient(&redis.Options{Addr: address, PoolSize: 64})
	return &asynqQueue{redis: client, client: asynq.NewClientFromRedisClient(client)}, nil
}

func (q *asynqQueue) save(ctx context.Context, t task) error {
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	var options []asynq.Option
	if !t.Due.IsZero() {
		options = append(options, asynq.ProcessAt(t.Due))
	}
	_, err = q.client.EnqueueContext(ctx, asynq.NewTask(tag, body), options...)
	return err
}

func (q *asynqQueue) saveMany(context.Context, []task) error { return errors.ErrUnsupported }

func (q *asynqQueue) work(_ context.Context, run func(context.Context, task) error) error {
	q.server = asynq.NewServerFromRedisClient(q.redis, asynq.Config{
		Concurrency: workers, LogLevel: asynq.FatalLevel, ShutdownTimeout: time.Second,
		TaskCheckInterval: 10 * time.Millisecond, DelayedTaskCheckInterval: 20 * time.Millisecond,
	})
	return q.server.Start(asynq.HandlerFunc(func(ctx context.Context, job *asynq.Task) error {
		var t task
		if err := json.Unmarshal(job.Payload(), &t); err != nil {
			return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
		}
		return run(ctx, t)
	}))
}

func (q *asynqQueue) unfinished(context.Context) (int, error) {
	info, err := asynq.NewInspectorFromRedisClient(q.redis).GetQueueInfo("default")
	if errors.Is(err, asynq.ErrQueueNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size - info.Completed - info.Archived, nil
}

func (q *asynqQueue) clear(ctx context.Context) error { return q.redis.FlushAll(ctx).Err() }

func (q *asynqQueue) close() {
	if q.server != nil {
		q.server.Shutdown()
	}
	_ = q.redis.Close()
}
