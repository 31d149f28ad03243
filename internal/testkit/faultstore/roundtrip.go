package faultstore

import (
	"context"
	"errors"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// roundTrip is one call on its way there and back. The goroutine of the caller carries it while the caller waits,
// because a goroutine for each call would slow down simulations. When the caller leaves before the call is made, a new
// goroutine carries it on from where it is.
type roundTrip[T any] struct {
	link *Link
	call Call
	mode Mode
	do   func(context.Context) (T, error)
	ctx  context.Context // of the call, which goes on without its caller

	at    place
	there time.Duration
	back  time.Duration
	timer *time.Timer     // of the way there, then of the way back
	sent  bool            // the timer runs
	made  chan struct{}   // closed when a call that waits for locks has been made
	moved <-chan struct{} // closed when the loss of an answer is known
	value T
	err   error
}

// place is where a round trip is.
type place int

const (
	leaving place = iota
	going
	arrived
	making // from here on it concerns its caller alone
	returning
	home
	lost
	through
)

// over makes a call over a link. The end of ctx ends the caller's wait and nothing else.
func over[T any](ctx context.Context, l *Link, c Call, mode Mode, do func(context.Context) (T, error)) (T, error) {
	if ctx.Err() != nil {
		return do(ctx) // nothing is sent
	}
	t := &roundTrip[T]{link: l, call: c, mode: mode, do: do, ctx: context.WithoutCancel(ctx)}
	t.there, t.back = l.transit(c)
	if t.carry(ctx.Done()) {
		return t.value, t.err
	}
	if t.at < making {
		go t.carry(nil)
	}
	var none T
	return none, fault(row.ClassUnknown, c.Method, ctx.Err())
}

// carry brings the round trip to its end, and reports whether that came before its caller was gone.
func (t *roundTrip[T]) carry(gone <-chan struct{}) bool {
	for t.at != through {
		if !t.step(gone) {
			return false
		}
	}
	return true
}

// step takes the round trip to its next place, unless its caller is gone before.
func (t *roundTrip[T]) step(gone <-chan struct{}) bool {
	switch t.at {
	case leaving:
		return t.pass(going, gone)
	case going:
		if !t.transit(t.there, gone) {
			return false
		}
		if s, _ := t.link.look(); s == cut {
			t.lose(errCut)
		} else {
			t.at = arrived
		}
	case arrived:
		t.arrive()
	case making:
		if !wait(t.made, gone) {
			return false
		}
		t.turn()
	case returning:
		if !t.transit(t.back, gone) {
			return false
		}
		t.at = home
	case home:
		return t.pass(through, gone)
	case lost:
		if !wait(t.moved, gone) {
			return false
		}
		t.at = through
	}
	return true
}

// pass waits while the link is held, and goes on if it is open then.
func (t *roundTrip[T]) pass(next place, gone <-chan struct{}) bool {
	switch s, moved := t.link.look(); s {
	case held:
		return wait(moved, gone)
	case cut:
		t.lose(errCut)
	case ended:
		t.lose(errEnded)
	default:
		t.at = next
	}
	return true
}

// transit lets the time on the way pass, also in parts.
func (t *roundTrip[T]) transit(d time.Duration, gone <-chan struct{}) bool {
	if d <= 0 {
		return true
	}
	if !t.sent {
		if t.sent = true; t.timer == nil {
			t.timer = time.NewTimer(d)
		} else {
			t.timer.Reset(d)
		}
	}
	if !wait(t.timer.C, gone) {
		return false
	}
	t.sent = false
	return true
}

// arrive makes the call, as far as its mode lets it.
func (t *roundTrip[T]) arrive() {
	switch t.mode {
	case Before:
		t.err, t.at = fault(row.ClassNotApplied, t.call.Method, errFault), through
		return
	case Hang:
		t.lose(errFault)
		return
	case Late:
		time.AfterFunc(LateBy+t.there, func() { _, _ = t.do(t.ctx) })
		t.lose(errFault)
		return
	}
	if !mayWait(t.call.Method) {
		t.perform()
		t.turn()
		return
	}
	t.at, t.made = making, make(chan struct{})
	go func() {
		defer close(t.made)
		t.perform()
	}()
}

// mayWait reports whether a call waits while another transaction locks its rows. A store in memory answers the others
// at once.
func mayWait(method string) bool {
	switch method {
	case "Claim", "Renew", "Update", "Adopt", "Discard", "Decide":
		return true
	default:
		return false
	}
}

func (t *roundTrip[T]) perform() {
	if t.mode == Twice {
		_, _ = t.do(t.ctx)
	}
	t.value, t.err = t.do(t.ctx)
}

// turn sends the answer on its way.
func (t *roundTrip[T]) turn() {
	if t.at = returning; t.mode == After {
		t.fail(errors.Join(errFault, t.err))
		t.at = through
	}
}

// lose waits for what will never come, until the link moves.
func (t *roundTrip[T]) lose(why error) {
	t.fail(why)
	var s state
	if s, t.moved = t.link.look(); s == ended {
		t.at = through
	} else {
		t.at = lost
	}
}

func (t *roundTrip[T]) fail(why error) {
	var none T
	t.value, t.err = none, fault(row.ClassUnknown, t.call.Method, why)
}

// wait reports whether something came before the caller was gone.
func wait[T any](comes <-chan T, gone <-chan struct{}) bool {
	select {
	case <-comes:
		return true
	case <-gone:
		return false
	}
}
