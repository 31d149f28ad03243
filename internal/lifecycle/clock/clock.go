// Package clock tells the database's time without asking the database.
//
// Each reading of the database's clock, taken between two moments of this machine's monotonic clock, yields two bounds.
// The database's time is at least the reading plus the time since the reply arrived. It is at most the reading plus the
// time since the request was sent. There is no midpoint and no estimate. What must not happen before a moment waits for
// the lower bound. What must happen before it goes by the upper one. The machine's wall clock only serves to notice
// that the machine was suspended.
//
// The monotonic clock may be slewed. So the time that has passed is counted by the machine's raw clock too: the lower
// bound goes by the one that counted less, the upper bound by the other. A server's slew shows in its next reading, and
// from then on the bounds allow for any.
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
	// forgetAfter is how long a server that no longer answers goes on widening the bounds, while others do answer, and
	// no clock is slewed.
	forgetAfter = time.Minute
)

// Clock holds the bounds. While it has bounds it is anchored. It is safe for concurrent use, and reading it takes no
// lock.
type Clock struct {
	now        func() time.Time          // this machine's monotonic clock
	wall       func(time.Time) time.Time // what its wall clock showed then
	drift      float64
	slew       float64
	machine    Machine
	rescueHold time.Duration
	lost       func()

	mu      sync.Mutex
	servers map[string]server
	since   time.Time // readings that were asked for before count no more
	slewed  time.Time // when a reading has shown a slew; zero: none has, of late

	current atomic.Pointer[anchor]
	read    atomic.Pointer[moment] // when the raw clock was last read for [Clock.AtMost]
	origin  time.Time              // what stands for the raw clock counts from it
}

// An Option changes a default of [New].
type Option func(*Clock)

// Drift sets by how many parts per million this machine's and a server's clock may go apart. The default is 200.
func Drift(ppm int) Option { return func(c *Clock) { c.drift = float64(ppm) / 1e6 } }

// Slew sets by how many parts per million a server's clock may be slewed, beyond its drift. The default is 0: a reading
// beyond the drift comes from another clock.
func Slew(ppm int) Option { return func(c *Clock) { c.slew = float64(ppm) / 1e6 } }

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
	c.origin = c.now()
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
	if sent.Before(c.since) {
		return c.current.Load().anchored
	}
	now := c.paired()
	fresh := c.observe(r, sent, received, now)
	known, met := c.servers[r.Server]
	known = known.moved(now)
	slewed := met && c.shows(known, fresh, now)
	if !slewed && c.contradicts(r.Server, fresh, now) {
		c.drop(now.mono, now.mono)
		return false
	}
	s := server{bounds: fresh, sound: fresh, lastReading: received}
	if met {
		s = known.take(fresh, received, now, c.drift, c.allowed())
	}
	if slewed {
		s.sound = fresh
		if c.slewed.IsZero() { // or it is a short step, and either side out of date
			s.bounds = known.join(fresh, now, c.drift)
			s.sound = s.bounds
		}
		c.slewed, c.since = now.mono, now.mono
	}
	c.servers[r.Server] = s
	c.forget(received)
	c.calm(now.mono)
	c.publish()
	return true
}

func (c *Clock) contradicts(name string, fresh bounds, now moment) bool {
	if known, ok := c.servers[name]; ok {
		return fresh.difference(known.sound, now, c.drift) > 0
	}
	for _, other := range c.servers {
		if fresh.difference(other.sound, now, c.drift) > maxSkew {
			return true
		}
	}
	return false
}

// forget drops servers without a recent reading. The one just read stays. So an outage forgets nothing, and the first
// reading after it is compared with the clock from before. While clocks are slewed, a server whose bounds have moved
// apart by more than servers may be apart tells nothing any more: starts would wait for it.
func (c *Clock) forget(now time.Time) {
	for name, s := range c.servers {
		silent := now.Sub(s.lastReading)
		if silent > forgetAfter || slack(silent, c.allowed()) > maxSkew {
			delete(c.servers, name)
		}
	}
}

func (c *Clock) publish() {
	next := *c.current.Load()
	next.servers = make([]bounds, 0, len(c.servers))
	for _, s := range c.servers {
		next.servers = append(next.servers, s.bounds)
	}
	starts := !next.anchored
	next.anchored, next.drift, next.slewed = true, c.allowed(), !c.slewed.IsZero()
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
	c.since = now
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

// anchor is what readers see: the bounds of all servers.
type anchor struct {
	servers  []bounds
	drift    float64
	slewed   bool          // a server's clock is slewed
	ready    chan struct{} // closed when anchored
	anchored bool
	met      time.Time // when another clock was found, if ever
}

// atLeast returns the slowest lower bound.
func (a *anchor) atLeast(now moment) row.Time {
	least := row.Time(math.MaxInt64)
	for _, s := range a.servers {
		least = min(least, s.lower.atLeast(now, a.drift))
	}
	return least
}

// atMost returns the fastest upper bound, and the moment that it counts from.
func (a *anchor) atMost(now moment) (most row.Time, from time.Time) {
	most = math.MinInt64
	for _, s := range a.servers {
		if t := s.upper.atMost(now, a.drift); t > most {
			most, from = t, s.upper.at.mono
		}
	}
	return most, from
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
	return a.atLeast(c.present()), true
}

// AtMost returns a time that the database's clock has certainly not passed. It is false without an anchor. In a suspend
// the monotonic clock stands still, and the bound with it. So the first call after a suspend drops the anchor.
func (c *Clock) AtMost() (row.Time, bool) {
	a := c.current.Load()
	if !a.anchored {
		return 0, false
	}
	now := c.soon()
	most, from := a.atMost(now)
	if isSuspend(c.wall(now.mono).Sub(c.wall(from)), now.mono.Sub(from)) {
		c.Drop()
		c.lost()
		return 0, false
	}
	return most, true
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
	now := c.present()
	wait := time.Duration(math.MinInt64)
	for _, s := range a.servers {
		wait = max(wait, s.lower.until(t, a.drift)-s.lower.least(now))
	}
	return wait, true
}

// Width returns how far the bounds are apart: how much later than possible a start may be. It is false without an
// anchor.
func (c *Clock) Width() (time.Duration, bool) {
	lower, upper, ok := c.width(c.present())
	return upper.Sub(lower), ok
}

// Skew returns by how much the database is ahead of this machine's wall clock, going by the middle of the bounds; 0
// without an anchor. Nothing is decided by it: it serves to compare log lines of two clocks.
func (c *Clock) Skew() time.Duration {
	now := c.present()
	lower, upper, ok := c.width(now)
	if !ok {
		return 0
	}
	return lower.Add(upper.Sub(lower) / 2).Sub(row.At(now.mono))
}

func (c *Clock) width(now moment) (lower, upper row.Time, ok bool) {
	a := c.current.Load()
	if !a.anchored {
		return 0, 0, false
	}
	upper, _ = a.atMost(now)
	return a.atLeast(now), upper, true
}

// RescueHeld reports whether leases must not be rescued because another clock was found a moment ago. Leases written by
// the old clock may look expired on the new one until their holders have renewed them.
func (c *Clock) RescueHeld() bool {
	met := c.current.Load().met
	return !met.IsZero() && c.now().Sub(met) < c.rescueHold
}

// NapLimit is the longest useful [Nap]. Of a longer wait, the rest is for a timer, which can be interrupted.
const NapLimit = 1200 * time.Microsecond
