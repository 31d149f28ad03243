package engine

import (
	"sync"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/runqueue"
)

// aside keeps results whose rows somebody else's transaction holds. They are not tried but asked for, all in one
// question, and written when they are free: a write that waits for a lock would hold up the results of others.
type aside struct {
	settler *settler

	mu      sync.Mutex
	waiting []settlement
	asking  bool
}

// leaveOut takes the locked ones out of the results and returns the others.
func (a *aside) leaveOut(results []settlement) (rest []settlement) {
	s := a.settler
	ctx, cancel := s.Call()
	defer cancel()
	locked, err := s.lockedAmong(ctx, idsOf(results, settlement.id))
	if err != nil {
		return results
	}
	held, rest := split(results, func(r settlement) bool { return locked[r.id()] })
	if len(held) == 0 {
		return rest
	}
	for _, r := range held {
		s.runqueue.Yield(r.run.item, runqueue.Slot|runqueue.Turn) // others on probation must not wait for somebody's transaction
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = append(a.waiting, held...)
	if !a.asking {
		a.asking = true
		s.Go(a.ask)
	}
	return rest
}

// ask asks for the rows until none is left, at growing intervals.
func (a *aside) ask() {
	s := a.settler
	for n := 0; lifecycle.Sleep(s.Life, asideFor(n)); n++ {
		a.mu.Lock()
		waiting := a.waiting
		a.waiting = nil
		a.asking = len(waiting) > 0
		a.mu.Unlock()
		if len(waiting) == 0 {
			return
		}
		ctx, cancel := s.Call()
		locked, err := s.lockedAmong(ctx, idsOf(waiting, settlement.id))
		cancel()
		held, free := waiting, []settlement(nil)
		if err == nil {
			held, free = split(waiting, func(r settlement) bool { return locked[r.id()] })
		}
		a.mu.Lock()
		if len(a.waiting) > 0 {
			n = 0 // new ones have come, and theirs may be a short lock
		}
		a.waiting = append(a.waiting, held...)
		a.mu.Unlock()
		if len(free) > 0 {
			s.Go(func() { s.flush(free) })
		}
	}
}
