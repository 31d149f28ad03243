package run

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/engine/arm"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/lifecycle/clock"
	"github.com/delaytask/delaytask/internal/row"
)

// dispatcher takes claimed rows, which may come ahead of their time. It starts each at its exact due time: when the
// database's clock has reached it for certain, never before.
type dispatcher struct {
	*deps
	runner  *runner
	renewer *renewer

	mu           sync.Mutex
	claimedAhead []*Attempt // by due time
	wake         chan struct{}
}

func newDispatcher(r *runner, renewer *renewer) *dispatcher {
	return &dispatcher{deps: r.deps, runner: r, renewer: renewer, wake: make(chan struct{}, 1)}
}

// tooFarAhead is longer than any row is claimed ahead. A row that is due later was put off by an operator's SQL that
// has not counted its version up.
const tooFarAhead = arm.MaxAhead + time.Second

// add takes a claimed row. What is due already starts at once. What is due far ahead is released, because it would keep
// a slot until then, and a stop waiting.
func (d *dispatcher) add(a *Attempt) {
	now := time.Now()
	soon := !now.Before(a.renewAt) && now.Before(a.deadline)
	d.runner.Attempts.add(a)
	if soon {
		table.Signal(d.renewer.of(a).wake) // the lease may end before the next tick
	}
	wait, anchored := d.Bounds.Until(a.Due)
	switch {
	case a.unread, anchored && wait > tooFarAhead:
		d.Go(func() { d.runner.Settler.Add(a, Released(a, d.Now())) }) // the settler may make it wait
	case anchored && wait <= 0:
		d.begin(a)
	default:
		d.keep(a)
	}
}

func (d *dispatcher) keep(a *Attempt) {
	d.mu.Lock()
	at, _ := slices.BinarySearchFunc(d.claimedAhead, a.Due+1, func(a *Attempt, due row.Time) int {
		return cmp.Compare(a.Due, due)
	})
	d.claimedAhead = slices.Insert(d.claimedAhead, at, a)
	d.mu.Unlock()
	if at == 0 {
		table.Signal(d.wake)
	}
}

// begin hands a row whose time has come to its processor or to a waiting pop.
func (d *dispatcher) begin(a *Attempt) {
	if a.forPop {
		d.Go(func() { d.runner.holders.Deliver(a) }) // the settler may make it wait
		return
	}
	d.runner.begin(a)
}

// loop waits by a timer, and for the last moment by a nap, because the runtime's timers fire up to a millisecond late.
func (d *dispatcher) loop(ctx context.Context) {
	for ctx.Err() == nil {
		wait := d.startDue()
		if d.cfg.Nap != nil {
			if wait <= clock.NapLimit {
				d.cfg.Nap(wait)
				continue
			}
			wait -= clock.NapLimit
		}
		alarm := time.NewTimer(wait)
		select {
		case <-alarm.C:
		case <-d.wake:
		case <-ctx.Done():
		}
		alarm.Stop()
	}
}

// startDue starts what is due and returns how long it is until the next one.
func (d *dispatcher) startDue() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.claimedAhead) > 0 {
		next := d.claimedAhead[0]
		wait, anchored := d.Bounds.Until(next.Due)
		if !anchored {
			return arm.UnanchoredWait
		}
		if wait > 0 {
			return d.Sleep(wait)
		}
		d.claimedAhead = slices.Delete(d.claimedAhead, 0, 1)
		d.begin(next)
	}
	return time.Hour
}
