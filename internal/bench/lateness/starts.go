package lateness

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Starts collects when processors started, by the clock that each reads first. It is safe for concurrent use.
type Starts struct {
	mu   sync.Mutex
	seen map[int64]started // without pointers, which the garbage collector would follow while lateness is measured
	want int
	full chan struct{} // closed when so many different tasks were seen
}

type started struct {
	first int64 // in nanoseconds since 1970
	count int
}

// NewStarts returns Starts that expect n different tasks.
func NewStarts(want int) *Starts {
	return &Starts{seen: make(map[int64]started, want), want: want, full: make(chan struct{})}
}

// Add notes one start of the task.
func (s *Starts) Add(id int64, at time.Time) {
	nano := at.UnixNano()
	s.mu.Lock()
	defer s.mu.Unlock()
	before, again := s.seen[id]
	if again {
		nano = min(nano, before.first)
	}
	s.seen[id] = started{nano, before.count + 1}
	if !again && len(s.seen) == s.want {
		close(s.full)
	}
}

// First returns when the task started for the first time, and whether it did.
func (s *Starts) First(id int64) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.seen[id]
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(0, seen.first), true
}

// Count returns how often the task started.
func (s *Starts) Count(id int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[id].count
}

// Full reports whether all expected tasks have started.
func (s *Starts) Full() bool {
	select {
	case <-s.full:
		return true
	default:
		return false
	}
}

// Wait returns when all have started or the time is up; the judge reports what is missing. It returns an error when ctx
// ends.
func (s *Starts) Wait(ctx context.Context, limit time.Duration) error {
	overdue := time.NewTimer(limit)
	defer overdue.Stop()
	select {
	case <-s.full:
		return nil
	case <-overdue.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Moments draws n different microseconds of the span, which must have as many.
func Moments(n int, span time.Duration) []time.Duration {
	drawn := make(map[time.Duration]bool, n)
	all := make([]time.Duration, 0, n)
	for len(all) < n {
		if m := rand.N(span).Truncate(time.Microsecond); !drawn[m] {
			drawn[m] = true
			all = append(all, m)
		}
	}
	return all
}

// Pass waits for d. It returns the context's cause when ctx ends first.
func Pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
