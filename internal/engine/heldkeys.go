package engine

import (
	"maps"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// heldFor is how long a key counts as held after it was last met: those who wait for it try about every second.
const heldFor = 5 * time.Second

// heldKeys remembers the keys that somebody's transaction holds.
type heldKeys struct {
	mu    sync.Mutex
	until map[row.TagKey]time.Time
}

func (h *heldKeys) note(it *saving) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until == nil {
		h.until = map[row.TagKey]time.Time{}
	}
	now := time.Now()
	maps.DeleteFunc(h.until, func(_ row.TagKey, until time.Time) bool { return now.After(until) })
	for d := range it.open() {
		if d.row.Key != "" {
			h.until[d.key()] = now.Add(heldFor)
		}
	}
}

func (h *heldKeys) free(it *saving) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for d := range it.open() {
		delete(h.until, d.key())
	}
}

func (h *heldKeys) has(it *saving) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.until) == 0 {
		return false
	}
	for d := range it.open() {
		if until, met := h.until[d.key()]; met && time.Now().Before(until) {
			return true
		}
	}
	return false
}
