package clock

import (
	"math"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// anchor is what the readers see: over all servers, the clock that is furthest behind and the one furthest ahead.
type anchor struct {
	lower, upper line
	ready        chan struct{} // closed when anchored
	anchored     bool
	met          time.Time // when another clock was met, if ever
}

// Anchored returns a channel that is closed while there is an anchor. After the anchor was dropped there is another
// channel.
func (c *Clock) Anchored() <-chan struct{} { return c.current.Load().ready }

// AtLeast returns what the database's clock has reached for sure. It is false without an anchor.
func (c *Clock) AtLeast() (row.Time, bool) {
	a := c.current.Load()
	if !a.anchored {
		return 0, false
	}
	return a.lower.atLeast(c.now(), c.drift), true
}

// AtMost returns what the database's clock has not passed for sure. It is false without an anchor. In a suspend the
// monotonic clock stands still, and the bound with it: who asks before the suspend was noticed otherwise finds the
// anchor dropped.
func (c *Clock) AtMost() (row.Time, bool) {
	a := c.current.Load()
	if !a.anchored {
		return 0, false
	}
	now := c.now()
	if gapped(c.wall(now).Sub(c.wall(a.upper.at)), now.Sub(a.upper.at)) {
		c.Drop()
		c.lost()
		return 0, false
	}
	return a.upper.atMost(now, c.drift), true
}

// Until returns how long it takes from now until AtLeast reaches t, going by the present bounds; not positive when it
// has. A further reading may bring the moment nearer. It is false without an anchor.
func (c *Clock) Until(t row.Time) (time.Duration, bool) {
	a := c.current.Load()
	if !a.anchored {
		return 0, false
	}
	return a.lower.until(t, c.drift) - c.now().Sub(a.lower.at), true
}

// Width returns how far the bounds are apart: how much later than possible a start may be. It is false without an
// anchor.
func (c *Clock) Width() (time.Duration, bool) {
	lower, upper, ok := c.bounds(c.now())
	return upper.Sub(lower), ok
}

// Skew returns by how much the database is ahead of this machine's wall clock, going by the middle of the bounds; 0
// without an anchor. Nothing is decided by it: it is for people whose logs show two clocks.
func (c *Clock) Skew() time.Duration {
	now := c.now()
	lower, upper, ok := c.bounds(now)
	if !ok {
		return 0
	}
	return lower.Add(upper.Sub(lower) / 2).Sub(row.At(now))
}

func (c *Clock) bounds(now time.Time) (lower, upper row.Time, ok bool) {
	a := c.current.Load()
	if !a.anchored {
		return 0, 0, false
	}
	return a.lower.atLeast(now, c.drift), a.upper.atMost(now, c.drift), true
}

// RescueHeld reports whether leases must not be rescued because another clock was met a moment ago: leases written by
// the old clock may look over on the new one until their holders have renewed them.
func (c *Clock) RescueHeld() bool {
	met := c.current.Load().met
	return !met.IsZero() && c.now().Sub(met) < c.rescueHold
}

// line is one bound of the database's time: value at the moment at of the monotonic clock, moving on from there. All
// lower bounds move at one speed and all upper bounds at another, so which of two is the tighter one never changes.
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

// position is where a line stands, to the nanosecond. Lines are compared by it: of two that stand in the same
// microsecond, the one that is behind by nanoseconds enters the next one later.
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

// farMicros is about 143 years, half of what a time.Duration can hold: a due time in the year 9998 is "far", not
// "overflown".
const farMicros = row.Time(math.MaxInt64 / 2 / int64(time.Microsecond))

func slack(d time.Duration, drift float64) time.Duration {
	return time.Duration(math.Ceil(float64(d) * drift))
}
