// Package lateness judges how punctually tasks started: by the due times in the table and by the clock that processors
// read, not by anything that delaytask computed.
package lateness

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
)

// Judgement compares the due times in the table with what processors saw.
type Judgement struct {
	Once   int             // tasks that started exactly once and are completed
	Lost   int             // tasks that never started, or are not completed
	Extra  int             // starts beyond the first of each task
	Early  int             // tasks that started before they were expected
	Starts []time.Duration // how late the first starts were
}

// Judge takes the expected times from the table, each moved by shift, which is 0 except in a test of the judge.
func Judge(tasks []delaytask.TaskRow, s *Starts, shift time.Duration) Judgement {
	var j Judgement
	for _, task := range tasks {
		at, started := s.First(task.ID)
		count := s.Count(task.ID)
		switch {
		case !started || task.Status != delaytask.Completed:
			j.Lost++
		case count == 1:
			j.Once++
		}
		if !started {
			continue
		}
		j.Extra += count - 1
		late := at.Sub(task.Expected.Add(shift))
		if late < 0 {
			j.Early++
		}
		j.Starts = append(j.Starts, late)
	}
	return j
}

// Tasks reads all tasks of a tag from the table. It returns the errors of [delaytask.Scheduler.List].
func Tasks(ctx context.Context, s *delaytask.Scheduler, tag string) ([]delaytask.TaskRow, error) {
	var all []delaytask.TaskRow
	filter := delaytask.Filter{Tag: tag, Limit: 1000}
	for {
		page, err := s.List(ctx, filter)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Tasks...)
		if filter.After = page.Next; page.Next == "" {
			return all, nil
		}
	}
}

// Percentile takes the nearest rank, so that every figure is one that was measured. Of nothing it is 0.
func Percentile(durations []time.Duration, p float64) time.Duration {
	n := len(durations)
	if n == 0 {
		return 0
	}
	// In floating point 99.9 % of 41,000 is a little more than 40,959.
	rank := int(math.Ceil(float64(n) * p / 100 * (1 - 1e-12)))
	return slices.Sorted(slices.Values(durations))[max(rank, 1)-1]
}

// ErrOtherClock is returned by [SameClock].
var ErrOtherClock = errors.New("the server's clock is not this machine's, so nobody could say what is early;" +
	" use a server on this machine")

// clockReadings is how often the server is asked for its time: a slow reply to one of them must not hide a wrong clock.
const clockReadings = 5

// SameClock returns [ErrOtherClock] when a MySQL server has another clock than this process: then time.Now cannot tell
// how late a task is. It returns other errors when the server cannot be asked.
func SameClock(ctx context.Context, pool *sql.DB) error { return ClockAhead(ctx, pool, 0) }

// ClockAhead is the same for a server whose clock has to be ahead by the duration.
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
