package engine

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/timer"
)

// timers sleeps until the head of the heap is due, minus the lead, and moves everything that is due within the lead
// into the ready queues. Because tasks are claimed ahead of their time, one statement claims many of them, and each
// still starts on its own millisecond.
type timers struct {
	*core
	arm  *armer
	lead *lead
}

// insurance bounds a sleep: the machine may have been suspended, or the clock has found its anchor again.
const insurance = time.Second

// unanchoredWait is how often what is due looks whether the clock has found its anchor again.
const unanchoredWait = 10 * time.Millisecond

func (t *timers) loop(ctx context.Context) {
	for {
		wait := t.fire()
		alarm := time.NewTimer(wait)
		select {
		case <-alarm.C:
		case <-t.runqueue.TimerWake:
		case <-ctx.Done():
			alarm.Stop()
			return
		}
		alarm.Stop()
	}
}

// fire moves what is due into the ready queues and returns how long the loop may sleep.
func (t *timers) fire() time.Duration {
	now, anchored := t.clock.AtLeast()
	if !anchored {
		return unanchoredWait
	}
	return min(t.runqueue.Fire(now, t.lead.span(), t.stillMine), insurance)
}

// stillMine is asked once more when a timer fires: nodes come and go, and a tag may have been paused meanwhile.
func (t *timers) stillMine(e timer.Entry, tag string) bool {
	if e.Own {
		return t.arm.tags.open(tag)
	}
	return t.arm.mine(e.ID, e.Due, tag)
}
