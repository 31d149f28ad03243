package main

import (
	"context"
	"time"
)

// system is a task system with the server that it stands on.
type system struct {
	name     string
	alone    bool   // a worker does not see what another process saves
	durable  string // what an acknowledged save survives
	settings string // how it is configured here, and where its documentation says so
	start    func(ctx context.Context, dir string) (*server, error)
	open     func(ctx context.Context, dsn string) (queue, error)
}

// queue is one process's access to a system.
type queue interface {
	// save stores one task. A zero due time is now.
	save(ctx context.Context, t task) error
	// saveMany stores many by the system's call for that. It returns [errors.ErrUnsupported] when it has none.
	saveMany(ctx context.Context, tasks []task) error
	// work begins to run tasks, workers at once.
	work(ctx context.Context, run func(ctx context.Context, t task) error) error
	// unfinished counts stored tasks that have not ended, those that run included.
	unfinished(ctx context.Context) (int, error)
	// clear deletes all tasks. Only a queue that does not work is cleared.
	clear(ctx context.Context) error
	close()
}

// task is what every system stores as JSON: its number, its due time, and about 100 bytes in all.
type task struct {
	N   int       `json:"n"`
	Due time.Time `json:"due"`
	Pad string    `json:"pad"`
}

// workers is how many tasks each system runs at once.
const workers = 200

func newTask(n int, due time.Time) task { return task{N: n, Due: due, Pad: padding} }

const padding = "012345678901234567890123456789012345678901234567"

var systems = []system{
	delaytaskOn("MariaDB", "mariadb"), delaytaskOn("MySQL", "mysql"), delaytaskOn("SQLite", "sqlite"),
	river, backliteSystem,
	asynqWith("always", "power loss"),
	asynqWith("everysec", "a crash of Redis; a power loss costs up to 1 s of saves"),
}
