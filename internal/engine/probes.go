package engine

import (
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/runqueue"
)

// probes remembers which tags have met a locked row lately.
type probes struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (p *probes) note(items []*runqueue.Item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = map[string]time.Time{}
	}
	for _, it := range items {
		p.until[it.Tag()] = time.Now().Add(lockProbeFor)
	}
}

func (p *probes) suspects(items []*runqueue.Item) (ids []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.until) == 0 {
		return nil
	}
	now := time.Now()
	for _, it := range items {
		until, ok := p.until[it.Tag()]
		switch {
		case !ok:
		case now.Before(until):
			ids = append(ids, it.ID)
		default:
			delete(p.until, it.Tag())
		}
	}
	return ids
}

// setAsideLocked probes the rows of tags that have met a lock within the last minute, before they are claimed.
func (c *claimer) setAsideLocked(items []*runqueue.Item) (rest []*runqueue.Item) {
	ids := c.probes.suspects(items)
	if len(ids) == 0 {
		return items
	}
	return c.setAside(items, ids)
}

// setAside asks which of the rows somebody else's transaction holds, and leaves them out for a while.
func (c *claimer) setAside(items []*runqueue.Item, ids []int64) (rest []*runqueue.Item) {
	ctx, cancel := c.Call()
	defer cancel()
	locked, err := c.lockedAmong(ctx, ids)
	if err != nil {
		return items
	}
	held, rest := split(items, func(it *runqueue.Item) bool { return locked[it.ID] })
	c.probes.note(held)
	for _, it := range held {
		it.Tries++
		c.later([]*runqueue.Item{it}, asideFor(it.Tries))
	}
	return rest
}
