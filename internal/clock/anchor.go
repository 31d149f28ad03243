package clock

import (
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

// Anchored returns a channel that is closed while there is an anchor. After the anchor was dropped there is another channel.
func (c *Clock) Anchored() <-chan struct{} { return c.current.Load().ready }

// AtLeast returns what the database's clock has reached for sure. It is false without an anchor.
func (c *Clock) AtLeast() (row.Time, bool) {
	a := c.current.Load()
	if !a.anchored {
		return 0, false
	}
	return a.lower.atLeast(c.now(), c.drift), true
}

// AtMost returns what the database's clock has not passed for sure. It is false without an anchor. In a suspend the monotonic clock
// stands still, and the bound with it: who asks before the suspend was noticed otherwise finds the anchor dropped.
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

// Until returns how long it takes from now until AtLeast reaches t, going by the present bounds; not positive when it has. A
// further reading may bring the moment nearer. It is false without an anchor.
func (c *Clock) Until(t row.Time) (time.Duration, bool) {
	a := c.current.Load()
	if !a.anchored {
		return 0, false
	}
	return a.lower.until(t, c.drift) - c.now().Sub(a.lower.at), true
}

// Width returns how far the bounds are apart: how much later than possible a start may be. It is false without an anchor.
func (c *Clock) Width() (time.Duration, bool) {
	lower, upper, ok := c.bounds(c.now())
	return upper.Sub(lower), ok
}

// Skew returns by how much the database is ahead of this machine's wall clock, going by the middle of the bounds; 0 without an
// anchor. Nothing is decided by it: it is for people whose logs show two clocks.
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

// RescueHeld reports whether leases must not be rescued because another clock was met a moment ago: leases written by the old
// clock may look over on the new one until their holders have renewed them.
func (c *Clock) RescueHeld() bool {
	met := c.current.Load().met
	return !met.IsZero() && c.now().Sub(met) < c.rescueHold
}
