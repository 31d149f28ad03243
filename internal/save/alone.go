package save

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/batch"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// savesAlone bounds how many savings are sent by themselves at a time, each on a connection of its own.
const savesAlone = 4

// alone sends each saving by itself: one of them waits for somebody else's transaction, and only that one shall. The lane goes on
// meanwhile. Each has a place of its own until it meets the lock again; then it waits among its like.
func (s *Saver) alone(items []*saving) (again []*saving) {
	if items[0].alone {
		items[0].locked = true
		s.held.note(items[0])
		return stillWanted(items)
	}
	places := make(chan struct{}, savesAlone)
	items = slices.Clone(items)
	s.Go(func() {
		for _, it := range items {
			places <- struct{}{}
			it.alone = true
			s.Go(func() {
				left := []*saving{it}
				for n := 0; len(left) > 0 && !it.locked && !s.held.has(it) && s.Life.Err() == nil; n++ {
					if n > 0 {
						lifecycle.Sleep(s.Life, lifecycle.Backoff(min(n, longestSavePause)))
					}
					left = s.insert(left)
				}
				<-places
				s.patiently(left)
			})
		}
	})
	return nil
}

// patiently sends a saving until it has its answer, beside no more than a few of its like: each try may wait a second for a lock.
func (s *Saver) patiently(items []*saving) {
	for n := 0; len(items) > 0; n++ {
		lifecycle.Sleep(s.Life, lifecycle.Backoff(min(n, longestSavePause)))
		s.patient <- struct{}{}
		if s.Life.Err() != nil {
			answerAll(items, processor.ErrClosed)
			items = nil
		} else if items = stillWanted(items); len(items) > 0 {
			items = s.insert(items)
		}
		<-s.patient
	}
}

// patientSaves leaves half of the connections for rows with keys to the lane and to first tries.
const patientSaves = 2

// apart takes out what has a key that somebody's transaction held when it was last tried.
func (s *Saver) apart(items []*saving) (rest []*saving) {
	held, rest := batch.Split(items, s.held.has)
	if len(held) == 0 || held[0].alone {
		return items
	}
	s.alone(held)
	return rest
}

// maxUnknowns is how often the outcome of a batch may be unknown before it is asked whether that is due to its rows.
const maxUnknowns = 4

// suspect sends each saving by itself when the database answers, and yet not about these. One whose caller has been told that the outcome
// is unknown is sent no more then.
func (s *Saver) suspect(items []*saving) (again []*saving) {
	ctx, cancel := s.Call() // the time of theirs may be up
	defer cancel()
	if _, err := s.Store.Now(ctx); err != nil {
		return items
	}
	wanted, _ := batch.Split(items, func(it *saving) bool { return !it.isAbandoned() })
	if len(wanted) == 0 || items[0].alone {
		return wanted
	}
	return s.alone(wanted)
}

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
