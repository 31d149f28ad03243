package sqlstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// Another transaction holds the row %[1]d of each table. %[1]d stands in the first statement for each row.
var purges = []struct {
	table, insert, row string
	purge              func(context.Context, *sqlstore.Store) (int, error)
}{
	{"message", "(id, tag, status, due_time) VALUES (%[1]d, 't', 1, '2001-01-01')", "id = %[1]d",
		func(ctx context.Context, s *sqlstore.Store) (all int, err error) {
			for range 5 { // a locked row that is found again leaves no room for others
				n, _, err := s.Purge(ctx, row.Completed, []string{"t"}, row.MaxTime, 1)
				if all += n; err != nil {
					return all, err
				}
			}
			return all, nil
		}},
	{"request", "(hash, content, task_id, create_time) VALUES (UNHEX(SHA2(%[1]d, 256)), '', 1, '2001-01-01')",
		"hash = UNHEX(SHA2(%[1]d, 256))",
		func(ctx context.Context, s *sqlstore.Store) (int, error) { return s.PurgeRequests(ctx, 10) }},
	{"session", "(hash, token, token_hash, expire_time) VALUES (UNHEX(SHA2(%[1]d, 256)), '', '', '2001-01-01')",
		"hash = UNHEX(SHA2(%[1]d, 256))",
		func(ctx context.Context, s *sqlstore.Store) (int, error) { return s.PurgeSessions(ctx, 10) }},
	{"worker", "(id, app, address, address_hash, tags, ttl, expire_time)" +
		" VALUES (%[1]d, 'a', '', UNHEX(SHA2(%[1]d, 256)), '[]', 1, '2001-01-01')",
		"id = %[1]d",
		func(ctx context.Context, s *sqlstore.Store) (int, error) { return s.PurgeReceivers(ctx) }},
	{"audit", "(id, action, create_time) VALUES (%[1]d, 'a', '2001-01-01')", "id = %[1]d",
		func(ctx context.Context, s *sqlstore.Store) (int, error) { return s.PurgeAudit(ctx, row.MaxTime, 10) }},
	{"rollup", "(span, bucket, tag, node) VALUES (1, '2001-01-01', 'é %[1]d ''', 'n''')",
		"span = 1 AND bucket = '2001-01-01' AND tag = 'é %[1]d ''' AND node = 'n'''",
		func(ctx context.Context, s *sqlstore.Store) (int, error) {
			return s.TrimRollups(ctx, row.SpanMinute, row.MaxTime, 10)
		}},
	{"schedule_run", "(schedule_id, tick, cause, until_tick, outcome)" +
		" VALUES (7, '2001-01-01 00:00:0%[1]d', 0, '2001-01-01', 1)",
		"schedule_id = 7 AND cause = 0 AND tick = '2001-01-01 00:00:0%[1]d'",
		func(ctx context.Context, s *sqlstore.Store) (int, error) {
			return s.TrimRuns(ctx, 7, row.MaxTime, 0, 10)
		}},
	{"node", "(number, token, tags, heartbeat) VALUES (%[1]d, 't%[1]d', '[]', '2001-01-01')", "number = %[1]d",
		func(ctx context.Context, s *sqlstore.Store) (int, error) {
			err := s.Leave(ctx, []string{"t1", "t2", "t3", "t4", "t5"})
			if row.ClassOf(err) == row.ClassLocked { // the caller knows that a node is still there
				return 0, nil
			}
			return 0, fmt.Errorf("left: %w", err)
		}},
}

func TestALockedRowHoldsUpNoPurge(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		for _, p := range purges {
			t.Run(p.table, func(t *testing.T) {
				const rows, held = 5, 2
				exec(t, pool.DB, "DELETE FROM delay_task_"+p.table)
				for n := range rows {
					exec(t, pool.DB, fmt.Sprintf("INSERT INTO delay_task_"+p.table+" "+p.insert, n+1))
				}
				tx := begin(t, pool, fmt.Sprintf("DELETE FROM delay_task_"+p.table+" WHERE "+p.row, held))
				defer tx.Rollback()
				// The first pass meets the lock. The later ones leave its row out, and wait no more.
				for pass, want := range []int{rows - 1, 0, 0} {
					n, err := p.purge(t.Context(), s)
					if err != nil || p.table != "node" && n != want {
						t.Errorf("pass %d deleted %d, %v; want %d", pass, n, err, want)
					}
				}
				if left := number(t, pool.DB, "SELECT COUNT(*) FROM delay_task_"+p.table); left != 1 {
					t.Errorf("%d rows are left, want the locked one", left)
				}
			})
		}
	})
}
