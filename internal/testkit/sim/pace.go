package sim

import (
	"sync"
	"time"
)

// maxSlew is by how much clocks are slewed, as a share.
const maxSlew = .1

// pace is a clock whose rate, as seen from the bubble's, changes.
type pace struct {
	mu        sync.Mutex
	at, shows time.Time
	rate      float64
}

func newPace() *pace { return &pace{at: time.Now(), shows: time.Now(), rate: 1} }

func (p *pace) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.read(time.Now())
}

func (p *pace) read(now time.Time) time.Time {
	return p.shows.Add(time.Duration(float64(now.Sub(p.at)) * p.rate))
}

func (p *pace) set(rate float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.at, p.shows, p.rate = now, p.read(now), rate
}

func (p *pace) speed() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rate
}
