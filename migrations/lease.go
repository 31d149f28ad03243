package migrations

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"time"
)

// lease is the lock of processes on several members of a cluster, whose members keep GET_LOCK to themselves: a row that
// one of them holds at a time. A member on which two views are made at once, one here and one on another member, can
// hang for good (MariaDB 10.11 with Galera), and DDL at two places at once is what group replication asks not to do.
//
// It is a lease because nothing ends it with its holder: who finds it held waits for a minute at most. A migration that
// takes longer may be run by a second process too, which it allows.
type lease struct{ holder string }

const (
	leaseTable  = "delay_task_goose_lock"
	leaseLength = "INTERVAL 1 MINUTE"
	leaseLook   = 200 * time.Millisecond
)

// onCluster reports whether other members take writes beside this one.
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

// take waits until the lease is ours.
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
		if err != nil && !crossed(err) {
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
		case <-time.After(leaseLook):
		}
	}
}

func (l *lease) giveBack(ctx context.Context, conn *sql.Conn) error {
	if l.holder == "" {
		return nil
	}
	_, err := conn.ExecContext(ctx, `UPDATE `+leaseTable+` SET ends = '2000-01-01' WHERE id = 1 AND holder = ?`, l.holder)
	l.holder = ""
	return err
}
