package delaytasktest

import (
	"sync"
	"time"
)

// clock stands still until it is moved. It has microseconds, as the database's clock does.
type clock struct {
	mu       sync.Mutex
	at       time.Time
	timeouts []*timeout
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// forward moves the clock to t, but never back, and ends the contexts whose timeout passes.
func (c *clock) forward(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !t.After(c.at) {
		return
	}
	c.at = t
	for _, o := range c.timeouts {
		if !t.Before(o.over) {
			o.end(o.cause)
			o.close()
		}
	}
}
