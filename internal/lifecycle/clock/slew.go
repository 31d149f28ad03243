package clock

import (
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// slewHold is how long the bounds allow for a slew after the last reading that has shown one. A slew may pause, and one
// of a few parts in a thousand takes a while to show.
const slewHold = time.Minute

// server is what is known of one server's clock.
type server struct {
	bounds
	sound       bounds    // they hold unless the clock is slewed
	lastReading time.Time // when its last reading arrived
}

// moved counts the bounds until now, so that they err by a slew since the last reading and not since the best one.
func (s server) moved(now moment) server {
	s.bounds, s.sound = s.bounds.moved(now), s.sound.moved(now)
	return s
}

// take narrows the bounds by a reading.
func (s server) take(fresh bounds, received time.Time, now moment, drift, allowed float64) server {
	s.bounds = s.narrow(fresh, now, allowed)
	s.sound = s.sound.narrow(fresh, now, drift)
	if received.After(s.lastReading) {
		s.lastReading = received
	}
	return s
}

// observe returns the bounds that one reading yields. A reading is cut to the microsecond, so the server's time may
// have been almost one microsecond later.
func (c *Clock) observe(r row.Reading, sent, received time.Time, now moment) bounds {
	return bounds{
		lower: bound{at: c.latest(received, now), value: r.Time},
		upper: bound{at: c.earliest(sent, now), value: r.Time + 1},
	}
}

// shows reports whether a reading beyond the sound bounds of its server may come from a slew. A step that is as short
// looks the same, and does as little harm.
func (c *Clock) shows(known server, fresh bounds, now moment) bool {
	gap := fresh.difference(known.sound, now, c.drift)
	return c.slew > 0 && gap > 0 && gap <= maxSkew && fresh.difference(known.bounds, now, c.drift+c.slew) <= 0
}

// allowed is by how much a server's clock and the time that passes here may go apart.
func (c *Clock) allowed() float64 {
	if c.slewed.IsZero() {
		return c.drift
	}
	return c.drift + c.slew
}

// calm goes back to the sound bounds when no reading has shown a slew for a while.
func (c *Clock) calm(now time.Time) {
	if c.slewed.IsZero() || now.Sub(c.slewed) < slewHold {
		return
	}
	c.slewed = time.Time{}
	for name, s := range c.servers {
		s.bounds = s.sound
		c.servers[name] = s
	}
}

// ServerSlewed reports whether a reading has lately shown that a server's clock is slewed.
func (c *Clock) ServerSlewed() bool { return c.current.Load().slewed }

// Slewed reports whether a server's clock is slewed, or this machine's by the word of its kernel. Then each reading
// narrows the bounds by much: the database should be read often, and no wait by [Clock.Until] should be long.
func (c *Clock) Slewed() bool { return c.ServerSlewed() || c.machine.slewed(c.drift) }
