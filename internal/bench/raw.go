package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/sqlstore"
)

// What every task of a measurement has, raw or not.
const (
	benchTag = "bench.task"
	farDelay = 24 * time.Hour // of tasks that are not to run

	// benchBody has 100 bytes.
	benchBody = `{"order":"7d793037-a076-4d4f-8e5b-0c4f2b1a9e11","amount":"199.90","reason":"not paid in 30 minutes"}`
)

// raw is a program that knows nothing of delaytask but its table.
type raw struct {
	conns []*sql.Conn // open and warm
	kind  sqlstore.Kind
}

// withRaw gives f n connections. A SQLite file has one writer, and is the faster for being written by one connection
// alone.
func (d *database) withRaw(ctx context.Context, n int, f func(context.Context, *raw) error) (err error) {
	pool, err := d.connect(ctx, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	r := &raw{kind: d.kind}
	defer func() {
		for _, conn := range r.conns {
			err = errors.Join(err, conn.Close())
		}
	}()
	if d.kind == sqlstore.SQLite {
		n = 1
	}
	for range n {
		conn, err := pool.Conn(ctx)
		if err != nil {
			return fmt.Errorf("open %d connections, which the server must allow: %w", n, err)
		}
		r.conns = append(r.conns, conn)
		var rows int // opens the table
		warm := conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT id FROM delay_task_message LIMIT 1) one")
		if err := warm.Scan(&rows); err != nil {
			return fmt.Errorf("warm a connection: %w", err)
		}
	}
	return f(ctx, r)
}

// rawIDs makes ids like delaytask's own: they ascend.
func rawIDs() *cluster.IDs { return cluster.NewIDs(cluster.RandomNode(), time.Now) }
