package sqlstore

import (
	"context"
	"database/sql"
	"time"
)

// step is a statement of a transaction.
type step struct {
	clause
	rows int // it must change so many, anyRows: no matter how many
}

const anyRows = -1

// transact runs the steps in a transaction. It returns false, and has changed nothing, when one of them changed another
// number of rows than it must. An error before the COMMIT was sent is never of unknown outcome. The statements are sent
// as text: a transaction of package sql ends with its context, and then says that its caller has ended it.
func (d dialect) transact(ctx context.Context, conn *sql.Conn, op string, steps []step) (applied bool, err error) {
	defer func() {
		if !applied {
			rollBack(ctx, conn)
		}
	}()
	if _, err := conn.ExecContext(ctx, d.begin); err != nil {
		return false, notSent(op, err)
	}
	for _, s := range steps {
		n, err := execute(ctx, conn, s.clause)
		switch {
		case err != nil:
			return false, notSent(op, err)
		case s.rows != anyRows && n != s.rows:
			return false, nil
		}
	}
	if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
		return false, classify(op, err)
	}
	return true, nil
}

// rollBackTimeout bounds a ROLLBACK, since no caller waits for it any more. The server does it as well when the
// connection ends.
const rollBackTimeout = time.Second

// rollBack ends the transaction of a connection. A connection that may still be inside of one is discarded.
func rollBack(ctx context.Context, conn *sql.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollBackTimeout)
	defer cancel()
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		discard(conn)
	}
}
