package fault

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"
)

// killConnections kills connections of the user, and says how many, and how many of them had a statement under way.
func killConnections(ctx context.Context, admin *sql.Conn, user string, busyOnly bool) (all, busy int, err error) {
	victims, err := connections(ctx, admin, user)
	if err != nil {
		return 0, 0, err
	}
	for id, isBusy := range victims {
		if busyOnly && !isBusy {
			continue
		}
		_, err := admin.ExecContext(ctx, fmt.Sprintf("KILL %d", id))
		const gone = 1094
		if refused, is := errors.AsType[*mysql.MySQLError](err); is && refused.Number == gone {
			continue
		}
		if err != nil {
			return all, busy, err
		}
		all++
		if isBusy {
			busy++
		}
	}
	return all, busy, nil
}

func connections(ctx context.Context, admin *sql.Conn, user string) (map[int64]bool, error) {
	rows, err := admin.QueryContext(ctx, "SELECT id, command <> 'Sleep' FROM information_schema.processlist WHERE user = ?", user)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[int64]bool{}
	for rows.Next() {
		var id int64
		var isBusy bool
		if err := rows.Scan(&id, &isBusy); err != nil {
			return nil, err
		}
		found[id] = isBusy
	}
	return found, rows.Err()
}
