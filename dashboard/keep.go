package dashboard

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// How long parts of pages are kept. The rest of such a page is read each time.
const (
	keepHour     = 20 * time.Second // a minute is written once
	keepForecast = 30 * time.Second
	keepGroups   = 10 * time.Second
	keepSamples  = time.Minute
	keepListed   = 30 * time.Second // of schedules
)

// keep has parts of pages that cost more than they change. All viewers share them, so each page leaves out what its
// viewer may not see.
type keep struct {
	mu    sync.Mutex
	parts map[string]*keptPart
}

type keptPart struct {
	turn  *semaphore.Weighted // held while the rest is read or written
	found any
	until time.Time

	expires time.Time // guarded by keep.mu
}

func newKeep() *keep { return &keep{parts: map[string]*keptPart{}} }

// part returns the part, and makes room for it.
func (k *keep) part(key string, long time.Duration) *keptPart {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	p := k.parts[key]
	if p == nil {
		makeRoom(k.parts, func(old *keptPart) bool { return now.After(old.expires) })
		p = &keptPart{turn: semaphore.NewWeighted(1)}
		k.parts[key] = p
	}
	p.expires = now.Add(long + readTime)
	return p
}

// kept returns the part if it is younger than long, or reads it. The part is never changed.
func kept[T any](
	ctx context.Context, k *keep, key string, long time.Duration, read func(context.Context) (T, error),
) (found T, err error) {
	p := k.part(key, long)
	if err := p.turn.Acquire(ctx, 1); err != nil {
		return found, context.Cause(ctx)
	}
	defer p.turn.Release(1)
	if time.Now().Before(p.until) {
		return p.found.(T), nil
	}
	if found, err = read(ctx); err == nil {
		p.found, p.until = found, time.Now().Add(long)
	}
	return found, err
}
