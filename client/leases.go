package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

// leases renews the leases of what runs.
type leases struct {
	service *service
	ctx     context.Context // of renewals
	wake    chan struct{}
	wg      sync.WaitGroup

	mu  sync.Mutex
	all map[*attempt]bool
}

func newLeases(ctx context.Context, s *service) *leases {
	return &leases{service: s, ctx: ctx, wake: make(chan struct{}, 1), all: map[*attempt]bool{}}
}

func (l *leases) start() { l.wg.Go(l.run) }

func (l *leases) add(a *attempt) {
	l.mu.Lock()
	l.all[a] = true
	l.mu.Unlock()
	l.look()
}

// look lets the loop make its next pass now.
func (l *leases) look() {
	select {
	case l.wake <- struct{}{}:
	default: // it will
	}
}

func (l *leases) remove(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, a)
}

// held lists what runs now.
func (l *leases) held() (all []*attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for a := range l.all {
		all = append(all, a)
	}
	return all
}

func (l *leases) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-l.wake:
		case <-l.ctx.Done():
			return
		}
		timer.Reset(l.pass(time.Now()))
	}
}

// idleWait is how long the loop sleeps that has nothing to renew; a new attempt wakes it.
const idleWait = time.Minute

// pass renews what is due and ends what is lost. It returns how long nothing else is to be done.
func (l *leases) pass(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := now.Add(idleWait)
	for a := range l.all {
		if !now.Before(a.until) {
			l.lose(a)
			continue
		}
		quiet := !a.renewUntil.IsZero() && !now.Before(a.renewUntil)
		if !a.touching && !quiet && !now.Before(a.renewAt) {
			a.touching = true
			l.wg.Go(func() { l.touch(a) })
		}
		next = earlier(next, a.until)
		if !a.touching && !quiet {
			next = earlier(next, a.renewAt)
		}
	}
	return next.Sub(now)
}

// lose ends the attempt's context: another process may have the task.
func (l *leases) lose(a *attempt) {
	delete(l.all, a)
	a.end(delaytask.ErrLeaseLost)
	if !a.returned.Load() {
		a.freeSlotLater(l.service)
	}
}

// touch renews a lease. It counts from before the request was sent, and moves only when that is confirmed.
func (l *leases) touch(a *attempt) {
	body := wire.Touch{Token: a.token.String(), TTR: wire.Duration(a.ttr)}
	sent := time.Now()
	err := l.service.try(l.ctx, leaseRequest(a.token, opTouch, body))
	l.mu.Lock()
	defer l.mu.Unlock()
	a.touching = false
	switch {
	case err == nil:
		a.until, a.renewAt = sent.Add(a.ttr), sent.Add(a.ttr/3)
	case isGone(err):
		if l.all[a] {
			l.lose(a)
		}
	default:
		a.renewAt = time.Now().Add(a.ttr / 12)
		if !errors.Is(err, context.Canceled) {
			l.service.log.Warn("a lease could not be renewed; it is tried again", "task", a.token.ID, "tag", a.tag,
				"err", err)
		}
	}
	l.look()
}
