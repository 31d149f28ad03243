package main

import (
	"database/sql"
	"fmt"
	"strings"
	"sync"
)

// orders are the due indexes that are compared.
var orders = []form{
	{name: "status, tag, due_time"},
	{name: "tag, status, due_time", change: replaced(dueIndex, "KEY delay_task_message_due (tag, status, due_time)")},
}

// held are statements of another transaction; %s is the table. All but the last name the tag t4.
var held = []string{
	"UPDATE %s SET priority = 1 WHERE status = 0 AND tag = 't4' AND message_body = 'nope'",
	"UPDATE %s SET priority = 1 WHERE status = 3 AND tag = 't4' AND message_body = 'nope'",
	"UPDATE %s SET priority = 1 WHERE status = 1 AND tag = 't4' AND message_body = 'nope'",
	"UPDATE %s SET priority = 1 WHERE status = 2 AND tag = 't4' AND message_body = 'nope'",
	"UPDATE %s SET priority = 1 WHERE status IN (0, 3) AND tag = 't4' AND task_key = 'nope'",
	"UPDATE %s SET priority = 1 WHERE status = 0 AND tag = 't4' AND due_time < UTC_TIMESTAMP(6) AND" +
		" message_body = 'nope'",
	"UPDATE %s SET priority = 1 WHERE status = 3 AND due_time < UTC_TIMESTAMP(6) AND message_body = 'nope'",
}

// gaps counts the tags whose statements wait while another transaction holds the locks of a search.
func (b *bench) gaps() error {
	b.printf("held\trows\tindex\tinsert\tclaim\tsettle\tretry\t\n")
	for _, filling := range []string{"all statuses", "pending and completed", "pending alone"} {
		for _, q := range held {
			for _, f := range orders {
				waits, err := b.covered(f, filling, q)
				if err != nil {
					return err
				}
				_, where, _ := strings.Cut(q, "WHERE ")
				b.printf("%s\t%s\t%s\t", strings.TrimSuffix(where, " AND message_body ="+
					" 'nope'"), filling, f.name)
				for _, op := range []string{"insert", "claim", "settle", "retry"} {
					b.printf("%d\t", waits[op])
				}
				b.printf("\n")
				_ = b.out.Flush()
			}
		}
	}
	return nil
}

// covered counts, by statement, for how many of the ten tags but t4 it waits.
func (b *bench) covered(f form, filling, q string) (map[string]int, error) {
	if err := b.exec("DROP TABLE IF EXISTS " + f.table()); err != nil {
		return nil, err
	}
	if err := b.make(f); err != nil {
		return nil, err
	}
	claimed := map[int]int64{}
	pending := map[int]int64{}
	for tag := range 10 {
		name := func(int) string { return fmt.Sprintf("t%d", tag) }
		ids, err := b.insert(f, 20, name, "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR", b.sequential)
		if err != nil {
			return nil, err
		}
		pending[tag] = ids[0]
		if filling != "pending alone" {
			done, err := b.insert(f, 20, name, "UTC_TIMESTAMP(6)", b.sequential)
			if err == nil {
				err = b.claim(f, done, 1)
			}
			if err == nil {
				err = b.settle(f, done)
			}
			if err == nil && filling == "all statuses" {
				err = b.exec("UPDATE " + f.table() + " SET status = 2 WHERE id IN (" + list(done[:5]) + ")")
			}
			if err == nil && filling == "all statuses" {
				err = b.exec("UPDATE " + f.table() + " SET status = 4 WHERE id IN (" + list(done[5:10]) + ")")
			}
			if err != nil {
				return nil, err
			}
		}
		runs, err := b.insert(f, 5, name, "UTC_TIMESTAMP(6)", b.sequential)
		if err == nil {
			err = b.claim(f, runs, 1)
		}
		if err == nil && filling != "all statuses" && tag != 7 { // no other tag has a running task
			err = b.settle(f, runs)
		}
		if err != nil {
			return nil, err
		}
		claimed[tag] = runs[0]
	}
	holder, err := b.db.BeginTx(b.ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return nil, err
	}
	defer holder.Rollback()
	if _, err := holder.ExecContext(b.ctx, fmt.Sprintf(q, f.table())); err != nil {
		return nil, err
	}
	waits := map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for tag := range 10 {
		if tag == 4 {
			continue
		}
		for op, q := range map[string]string{
			"insert": fmt.Sprintf("INSERT INTO %s (tag, delay_time) VALUES ('t%d', 60000)", f.table(), tag),
			"claim": fmt.Sprintf("UPDATE %s t FORCE INDEX (PRIMARY) SET status = 3, due_time = UTC_TIMESTAMP(6)"+
				" + INTERVAL 15 SECOND"+
				" WHERE id = %d AND status = 0", f.table(), pending[tag]),
			"settle": fmt.Sprintf("UPDATE %s t FORCE INDEX (PRIMARY) SET status = 1, due_time ="+
				" UTC_TIMESTAMP(6) WHERE id = %d",
				f.table(), claimed[tag]),
			"retry": fmt.Sprintf("UPDATE %s t FORCE INDEX (PRIMARY) SET status = 0, due_time = UTC_TIMESTAMP(6)"+
				" + INTERVAL 9 SECOND"+
				" WHERE id = %d", f.table(), claimed[tag]),
		} {
			all.Go(func() {
				tx, err := b.db.BeginTx(b.ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
				if err != nil {
					panic(err)
				}
				defer tx.Rollback()
				if op == "retry" || op == "settle" { // both want the row; they do not wait for each other
					mu.Lock()
				}
				_, err = tx.ExecContext(b.ctx, "SET innodb_lock_wait_timeout = 1")
				if err == nil {
					_, err = tx.ExecContext(b.ctx, q)
				}
				_ = tx.Rollback()
				if op != "retry" && op != "settle" {
					mu.Lock()
				}
				if err != nil {
					waits[op]++
				}
				mu.Unlock()
			})
		}
		all.Wait() // not too many connections, and no waits of one tag for another
	}
	return waits, nil
}
