package lateness

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrOtherClock is returned by [SameClock].
var ErrOtherClock = errors.New("the server's clock is not this machine's, so nobody could say what is early;" +
	" use a server on this machine")

// clockReadings is how often the server is asked for its time: a slow reply to one of them must not hide a wrong clock.
const clockReadings = 5

// SameClock returns [ErrOtherClock] when a MySQL server has another clock than this process: who judges by time.Now
// what is due by the server's clock must know. It returns other errors when the server cannot be asked.
func SameClock(ctx context.Context, pool *sql.DB) error { return ClockAhead(ctx, pool, 0) }

// ClockAhead is the same for a server whose clock is to be ahead by that much.
func ClockAhead(ctx context.Context, pool *sql.DB, by time.Duration) error {
	least, most := time.Duration(math.MinInt64), time.Duration(math.MaxInt64) // bounds of how far the server is ahead
	for range clockReadings {
		var text string
		sent := time.Now()
		if err := pool.QueryRowContext(ctx, "SELECT CAST(UTC_TIMESTAMP(6) AS CHAR)").Scan(&text); err != nil {
			return fmt.Errorf("read the server's clock: %w", err)
		}
		received := time.Now()
		server, err := time.Parse("2006-01-02 15:04:05.000000", text)
		if err != nil {
			return fmt.Errorf("read the server's clock: %w", err)
		}
		least, most = max(least, server.Sub(received)-by), min(most, server.Sub(sent)-by)
	}
	if least > time.Microsecond || most < -time.Microsecond { // the server cuts its time off at a microsecond
		return ErrOtherClock
	}
	return nil
}
