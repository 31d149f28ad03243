package clock

import (
	"math"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// line is one bound of the database's time: value at the moment at of the monotonic clock, moving on from there. All lower bounds
// move at one speed and all upper bounds at another, so which of two is the tighter one never changes.
type line struct {
	at    time.Time
	value row.Time
}

// atLeast returns where a lower bound stands at now: it moves too slowly by the drift.
func (l line) atLeast(now time.Time, drift float64) row.Time {
	passed := now.Sub(l.at)
	return l.value + row.Time((passed-slack(passed, drift))/time.Microsecond)
}

// atMost returns where an upper bound stands at now: it moves too fast by the drift.
func (l line) atMost(now time.Time, drift float64) row.Time {
	passed := now.Sub(l.at)
	return l.value.Add(passed + slack(passed, drift))
}

// position is where a line stands, to the nanosecond. Lines are compared by it: of two that stand in the same microsecond, the one
// that is behind by nanoseconds enters the next one later.
type position struct {
	micros row.Time
	rest   time.Duration
}

func (p position) before(q position) bool {
	return p.micros < q.micros || p.micros == q.micros && p.rest < q.rest
}

func (l line) lowerPosition(now time.Time, drift float64) position {
	passed := now.Sub(l.at)
	return l.after(passed - slack(passed, drift))
}

func (l line) upperPosition(now time.Time, drift float64) position {
	passed := now.Sub(l.at)
	return l.after(passed + slack(passed, drift))
}

func (l line) after(d time.Duration) position {
	return position{l.value + row.Time(d/time.Microsecond), d % time.Microsecond}
}

// until returns how long after l.at a lower bound reaches t.
func (l line) until(t row.Time, drift float64) time.Duration {
	ahead := time.Duration(min(max(t-l.value, -farMicros), farMicros)) * time.Microsecond
	if ahead <= 0 {
		return ahead
	}
	// The last addend makes up for rounding, here and in atLeast.
	return ahead + slack(ahead, drift/(1-drift)) + 3
}

// farMicros is about 143 years, half of what a time.Duration can hold: a due time in the year 9998 is "far", not "overflown".
const farMicros = row.Time(math.MaxInt64 / 2 / int64(time.Microsecond))

func slack(d time.Duration, drift float64) time.Duration {
	return time.Duration(math.Ceil(float64(d) * drift))
}
