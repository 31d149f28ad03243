// Package clock tells the database's time without asking the database.
//
// Each reading of the database's clock, taken between two moments of this machine's monotonic clock, yields two bounds.
// The database's time is at least the reading plus what has passed since the reply arrived, and at most the reading
// plus what has passed since the request was sent. There is no midpoint and no estimate: what may only happen after a
// moment waits for the lower bound, what must happen before it obeys the upper one. The machine's wall clock plays no
// part, but to notice that the machine was suspended.
package clock

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

const (
	// maxSkew is how far the clocks of servers behind one address may be apart and still count as one clock.
	maxSkew = 500 * time.Millisecond
	// memory is how long a server that no longer answers goes on widening the bounds, while others do answer.
	memory = time.Minute
)

// Clock holds the bounds. While it has bounds it is anchored. It is safe for concurrent use; asking it takes no lock.
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

// Lost sets what is called when somebody who asked for [Clock.AtMost] was the one to drop the anchor: a reading should
// be taken at once. It must not block. The default is nothing.
func Lost(f func()) Option { return func(c *Clock) { c.lost = f } }

// Source sets where this machine's monotonic clock is read. The default is time.Now; another one lets a test stop the
// time.
func Source(now func() time.Time) Option { return func(c *Clock) { c.now = now } }

// New returns a clock without an anchor: it needs a reading.
func New(opts ...Option) *Clock {
	c := &Clock{now: time.Now, wall: wallOf, drift: 200e-6, rescueHold: 5 * time.Second, lost: func() {}, servers: make(map[string]server)}
	for _, opt := range opts {
		opt(c)
	}
	c.current.Store(&anchor{ready: make(chan struct{})})
	return c
}

// Add takes a reading that was asked for at sent and arrived at received, both as the [Source] gave them. It reports
// whether the clock is anchored now; when it is not, another reading should be taken at once.
//
// A reading that contradicts what is known (a server outside its own bounds, or a new one too far from the others)
// means another clock, as after a failover. Then the anchor is dropped, and neither this reading nor any other that was
// asked for before the drop starts the next: a contradiction does not tell which side is out of date, and a reply that
// was on its way may still come from the server that has just been replaced. What answers a request sent after the drop
// is the clock that counts.
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
		return fresh.apart(known, now, c.drift) > 0
	}
	for _, other := range c.servers {
		if fresh.apart(other, now, c.drift) > maxSkew {
			return true
		}
	}
	return false
}

// forget drops the servers not heard of for long. The one that was just heard stays, so an outage forgets nothing, and
// the first reading after it is compared with the clock from before.
func (c *Clock) forget(now time.Time) {
	for name, s := range c.servers {
		if now.Sub(s.heard) > memory {
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
		close(next.ready) // after the store: whoever wakes by it finds the anchor
	}
}

// Drop forgets all readings, also those that are still on their way. It is for moments when the monotonic clock may
// have stood still, such as a suspend.
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
// somebody set the wall clock; to treat the second like the first costs one reading and one scan.
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
	return passed - monoPassed, gapped(passed, monoPassed)
}

// gapped reports a suspend between two moments that are so far apart by the wall clock and by the monotonic one.
func gapped(wall, mono time.Duration) bool { return wall-mono > maxGap }

// wallOf is a moment by the wall clock alone.
func wallOf(t time.Time) time.Time { return t.Round(0) }
