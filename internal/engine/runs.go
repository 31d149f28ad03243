package engine

import (
	"maps"
	"slices"
	"sync"
)

// runs is the book of all rows that this process has claimed and not yet settled.
type runs struct {
	mu   sync.Mutex
	byID map[int64]*run
	gone chan struct{} // a row was settled
}

func newRuns() *runs {
	return &runs{byID: map[int64]*run{}, gone: make(chan struct{}, 1)}
}

func (r *runs) add(u *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[u.row.ID] = u
}

func (r *runs) remove(u *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[u.row.ID] == u {
		delete(r.byID, u.row.ID)
	}
	signal(r.gone)
}

func (r *runs) all() []*run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.byID))
}

func (r *runs) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byID)
}

// get returns the run of a row, or nil.
func (r *runs) get(id int64) *run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}
