package arm

import (
	"context"
	"sync"
	"time"
)

const (
	// JoinDelay is how long after its first look at the nodes a process that starts among many looks again. It knows
	// the nodes then that a deploy has started with it. Kafka's groups wait for members, too
	// (group.initial.rebalance.delay.ms, 3 s).
	JoinDelay = 250 * time.Millisecond
	// joinAtMost bounds how long overdue rows wait for both looks.
	joinAtMost = 2 * time.Second
)

// Joining is the time in which a process that starts among many nodes waits for others to join. It claims no overdue
// rows meanwhile. Nodes that start together know only the ones before them. So each would claim the rows of all, and
// their claims would wait for each other. Few nodes do claim them at once, and look again when claims come back in
// vain.
type Joining struct {
	over chan struct{}
	end  func()

	since time.Time // of the first look
}

func newJoining() *Joining {
	j := &Joining{over: make(chan struct{})}
	j.end = sync.OnceFunc(func() { close(j.over) })
	return j
}

// joined returns one that is over.
func joined() *Joining {
	j := newJoining()
	j.end()
	return j
}

// Open reports whether it goes on.
func (j *Joining) Open() bool {
	select {
	case <-j.over:
		return false
	default:
		return true
	}
}

// Wait waits until it is over, which is soon. It returns false when ctx ends first.
func (j *Joining) Wait(ctx context.Context) bool {
	select {
	case <-j.over:
		return true
	case <-ctx.Done():
		return false
	}
}

// phase is how well a process that has started knows which of the others live.
type phase uint8

const (
	// joins says that others may be starting as well.
	joins phase = iota
	// catchesUp says that a node that counts as alive may have just died. Until its next look the process takes all
	// overdue rows.
	catchesUp
	// settled says that each takes what is its own.
	settled
)

// look returns the phase after a look at the nodes. It may be the first one, may show the same as the one before, and
// may show few.
func (j *Joining) look(first, same, few bool) phase {
	now := time.Now()
	switch {
	case first && j.Open():
		j.since = now
		return joins
	case first && few:
		return catchesUp
	case !first && same && j.Open() && now.Sub(j.since) < JoinDelay:
		return joins
	}
	j.end()
	return settled // a dead one among many is for all to notice
}
