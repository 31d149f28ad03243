package faultstore

import (
	"errors"
	"sync"
	"time"
)

// Link is the connection between one process and its database, and its faults. Make one with [NewLink], and give it to
// [Store.Over]. All of its methods may be called at any time.
//
// What was sent arrives, whether or not the caller still waits: the call is made also when the caller has given up.
type Link struct {
	transit func(Call) (there, back time.Duration)

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

// NewLink returns an open link. transit returns how long a call is under way, and its answer; nil: no time.
func NewLink(transit func(Call) (there, back time.Duration)) *Link {
	if transit == nil {
		transit = func(Call) (there, back time.Duration) { return 0, 0 }
	}
	return &Link{transit: transit, moved: make(chan struct{})}
}

// Cut loses calls and answers, as a partition of the network does. A caller waits until its context ends, or until the
// link is restored: then the call fails because the connection is lost.
func (l *Link) Cut() { l.set(cut) }

// Hold keeps calls and answers, as they stand still in a process that is frozen, until the link is restored.
func (l *Link) Hold() { l.set(held) }

// Restore ends a cut or a hold. Calls that wait for a lost answer fail.
func (l *Link) Restore() { l.set(open) }

// End is a crash: nothing is sent any more and no answer arrives, for good. What was sent before still arrives.
func (l *Link) End() { l.set(ended) }

func (l *Link) set(s state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// An open link may be restored: calls that wait for a lost answer fail then.
	if l.state == ended || l.state == s && s != open {
		return
	}
	l.state = s
	close(l.moved)
	l.moved = make(chan struct{})
}

func (l *Link) look() (state, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state, l.moved
}
