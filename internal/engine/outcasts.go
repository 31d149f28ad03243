package engine

import (
	"maps"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
)

// outcasts is what is known of rows whose claim was refused.
type outcasts struct {
	mu    sync.Mutex
	told  map[row.Ref]time.Time // when the log told of them
	until time.Time             // until then they are too many to look for each
	round time.Time             // when those that wait come back
}

const (
	tellAgain    = time.Hour
	mostOutcasts = 1000 // that are told of in this time
	manyFor      = 2 * time.Second
)

// wait returns how long rows that were refused wait now. They come back together: one by one each would make a
// statement of its own.
func (o *outcasts) wait(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !now.Before(o.round) {
		o.round = now.Add(lifecycle.Backoff(claimRefused))
	}
	return o.round.Sub(now)
}

// isNew reports whether the log shall tell of the row.
func (o *outcasts) isNew(ref row.Ref, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told == nil {
		o.told = map[row.Ref]time.Time{}
	}
	if at, told := o.told[ref]; told && now.Sub(at) < tellAgain {
		return false
	}
	if len(o.told) >= mostOutcasts {
		maps.DeleteFunc(o.told, func(_ row.Ref, at time.Time) bool { return now.Sub(at) >= tellAgain })
		if len(o.told) >= mostOutcasts {
			return false
		}
	}
	o.told[ref] = now
	return true
}

// tooMany notes that a flight had more of them than it may look for. All wait a moment then.
func (o *outcasts) tooMany(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.until = now.Add(manyFor)
}

func (o *outcasts) many(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return now.Before(o.until)
}
