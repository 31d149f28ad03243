package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"
)

// sessionLocker lets processes that migrate the same schema of a MySQL server take turns. Its lock belongs to the
// connection that goose migrates on, so it ends with the process whatever happens.
//
// A member of a cluster like Galera refuses such locks, or keeps them to itself. There a lease comes on top.
type sessionLocker struct {
	locked bool
	lease  lease
}

// The name is of the schema, because a server knows the locks of all schemas; hashed, because a name has at most 64
// characters. (MySQL 9 has no SHA1.)
const lockName = `CONCAT('delay.', SHA2(DATABASE(), 224))`

func (l *sessionLocker) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if err := l.lock(ctx, conn); err != nil {
		return err
	}
	several, err := onCluster(ctx, conn)
	if err == nil && several {
		err = l.lease.take(ctx, conn)
	}
	if err != nil {
		return errors.Join(err, l.SessionUnlock(ctx, conn))
	}
	return nil
}

func (l *sessionLocker) lock(ctx context.Context, conn *sql.Conn) error {
	// Short waits, so that an ended context is noticed without a connection that dies in the middle of a statement.
	const lock = `SELECT GET_LOCK(` + lockName + `, 1)`
	for !l.locked {
		var got sql.NullInt64
		err := conn.QueryRowContext(ctx, lock).Scan(&got)
		if _, refused := errors.AsType[*mysql.MySQLError](err); refused && ctx.Err() == nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait for another process that migrates: %w", err)
		}
		l.locked = got.Int64 == 1
	}
	return nil
}

func (l *sessionLocker) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	err := l.lease.giveBack(ctx, conn)
	if !l.locked || err != nil {
		return err
	}
	l.locked = false
	_, err = conn.ExecContext(ctx, `DO RELEASE_LOCK(`+lockName+`)`)
	return err
}
