package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// batchRows is how many tasks go through a cycle.
const batchRows = 500

var operations = []string{
	"insert 500", "window read", "peek", "backlog read", "rescue read", "claim 500", "settle 500", "purge 500",
}

// cycle takes a batch of tasks through its life and times each operation. Writes are the store's own: they enter by the primary
// key whatever the index. Reads are each candidate's best.
type cycle struct {
	*bench
	candidate candidate
	tags      []string
	firstID   int64
	spent     timings
}

func (c *cycle) run(ctx context.Context) error {
	now := row.At(time.Now())
	rows := make([]row.Row, batchRows)
	refs := make([]row.Ref, batchRows)
	for i := range rows {
		due := now.Add(time.Duration(i)*5*time.Millisecond - 900*time.Millisecond)
		rows[i] = row.Row{ID: c.firstID + int64(i), Tag: c.tags[i%len(c.tags)], Body: []byte(body), MaxAttempts: 20,
			TTR: 15 * time.Second, Expected: due, Due: due}
		refs[i] = row.Ref{ID: rows[i].ID}
	}
	steps := []func() (found, want int, err error){
		func() (int, int, error) { return 0, 0, c.store.Insert(ctx, nil, rows) },
		func() (int, int, error) {
			n, err := c.count(ctx, c.candidate.window(c.tags, now.Add(-time.Second), now.Add(2*time.Second), 2000))
			return n, batchRows, err
		},
		func() (int, int, error) {
			n, err := c.count(ctx, c.candidate.window(c.tags, now.Add(-time.Second), now.Add(-100*time.Millisecond), 200))
			return n, 160, err
		},
		func() (int, int, error) {
			n, err := c.count(ctx, c.candidate.window(c.tags, 0, now.Add(-time.Second), 500))
			return n, overdueRows, err
		},
		func() (int, int, error) {
			n, err := c.count(ctx, []query{c.candidate.expired(now, 200)})
			return n, endedLeases, err
		},
		func() (int, int, error) {
			won, err := c.store.Claim(ctx, row.Claim{Rows: refs, Executor: fmt.Sprint("host:1:token:", c.firstID)})
			return len(won.Rows), batchRows, err
		},
		func() (int, int, error) {
			n, err := c.store.Update(ctx, nil, c.completions(rows))
			return n, batchRows, err
		},
		func() (int, int, error) {
			n, err := c.purge(ctx, now.Add(time.Hour))
			return n, batchRows, err
		},
	}
	for i, step := range steps {
		began := time.Now()
		found, want, err := step()
		c.spent.add(operations[i], c.candidate.name, time.Since(began))
		if err == nil && found != want {
			err = fmt.Errorf("met %d rows, want %d", found, want)
		}
		if err != nil {
			return fmt.Errorf("%s with (%s): %w", operations[i], c.candidate.name, err)
		}
	}
	return nil
}

func (c *cycle) completions(rows []row.Row) []row.Change {
	changes := make([]row.Change, len(rows))
	for i, r := range rows {
		started := r.Due.Add(time.Millisecond)
		finished := started.Add(time.Duration(i) * time.Microsecond)
		changes[i] = row.Change{ID: r.ID, Version: 1, From: row.Executing, To: row.Completed, Due: finished, Attempt: 1,
			Execution: started, Finish: finished, Executor: fmt.Sprint("host:1:token:", c.firstID)}
		if c.candidate.nullWhenFinal {
			changes[i].Due = 0
		}
	}
	return changes
}

// purge deletes a batch of completed rows the way the store does: found without a lock, deleted by id.
func (c *cycle) purge(ctx context.Context, before row.Time) (int, error) {
	tags := []string{""}
	if oldest := c.candidate.oldest(); oldest != "" {
		tags = nil
		var found []struct {
			Tag string `db:"tag"`
			Due string `db:"MIN(due_time)"`
		}
		if err := c.db.SelectContext(ctx, &found, oldest); err != nil {
			return 0, err
		}
		for _, f := range found {
			tags = append(tags, f.Tag)
		}
	}
	var ids []int64
	for _, tag := range tags {
		q := c.candidate.purgeable(tag, before, batchRows-len(ids))
		var found []int64
		if err := c.db.SelectContext(ctx, &found, q.sql, q.args...); err != nil {
			return 0, err
		}
		if ids = append(ids, found...); len(ids) == batchRows {
			break
		}
	}
	slices.Sort(ids)
	result, err := c.db.ExecContext(ctx, "DELETE t FROM delay_task_message t FORCE INDEX (PRIMARY)"+
		" WHERE t.id IN ("+marks(len(ids))+") AND status = ?", append(anys(ids), int64(row.Completed))...)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// count reads all rows of the queries.
func (c *cycle) count(ctx context.Context, reads []query) (int, error) {
	n := 0
	for _, q := range reads {
		found, err := c.countOne(ctx, q)
		if err != nil {
			return 0, err
		}
		n += found
	}
	return n, nil
}

func (c *cycle) countOne(ctx context.Context, q query) (n int, err error) {
	rows, err := c.db.QueryContext(ctx, q.sql, q.args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}
