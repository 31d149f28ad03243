package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask"
)

// named is the tag that neighbours name: one in the middle of the index.
const named = "n.4"

// tags is how many tags have a load: n.0 to n.9.
const tags = 10

func tagName(tag int) string { return fmt.Sprintf("n.%d", tag) }

// table is the database with the rows of a table in production.
type table struct {
	pool        *sql.DB
	dsn         string
	site        *site
	log         *slog.Logger
	first, last int64 // ids of the named tag's rows
}

// parts are the rows of each tag: columns status, due time in minutes from now, and how many.
var parts = []struct{ status, from, to, n int }{
	{0, 60, 300 * 1440, 2500},    // pending, for most of a year
	{1, -6 * 1440, -1, 2300},     // completed, within the retention
	{2, -2 * 1440, -1, 100},      // failed
	{3, 1440, 2 * 1440, 10},      // executing elsewhere, with a long lease
	{4, -6 * 1440, -1, 90},       // cancelled
	{0, 2 * 1440, 300 * 1440, 1}, // the one with the key order-42
}

// fill stores 50,000 rows that no statement of the load touches.
func (t *table) fill(ctx context.Context) error {
	for tag := range tags {
		var values []string
		for i, p := range parts {
			for k := range p.n {
				key := "NULL"
				switch {
				case i == len(parts)-1:
					key = "'order-42'"
				case k%25 == 0:
					key = fmt.Sprintf("'row-%d-%d'", i, k)
				}
				minutes := p.from + (p.to-p.from)*k/p.n
				id := delaytask.NewID()
				if tagName(tag) == named {
					if t.first == 0 {
						t.first = id // pending
					}
					t.last = id
				}
				at := fmt.Sprintf("UTC_TIMESTAMP(6) + INTERVAL %d MINUTE + INTERVAL %d MICROSECOND", minutes, k*7)
				values = append(values, fmt.Sprintf("(%d, '%s', %s, '{}', %d, %s, %s)",
					id, tagName(tag), key, p.status, at, at))
			}
		}
		for ; len(values) > 0; values = values[min(len(values), 1000):] {
			_, err := t.pool.ExecContext(ctx, "INSERT INTO delay_task_message"+
				" (id, tag, task_key, message_body, status, expected_time, due_time) VALUES "+
				strings.Join(values[:min(len(values), 1000)], ", "))
			if err != nil {
				return err
			}
		}
	}
	for _, s := range []string{
		"CREATE TABLE neighbours_pulse (n INT NOT NULL)", "INSERT INTO neighbours_pulse VALUES (0)",
	} {
		if _, err := t.pool.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	analyzed, err := t.pool.QueryContext(ctx, "ANALYZE TABLE delay_task_message")
	if err != nil {
		return err
	}
	defer analyzed.Close()
	for analyzed.Next() { // it ends when its answer is read
	}
	return analyzed.Err()
}

// probe returns which tags cannot save, start or complete a task now, because the places of its row are locked. It
// does to a row what the process does, and rolls back.
func (t *table) probe(ctx context.Context) (blocked [tags]bool, err error) {
	var all sync.WaitGroup
	var errs [tags]error
	for tag := range tags {
		all.Go(func() {
			// Twice: a row of the load may be in the way for a moment.
			for range 2 {
				if blocked[tag], errs[tag] = t.waits(ctx, tag); !blocked[tag] {
					return
				}
			}
		})
	}
	all.Wait()
	return blocked, errors.Join(errs[:]...)
}

func (t *table) waits(ctx context.Context, tag int) (bool, error) {
	c, err := t.pool.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer c.Close()
	id := delaytask.NewID()
	at := " WHERE id = " + fmt.Sprint(id)
	for _, s := range []string{
		"SET SESSION innodb_lock_wait_timeout = 1",
		"START TRANSACTION",
		fmt.Sprintf("INSERT INTO delay_task_message (id, tag, message_body, delay_time) VALUES (%d, '%s', '{}', 300)",
			id, tagName(tag)),
		"UPDATE delay_task_message SET status = 3, due_time = UTC_TIMESTAMP(6) + INTERVAL 15 SECOND" + at,
		"UPDATE delay_task_message SET status = 1, due_time = UTC_TIMESTAMP(6)" + at,
	} {
		if _, err = c.ExecContext(ctx, s); err != nil {
			break
		}
	}
	_, undo := c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	if refused, ok := errors.AsType[*mysql.MySQLError](err); ok && refused.Number == 1205 {
		return true, undo
	}
	return false, errors.Join(err, undo)
}
