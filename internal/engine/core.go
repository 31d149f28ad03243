package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/clock"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
)

// core is what every part of the engine works with.
type core struct {
	*lifecycle.Lifecycle
	cfg      Config
	store    store.Store
	clock    *clock.Clock
	runqueue *runqueue.Queue

	outage     outage
	health     health
	locks      locks
	extending  chan struct{}  // holds one while a lease is moved for its holder
	anchorLost chan struct{}  // the clock needs a reading at once
	skewed     sync.Once      // the log says that this machine's clock is off
	hooks      sync.WaitGroup // of the user's functions that run
}

// now is the database's time as far as it is certain. While there is no anchor it is the zero time, which no row is due
// at.
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
		case <-c.Life.Done():
			return 0, processor.ErrClosed
		}
	}
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
		c.Failed("looking for locked rows", err)
		return nil, err
	}
	locked := make(map[int64]bool, len(found))
	for _, id := range found {
		locked[id] = true
	}
	return locked, nil
}

// lockBackoff is how long a row is left out that has met a lock so often: each time longer, so that one open transaction
// costs little.
func lockBackoff(tries int) time.Duration {
	return min(50*time.Millisecond<<min(tries, 8), 5*time.Second)
}

// locks remembers when a row that somebody's transaction holds was met last.
type locks struct{ met atomic.Pointer[time.Time] }

func (l *locks) note() { l.met.Store(new(time.Now())) }

func (l *locks) lately() bool {
	met := l.met.Load()
	return met != nil && time.Since(*met) < lockCheckFor
}

// errHeld is what an update would end with, after a wait.
var errHeld = &row.Error{Class: row.ClassLocked, Op: "settle tasks", Err: errors.New("another transaction holds the row")}

// update is for changes that wait for no result: of operators, of the holders of tokens, at the end of their leases.
// They share the connections of those that do, and a wait for a lock takes one of these for a second. So for a minute
// after a lock was met they ask first.
func (c *core) update(ctx context.Context, changes []row.Change) (applied int, err error) {
	err = c.askingFirst(ctx, idsOf(changes, func(c row.Change) int64 { return c.ID }), func() (err error) {
		applied, err = c.store.Update(ctx, nil, changes)
		return err
	})
	return applied, err
}

// touch moves leases for their holders. They share two connections with the renewals of everything that runs here, so
// no more than one of them waits for a lock.
func (c *core) extend(ctx context.Context, leases []row.Lease) (states []row.State, err error) {
	select {
	case c.extending <- struct{}{}:
		defer func() { <-c.extending }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	err = c.askingFirst(ctx, idsOf(leases, func(l row.Lease) int64 { return l.ID }), func() (err error) {
		states, err = c.store.Renew(ctx, leases)
		return err
	})
	return states, err
}

// askingFirst writes unless somebody holds one of the rows, as far as it is known that rows are held these days.
func (c *core) askingFirst(ctx context.Context, ids []int64, write func() error) error {
	if c.locks.lately() {
		if held, err := c.lockedAmong(ctx, ids); err == nil && len(held) > 0 {
			return errHeld
		}
	}
	err := write()
	if err != nil && row.ClassOf(err) == row.ClassLocked {
		c.locks.note()
	}
	return err
}
