package processor

import (
	"math/rand/v2"
	"time"
)

// Backoff says how long to wait after the attempt with this number (1 is the first) has failed. It must be safe for
// concurrent use. A negative answer means at once.
type Backoff func(attempt int) time.Duration

// DefaultBackoff waits 1 s, 2 s, 4 s … up to 1 h, each ± 20 %.
func DefaultBackoff(attempt int) time.Duration { return defaultBackoff(attempt) }

var defaultBackoff = Exponential(time.Second, time.Hour, 0.2)

// Exponential waits base after the first attempt and doubles the wait with each further one, up to limit. Jitter is the
// share, 0 to 1, by which a wait is moved at random either way; it comes last, so that tasks that have reached the
// limit spread out too, and the longest wait is limit × (1 + jitter). A base or limit that is not positive takes its
// default, 1 s and 1 h.
func Exponential(base, limit time.Duration, jitter float64) Backoff {
	if base <= 0 {
		base = time.Second
	}
	if limit <= 0 {
		limit = time.Hour
	}
	return func(attempt int) time.Duration {
		return spread(double(base, limit, max(attempt, 1)-1), jitter)
	}
}

// Constant waits d after every attempt.
func Constant(d time.Duration) Backoff {
	return func(int) time.Duration { return d }
}

// double stops before the shift can overflow, whatever the number of attempts.
func double(base, limit time.Duration, times int) time.Duration {
	for range times {
		if base >= limit/2 {
			return limit
		}
		base *= 2
	}
	return min(base, limit)
}

func spread(d time.Duration, jitter float64) time.Duration {
	if !(jitter > 0) { // also when it is not a number
		return d
	}
	moved := float64(d) * (1 + min(jitter, 1)*(2*rand.Float64()-1))
	return time.Duration(min(moved, float64(longestDelay)))
}
