package delaytask

import (
	"context"
	"database/sql"
	"time"
)

// Task is the task as a processor gets it. [TaskRow] is the task as it is stored.
type Task struct {
	ID       int64
	Tag      string
	Key      string            // the caller's own name for the task, "" when it has none
	Body     []byte            // as it was stored; empty when it has none
	Attempt  int               // 1 for the first
	Crashes  int               // processes that were lost while they ran it; above 0, work may be half done
	Version  int64             // with ID the lease token: pass both to systems that can refuse an older one
	Expected time.Time         // UTC; its first due time, which only Reschedule moves
	Due      time.Time         // UTC; when this attempt was due
	Headers  map[string]string // nil when it has none
	Priority int               // −100 to 100, larger first
	Schedule *ScheduledRun     // nil for a task that is not the run of a schedule
}

// Tx is a caller's open transaction on the same database: a *sql.Tx, a *sqlx.Tx, what an ORM hands to the function that
// it runs in a transaction, or a *sql.Conn after BEGIN. A pool has the same methods and is refused with
// [ErrNoTransaction]. The database is asked where the type does not show what it is.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}
