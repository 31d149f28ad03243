package faultstore

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// trip is one call on its way there and back. Its caller carries it himself for as long as he waits, because starting a
// goroutine for each call is what simulations would spend much of their time on. When he goes before the call is made,
// a goroutine carries it on from where it is.
type trip[T any] struct {
	line *Line
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

// place is where a trip is.
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

// over makes a call over a line. The caller's context ends his wait and nothing else.
func over[T any](ctx context.Context, l *Line, c Call, mode Mode, do func(context.Context) (T, error)) (T, error) {
	if ctx.Err() != nil {
		return do(ctx) // who has gone before sends nothing
	}
	t := &trip[T]{line: l, call: c, mode: mode, do: do, ctx: context.WithoutCancel(ctx)}
	t.there, t.back = l.travel(c)
	if t.carry(ctx.Done()) {
		return t.value, t.err
	}
	if t.at < making {
		go t.carry(nil)
	}
	var none T
	return none, fault(row.ClassUnknown, c.Method, ctx.Err())
}

// carry brings the trip to its end, and reports whether that came before its caller was gone.
func (t *trip[T]) carry(gone <-chan struct{}) bool {
	for t.at != through {
		if !t.step(gone) {
			return false
		}
	}
	return true
}

// step takes the trip to its next place, unless its caller is gone before.
func (t *trip[T]) step(gone <-chan struct{}) bool {
	switch t.at {
	case leaving:
		return t.pass(going, gone)
	case going:
		if !t.takes(t.there, gone) {
			return false
		}
		if s, _ := t.line.look(); s == cut {
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
		if !t.takes(t.back, gone) {
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
