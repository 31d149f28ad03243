package clock

import (
	"math"
	"time"
)

// Machine tells of this machine's time without its monotonic clock, which may be slewed. The zero value knows nothing:
// then the monotonic clock is believed.
type Machine struct {
	// Raw returns how long the machine's oscillator has counted, which nothing slews. Nil where that is not known.
	Raw func() time.Duration
	// Rate returns how fast the monotonic clock runs by the word of the kernel: 1.02 is fast by 2 %. Nil where the
	// kernel says nothing.
	Rate func() float64
}

// On sets the machine that the clock runs on. The default is the zero [Machine].
func On(m Machine) Option { return func(c *Clock) { c.machine = m } }

func (m Machine) slewed(drift float64) bool { return m.Rate != nil && math.Abs(m.Rate()-1) > drift }

// maxSlew is more than a kernel slews the monotonic clock, 10 % by ticks and 0.05 % by frequency. Seen from it, the
// raw clock may run fast by a ninth.
const maxSlew = 0.12

// moment is a moment by both clocks of the machine.
type moment struct {
	mono time.Time
	raw  time.Duration
}

// present is the present moment.
func (c *Clock) present() moment {
	m := moment{mono: c.now()}
	if c.machine.Raw != nil {
		m.raw = c.machine.Raw()
	} else {
		m.raw = m.mono.Sub(c.origin)
	}
	return m
}

// paired is present by two clocks that were read together: bounds that are [bounds.moved] keep what lies between.
func (c *Clock) paired() moment {
	best := c.present()
	for took := c.now().Sub(best.mono); took > together; {
		next := c.present()
		again := c.now().Sub(next.mono)
		if again >= took {
			break
		}
		best, took = next, again
	}
	return best
}

// together is what two clocks take to be read, unless another thread got the processor meanwhile.
const together = 20 * time.Microsecond

// rawHold is how long a reading of the raw clock serves calls of [Clock.AtMost]: each reading is a system call, and
// each save asks for the bound.
const rawHold = 500 * time.Microsecond

// soon is the present moment or one shortly after it: the raw clock may be shown ahead by rawHold times maxSlew.
func (c *Clock) soon() moment {
	if c.machine.Raw == nil {
		return c.present()
	}
	mono := c.now()
	if last := c.read.Load(); last != nil {
		if passed := mono.Sub(last.mono); passed >= 0 && passed < rawHold {
			return moment{mono, last.raw + time.Duration(float64(passed)*(1+maxSlew))}
		}
	}
	now := c.present()
	c.read.Store(&now)
	return now
}

// earliest and latest return when the monotonic clock showed t, a moment ago: the raw clock was surely not there yet,
// or surely there.
func (c *Clock) earliest(t time.Time, now moment) moment { return c.back(t, now, 1+maxSlew) }

func (c *Clock) latest(t time.Time, now moment) moment { return c.back(t, now, 1-maxSlew) }

func (c *Clock) back(t time.Time, now moment, speed float64) moment {
	ago := now.mono.Sub(t)
	if c.machine.Raw != nil {
		ago = time.Duration(float64(ago) * speed)
	}
	return moment{t, now.raw - ago}
}

// since returns how much time has passed, at least and at most.
func (m moment) since(from moment) (least, most time.Duration) {
	mono, raw := m.mono.Sub(from.mono), m.raw-from.raw
	return min(mono, raw), max(mono, raw)
}
