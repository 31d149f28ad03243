// Package clock tells the database's time without asking the database.
//
// Each reading of the database's clock, taken between two moments of this machine's monotonic clock, yields two bounds.
// The database's time is at least the reading plus the time since the reply arrived. It is at most the reading plus the
// time since the request was sent. There is no midpoint and no estimate. What must not happen before a moment waits for
// the lower bound. What must happen before it goes by the upper one. The machine's wall clock only serves to notice
// that the machine was suspended.
package clock

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

const (
	// maxSkew is how far the clocks of servers behind one address may be apart and still count as one clock.
	maxSkew = 500 * time.Millisecond
	// forgetAfter is how long a server that no longer answers goes on widening the bounds, while others do answer.
	forgetAfter = time.Minute
)

// Clock holds the bounds. While it has bounds it is anchored. It is safe for concurrent use, and reading it takes no
// lock.
type Clock struct {
	now        func() time.Time          // this machine's monotonic clock
	wall       func(time.Time) time.Time // what its wall clock showed then
	drift      float64
	rescueHold time.Duration
	lost       func()

	mu      sync.Mutex
	servers map[string]server
	dropped time.Time // when the anchor was last dropped

	current atomic.Pointer[anchor]
}

// An Option changes a default of [New].
type Option func(*Clock)

// Drift sets by how many parts per million this machine's and a server's clock may go apart. The default is 200.
func Drift(ppm int) Option { return func(c *Clock) { c.drift = float64(ppm) / 1e6 } }

// RescueHold sets for how long [Clock.RescueHeld] holds. It should be one interval of lease renewal. The default is 5
// s.
func RescueHold(d time.Duration) Option { return func(c *Clock) { c.rescueHold = d } }

// Lost sets the function that is called when a call of [Clock.AtMost] has dropped the anchor: a reading should be taken
// at once. It must not block. The default does nothing.
func Lost(f func()) Option { return func(c *Clock) { c.lost = f } }

// Source sets where this machine's monotonic clock is read. The default is time.Now; another one lets a test stop the
// time.
func Source(now func() time.Time) Option { return func(c *Clock) { c.now = now } }

// New returns a clock without an anchor: it needs a reading.
func New(opts ...Option) *Clock {
	c := &Clock{now: time.Now, wall: wallOf, drift: 200e-6, rescueHold: 5 * time.Second, lost: func() {},
		servers: make(map[string]server)}
	for _, opt := range opts {
		opt(c)
	}
	c.current.Store(&anchor{ready: make(chan struct{})})
	return c
}

// Add takes a reading that was asked for at sent and arrived at received, both as the [Source] gave them. It reports
// whether the clock is anchored now. If not, another reading should be taken at once.
//
// A reading may contradict the bounds: its server is outside of its own, or a new server is too far from the others.
// That means another clock, as after a failover. Then the anchor is dropped. Neither this reading nor any other that
// was asked for before the drop starts the next anchor. A contradiction does not tell which side is out of date, and a
// late reply may still come from the server that was replaced. The clock that answers a request sent after the drop
// counts.
func (c *Clock) Add(r row.Reading, sent, received time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sent.Before(c.dropped) {
		return c.current.Load().anchored
	}
	now, fresh := c.now(), observe(r, sent, received)
	if c.contradicts(r.Server, fresh, now) {
		c.drop(now, now)
		return false
	}
	if known, ok := c.servers[r.Server]; ok {
		fresh = known.narrow(fresh, now, c.drift)
	}
	c.servers[r.Server] = fresh
	c.forget(received)
	c.publish(now)
	return true
}

func (c *Clock) contradicts(name string, fresh server, now time.Time) bool {
	if known, ok := c.servers[name]; ok {
		return fresh.difference(known, now, c.drift) > 0
	}
	for _, other := range c.servers {
		if fresh.difference(other, now, c.drift) > maxSkew {
			return true
		}
	}
	return false
}

// forget drops servers without a recent reading. The one just read stays. So an outage forgets nothing, and the first
// reading after it is compared with the clock from before.
func (c *Clock) forget(now time.Time) {
	for name, s := range c.servers {
		if now.Sub(s.lastReading) > forgetAfter {
			delete(c.servers, name)
		}
	}
}

