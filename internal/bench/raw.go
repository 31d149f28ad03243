package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// What every task of a measurement has, raw or not.
const (
	benchTag  = "bench.task"
	farDelay  = 24 * time.Hour // of tasks that are not to run
	bodyBytes = 100
)

var benchBody = `{"order":"` + strings.Repeat("7", bodyBytes-len(`{"order":""}`)) + `"}`

// raw is a program that knows nothing of delaytask but its table.
type raw struct {
	pool  *sqlx.DB
	conns []*sql.Conn // open and warm
	kind  store.Kind
}

// withRaw gives f n connections. A SQLite file has one writer, and is the faster for being written by one connection alone.
func (d *database) withRaw(ctx context.Context, n int, f func(context.Context, *raw) error) (err error) {
	pool, err := d.connect(ctx, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	r := &raw{pool: pool, kind: d.kind}
	defer func() {
		for _, conn := range r.conns {
			err = errors.Join(err, conn.Close())
		}
	}()
	if d.kind == store.SQLite {
		n = 1
	}
	for range n {
		conn, err := pool.Conn(ctx)
		if err != nil {
			return fmt.Errorf("open %d connections, which the server must allow: %w", n, err)
		}
		r.conns = append(r.conns, conn)
		var rows int // opens the table
		if err := conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT id FROM delay_task_message LIMIT 1) one").Scan(&rows); err != nil {
			return fmt.Errorf("warm a connection: %w", err)
		}
	}
	return f(ctx, r)
}

// rawIDs makes ids like delaytask's own: they ascend.
func rawIDs() *cluster.IDs { return cluster.NewIDs(cluster.RandomNode(), time.Now) }

// insertHead names the columns that a save of delaytask writes.
const insertHead = "INSERT INTO delay_task_message (id, tag, task_key, message_body, max_attempts, ttr, priority, headers," +
	" max_late_ms, late_policy, delay_time, expected_time, due_time, create_time, update_time) VALUES "

// appendRow renders one row of an INSERT, due at the given moment.
func (r *raw) appendRow(text []byte, id int64, due row.Time) []byte {
	moment := due.String()
	text = append(text, '(')
	text = strconv.AppendInt(text, id, 10)
	text = append(text, ", '"+benchTag+"', NULL, '"...)
	text = append(text, benchBody...)
	text = append(text, "', 20, 15000, 0, NULL, 0, 0, 86400000, '"...)
	text = append(text, moment...)
	text = append(text, "', '"...)
	text = append(text, moment...)
	if r.kind == store.SQLite {
		text = append(text, "', '"+moment+"', '"+moment+"')"...)
	} else {
		text = append(text, "', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))"...)
	}
	return text
}
