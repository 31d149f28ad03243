package engine

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// health knows what the database lets this process do. Nothing comes to a pop either when nothing is due, or when what
// is due cannot be read or cannot be claimed. And a full disk may take heartbeats while it refuses saves.
type health struct {
	mu     sync.Mutex
	looked time.Time // when the last read of due rows began that was answered
	claim  failure
	save   failure
	mend   string    // ends that rows get ids beyond the last one
	met    time.Time // when such rows were met
}

// failure is that of the last statement of a kind, without an error when that did not fail.
type failure struct {
	err error
	at  time.Time
}

// lately returns the error while it counts.
func (f failure) lately() error {
	if time.Since(f.at) > failureCounts {
		return nil
	}
	return f.err
}

const (
	// lookCounts is how old a read of due rows may be that tells a pop that nothing is due. Polls come sooner.
	lookCounts = time.Second
	// failureCounts is how long a failure counts that no other statement of its kind follows. What failed is repeated
	// sooner.
	failureCounts = 5 * time.Second
	// warnedFor is how long rows with ids beyond the last one are warned of. The cause goes on, but rows may come seldom.
	warnedFor = 5 * time.Minute
)

var errSilent = errors.New("the database did not answer in time")

// sees reports whether what was due a moment ago is known here.
func (h *health) sees() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.looked) < lookCounts
}

// claimed notes how a claim ended, or that it takes long.
func (h *health) claimed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claim = failure{fault(err), time.Now()}
}

// saved notes how a save ended.
func (h *health) saved(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.save = failure{fault(err), time.Now()}
}

// fault returns err unless it is about rows, such as somebody's lock: then the database has answered.
func fault(err error) error {
	switch row.ClassOf(err) {
	case row.ClassLocked, row.ClassCaller, row.ClassDuplicate:
		return nil
	default:
		return err
	}
}

// misnumbered notes that rows had ids beyond the last one, and what ends that.
func (h *health) misnumbered(mend string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mend, h.met = mend, time.Now()
}

// failing returns why tasks could not be claimed, or not be saved, a moment ago.
func (h *health) failing() (claim, save error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.claim.lately(), h.save.lately()
}

// due reads rows of the window, and notes that this works.
func (c *core) due(ctx context.Context, w row.Window) ([]row.Due, error) {
	begun := time.Now()
	page, err := c.store.Due(ctx, w)
	if err == nil {
		c.health.mu.Lock()
		defer c.health.mu.Unlock()
		c.health.looked = begun
	}
	return page, err
}

// Ready returns nil when the clock has an anchor, the node holds its number, the last heartbeat was written, and no
// claim or save was refused since. When the last heartbeat is old it writes another one before ctx ends.
func (e *Engine) Ready(ctx context.Context) error {
	if _, anchored := e.clock.AtLeast(); !anchored {
		return errors.New("the database's clock is not known; it is being read again")
	}
	if e.member.Silent() > e.cfg.Heartbeat {
		ctx, cancel := context.WithTimeout(ctx, e.cfg.CallTimeout)
		defer cancel()
		if err := e.member.Beat(ctx); err != nil {
			return err
		}
	}
	if _, leased := e.member.Number(); !leased {
		return errors.New("the node number was lost; another one is being leased")
	}
	claim, save := e.health.failing()
	return cmp.Or(claim, save)
}

// Warning returns what somebody has to mend although the engine is ready, "" when it knows of nothing.
func (e *Engine) Warning() string {
	e.health.mu.Lock()
	defer e.health.mu.Unlock()
	if e.health.mend == "" || time.Since(e.health.met) > warnedFor {
		return ""
	}
	return beyondLast + ": " + e.health.mend
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