func (c *Clock) publish(now time.Time) {
	next := *c.current.Load()
	first := true
	for _, s := range c.servers {
		if first || s.lower.lowerPosition(now, c.drift).before(next.lower.lowerPosition(now, c.drift)) {
			next.lower = s.lower
		}
		if first || next.upper.upperPosition(now, c.drift).before(s.upper.upperPosition(now, c.drift)) {
			next.upper = s.upper
		}
		first = false
	}
	starts := !next.anchored
	next.anchored = true
	c.current.Store(&next)
	if starts {
		close(next.ready) // after the store: a goroutine that it wakes finds the anchor
	}
}

// Drop forgets all readings, also those still in flight. It is for moments when the monotonic clock may have stood
// still, such as a suspend.
func (c *Clock) Drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(c.now(), c.current.Load().met)
}

func (c *Clock) drop(now, met time.Time) {
	c.dropped = now
	clear(c.servers)
	if c.current.Load().anchored {
		c.current.Store(&anchor{ready: make(chan struct{}), met: met})
	}
}

// maxGap is how much the wall clock may gain on the monotonic clock between two ticks. More than that is a suspend, or
// the wall clock was set. To treat the second like the first costs one reading and one scan.
const maxGap = time.Second

// Gap notices suspends: on Linux the monotonic clock and every timer stand still meanwhile, the wall clock does not.
// The zero value is ready to use. It is for one goroutine.
type Gap struct {
	start time.Time // the origin of mono
	wall  time.Time
	mono  time.Duration
}

// Tick returns how much the wall clock has gained since the last tick and whether that was a suspend. The first tick
// never is.
func (g *Gap) Tick() (time.Duration, bool) {
	now := time.Now()
	if g.start.IsZero() {
		g.start, g.wall = now, now.Round(0)
	}
	return g.tick(now.Round(0), now.Sub(g.start))
}

func (g *Gap) tick(wall time.Time, mono time.Duration) (time.Duration, bool) {
	passed, monoPassed := wall.Sub(g.wall), mono-g.mono
	g.wall, g.mono = wall, mono
	return passed - monoPassed, isSuspend(passed, monoPassed)
}

// isSuspend reports a suspend between two moments that are so far apart by the wall clock and by the monotonic one.
func isSuspend(wall, mono time.Duration) bool { return wall-mono > maxGap }

// wallOf is a moment by the wall clock alone.
func wallOf(t time.Time) time.Time { return t.Round(0) }

// anchor is what readers see: over all servers, the slowest lower bound and the fastest upper bound.
type anchor struct {
	lower, upper bound
	ready        chan struct{} // closed when anchored
	anchored     bool
	met          time.Time // when another clock was found, if ever
}

// Await returns what a bound says, [Clock.AtLeast] or [Clock.AtMost], and waits while there is no anchor. It returns
// the cause of ctx, or [delaytask.ErrClosed] when the life ends.
func (c *Clock) Await(ctx, life context.Context, bound func() (row.Time, bool)) (row.Time, error) {
	for {
		if t, ok := bound(); ok {
			return t, nil
		}
		select {
		case <-c.Anchored():
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-life.Done():
			return 0, delaytask.ErrClosed
		}
	}
}

// Anchored returns a channel that is closed while there is an anchor. After the anchor was dropped there is another
// channel.
func (c *Clock) Anchored() <-chan struct{} { return c.current.Load().ready }

// AtLeast returns a time that the database's clock has certainly reached. It is false without an anchor.
func (c *Clock) AtLeast() (row.Time, bool) {
	a := c.current.Load()
	if !a.anchored {
		return 0, false
	}
	return a.lower.atLeast(c.now(), c.drift), true
}

// AtMost returns a time that the database's clock has certainly not passed. It is false without an anchor. In a suspend
// the monotonic clock stands still, and the bound with it. So the first call after a suspend drops the anchor.
func (c *Clock) AtMost() (row.Time, bool) {
	a := c.current.Load()
	if !a.anchored {
		return 0, false
	}
	now := c.now()
	if isSuspend(c.wall(now).Sub(c.wall(a.upper.at)), now.Sub(a.upper.at)) {
		c.Drop()
		c.lost()
		return 0, false
	}
	return a.upper.atMost(now, c.drift), true
}

