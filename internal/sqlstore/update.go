package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/sabotage"
)

// Update implements [store.Leaser].
func (s *Store) Update(ctx context.Context, tx store.Tx, changes []row.Change) (int, error) {
	const op = "settle tasks"
	if len(changes) == 0 {
		return 0, nil
	}
	if tx != nil {
		query, args := s.dialect.update(changes)
		ctx, cancel := withDeadline(ctx)
		defer cancel()
		n, err := execute(ctx, tx, query, args)
		return n, classify(op, err)
	}
	query, args := s.own.update(changes)
	var applied int
	err := s.settle.do(ctx, op, func(ctx context.Context, conn *sql.Conn) (err error) {
		applied, err = execute(ctx, conn, query, args)
		return err
	})
	return applied, err
}

func execute(ctx context.Context, on execer, query string, args []any) (int, error) {
	result, err := on.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

func (d dialect) update(changes []row.Change) (string, []any) {
	changes = slices.SortedFunc(slices.Values(changes), func(a, b row.Change) int { return cmp.Compare(a.ID, b.ID) })
	ids := make([]int64, len(changes))
	for i, c := range changes {
		ids[i] = c.ID
	}
	values := func(of func(*row.Change) any) []any {
		v := make([]any, len(changes))
		for i := range changes {
			v[i] = of(&changes[i])
		}
		return v
	}
	b := newBatch(d, ids)
	b.setEach("status", "?", values(func(c *row.Change) any { return int64(c.To) }))
	b.sets = append(b.sets, clause{sql: "version = version + 1"})
	b.setEach("due_time", "?", values(func(c *row.Change) any { return momentOrNull(c.Due) }))
	b.setEach("attempt", "?", values(func(c *row.Change) any { return int64(c.Attempt) }))
	b.setEach("crash_count", "?", values(func(c *row.Change) any { return int64(c.CrashCount) }))
	b.setEach("execution_time", "?", values(func(c *row.Change) any { return momentOrNull(c.Execution) }))
	b.setEach("finish_time", "?", values(func(c *row.Change) any { return momentOrNull(c.Finish) }))
	b.setEach("error_stack", d.bindText, values(func(c *row.Change) any { return orNull(c.ErrorStack) }))
	b.setEach("errors", d.bindText, values(func(c *row.Change) any { return textOrNull(c.Errors) }))
	if slices.ContainsFunc(changes, func(c row.Change) bool { return !c.SameExecutor }) {
		b.setEach("executor", d.bindText, values(func(c *row.Change) any { return c.Executor }))
	}
	b.setNow("update_time")
	b.setGiven("expected_time", "?", values(func(c *row.Change) any { return momentOrNull(c.Expected) }))
	b.setGiven("delay_time", "?", values(func(c *row.Change) any {
		if c.Expected.IsZero() {
			return nil
		}
		return c.Delay.Milliseconds()
	}))
	b.setGiven("message_body", d.bindText, values(func(c *row.Change) any { return textOrNull(c.Body) }))

	if sabotage.Off(sabotage.Fence) && !slices.ContainsFunc(changes, func(c row.Change) bool { return c.From != row.Executing }) {
		b.guards = append(b.guards, clause{sql: "1 = 1"})
		return b.statement()
	}
	b.guard("version = %s", b.each("at_version", "?", values(func(c *row.Change) any { return c.Version })))
	b.guard("status = %s", b.each("from_status", "?", values(func(c *row.Change) any { return int64(c.From) })))
	if slices.ContainsFunc(changes, func(c row.Change) bool { return c.LeaseOver }) {
		b.guard("(%s = 0 OR due_time IS NULL OR due_time < "+d.now+")", b.each("lease_over", "?", values(func(c *row.Change) any {
			if c.LeaseOver {
				return int64(1)
			}
			return int64(0)
		})))
	}
	return b.statement()
}
