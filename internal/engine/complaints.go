package engine

import (
	"sync"
	"time"
)

// complaints keeps the log readable while the database is away: of one operation's errors, one is written at once and then one
// every few seconds, with the number of those that were held back in between. The metrics count all of them.
type complaints struct {
	mu   sync.Mutex
	byOp map[string]*complaint
}

type complaint struct {
	next time.Time
	held int
}

const complainEvery = 5 * time.Second

// now reports whether the error is to be written now, and how many were not since the last one.
func (c *complaints) now(op string) (held int, now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byOp == nil {
		c.byOp = map[string]*complaint{}
	}
	last := c.byOp[op]
	if last == nil {
		last = &complaint{}
		c.byOp[op] = last
	}
	if time.Now().Before(last.next) {
		last.held++
		return 0, false
	}
	held, last.held = last.held, 0
	last.next = time.Now().Add(complainEvery)
	return held, true
}
