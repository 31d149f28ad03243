// Package stall measures for how long the machine of a test stood still. A test of a bound in seconds allows so much
// more time, so it works on a machine that other programs keep busy.
package stall

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	tick  = 10 * time.Millisecond
	pause = 100 * time.Millisecond // between two probes
	quick = 20 * time.Millisecond  // what a probe may take on a machine that is not busy
)

// Watch knows when the machine stood still. The zero value is ready.
type Watch struct {
	mu     sync.Mutex
	stalls []span
	due    map[*time.Time]struct{} // by when each of what goes on should be over
}

type span struct{ from, to time.Time }

// Sleep notes whenever this process is woken late, until the context ends.
func (w *Watch) Sleep(ctx context.Context) {
	for ctx.Err() == nil {
		over := w.expect(tick)
		wait(ctx, tick)
		over()
	}
}

// Probe notes whenever what takes next to no time takes long, until the context ends. The probe's result does not
// matter.
func (w *Watch) Probe(ctx context.Context, probe func(context.Context) error) {
	for wait(ctx, pause) {
		over := w.expect(quick)
		_ = probe(ctx)
		over()
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// expect begins what should be over soon, and returns what ends it.
func (w *Watch) expect(soon time.Duration) (over func()) {
	due := time.Now().Add(soon)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.due == nil {
		w.due = map[*time.Time]struct{}{}
	}
	w.due[&due] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.due, &due)
		if now := time.Now(); now.After(due) {
			w.stalls = append(w.stalls, span{due, now})
		}
	}
}

// Still returns for how long between the two moments the machine stood still, or what was probed did.
func (w *Watch) Still(from, to time.Time) (still time.Duration) {
	var stalls []span
	take := func(s span) {
		if s.from.Before(to) && s.to.After(from) {
			stalls = append(stalls, s)
		}
	}
	w.mu.Lock()
	for _, s := range w.stalls {
		take(s)
	}
	for due := range w.due { // a stall that has just ended may not have been noted yet
		take(span{*due, time.Now()})
	}
	w.mu.Unlock()
	slices.SortFunc(stalls, func(a, b span) int { return a.from.Compare(b.from) })
	for _, s := range stalls {
		if s.from.Before(from) {
			s.from = from
		}
		if s.to.After(to) {
			s.to = to
		}
		if s.from.Before(s.to) {
			still += s.to.Sub(s.from)
			from = s.to
		}
	}
	return still
}
