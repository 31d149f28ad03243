package table

import (
	"context"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// Bounded is the store as one pass of the scanner sees it: each call has a deadline. A pass has none, because it lasts
// as long as there is something to do. Without deadlines a call that never gets an answer would end all later passes.
// The store is not embedded, so a pass cannot call what has no deadline here.
type Bounded struct {
	store   store.Store
	timeout *adaptiveTimeout
	gaveUp  func() // called when a call has met its deadline
}

// Bound bounds the calls of a pass. The first wait for an answer is least, and no wait is longer than most.
func Bound(s store.Store, least, most time.Duration, gaveUp func()) Bounded {
	return Bounded{s, newAdaptiveTimeout(least, most), gaveUp}
}

func (b Bounded) within(ctx context.Context, method string, call func(context.Context) error) error {
	bound, cancel := context.WithTimeout(ctx, b.timeout.of(method))
	defer cancel()
	sent := time.Now()
	err := call(bound)
	if ctx.Err() != nil {
		return err // the pass itself has ended
	}
	b.timeout.note(method, time.Since(sent))
	if err != nil && bound.Err() != nil {
		b.gaveUp()
	}
	return err
}

// adaptiveTimeout is how long a pass waits for an answer. The first wait is short, because the connection may be dead.
// Each further wait is twice as long, because the database may be slow instead. Answers set it to twice what they took.
type adaptiveTimeout struct {
	least, most time.Duration

	mu    sync.Mutex
	waits map[string]time.Duration // by method, because reads may be quick where writes are slow
}

func newAdaptiveTimeout(least, most time.Duration) *adaptiveTimeout {
	return &adaptiveTimeout{least: min(least, most), most: most, waits: map[string]time.Duration{}}
}

func (p *adaptiveTimeout) of(method string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.waits[method], p.least)
}

// note takes how long a call has lasted, until its answer or until it was given up.
func (p *adaptiveTimeout) note(method string, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits[method] = min(2*took, p.most)
}

// Now calls the store.
func (b Bounded) Now(ctx context.Context) (reading row.Reading, err error) {
	err = b.within(ctx, "Now", func(ctx context.Context) (err error) {
		reading, err = b.store.Now(ctx)
		return err
	})
	return reading, err
}

// Due calls the store.
func (b Bounded) Due(ctx context.Context, w row.Window) (rows []row.Due, err error) {
	err = b.within(ctx, "Due", func(ctx context.Context) (err error) {
		rows, err = b.store.Due(ctx, w)
		return err
	})
	return rows, err
}

// Expired calls the store.
func (b Bounded) Expired(ctx context.Context, limit int) (rows []row.Row, broken []row.Broken, err error) {
	err = b.within(ctx, "Expired", func(ctx context.Context) (err error) {
		rows, broken, err = b.store.Expired(ctx, limit)
		return err
	})
	return rows, broken, err
}

// Orphans calls the store.
func (b Bounded) Orphans(ctx context.Context, executorPrefix string, limit int) (states []row.State, err error) {
	err = b.within(ctx, "Orphans", func(ctx context.Context) (err error) {
		states, err = b.store.Orphans(ctx, executorPrefix, limit)
		return err
	})
	return states, err
}

// States calls the store.
func (b Bounded) States(ctx context.Context, ids []int64) (states []row.State, err error) {
	err = b.within(ctx, "States", func(ctx context.Context) (err error) {
		states, err = b.store.States(ctx, ids)
		return err
	})
	return states, err
}

// Locked calls the store.
func (b Bounded) Locked(ctx context.Context, ids []int64) (locked []int64, err error) {
	err = b.within(ctx, "Locked", func(ctx context.Context) (err error) {
		locked, err = b.store.Locked(ctx, ids)
		return err
	})
	return locked, err
}

// Update calls the store.
func (b Bounded) Update(ctx context.Context, tx store.Tx, changes []row.Change) (applied int, err error) {
	err = b.within(ctx, "Update", func(ctx context.Context) (err error) {
		applied, err = b.store.Update(ctx, tx, changes)
		return err
	})
	return applied, err
}

// Discard calls the store.
func (b Bounded) Discard(ctx context.Context, broken []row.Broken) (discarded int, err error) {
	err = b.within(ctx, "Discard", func(ctx context.Context) (err error) {
		discarded, err = b.store.Discard(ctx, broken)
		return err
	})
	return discarded, err
}

// Purge calls the store.
func (b Bounded) Purge(ctx context.Context, status row.Status, before row.Time, limit int) (purged int, err error) {
	err = b.within(ctx, "Purge", func(ctx context.Context) (err error) {
		purged, err = b.store.Purge(ctx, status, before, limit)
		return err
	})
	return purged, err
}

// PurgeAudit calls the store.
func (b Bounded) PurgeAudit(ctx context.Context, before row.Time, limit int) (purged int, err error) {
	err = b.within(ctx, "PurgeAudit", func(ctx context.Context) (err error) {
		purged, err = b.store.PurgeAudit(ctx, before, limit)
		return err
	})
	return purged, err
}

// Renumber calls the store.
func (b Bounded) Renumber(
	ctx context.Context, last int64, next func() int64, limit int,
) (moved int, mend string, err error) {
	err = b.within(ctx, "Renumber", func(ctx context.Context) (err error) {
		moved, mend, err = b.store.Renumber(ctx, last, next, limit)
		return err
	})
	return moved, mend, err
}
