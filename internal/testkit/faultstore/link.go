package faultstore

import (
	"errors"
	"sync"
	"time"
)

// Line is the way between one process and its database, and what befalls it. Make one with [NewLine], and give it to
// [Store.Over]. All of its methods may be called at any time.
//
// What was sent arrives, whether or not the caller still waits: a caller who gives up learns nothing, and the call is
// made all the same.
type Line struct {
	travel func(Call) (there, back time.Duration)

	mu    sync.Mutex
	state state
	moved chan struct{} // closed, and replaced, when the state changes
}

type state int

const (
	open  state = iota
	cut         // nothing arrives
	held        // everything waits
	ended       // nothing is sent any more, and no answer arrives
)

var (
	errCut   = errors.New("the connection is cut")
	errEnded = errors.New("the process has ended")
)

// NewLine returns an open line. travel says how long a call is on its way, and its answer; nil: no time.
func NewLine(travel func(Call) (there, back time.Duration)) *Line {
	if travel == nil {
		travel = func(Call) (there, back time.Duration) { return 0, 0 }
	}
	return &Line{travel: travel, moved: make(chan struct{})}
}

// Cut loses calls and answers, as a partition of the network does. Who waits for one waits until his context ends, or
// the line is restored: then he learns that the connection is lost.
func (l *Line) Cut() { l.set(cut) }

// Hold keeps calls and answers, as they stand still in a process that is frozen, until the line is restored.
func (l *Line) Hold() { l.set(held) }

// Restore ends a cut or a hold, and tells those who wait for an answer that is lost.
func (l *Line) Restore() { l.set(open) }

// End is a crash: nothing is sent any more and no answer arrives, for good. What was sent before still arrives.
func (l *Line) End() { l.set(ended) }

func (l *Line) set(s state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == ended || l.state == s && s != open { // whoever waits at an open line, for an answer that is lost, is to be told
		return
	}
	l.state = s
	close(l.moved)
	l.moved = make(chan struct{})
}

func (l *Line) look() (state, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state, l.moved
}
