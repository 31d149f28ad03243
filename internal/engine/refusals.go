package engine

import (
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
)

// refusals counts the claims in a row that the database did not take. From the third on all claims wait together: rows
// that came back one by one would make one statement each, as many as the database can refuse.
type refusals struct {
	mu    sync.Mutex
	n     int
	until time.Time
}

const patientRefusals = 3

// another counts one more and returns how long claims wait now.
func (r *refusals) another(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	if r.n < patientRefusals {
		return 0
	}
	d := lifecycle.Backoff(min(r.n, longestClaimPause))
	r.until = now.Add(d)
	return d
}

// longestClaimPause is the pause after which a database that is back is noticed: about half a second.
const longestClaimPause = 6

func (r *refusals) over() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n, r.until = 0, time.Time{}
}

func (r *refusals) waiting(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.until)
}