// Guess returns AtMost, or the time of this machine without an anchor. It is for ids: these need a time, and no bound.
func (c *Clock) Guess() time.Time {
	if t, anchored := c.AtMost(); anchored {
		return t.Std()
	}
	return time.Now()
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
// without an anchor. Nothing is decided by it: it serves to compare log lines of two clocks.
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

// RescueHeld reports whether leases must not be rescued because another clock was found a moment ago. Leases written by
// the old clock may look expired on the new one until their holders have renewed them.
func (c *Clock) RescueHeld() bool {
	met := c.current.Load().met
	return !met.IsZero() && c.now().Sub(met) < c.rescueHold
}

// bound is a bound of the database's time: value at the moment at of the monotonic clock, moving on from there. All
// lower bounds move at one speed and all upper bounds at another. So the tighter one of two stays the tighter one.
type bound struct {
	at    time.Time
	value row.Time
}

// atLeast returns where a lower bound stands at now: it moves too slowly by the drift.
func (l bound) atLeast(now time.Time, drift float64) row.Time {
	passed := now.Sub(l.at)
	return l.value + row.Time((passed-slack(passed, drift))/time.Microsecond)
}

// atMost returns where an upper bound stands at now: it moves too fast by the drift.
func (l bound) atMost(now time.Time, drift float64) row.Time {
	passed := now.Sub(l.at)
	return l.value.Add(passed + slack(passed, drift))
}

// position is where a bound stands, to the nanosecond. Bounds are compared by it: of two in the same microsecond, the
// one behind by nanoseconds enters the next microsecond later.
type position struct {
	micros row.Time
	rest   time.Duration
}

func (p position) before(q position) bool {
	return p.micros < q.micros || p.micros == q.micros && p.rest < q.rest
}

func (l bound) lowerPosition(now time.Time, drift float64) position {
	passed := now.Sub(l.at)
	return l.after(passed - slack(passed, drift))
}

func (l bound) upperPosition(now time.Time, drift float64) position {
	passed := now.Sub(l.at)
	return l.after(passed + slack(passed, drift))
}

func (l bound) after(d time.Duration) position {
	return position{l.value + row.Time(d/time.Microsecond), d % time.Microsecond}
}

// until returns how long after l.at a lower bound reaches t.
func (l bound) until(t row.Time, drift float64) time.Duration {
	ahead := time.Duration(min(max(t-l.value, -farMicros), farMicros)) * time.Microsecond
	if ahead <= 0 {
		return ahead
	}
	// The last addend makes up for rounding, here and in atLeast.
	return ahead + slack(ahead, drift/(1-drift)) + 3
}

// farMicros is about 143 years, half of what a time.Duration can hold. It keeps a due time in the year 9998 from
// overflowing.
const farMicros = row.Time(math.MaxInt64 / 2 / int64(time.Microsecond))

func slack(d time.Duration, drift float64) time.Duration {
	return time.Duration(math.Ceil(float64(d) * drift))
}

// server holds the bounds of one server's clock.
type server struct {
	lower, upper bound
	lastReading  time.Time // when its last reading arrived
}

// observe returns the bounds that one reading yields. A reading is cut to the microsecond, so the server's time may
// have been almost one microsecond later.
func observe(r row.Reading, sent, received time.Time) server {
	return server{
		lower:       bound{at: received, value: r.Time},
		upper:       bound{at: sent, value: r.Time + 1},
		lastReading: received,
	}
}

// difference returns by how much the two clocks certainly differ, or a negative number when they may agree.
func (s server) difference(other server, now time.Time, drift float64) time.Duration {
	ahead := s.lower.atLeast(now, drift) - other.upper.atMost(now, drift)
	behind := other.lower.atLeast(now, drift) - s.upper.atMost(now, drift)
	return time.Duration(min(max(ahead, behind), farMicros)) * time.Microsecond
}

// narrow returns the intersection of the bounds: of each, the tighter one.
func (s server) narrow(fresh server, now time.Time, drift float64) server {
	if s.lower.lowerPosition(now, drift).before(fresh.lower.lowerPosition(now, drift)) {
		s.lower = fresh.lower
	}
	if fresh.upper.upperPosition(now, drift).before(s.upper.upperPosition(now, drift)) {
		s.upper = fresh.upper
	}
	if fresh.lastReading.After(s.lastReading) {
		s.lastReading = fresh.lastReading
	}
	return s
}

// NapLimit is the longest useful [Nap]. Of a longer wait, the rest is for a timer, which can be interrupted.
const NapLimit = 1200 * time.Microsecond
