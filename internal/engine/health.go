package engine

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
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

// Ready returns nil when the clock has an anchor, the node holds its number, the last heartbeat was written, and no
// claim or save was refused since. When the last heartbeat is old it writes another one before ctx ends.
func (e *Engine) Ready(ctx context.Context) error {
	if _, anchored := e.clock.AtLeast(); !anchored {
		return errors.New("the database's clock is not known; it is being read again")
	}
	if e.member.Silent() > e.cfg.Heartbeat {
		ctx, cancel := e.CallIn(ctx)
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
