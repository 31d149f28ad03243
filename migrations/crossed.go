package migrations

import (
	"context"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-sql-driver/mysql"
)

// mostTries is how often the migrations are run: as often as ten processes on three members of a cluster needed, and a
// few more.
const mostTries = 8

// again runs the migrations until none of them meets those of another process. On a cluster the lock of one member is
// unknown to the others, so processes do migrate at the same time there. Each migration is one statement that may run
// twice.
func again(ctx context.Context, up func() error) error {
	for tries := 1; ; tries++ {
		err := up()
		if err == nil || tries == mostTries || !crossed(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(rand.N(time.Duration(tries) * 100 * time.Millisecond)):
		}
	}
}

// crossed reports whether another process was in the way. A member that another one's DDL overtakes says so in many
// ways, or cuts the connection.
func crossed(err error) bool {
	if errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) {
		return true
	}
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && slices.Contains([]uint16{
		1020, // the row changed meanwhile
		1047, // the member is not ready
		1050, // the table is there already
		1062, // the migration is noted already
		1146, // the table is not there yet
		1180, // an error during COMMIT
		1205, // lock wait timeout
		1213, // deadlock, or a conflict at certification
		1412, // the table's definition changed
		1467, // no next number: the table was replaced meanwhile
		1684, // another statement changes the table
		3101, // rolled back at certification
	}, e.Number)
}
