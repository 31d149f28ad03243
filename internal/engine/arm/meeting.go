package arm

import (
	"context"
	"sync"
	"time"
)

const (
	// MeetFor is how long after its first look at the nodes a process that starts among many looks again. It knows the
	// nodes then that a deploy has started with it.
	MeetFor = 250 * time.Millisecond
	// meetAtMost bounds how long overdue rows wait for both looks.
	meetAtMost = 2 * time.Second
)

// Meeting is how a process that starts among many nodes gets to know them. Until it is over the process claims no
// overdue rows. Nodes that start together know only the ones before them. So each would claim the rows of all, and
// their claims would wait for each other. Few nodes do claim them at once, and look again when claims come back in
// vain.
type Meeting struct {
	over chan struct{}
	end  func()

	since time.Time // of the first look
}

func newMeeting() *Meeting {
	m := &Meeting{over: make(chan struct{})}
	m.end = sync.OnceFunc(func() { close(m.over) })
	return m
}

// noMeeting returns one that is over.
func noMeeting() *Meeting {
	m := newMeeting()
	m.end()
	return m
}

// Open reports whether this process does not know yet which others have started with it.
func (m *Meeting) Open() bool {
	select {
	case <-m.over:
		return false
	default:
		return true
	}
}

// Wait waits until the meeting is over, which is soon. It returns false when ctx ends first.
func (m *Meeting) Wait(ctx context.Context) bool {
	select {
	case <-m.over:
		return true
	case <-ctx.Done():
		return false
	}
}

// acquaintance is how well a process knows which of the others live.
type acquaintance uint8

const (
	// meets says that others may be starting as well.
	meets acquaintance = iota
	// catchesUp says that a node that counts as alive may have just died. Until its next look the process takes all
	// overdue rows.
	catchesUp
	// settled says that each takes what is its own.
	settled
)

// look returns how well the nodes are known after a look at them. It may be the first one, may show the same as the one
// before, and may show few.
func (m *Meeting) look(first, same, few bool) acquaintance {
	now := time.Now()
	switch {
	case first && m.Open():
		m.since = now
		return meets
	case first && few:
		return catchesUp
	case !first && same && m.Open() && now.Sub(m.since) < MeetFor:
		return meets
	}
	m.end()
	return settled // a dead one among many is for all to notice
}
