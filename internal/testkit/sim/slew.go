package sim

import (
	"fmt"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle/clock"
	"github.com/delaytask/delaytask/internal/testkit/journal"
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

// machine is what the processes know of their own time. The bubble's clock, by which all timers run, is their monotonic
// one. So where that is slewed fast, the raw clock is slow.
func (w *world) machine() clock.Machine {
	begin := w.raw.now()
	return clock.Machine{
		Raw:  func() time.Duration { return w.raw.now().Sub(begin) },
		Rate: func() float64 { return 1 / w.raw.speed() },
	}
}

// slew changes how fast the clocks of the processes and of the database run. The database's is sound, or slewed with the
// processes' on one machine, or slewed by itself.
func (w *world) slew(d draw, n int) {
	raw := oneOf(d, 1, 1/(1+maxSlew), 1/(1-maxSlew), 1/(1+maxSlew*(2*d.Float64()-1)))
	db := raw
	switch {
	case w.oneMachine:
		db = 1
	case w.slewsDB:
		db = raw * oneOf(d, 1, 1-maxSlew, 1+maxSlew, 1+maxSlew*(2*d.Float64()-1))
	}
	w.raw.set(raw)
	w.clocks.db.set(db)
	op := fmt.Sprintf("slew %d: the processes run at %.3f, the database at %.3f", n, 1/raw, db/raw)
	w.note("faults", journal.FaultBegin, journal.Event{Op: op, Detail: "slew"})
}
