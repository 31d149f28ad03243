package engine

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/clock"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// core is what every part of the engine works with.
type core struct {
	cfg     Config
	store   Store
	clock   *clock.Clock
	hands   *hands
	log     *slog.Logger
	limiter logLimiter // of the log
	metrics *metrics.Collector

	outage     outage
	health     health
	locks      locks
	touching   chan struct{} // holds one while a lease is moved for its holder
	anchorLost chan struct{} // the clock needs a reading at once
	skewed     sync.Once     // the log says that this machine's clock is off

	wg    sync.WaitGroup
	hooks sync.WaitGroup  // of the user's functions that run
	life  context.Context // ends when the last write is done
}

// goFunc starts every goroutine but those of processors, and all of them are waited for.
func (c *core) goFunc(f func()) {
	c.wg.Go(f)
}

// call bounds one call of the store. It hangs on the engine's life alone: a write that was begun is not torn by a caller who
// leaves.
func (c *core) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.life, c.cfg.CallTimeout)
}

// now is the database's time as far as it is certain. While there is no anchor it is the zero time, which no row is due at.
func (c *core) now() row.Time {
	t, _ := c.clock.AtLeast()
	return t
}

// certain is now, waited for while there is no anchor: what is written into a row must not be made of a guess.
func (c *core) certain(ctx context.Context) (row.Time, error) {
	for {
		if t, ok := c.clock.AtLeast(); ok {
			return t, nil
		}
		select {
		case <-c.clock.Anchored():
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-c.life.Done():
			return 0, processor.ErrClosed
		}
	}
}

// failed counts and logs an error of the store.
func (c *core) failed(op string, err error) {
	class := row.ClassOf(err)
	c.metrics.DatabaseError(class.String())
	if c.life.Err() != nil {
		return
	}
	c.log.Warn("the database refused or did not answer", "op", op, "class", class.String(), "err", err)
}

// sleep waits for d, or until ctx ends; it reports whether the time has passed.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// pause is the wait before the n-th repetition of something the database refused: 10 ms, doubling up to 2 s, and jittered so
// that processes which failed together do not come back together.
func pause(n int) time.Duration {
	return jitter(min(10*time.Millisecond<<min(n, 10), 2*time.Second), 0.5)
}

// jitter moves d by up to the given share in both directions.
func jitter(d time.Duration, share float64) time.Duration {
	return time.Duration(float64(d) * (1 + share*(2*rand.Float64()-1)))
}

// split parts a list in two, in order.
func split[T any](all []T, first func(T) bool) (yes, no []T) {
	for _, v := range all {
		if first(v) {
			yes = append(yes, v)
		} else {
			no = append(no, v)
		}
	}
	return yes, no
}

func idsOf[T any](all []T, id func(T) int64) []int64 {
	ids := make([]int64, len(all))
	for i, v := range all {
		ids[i] = id(v)
	}
	return ids
}

// statesByID orders what a store says of rows by their ids.
func statesByID(states []row.State) map[int64]row.State {
	byID := make(map[int64]row.State, len(states))
	for _, s := range states {
		byID[s.ID] = s
	}
	return byID
}

// lockedAmong asks which of the rows somebody else's transaction holds.
func (c *core) lockedAmong(ctx context.Context, ids []int64) (map[int64]bool, error) {
	found, err := c.store.Locked(ctx, ids)
	if err != nil {
		c.failed("looking for locked rows", err)
		return nil, err
	}
	locked := make(map[int64]bool, len(found))
	for _, id := range found {
		locked[id] = true
	}
	return locked, nil
}

// asideFor is how long a row is left out that has met a lock so often: each time longer, so that one open transaction costs
// little.
func asideFor(tries int) time.Duration {
	return min(50*time.Millisecond<<min(tries, 8), 5*time.Second)
}
