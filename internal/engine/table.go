package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

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

// fault returns err unless it is about rows, such as somebody's lock: then the database has answered.
func fault(err error) error {
	switch row.ClassOf(err) {
	case row.ClassLocked, row.ClassCaller, row.ClassDuplicate:
		return nil
	default:
		return err
	}
}

// release puts executing rows back to pending without costing an attempt, as far as they are still as they were seen.
// It returns the rows as they are afterwards.
func (c *core) release(seen []row.State, why string) (released []row.Row) {
	if len(seen) == 0 {
		return nil
	}
	ids, versions := make([]int64, len(seen)), make(map[int64]int64, len(seen))
	for i, s := range seen {
		ids[i], versions[s.ID] = s.ID, s.Version
	}
	ctx, cancel := c.Call()
	defer cancel()
	rows, broken, err := c.store.Get(ctx, nil, ids)
	if err != nil {
		c.Failed("releasing", err)
		return nil
	}
	c.discard(broken)
	now := c.now()
	for _, r := range rows {
		if r.Status != row.Executing || r.Version != versions[r.ID] {
			continue
		}
		// The lease was counted from the later of the claim and the due time that it took.
		change := releaseOf(&r, max(r.Due.Add(-r.TTR), now))
		if r.FirstStart() { // nobody was handed it
			change.Execution = 0
		}
		applied, err := c.update(ctx, []row.Change{change})
		if err != nil {
			c.Failed("releasing", err)
			continue
		}
		if applied == 1 {
			c.Log.Info("released", "task", r.ID, "tag", r.Tag, "version", r.Version, "why", why)
			r.Status, r.Version, r.Due, r.Attempt = change.To, r.Version+1, change.Due, change.Attempt
			released = append(released, r)
		}
	}
	return released
}

// discard fails rows that cannot be decoded, each alone.
func (c *core) discard(broken []row.Broken) {
	if len(broken) == 0 {
		return
	}
	ctx, cancel := c.Call()
	defer cancel()
	if err := c.store.Discard(ctx, broken); err != nil {
		c.Failed("failing rows that cannot be decoded", err)
		return
	}
	for _, b := range broken {
		c.Log.Error("a row cannot be decoded and is set to failed; repair it and retry the task", "task", b.ID,
			"version", b.Version, "err", b.Reason)
	}
}
