package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lateness"
)

const (
	weekTag     = "proof.week"
	weekTasks   = 1_000_000
	nowTag      = "proof.now"
	nowTasks    = 10_000
	memoryBound = 80_000_000
	slowedAim   = 1.25 // how much longer the tasks due now take; two runs on a quiet machine differ by less
)

// memory fills the table with tasks of next week, and looks what a process that serves them needs while it runs others.
func memory(ctx context.Context, t *trial) error {
	week, now := t.count(weekTasks), t.count(nowTasks)
	t.say("%d tasks due now, %d times, in an empty table", now, nowTurns)
	before, err := runNow(ctx, t, now)
	if err != nil {
		return err
	}
	t.say("%d tasks of next week", week)
	begin := time.Now()
	if err := fillWeek(ctx, t, week); err != nil {
		return err
	}
	t.say("that took %v; the server gets %v to write it down", time.Since(begin).Round(time.Second), fillRest)
	if err := lateness.Pass(ctx, fillRest); err != nil {
		return err
	}
	t.say("%d tasks due now, %d times, beside them", now, nowTurns)
	beside, err := runNow(ctx, t, now)
	if err != nil {
		return err
	}

	completed, pending, err := counts(ctx, t)
	if err != nil {
		return err
	}
	all := 2 * nowTurns * now
	t.promise("tasks of next week that wait", of(pending, week), "all", pending == week)
	t.promise("tasks due now that ran, beside them and before", of(completed, all), "all", completed == all)
	t.promise("resident memory beside them, at its peak", megabytes(beside.Peak), megabytes(memoryBound),
		beside.Peak < memoryBound)
	t.add("the same at the end, after a collection", megabytes(beside.Resident), "", noted)
	t.add("the same in the empty table, peak", megabytes(before.Peak), "", noted)
	ratio := beside.Took.Seconds() / before.Took.Seconds()
	t.aim("time for those due now, empty table / beside them / ratio",
		fmt.Sprintf("%s / %s / %.2f", seconds(before.Took), seconds(beside.Took), ratio),
		fmt.Sprint("ratio ", slowedAim), ratio <= slowedAim)
	return nil
}

func runNow(ctx context.Context, t *trial, n int) (memoryReport, error) {
	p, err := startChild[memoryReport](ctx, order{Role: "memory", DSN: t.db.DSN, Count: n})
	if err != nil {
		return memoryReport{}, err
	}
	return p.Last()
}

const (
	rowsPerStatement   = 1000
	rowsPerTransaction = 10_000
	fillRest           = 20 * time.Second // its disk would be busy with them else, which says nothing about a full table
)

// fillWeek inserts as any program may, by plain SQL.
func fillWeek(ctx context.Context, t *trial, n int) error {
	pool, err := connect(t.db)
	if err != nil {
		return err
	}
	defer pool.Close()
	insert := "INSERT INTO delay_task_message (tag, message_body, expected_time) VALUES (?, '{}', ?)" +
		strings.Repeat(", (?, '{}', ?)", rowsPerStatement-1)
	next := time.Now().UTC().AddDate(0, 0, 7)
	for range n / rowsPerTransaction {
		if next, err = fillPart(ctx, pool, insert, next); err != nil {
			return fmt.Errorf("fill the table: %w", err)
		}
	}
	return nil
}

// fillPart inserts the rows of one transaction, each a millisecond after the one before, and returns the last one's time.
func fillPart(ctx context.Context, pool *sql.DB, insert string, next time.Time) (time.Time, error) {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return next, err
	}
	defer tx.Rollback()
	for range rowsPerTransaction / rowsPerStatement {
		values := make([]any, 0, 2*rowsPerStatement)
		for range rowsPerStatement {
			next = next.Add(time.Millisecond)
			values = append(values, weekTag, next.Format("2006-01-02 15:04:05.000000"))
		}
		if _, err := tx.ExecContext(ctx, insert, values...); err != nil {
			return next, err
		}
	}
	return next, tx.Commit()
}

// counts returns how many tasks due now are completed, and how many of next week are pending.
func counts(ctx context.Context, t *trial) (completed, pending int, err error) {
	err = t.with(ctx, func(s *delaytask.Scheduler) error {
		stats, err := s.Stats(ctx)
		for _, tag := range stats {
			switch tag.Tag {
			case nowTag:
				completed = int(tag.Counts[delaytask.Completed])
			case weekTag:
				pending = int(tag.Counts[delaytask.Pending])
			}
		}
		return err
	})
	return completed, pending, err
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
