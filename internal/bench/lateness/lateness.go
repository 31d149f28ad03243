// Package lateness judges how punctually tasks started: by the due times in the table and by the clock that processors
// read, not by anything that delaytask computed.
package lateness

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle"
)

// Starts notes when tasks start. It is their processor, and only reads the clock.
type Starts struct {
	mu    sync.Mutex
	first map[int64]int64 // nanoseconds since 1970: no pointers, which the garbage collector would follow meanwhile
	extra int             // further starts
	want  int
	full  chan struct{} // closed when so many different tasks have started
}

// NewStarts returns Starts that expect n different tasks.
func NewStarts(n int) *Starts {
	return &Starts{first: make(map[int64]int64, n), want: n, full: make(chan struct{})}
}

// Process implements [processor.Processor].
func (s *Starts) Process(_ context.Context, task *delaytask.Task) error {
	s.Add(task.ID, time.Now())
	return nil
}

// Add notes a start of the task.
func (s *Starts) Add(id int64, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, again := s.first[id]
	if again {
		s.first[id] = min(before, at.UnixNano())
		s.extra++
		return
	}
	s.first[id] = at.UnixNano()
	if len(s.first) == s.want {
		close(s.full)
	}
}

// First returns when the task started for the first time, and whether it did.
func (s *Starts) First(id int64) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, started := s.first[id]
	return time.Unix(0, at), started
}

// Wait returns when all have started. It returns an error when the time is up before, or ctx ends.
func (s *Starts) Wait(ctx context.Context, limit time.Duration) error {
	select {
	case <-s.full:
		return nil
	case <-time.After(limit):
		return fmt.Errorf("%d tasks have not all started within %v", s.want, limit)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Judgement compares the due times in the table with what processors saw.
type Judgement struct {
	Lost   int             // tasks that never started, or are not completed
	Extra  int             // starts beyond the first of each task
	Early  int             // tasks that started before they were expected
	Starts []time.Duration // how late the first starts were
}

// Judge takes the expected times from the table.
func (s *Starts) Judge(tasks []delaytask.TaskRow) Judgement {
	j := Judgement{Extra: s.extra}
	for _, task := range tasks {
		at, started := s.First(task.ID)
		if !started || task.Status != delaytask.Completed {
			j.Lost++
		}
		if late := at.Sub(task.Expected); started {
			j.Starts = append(j.Starts, late)
			if late < 0 {
				j.Early++
			}
		}
	}
	return j
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

// Clock is how far the clock of a MySQL server is ahead of this machine's, and by how much that may be wrong.
type Clock struct{ Ahead, Within time.Duration }

// ReadClock takes the fastest of some readings: the server read its clock between the request and the reply.
func ReadClock(ctx context.Context, pool *sql.DB) (Clock, error) {
	best := Clock{Within: math.MaxInt64}
	for range 10 {
		var text string
		sent := time.Now()
		err := pool.QueryRowContext(ctx, "SELECT CAST(UTC_TIMESTAMP(6) AS CHAR)").Scan(&text)
		half := time.Since(sent) / 2
		server, wrong := time.Parse("2006-01-02 15:04:05.000000", text)
		if err := cmp.Or(err, wrong); err != nil {
			return Clock{}, fmt.Errorf("read the server's clock: %w", err)
		}
		if half < best.Within {
			best = Clock{server.Sub(sent.Add(half)), half + time.Microsecond} // at which the server cuts its time off
		}
	}
	return best, nil
}

// ErrOtherClock is returned by [ClockAhead].
var ErrOtherClock = errors.New("the server's clock is not this machine's, so nobody could say what is early;" +
	" use a server on this machine")

// ClockAhead returns [ErrOtherClock] when the clock of a MySQL server is not ahead of this process's by the duration:
// with 0, time.Now cannot tell then how late a task is. It returns other errors when the server cannot be asked.
func ClockAhead(ctx context.Context, pool *sql.DB, by time.Duration) error {
	c, err := ReadClock(ctx, pool)
	if err == nil && (c.Ahead-by).Abs() > c.Within {
		err = ErrOtherClock
	}
	return err
}

// Pass waits for d. It returns the context's cause when ctx ends first.
func Pass(ctx context.Context, d time.Duration) error {
	if !lifecycle.Sleep(ctx, d) {
		return context.Cause(ctx)
	}
	return nil
}
