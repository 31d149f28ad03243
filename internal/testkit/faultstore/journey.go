package faultstore

import (
	"errors"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// pass waits while the line is held, and goes on if it is open then.
func (t *trip[T]) pass(next place, gone <-chan struct{}) bool {
	switch s, moved := t.line.look(); s {
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

// takes lets the time of a journey pass, also in parts.
func (t *trip[T]) takes(d time.Duration, gone <-chan struct{}) bool {
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
func (t *trip[T]) arrive() {
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

// mayWait tells the calls that wait while somebody else holds a lock on their rows from those that a store in memory
// answers at once.
func mayWait(method string) bool {
	switch method {
	case "Claim", "Renew", "Update", "Adopt", "Discard":
		return true
	default:
		return false
	}
}

func (t *trip[T]) perform() {
	if t.mode == Twice {
		_, _ = t.do(t.ctx)
	}
	t.value, t.err = t.do(t.ctx)
}

// turn sends the answer on its way.
func (t *trip[T]) turn() {
	if t.at = returning; t.mode == After {
		t.fail(errors.Join(errFault, t.err))
		t.at = through
	}
}

// lose waits for what will never come, until the line moves.
func (t *trip[T]) lose(why error) {
	t.fail(why)
	var s state
	if s, t.moved = t.line.look(); s == ended {
		t.at = through
	} else {
		t.at = lost
	}
}

func (t *trip[T]) fail(why error) {
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
