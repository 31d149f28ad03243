package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// A server lets a write wait for a lock for one to two seconds, with all rows of its statement. The wait is cut off
// when it is for a transaction that runs no statement: such a one may stay open for long. What the server is just doing
// ends soon, as a slow commit does.
//
// To see who waits for whom takes PROCESS on MariaDB, and SELECT on tables of performance_schema on MySQL. Without it,
// and in clusters, where a statement may be interrupted while it commits, the server ends the waits.

// refusedFor is for how long a server that has refused to tell who waits is not asked again.
const refusedFor = time.Minute

// cut cuts off each write that waits for a transaction which runs no statement. It reports whether there was one.
func (u *unanswered) cut(ctx context.Context, conn *sql.Conn, writes []*write) (found bool, err error) {
	if u.refusedLately() {
		return false, echo(ctx, conn)
	}
	v, err := u.version(ctx, conn)
	if err != nil || len(writes) == 0 {
		return false, err
	}
	waiting, err := firsts[string](ctx, conn, endedWith(ctx, waitingForIdle(v, writes)))
	if isOf(err, row.ClassOperator) {
		u.refuse()
	}
	if err != nil || len(waiting) == 0 {
		return false, err
	}
	here, err := identify(ctx, conn)
	if err != nil {
		return false, err
	}
	if here.name != here.server { // a cluster
		u.refuse()
		return false, nil
	}
	for _, w := range writes {
		if w.server == here.server && slices.Contains(waiting, w.id) {
			found = u.interrupt(ctx, conn, w) || found
		}
	}
	return found, nil
}

func (u *unanswered) refusedLately() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return time.Since(u.refused) < refusedFor
}

func (u *unanswered) refuse() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refused = time.Now()
}

// waitingForIdle selects the connections that wait for a lock of a transaction which runs no statement. The thread
// that MySQL calls the waiting one may be another, which has moved the lock with its page. Only the one that has locked
// the table is the transaction's own. The tables are read in this order: to begin with data_locks would copy all locks.
func waitingForIdle(v version, writes []*write) clause {
	ids := make([]string, len(writes))
	for i, w := range writes {
		ids[i] = w.id
	}
	among := " IN (" + strings.Join(ids, ", ") + ")"
	if v.name == aMariaDB {
		return clause{sql: "SELECT r.trx_mysql_thread_id FROM information_schema.INNODB_LOCK_WAITS AS w" +
			" JOIN information_schema.INNODB_TRX AS r ON r.trx_id = w.requesting_trx_id" +
			" JOIN information_schema.INNODB_TRX AS b ON b.trx_id = w.blocking_trx_id" +
			" JOIN information_schema.PROCESSLIST AS p ON p.id = b.trx_mysql_thread_id" +
			" WHERE p.command = 'Sleep' AND r.trx_mysql_thread_id" + among}
	}
	return clause{sql: "SELECT STRAIGHT_JOIN r.processlist_id FROM performance_schema.data_lock_waits AS w" +
		" JOIN performance_schema.data_locks AS l" +
		" ON l.engine_transaction_id = w.requesting_engine_transaction_id AND l.lock_type = 'TABLE'" +
		" JOIN performance_schema.threads AS r ON r.thread_id = l.thread_id" +
		" JOIN performance_schema.threads AS b ON b.thread_id = w.blocking_thread_id" +
		" WHERE b.processlist_command = 'Sleep' AND r.processlist_id" + among}
}

// interrupt ends the statement that runs on the connection of a write, unless the write has ended. The connection has
// no other statement before that is done.
func (u *unanswered) interrupt(ctx context.Context, conn *sql.Conn, w *write) bool {
	u.forget(w)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	w.cut = true
	_, _ = conn.ExecContext(ctx, fmt.Sprint("KILL QUERY ", w.id)) // it may have ended by itself
	return true
}
