package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// protocol is a way to send a statement with its values.
type protocol struct {
	name string
	kept bool // statements are prepared once
	exec func(ctx context.Context, b *bench, kept map[string]*sql.Stmt, s settle) (sql.Result, error)
}

var protocols = []protocol{
	{"text", false, func(ctx context.Context, b *bench, _ map[string]*sql.Stmt, s settle) (sql.Result, error) {
		return b.db.ExecContext(ctx, s.sql, s.args...) // our connections put the values into the text
	}},
	{"prepared each time", false, func(ctx context.Context, b *bench, _ map[string]*sql.Stmt, s settle) (sql.Result, error) {
		prepared, err := b.db.PrepareContext(ctx, s.sql)
		if err != nil {
			return nil, err
		}
		defer prepared.Close()
		return prepared.ExecContext(ctx, s.args...)
	}},
	{"prepared once", true, func(ctx context.Context, b *bench, kept map[string]*sql.Stmt, s settle) (_ sql.Result, err error) {
		prepared := kept[s.sql]
		if prepared == nil {
			if prepared, err = b.db.PrepareContext(ctx, s.sql); err != nil {
				return nil, err
			}
			kept[s.sql] = prepared
		}
		return prepared.ExecContext(ctx, s.args...)
	}},
}

var batchSizes = []int{100, 200, 500}

// measureSettles times the forms of the settle on both protocols with batches of several sizes.
func measureSettles(ctx context.Context, s settings) (err error) {
	b, err := newBench(ctx, s.dsn, "settle")
	if err != nil {
		return err
	}
	kept := make(map[string]*sql.Stmt)
	defer func() {
		for _, prepared := range kept {
			err = errors.Join(err, prepared.Close())
		}
		err = errors.Join(err, b.drop(ctx))
	}()
	text, err := b.describe(ctx)
	if err != nil {
		return err
	}
	spent, firstID := make(timings), int64(1)
	var lines []string
	for _, size := range batchSizes {
		for _, p := range protocols {
			line := fmt.Sprintf("%d rows, %s", size, p.name)
			lines = append(lines, line)
			for round := range s.rounds + 1 {
				for _, f := range forms {
					rows, err := storeExecuting(ctx, b, firstID, size)
					if err != nil {
						return err
					}
					firstID += int64(size)
					took, err := f.run(ctx, b, kept, p, rows)
					if err != nil {
						return fmt.Errorf("%s, %s: %w", f.name, line, err)
					}
					if round > 0 { // the first meets cold caches, and prepares what is prepared once
						spent.add(line, f.name, took)
					}
				}
			}
			progress("%s: done", line)
		}
	}
	return report(text, s.rounds, spent.table("settle", lines, names(forms, func(f form) string { return f.name })))
}

// run settles the rows and makes sure that all have changed.
func (f form) run(ctx context.Context, b *bench, kept map[string]*sql.Stmt, p protocol, rows []result) (time.Duration, error) {
	statements := f.statements(rows, p.kept)
	began := time.Now()
	for _, s := range statements {
		if _, err := p.exec(ctx, b, kept, s); err != nil {
			return 0, err
		}
	}
	took := time.Since(began)
	var settled int
	err := b.db.GetContext(ctx, &settled, "SELECT COUNT(*) FROM delay_task_message"+
		" WHERE id BETWEEN ? AND ? AND version = 2 AND status <> 3", rows[0].id, rows[len(rows)-1].id)
	if err == nil && settled != len(rows) {
		err = fmt.Errorf("%d rows are settled, want %d", settled, len(rows))
	}
	return took, err
}

// storeExecuting stores rows as a claim leaves them and returns the results they are to get: one in ten is tried again.
func storeExecuting(ctx context.Context, b *bench, firstID int64, n int) ([]result, error) {
	rows := make([]result, n)
	statement := "INSERT INTO delay_task_message" +
		" (id, tag, message_body, status, version, attempt, executor, expected_time, due_time) VALUES "
	var args []any
	now := time.Now().UTC()
	for i := range rows {
		id := firstID + int64(i)
		started := now.Add(time.Duration(i) * time.Millisecond)
		rows[i] = result{id: id, status: 1, execution: stamp(started), finish: stamp(started.Add(time.Millisecond)),
			due: stamp(started.Add(time.Millisecond)), executor: fmt.Sprint("host:1:token:", i/100)}
		if i%10 == 9 {
			rows[i].status, rows[i].finish, rows[i].due = 0, nil, stamp(started.Add(time.Minute))
			rows[i].failure = "the payment provider answered 503"
		}
		args = append(args, id, fmt.Sprint("tag-", i%5), body, 3, 1, 1, "host:1:token:1", rows[i].execution,
			stamp(now.Add(15*time.Second)))
	}
	_, err := b.db.ExecContext(ctx, statement+repeat(n, "(?, ?, ?, ?, ?, ?, ?, ?, ?)"), args...)
	return rows, err
}

func stamp(t time.Time) any { return t.Format("2006-01-02 15:04:05.000000") }
