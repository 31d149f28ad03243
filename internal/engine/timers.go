package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/internal/timer"
)

// timers sleeps until the head of the heap is due, minus the lead, and moves everything that is due within the lead
// into the ready queues. Because tasks are claimed ahead of their time, one statement claims many of them, and each
// still starts on its own millisecond.
type timers struct {
	*core
	arm   *armer
	ahead *claimAhead
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
	return min(t.runqueue.Fire(now, t.ahead.window(), t.stillMine), insurance)
}

// stillMine is asked once more when a timer fires: nodes come and go, and a tag may have been paused meanwhile.
func (t *timers) stillMine(e timer.Entry, tag string) bool {
	if e.Own {
		return t.arm.tags.open(tag)
	}
	return t.arm.mine(e.ID, e.Due, tag)
}

// lead is how far ahead of its due time a task is claimed. It follows the round trip of the claims: a task is claimed
// early enough that a claim of four times the usual length is back in time, and everything due within a little more
// travels along.
type claimAhead struct {
	roundTrip atomic.Int64 // smoothed, in nanoseconds
	last      atomic.Pointer[time.Time]
}

// saturated reports whether claims have lately been so slow that the lead is at its bound: tasks begin to be late.
func (l *claimAhead) saturated() bool {
	last := l.last.Load()
	return last != nil && time.Since(*last) < saturatedFor && l.window().First >= maxClaimAhead-gatherAhead
}

// saturatedFor is how long a slow claim counts that no other follows.
const saturatedFor = 5 * time.Second

const (
	tightFloor       = 5 * time.Millisecond
	claimAheadFloor  = 15 * time.Millisecond
	gatherAhead      = 25 * time.Millisecond // what falls due in so much more time is claimed in the same statement
	roundTripSamples = 8
)

func (l *claimAhead) window() runqueue.Window {
	usual := 4 * time.Duration(l.roundTrip.Load())
	first := min(max(usual, claimAheadFloor), maxClaimAhead-gatherAhead)
	tight := first
	if usual > 0 {
		tight = min(max(usual, tightFloor), first)
	}
	return runqueue.Window{Near: tight, First: first, Last: first + gatherAhead}
}

// took records the round trip of a claim, and returns what it is as a rule.
func (l *claimAhead) took(d time.Duration) (usual time.Duration) {
	now := time.Now()
	l.last.Store(&now)
	usual = d
	if old := time.Duration(l.roundTrip.Load()); old > 0 {
		usual = old + (d-old)/roundTripSamples
	}
	l.roundTrip.Store(int64(usual))
	return usual
}
