package role

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"
)

// Savers that make more tasks than the machine can run would try what becomes of overload, and nothing else would show:
// every task would be late. So they begin nothing while so many are overdue.
const (
	mostOverdue  = 5000
	lookOverdue  = time.Second
	overdueQuery = `SELECT COUNT(*) FROM (SELECT 1 FROM delay_task_message
		WHERE status = 0 AND due_time < UTC_TIMESTAMP(6) - INTERVAL 2 SECOND LIMIT ?) t`
)

// backlog knows whether too many tasks are overdue.
type backlog struct{ large atomic.Bool }

// watch looks once a second until ctx ends. While the database gives no answer, what it said before holds.
func (b *backlog) watch(ctx context.Context, db *sql.DB) {
	next := time.NewTicker(lookOverdue)
	defer next.Stop()
	for {
		if n, err := overdue(ctx, db, mostOverdue); err == nil {
			b.large.Store(n == mostOverdue)
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
	}
}

// overdue counts up to most tasks that nobody has begun although they are overdue.
func overdue(ctx context.Context, db *sql.DB, most int) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookOverdue)
	defer cancel()
	err = db.QueryRowContext(ctx, overdueQuery, most).Scan(&n)
	return n, err
}
