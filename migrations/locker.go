package migrations

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// sessionLocker makes processes that migrate the same schema of a MySQL server take turns. Its lock belongs to the
// connection that goose migrates on, so it ends with the process.
//
// A member of a cluster like Galera refuses such locks, or hides them from the others. There a lease is needed too.
type sessionLocker struct {
	locked bool
	lease  lease
}

// The name contains the schema, because locks are global to a server. It is hashed, because it may have at most 64
// characters. (MySQL 9 has no SHA1.)
const lockName = `CONCAT('delay.', SHA2(DATABASE(), 224))`

func (l *sessionLocker) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, ownSession); err != nil {
		return fmt.Errorf("set up a connection: %w", err)
	}
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
	// Short waits, so that the end of the context does not interrupt a statement, which would cost the connection.
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
	err := l.lease.release(ctx, conn)
	if l.locked && err == nil {
		l.locked = false
		_, err = conn.ExecContext(ctx, `DO RELEASE_LOCK(`+lockName+`)`)
	}
	_, setErr := conn.ExecContext(ctx, callersSession)
	return errors.Join(err, setErr)
}

// The connection may be the application's, with a mode in which the tables cannot be made: EMPTY_STRING_IS_NULL refuses
// an empty default. The wait for a lock ends before the driver stops waiting for the reply.
const (
	ownSession = `SET @delaytask_sql_mode = @@SESSION.sql_mode, @delaytask_lock_wait = @@SESSION.lock_wait_timeout,
		SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', SESSION lock_wait_timeout = 20`
	callersSession = `SET SESSION sql_mode = @delaytask_sql_mode, SESSION lock_wait_timeout = @delaytask_lock_wait`
)

// lease is a lock for processes on several members of a cluster, where GET_LOCK reaches one member only: a row that one
// process owns at a time. Group replication asks not to run DDL on two members at once. A member of Galera on MariaDB
// 10.11 can hang for good when two views are made at once, one of them on another member.
//
// No server ends the lease when its owner dies. So it ends after a minute. A migration that takes longer may be run by
// a second process too, which is allowed.
type lease struct{ holder string }

const (
	leaseTable  = "delay_task_goose_lock"
	leaseLength = "INTERVAL 1 MINUTE"
	leasePause  = 200 * time.Millisecond // between two tries
)

// onCluster reports whether other members of a cluster take writes too.
func onCluster(ctx context.Context, conn *sql.Conn) (bool, error) {
	rows, err := conn.QueryContext(ctx,
		"SHOW VARIABLES WHERE Variable_name IN ('wsrep_on', 'group_replication_single_primary_mode')")
	if err != nil {
		return false, err
	}
	defer rows.Close()
	certifies := map[string]string{"wsrep_on": "ON", "group_replication_single_primary_mode": "OFF"}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return false, err
		}
		if certifies[name] == value {
			return true, rows.Err()
		}
	}
	return false, rows.Err()
}

// take waits until this process owns the lease.
func (l *lease) take(ctx context.Context, conn *sql.Conn) error {
	holder := rand.Text()
	for _, statement := range []string{
		`CREATE TABLE IF NOT EXISTS ` + leaseTable + ` (
			id TINYINT NOT NULL PRIMARY KEY, holder VARCHAR(32) NOT NULL, ends DATETIME(6) NOT NULL
		) ENGINE=InnoDB COMMENT='delaytask: which process migrates'`,
		`INSERT IGNORE INTO ` + leaseTable + ` VALUES (1, '', '2000-01-01')`,
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	const take = `UPDATE ` + leaseTable + ` SET holder = ?, ends = UTC_TIMESTAMP(6) + ` + leaseLength +
		` WHERE id = 1 AND ends < UTC_TIMESTAMP(6)`
	for {
		result, err := conn.ExecContext(ctx, take, holder)
		if err != nil && !collided(err) {
			return err
		}
		if err == nil {
			if n, err := result.RowsAffected(); err != nil || n > 0 {
				l.holder = holder
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for another process that migrates: %w", ctx.Err())
		case <-time.After(leasePause):
		}
	}
}

func (l *lease) release(ctx context.Context, conn *sql.Conn) error {
	if l.holder == "" {
		return nil
	}
	const release = `UPDATE ` + leaseTable + ` SET ends = '2000-01-01' WHERE id = 1 AND holder = ?`
	_, err := conn.ExecContext(ctx, release, l.holder)
	l.holder = ""
	return err
}
