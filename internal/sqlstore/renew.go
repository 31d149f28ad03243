package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

// Renew implements [store.Leaser].
func (s *Store) Renew(ctx context.Context, leases []row.Lease) ([]row.State, error) {
	if len(leases) == 0 {
		return nil, nil
	}
	query, args := s.own.renew(leases)
	ids := sortedIDs(leases, func(l row.Lease) int64 { return l.ID })
	var states []row.State
	err := s.renew.do(ctx, "renew leases", func(ctx context.Context, conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, query, args...); err != nil {
			return err
		}
		var err error
		states, err = statesOf(ctx, s.dialect, conn, ids)
		return afterWrite("read back renewed leases", err)
	})
	return states, err
}

func (d dialect) renew(leases []row.Lease) (string, []any) {
	leases = slices.SortedFunc(slices.Values(leases), func(a, b row.Lease) int { return cmp.Compare(a.ID, b.ID) })
	ids := make([]int64, len(leases))
	versions := make([]any, len(leases))
	ttrs := make([]any, len(leases))
	least := make([]any, len(leases))
	executors := make([]any, len(leases))
	executions := make([]any, len(leases))
	for i, l := range leases {
		ids[i], versions[i], ttrs[i] = l.ID, l.Version, max(l.TTR, row.MinTTR).Milliseconds()
		least[i] = int64(0)
		if l.Least {
			least[i] = int64(1)
		}
		executors[i], executions[i] = orNull(l.Executor), momentOrNull(l.Execution)
	}
	b := newBatch(d, ids)
	ttr := b.each("ttr", "?", ttrs)
	until := clause{fmt.Sprintf(d.add, d.now, ttr.sql), ttr.args}
	if slices.Contains(least, any(int64(1))) {
		isLeast := b.each("least", "?", least)
		until.sql = d.greatest + "(" + until.sql + ", CASE " + isLeast.sql + " WHEN 1 THEN due_time ELSE " + d.now + " END)"
		until.args = slices.Concat(until.args, isLeast.args)
	}
	b.set("due_time", "%s", until)
	b.setNow("update_time")
	b.setGiven("executor", d.bindText, executors)
	b.setGiven("execution_time", "?", executions)
	b.guard("version = %s", b.each("version", "?", versions))
	b.guards = append(b.guards, clause{sql: fmt.Sprintf("status = %d", row.Executing)})
	return b.statement()
}
