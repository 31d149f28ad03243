package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/bench/lateness"
)

const look = 50 * time.Millisecond

// Await returns when a member of a cluster keeps the audit that was installed on another one.
func Await(ctx context.Context, member *sql.DB) error {
	const count = "SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = DATABASE()"
	for {
		var kept int
		if err := member.QueryRowContext(ctx, count).Scan(&kept); err != nil {
			return fmt.Errorf("wait for the audit: %w", err)
		}
		if kept == triggers {
			return nil
		}
		if err := lateness.Pass(ctx, look); err != nil {
			return err
		}
	}
}

// Agree returns when all members of a cluster show the same tasks and the same audit, or an error when ctx ends before.
// What one of them shows can be believed then. A member that gives no answer may be on its way back.
func Agree(ctx context.Context, members []*sql.DB) error {
	for {
		seen := make([]string, len(members))
		silent := make([]error, len(members))
		for i, m := range members {
			seen[i], silent[i] = digest(ctx, m)
		}
		err := errors.Join(silent...)
		if err == nil && len(slices.Compact(slices.Clone(seen))) <= 1 {
			return nil
		}
		if ended := lateness.Pass(ctx, look); ended != nil {
			return fmt.Errorf("the members show different tables, with sums of %q: %w", seen, errors.Join(err, ended))
		}
	}
}

func digest(ctx context.Context, member *sql.DB) (sums string, err error) {
	const sum = "SELECT CONCAT_WS(' '," +
		"(SELECT SUM(CRC32(CONCAT_WS('/', id, version, status, crash_count, executor, message_body))) FROM delay_task_message)," +
		"(SELECT SUM(CRC32(CONCAT_WS('/', member, seq, task, version, status, executor))) FROM chaos_audit))"
	return sums, member.QueryRowContext(ctx, sum).Scan(&sums)
}
