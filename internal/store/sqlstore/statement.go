package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
)

// repeats bounds the tries of a write that may be repeated. Lost replies and deadlocks are rare, and rarer twice in a
// row. The caller waits for what lasts longer.
const repeats = 3

// repeat runs a write until its outcome is known. Running it again must change nothing. A row that another process has
// written since the write looked for it is found the next time.
func repeat(ctx context.Context, write func() error) error {
	var err error
	for range repeats {
		if err = write(); err == nil || ctx.Err() != nil {
			return err
		}
		switch row.ClassOf(err) {
		case row.ClassUnknown, row.ClassNotApplied, row.ClassDuplicate:
		default:
			return err
		}
	}
	return err
}

// statementTimeout bounds every statement whose context has no deadline.
const statementTimeout = 10 * time.Second

// withDeadline bounds a statement whose context has no deadline.
func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, statementTimeout)
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func execute(ctx context.Context, on execer, query string, args []any) (int, error) {
	result, err := on.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// onPool runs f on a connection of the pool, and discards the connection when it would repeat f's error.
func onPool(ctx context.Context, db *sqlx.DB, f func(*sql.Conn) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	if err = f(conn); sessionKeeps(err) {
		discard(conn)
		return err
	}
	_ = conn.Close() // only gives it back
	return err
}
