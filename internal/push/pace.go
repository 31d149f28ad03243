package push

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	leastWait   = time.Second
	usualWait   = 5 * time.Second
	longestWait = time.Minute
	between     = 5 * time.Millisecond
)

// pace says when tasks are tried again that nobody can be called with. Each time costs a write to the database, so a hundred
// thousand of them wait longer than a few: others must not pay for a worker that is away.
type pace struct {
	mu   sync.Mutex
	next time.Time // the next moment to give away
}

func (p *pace) wait(now time.Time) time.Duration {
	usual := leastWait + rand.N(usualWait-leastWait)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next.Before(now) {
		p.next = now
	}
	if p.next.Sub(now) >= longestWait { // there is no order to keep among so many
		return longestWait/2 + rand.N(longestWait/2)
	}
	p.next = p.next.Add(between)
	return max(usual, p.next.Sub(now))
}
