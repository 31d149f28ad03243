package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/clock"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
)

// dbClock is what is known of the database's time, and of whether the database answers.
type dbClock struct {
	*lifecycle.Lifecycle
	clock      *clock.Clock
	outage     outage
	anchorLost chan struct{} // the clock needs a reading at once
	skewed     sync.Once     // the log says that this machine's clock is off
}

// newDBClock makes the clock of an engine whose leases have the given length.
func newDBClock(life *lifecycle.Lifecycle, ttr time.Duration) *dbClock {
	lost := make(chan struct{}, 1)
	return &dbClock{
		Lifecycle: life, anchorLost: lost, outage: newOutage(ttr),
		clock: clock.New(
			clock.Drift(clockDrift), clock.RescueHold(rescueHold(ttr)), clock.Lost(func() { signal(lost) })),
	}
}

// skewLimit is from where on a wrong wall clock of this machine is worth a line in the log.
const skewLimit = 500 * time.Millisecond

// readClock keeps the bounds of the database's clock narrow, and notices when the machine slept: suspended is asked for
// every reading.
func (e *Engine) readClock(ctx context.Context, suspended func() (time.Duration, bool)) {
	behind := false
	for {
		every, readings := e.interval()
		wait := lifecycle.Jitter(every, 0.1)
		if _, anchored := e.clock.AtLeast(); !anchored {
			wait = lifecycle.Backoff(2)
		}
		if !e.waitForReading(ctx, wait) {
			return
		}
		if slept, ok := suspended(); ok {
			e.Log.Warn("the machine was suspended; reading the database's clock again", "slept", slept)
			e.clock.Drop()
			behind = true
		}
		if err := e.takeReadings(ctx, e.store, readings); err != nil {
			e.Failed("reading the database's clock", err)
			continue
		}
		if behind {
			behind = false
			e.passes.runner.Kick(passScan)
		}
		e.reportClock()
	}
}

// rhythm is how often the clock is read, and how many times in a row. Starts are late by what the lower bound lags
// behind: by the drift that is allowed for since the last reading, and by the time that its reply took.
func (e *Engine) interval() (every time.Duration, readings int) {
	if e.attempts.len() > 0 || e.runqueue.FiresBy(e.now().Add(readClockEvery)) {
		return readClockBusy, readingsInARow
	}
	return readClockEvery, 1
}

// reportClock shows how well the clock is known, and says once when this machine's own is wrong.
func (c *dbClock) reportClock() {
	width, _ := c.clock.Width()
	skew := c.clock.Skew()
	c.Metrics.Clock(width, -skew)
	if skew.Abs() > skewLimit {
		c.skewed.Do(func() {
			c.Log.Warn("this machine's clock is off; tasks are timed by the database's clock all the same: set it by NTP",
				"skew", -skew)
		})
	}
}

// waitForReading waits for the next reading's turn, which comes at once when the clock has lost its anchor.
func (e *Engine) waitForReading(ctx context.Context, d time.Duration) bool {
	turn := time.NewTimer(d)
	defer turn.Stop()
	select {
	case <-turn.C:
		return true
	case <-e.anchorLost:
		return true
	case <-ctx.Done():
		return false
	}
}

// readingsInARow is how many readings are taken at once where exactness matters: the quickest of them gives the
// narrowest bounds. The first one often finds a thread asleep. With three instead of one the lower bound lagged 0.11 ms
// behind instead of 0.26 (client and server on one machine).
const readingsInARow = 3

func (e *Engine) anchor(ctx context.Context) error {
	if err := e.takeReadings(ctx, e.store, readingsInARow); err != nil {
		return fmt.Errorf("reading the database's clock: %w", err)
	}
	return nil
}

func (c *dbClock) takeReadings(ctx context.Context, of store.Clock, n int) error {
	for range n {
		if err := c.takeReading(ctx, of); err != nil {
			return err
		}
	}
	return nil
}

func (c *dbClock) takeReading(ctx context.Context, of store.Clock) error {
	ctx, cancel := c.CallIn(ctx)
	defer cancel()
	sent := time.Now()
	reading, err := of.Now(ctx)
	if err != nil {
		return err
	}
	c.observe(reading, sent, time.Now())
	return nil
}

// heard takes a reading into the bounds of the clock. One that contradicts them, as after a failover, costs the clock
// its anchor.
func (c *dbClock) observe(reading row.Reading, sent, received time.Time) {
	c.answered(received)
	if !c.clock.Add(reading, sent, received) {
		signal(c.anchorLost)
	}
}

// answered notes that the database is there. Readings of its clock alone do not tell: one of them may get no answer
// because its connection is gone, and that is no outage.
func (c *dbClock) answered(at time.Time) {
	if silence, over := c.outage.answered(at); over {
		c.Log.Warn("the database answers again; leases are not ended until their executors had time to renew them",
			"silence", silence.Round(time.Millisecond), "for", c.outage.hold)
	}
}

// now is the database's time as far as it is certain. While there is no anchor it is the zero time, which no row is due
// at.
func (c *dbClock) now() row.Time {
	t, _ := c.clock.AtLeast()
	return t
}

// certain is now, waited for while there is no anchor: what is written into a row must not be made of a guess.
func (c *dbClock) certain(ctx context.Context) (row.Time, error) {
	for {
		if t, ok := c.clock.AtLeast(); ok {
			return t, nil
		}
		select {
		case <-c.clock.Anchored():
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-c.Life.Done():
			return 0, processor.ErrClosed
		}
	}
}

// outage notices that the database did not answer for a while. Executors could not renew then either, so many a lease
// is over when it is back whose executor lives. Rescues wait until the executors have had the time to renew, to settle
// or to release.
type outage struct {
	limit time.Duration // a silence from here on is an outage
	hold  time.Duration // that the executors get afterwards

	mu     sync.Mutex
	answer time.Time // the last answer
	back   time.Time // the first answer after the last outage; zero while there was none
	first  time.Time // that after the first one of several, none of which left the time to rescue
}

// minSilence is the shortest outage that can be told from a slow answer: the clock is read every second.
const minSilence = 2 * time.Second

// newOutage takes the length of a lease, which is renewed every third of it.
func newOutage(ttr time.Duration) outage {
	return outage{limit: max(ttr/3, minSilence), hold: rescueHold(ttr)}
}

// rescueHold is the time of a renewal interval, in which executors that live show it.
func rescueHold(ttr time.Duration) time.Duration { return max(ttr/3, minRescueHold) }

// answered notes an answer of the database, and reports for how long there had been none when that was an outage.
func (o *outage) answered(now time.Time) (silence time.Duration, over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !now.After(o.answer) {
		return 0, false
	}
	silence = now.Sub(o.answer)
	over = !o.answer.IsZero() && silence >= o.limit
	o.answer = now
	if over {
		if now.Sub(o.back) >= 2*o.hold {
			o.first = now
		}
		o.back = now
	}
	return silence, over
}

// mostHolds bounds for how many renewal intervals outages in a row put off the rescues. A database that is away again
// and again would put them off for ever.
const mostHolds = 3

// holds reports whether the database is back for less than a renewal interval.
func (o *outage) holds(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.back.IsZero() && now.Sub(o.back) < o.hold && now.Sub(o.first) < mostHolds*o.hold
}
