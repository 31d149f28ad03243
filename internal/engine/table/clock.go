package table

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/lifecycle/clock"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

const (
	minRescueHold = 5 * time.Second
	clockDrift    = 1000    // ppm: NTP may slew a server by 500, and this machine as well
	clockSlew     = 100_000 // ppm: chrony slews by up to 83,333, and Linux by no more than 100,500
)

// Clock is what is known of the database's time, and of whether the database answers.
type Clock struct {
	*lifecycle.Lifecycle
	Bounds     *clock.Clock // of the database's time
	Outage     outage
	anchorLost chan struct{} // the clock needs a reading at once
	Held       hindrance     // the clock has no anchor
	Unread     hindrance     // readings fail
	skewed     sync.Once     // the log says that this machine's clock is off
	slewed     atomic.Bool   // the log says that the database's is slewed
	observed   atomic.Int64  // when the last reading came, in nanoseconds since begun
	begun      time.Time
	answering  answering
	databases  databases
	Moved      func(row.Reading) // is told that another server answers; nil before the engine is wired
}

// NewClock makes the clock of an engine on a machine, whose leases have the given length.
func NewClock(life *lifecycle.Lifecycle, m clock.Machine, ttr time.Duration) *Clock {
	c := &Clock{
		Lifecycle: life, anchorLost: make(chan struct{}, 1), Outage: newOutage(ttr), begun: time.Now(),
	}
	c.Bounds = clock.New(clock.On(m), clock.Drift(clockDrift), clock.Slew(clockSlew),
		clock.RescueHold(rescueHold(ttr)), clock.Lost(c.loseAnchor))
	return c
}

// loseAnchor notes that starts are held until the next reading.
func (c *Clock) loseAnchor() {
	c.Held.begin(time.Now())
	Signal(c.anchorLost)
}

// skewLimit is the smallest error of this machine's wall clock that the log tells of.
const skewLimit = 500 * time.Millisecond

// ReportClock sets the metrics of the clock, and logs once that this machine's own is wrong.
func (c *Clock) ReportClock() {
	width, anchored := c.Bounds.Width()
	c.Metrics.SetClockHeld(!anchored)
	if !anchored {
		return
	}
	c.tellSlew(c.Bounds.ServerSlewed())
	skew := c.Bounds.Skew()
	c.Metrics.Clock(width, -skew)
	if skew.Abs() > skewLimit {
		const off = "this machine's clock is off; tasks are timed by the database's clock all the same: set it by NTP"
		c.skewed.Do(func() { c.Log.Warn(off, "skew", -skew) })
	}
}

// tellSlew logs when a slew of the database's clock begins and ends.
func (c *Clock) tellSlew(slewed bool) {
	switch before := c.slewed.Swap(slewed); {
	case slewed && !before:
		c.Log.Warn("the database's clock is slewed; starts may be some milliseconds late until it runs evenly: " +
			"look at the time service of its machine")
	case before && !slewed:
		c.Log.Info("the database's clock runs evenly again")
	}
}

// longestSleep bounds a wait for a moment, because a suspend of the machine ends no timer. While a clock is slewed,
// each reading brings the moment nearer.
const (
	longestSleep       = time.Second
	longestSleepSlewed = 10 * time.Millisecond
)

// Sleep returns how long to sleep at once of a wait for a moment of the database's time.
func (c *Clock) Sleep(wait time.Duration) time.Duration {
	if wait > longestSleepSlewed && c.Bounds.Slewed() {
		return longestSleepSlewed
	}
	return min(wait, longestSleep)
}

// ReadingsInARow is how many readings are taken at once where exactness matters. The quickest gives the narrowest
// bounds, and the first one often finds a thread asleep. Three instead of one moved the lower bound from 0.26 to 0.11
// ms behind, with client and server on one machine.
const ReadingsInARow = 3

// TakeReadings takes n readings of the clock.
func (c *Clock) TakeReadings(ctx context.Context, of store.Clock, n int) error {
	for range n {
		if err := c.TakeReading(ctx, of); err != nil {
			return err
		}
	}
	return nil
}

// TakeReading takes one reading of the clock.
func (c *Clock) TakeReading(ctx context.Context, of store.Clock) error {
	ctx, cancel := c.CallIn(ctx)
	defer cancel()
	sent := time.Now()
	reading, err := of.Now(ctx)
	if err != nil {
		c.Unread.begin(sent)
		return err
	}
	c.Unread.end(time.Now())
	c.tellDatabases(reading)
	c.Observe(reading, sent, time.Now())
	return nil
}

// Observe takes a reading into the bounds of the clock. A reading that contradicts them, as after a failover, costs the
// clock its anchor.
func (c *Clock) Observe(reading row.Reading, sent, received time.Time) {
	c.Answered(received)
	c.observed.Store(int64(received.Sub(c.begun)))
	if c.answering.another(reading.Server, received) && c.Moved != nil {
		c.Moved(reading)
	}
	if !reading.Asked.IsZero() {
		sent = reading.Asked // without the write that a claim sends before it reads
	}
	if !c.Bounds.Add(reading, sent, received) {
		c.loseAnchor()
		return
	}
	c.Held.end(received)
}

// Age returns how long ago the last reading came, also one that a claim has brought.
func (c *Clock) Age() time.Duration { return time.Since(c.begun) - time.Duration(c.observed.Load()) }

