package engine

import "slices"

// Nodes on one database divide its tasks, and each would send its statements at a pace of its own: n nodes n times as many as one,
// with an n-th of the rows in each. A statement costs the server more than a row, so n nodes claim and settle at an n-th of the pace,
// and together about as many times as one would.

// mostCompany bounds how much slower that is.
const mostCompany = 5

// company is how many nodes share the work, this one among them, as far as that slows it down.
func (a *armer) company() int {
	if s := a.shares.Load(); s != nil {
		return s.company
	}
	return 1
}

func (h *hands) setCompany(nodes int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines.company = nodes
}

// dealAnew forgets rows of the backlog that are another node's. It is for when claims were in vain, because others have got these rows
// as well. Should they not run them after all, a later scan finds them again.
func (h *hands) dealAnew(mine func(id int64, tag string) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, line := range h.lines.working {
		line.backlog = slices.DeleteFunc(line.backlog, func(it *item) bool {
			if mine(it.ID, line.tag) {
				return false
			}
			delete(h.lines.waiting, it.ID)
			return true
		})
	}
}
