package processor

import (
	"context"
	"database/sql"
	"errors"
)

// Tx is a caller's open transaction on the same database: a *sql.Tx, a *sqlx.Tx, what an ORM hands to the function
// that it runs in a transaction, or a *sql.Conn after BEGIN. A pool has the same methods and is refused with
// [ErrNoTransaction]. What the type does not tell is asked of the database.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Lease is a running attempt's hold on its task.
type Lease interface {
	// CompleteTx sets the task to completed inside the caller's transaction. It returns [ErrLeaseLost] when somebody else
	// holds the task; the caller must roll back then.
	CompleteTx(ctx context.Context, tx Tx) error
	// Started notes that somebody has been handed the task who can run it. Only the first call counts.
	Started()
}

// ErrNoLease is returned by [CompleteTx] when the context is not one that a processor was called with.
var ErrNoLease = errors.New("delaytask: the context belongs to no running task")

type leaseKey struct{}

// WithLease returns a context that carries the lease. The scheduler calls it; processors have no need to.
func WithLease(ctx context.Context, lease Lease) context.Context {
	return context.WithValue(ctx, leaseKey{}, lease)
}

// CompleteTx completes the running task inside the processor's own transaction on the same database: the task is
// completed if and only if the transaction commits, so that its effects there happen exactly once. ctx is the one that
// the processor was called with, or made of it. Afterwards only the row decides: when the processor returns and the row
// is not completed, because the transaction was rolled back, the attempt has failed.
//
// It returns [ErrNilContext], [ErrNilTx], [ErrNoTransaction], [ErrNoLease], or [ErrLeaseLost] after which the
// transaction must be rolled back.
func CompleteTx(ctx context.Context, tx Tx) error {
	if ctx == nil {
		return ErrNilContext
	}
	if isNil(tx) {
		return ErrNilTx
	}
	lease, ok := ctx.Value(leaseKey{}).(Lease)
	if !ok {
		return ErrNoLease
	}
	return lease.CompleteTx(ctx, tx)
}