// Answered notes that the database has answered. Other answers than readings count too, because one dead connection is
// no outage.
func (c *Clock) Answered(at time.Time) {
	if silence, over := c.Outage.answered(at); over {
		c.Log.Warn("the database answers again; leases are not ended until their executors had time to renew them",
			"silence", silence.Round(time.Millisecond), "for", c.Outage.hold)
	}
}

// Now returns the lower bound of the database's time. Without an anchor it is the zero time, so that no row is due.
func (c *Clock) Now() row.Time {
	t, _ := c.Bounds.AtLeast()
	return t
}

// Certain returns now. Without an anchor it waits for one, because no guess may be written into a row. It returns
// [delaytask.ErrClosed] when the life ends.
func (c *Clock) Certain(ctx context.Context) (row.Time, error) {
	return c.Bounds.Await(ctx, c.Life, c.Bounds.AtLeast)
}

// outage notices that the database did not answer for a while. Executors could not renew leases then either. So after
// an outage rescues wait until living executors have had the time to renew, to settle or to release.
type outage struct {
	limit time.Duration // the shortest silence that is an outage
	hold  time.Duration // how long rescues wait afterwards

	mu     sync.Mutex // no other lock is taken while it is held
	answer time.Time  // the last answer
	back   time.Time  // the first answer after the last outage; zero for none
	first  time.Time  // the first answer after the first outage of a row without time for rescues between them
}

// minSilence is the shortest outage that differs from a slow answer. The clock is read every second.
const minSilence = 2 * time.Second

// newOutage takes the length of a lease. A lease is renewed every third of it.
func newOutage(ttr time.Duration) outage {
	return outage{limit: max(ttr/3, minSilence), hold: rescueHold(ttr)}
}

// rescueHold is a renewal interval, within which living executors renew, and at least minRescueHold.
func rescueHold(ttr time.Duration) time.Duration { return max(ttr/3, minRescueHold) }

// answered notes an answer of the database. It returns the silence before it, and whether that was an outage.
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

// mostHolds is for how many times hold outages in a row may put off rescues. Without this bound a database that is away
// again and again would put them off for ever.
const mostHolds = 3

// Holds reports whether the database is back for less than hold, within the bound of mostHolds.
func (o *outage) Holds(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.back.IsZero() && now.Sub(o.back) < o.hold && now.Sub(o.first) < mostHolds*o.hold
}

// WaitForReading waits for d, or until the clock has lost its anchor. It returns false when ctx ends.
func (c *Clock) WaitForReading(ctx context.Context, d time.Duration) bool {
	turn := time.NewTimer(d)
	defer turn.Stop()
	select {
	case <-turn.C:
		return true
	case <-c.anchorLost:
		return true
	case <-ctx.Done():
		return false
	}
}

// Suspended notes that the machine has slept: the bounds hold no more.
func (c *Clock) Suspended(slept time.Duration) {
	c.Log.Warn("the machine was suspended; reading the database's clock again", "slept", slept)
	c.Bounds.Drop()
	c.Held.begin(time.Now())
}

// answering notices that another server of the database answers. Behind some proxies several answer in turn: these are
// known after a reading of each.
type answering struct {
	mu      sync.Mutex // innermost
	last    string
	servers map[string]time.Time // when each has answered last
}

// forgetServer is how long a server has not answered when its next answer is a failover.
const forgetServer = time.Minute

// another notes an answer, and reports whether it comes from another server than the last one, which did not answer
// lately.
func (a *answering) another(server string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.servers == nil {
		a.last, a.servers = server, map[string]time.Time{}
	}
	other := server != a.last && now.Sub(a.servers[server]) > forgetServer
	a.last, a.servers[server] = server, now
	return other
}

// databases holds the servers of two databases that answer at one address.
type databases struct {
	mu      sync.Mutex // innermost
	servers []string   // sorted; nil: there is one database
}

// TwoDatabases returns the servers of two databases that answer at the address of the database, nil where there is one.
func (c *Clock) TwoDatabases() []string {
	c.databases.mu.Lock()
	defer c.databases.mu.Unlock()
	return c.databases.servers
}

// tellDatabases notes whether a reading knows of another database, and logs when that begins and ends.
func (c *Clock) tellDatabases(r row.Reading) {
	var servers []string
	if r.Other != "" {
		servers = []string{r.Server, r.Other}
		slices.Sort(servers)
	}
	c.databases.mu.Lock()
	before := c.databases.servers
	c.databases.servers = servers
	c.databases.mu.Unlock()
	switch {
	case slices.Equal(before, servers):
	case servers != nil:
		c.Log.Error("two databases answer at one address; let it lead to one, and move the tasks of the other",
			"server", r.Server, "other", r.Other)
	default:
		c.Log.Info("one database answers at the address again", "server", r.Server)
	}
}

// NewManualClock makes the clock of an engine whose time a caller tells.
func NewManualClock(life *lifecycle.Lifecycle, now func() time.Time) *Clock {
	c := &Clock{Lifecycle: life, Bounds: clock.New(clock.Drift(0), clock.Source(now))}
	// A reading lacks up to a microsecond, which the upper bound allows for. This one is exact, so that is taken back.
	at := now()
	c.Bounds.Add(row.Reading{Time: row.At(at), Server: "manual"}, at.Add(time.Microsecond), at)
	return c
}
