package arm

import (
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

const (
	// LeftToOwner is how long an overdue row is left to the node that owns it.
	LeftToOwner = 200 * time.Millisecond
	// slowClaims is how many usual claims that is, where they take longer: the owner is about to begin it.
	slowClaims = 8
	// vainShare is the share of a claim's rows that others had, from which on the claim was in vain.
	vainShare = 4
	// mostRetreat and retreatLasts bound by how much claims in vain make a node leave rows to others for longer.
	mostRetreat  = 16
	retreatLasts = time.Second
)

// Leaves is how long this process leaves an overdue row to others. A row has an order of successors. The first takes it
// after LeftToOwner, each next one after twice the time. So one node takes it, not all. A slow database gets less to
// do: the times grow with the time that claims take, and double, as TCP does, when claims come back in vain.
func (a *Arm) Leaves(d row.Due) time.Duration {
	turn := a.Turn(d)
	if turn == 0 {
		return 0
	}
	return max(LeftToOwner, slowClaims*a.Ahead.Usual()) * a.retreat.factor() << (turn - 1)
}

// Claimed notes how many rows of a claim other nodes had.
func (a *Arm) Claimed(rows, lost int) { a.retreat.note(lost*vainShare > rows, time.Now()) }

// retreat is how much longer than usual rows are left to others.
type retreat struct {
	mu    sync.Mutex
	times time.Duration // 0: as usual
	since time.Time
}

func (r *retreat) factor() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(1, r.times)
}

// note doubles the factor after a claim in vain, at most once a round of claims. It halves it after a while without.
func (r *retreat) note(vain bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case vain && now.Sub(r.since) >= LeftToOwner:
		r.times, r.since = min(max(1, r.times)*2, mostRetreat), now
	case !vain && r.times > 0 && now.Sub(r.since) >= retreatLasts:
		r.times, r.since = r.times/2, now
	}
}
