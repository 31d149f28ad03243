package engine

import (
	"sync"
	"time"
)

// outage notices that the database did not answer for a while. Executors could not renew then either, so many a lease
// is over when it is back whose executor lives. Rescues wait until the executors have had the time to renew, to settle
// or to release.
type outage struct {
	limit time.Duration // a silence from here on is an outage
	hold  time.Duration // that the executors get afterwards

	mu    sync.Mutex
	heard time.Time // the last answer
	back  time.Time // the first answer after the last outage; zero while there was none
	first time.Time // that after the first one of several, none of which left the time to rescue
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
	if !now.After(o.heard) {
		return 0, false
	}
	silence = now.Sub(o.heard)
	over = !o.heard.IsZero() && silence >= o.limit
	o.heard = now
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
