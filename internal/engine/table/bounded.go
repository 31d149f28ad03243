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

// within calls a method of the store within its time.
func within[T any](ctx context.Context, b Bounded, method string, call func(context.Context) (T, error)) (T, error) {
	bound, cancel := context.WithTimeout(ctx, b.timeout.of(method))
	defer cancel()
	sent := time.Now()
	answer, err := call(bound)
	if ctx.Err() != nil {
		return answer, err // the pass itself has ended
	}
	b.timeout.note(method, time.Since(sent))
	if err != nil && bound.Err() != nil {
		b.gaveUp()
	}
	return answer, err
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
func (b Bounded) Now(ctx context.Context) (row.Reading, error) {
	return within(ctx, b, "Now", func(ctx context.Context) (row.Reading, error) { return b.store.Now(ctx) })
}

// Due calls the store.
func (b Bounded) Due(ctx context.Context, w row.Window) ([]row.Due, error) {
	return within(ctx, b, "Due", func(ctx context.Context) ([]row.Due, error) { return b.store.Due(ctx, w) })
}

// Expired calls the store.
func (b Bounded) Expired(
	ctx context.Context, tags []string, limit int,
) (rows []row.Row, broken []row.Broken, err error) {
	rows, err = within(ctx, b, "Expired", func(ctx context.Context) (rows []row.Row, err error) {
		rows, broken, err = b.store.Expired(ctx, tags, limit)
		return rows, err
	})
	return rows, broken, err
}

// Orphans calls the store.
func (b Bounded) Orphans(ctx context.Context, tags []string, processes []int64, limit int) ([]row.State, error) {
	return within(ctx, b, "Orphans", func(ctx context.Context) ([]row.State, error) {
		return b.store.Orphans(ctx, tags, processes, limit)
	})
}

// States calls the store.
func (b Bounded) States(ctx context.Context, ids []int64) ([]row.State, error) {
	return within(ctx, b, "States", func(ctx context.Context) ([]row.State, error) {
		return b.store.States(ctx, ids)
	})
}

// Locked calls the store.
func (b Bounded) Locked(ctx context.Context, ids []int64) ([]int64, error) {
	return within(ctx, b, "Locked", func(ctx context.Context) ([]int64, error) { return b.store.Locked(ctx, ids) })
}

// Update calls the store.
func (b Bounded) Update(ctx context.Context, tx store.Tx, changes []row.Change) (int, error) {
	return within(ctx, b, "Update", func(ctx context.Context) (int, error) {
		return b.store.Update(ctx, tx, changes)
	})
}

// Discard calls the store.
func (b Bounded) Discard(ctx context.Context, broken []row.Broken) (int, error) {
	return within(ctx, b, "Discard", func(ctx context.Context) (int, error) { return b.store.Discard(ctx, broken) })
}

// Purge calls the store.
func (b Bounded) Purge(ctx context.Context, status row.Status, tags []string, before row.Time, limit int) (
	deleted int, left []string, err error) {
	deleted, err = within(ctx, b, "Purge", func(ctx context.Context) (deleted int, err error) {
		deleted, left, err = b.store.Purge(ctx, status, tags, before, limit)
		return deleted, err
	})
	return deleted, left, err
}

// Oldest calls the store.
func (b Bounded) Oldest(ctx context.Context, status row.Status) ([]row.TagCount, error) {
	return within(ctx, b, "Oldest", func(ctx context.Context) ([]row.TagCount, error) {
		return b.store.Oldest(ctx, status)
	})
}

// Processes calls the store.
func (b Bounded) Processes(ctx context.Context, ids []int64) ([]row.Process, error) {
	return within(ctx, b, "Processes", func(ctx context.Context) ([]row.Process, error) {
		return b.store.Processes(ctx, ids)
	})
}

// PurgeProcesses calls the store.
func (b Bounded) PurgeProcesses(ctx context.Context, before row.Time, limit int) (int, error) {
	return within(ctx, b, "PurgeProcesses", func(ctx context.Context) (int, error) {
		return b.store.PurgeProcesses(ctx, before, limit)
	})
}

// PurgeAudit calls the store.
func (b Bounded) PurgeAudit(ctx context.Context, before row.Time, limit int) (int, error) {
	return within(ctx, b, "PurgeAudit", func(ctx context.Context) (int, error) {
		return b.store.PurgeAudit(ctx, before, limit)
	})
}

// Renumber calls the store.
func (b Bounded) Renumber(
	ctx context.Context, last int64, next func() int64, limit int,
) (moved int, mend string, err error) {
	moved, err = within(ctx, b, "Renumber", func(ctx context.Context) (moved int, err error) {
		moved, mend, err = b.store.Renumber(ctx, last, next, limit)
		return moved, err
	})
	return moved, mend, err
}
