package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// locks remembers when a row that somebody's transaction holds was met last.
type locks struct{ met atomic.Pointer[time.Time] }

func (l *locks) note() { l.met.Store(new(time.Now())) }

func (l *locks) lately() bool {
	met := l.met.Load()
	return met != nil && time.Since(*met) < lockProbeFor
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
func (c *core) touch(ctx context.Context, leases []row.Lease) (states []row.State, err error) {
	select {
	case c.touching <- struct{}{}:
		defer func() { <-c.touching }()
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
