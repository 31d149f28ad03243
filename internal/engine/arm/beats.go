package arm

import (
	"slices"
	"sync"
	"time"
)

const (
	// aliveBeats is how many heartbeats a node may miss before it counts as dead.
	aliveBeats = 2
	// lastBeats is of how many heartbeats of this process the slowest counts.
	lastBeats = 4
	// mostStretch bounds how many times longer than usual a node counts as alive.
	mostStretch = 4
	// readsToBeat is by how many times the last read of the nodes a heartbeat counts as late.
	readsToBeat = 4
)

// beats tells for how long a node counts as alive after its heartbeat. Where the heartbeats of this process are late,
// others are late, too: their database is slow, and they are not dead. If they counted as dead, all nodes would
// divide the rows anew again and again, each as it sees the others at its moment, and claim each other's rows.
type beats struct {
	mu   sync.Mutex // innermost
	last time.Time
	took [lastBeats]time.Duration // from one to the next
	next int
	read time.Duration // what the last read of the nodes took
}

// noteRead notes how long a read of the nodes took.
func (b *beats) noteRead(took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read = took
}

// Beat notes a heartbeat of this process.
func (b *beats) Beat(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.last.IsZero() {
		b.took[b.next] = at.Sub(b.last)
		b.next = (b.next + 1) % len(b.took)
	}
	b.last = at
}

// alive returns the span for heartbeats that are sent so often. Of many nodes it doubles, so that it seldom changes.
func (b *beats) alive(every time.Duration, many bool) time.Duration {
	if !many {
		return aliveBeats * every
	}
	b.mu.Lock()
	slowest := max(slices.Max(b.took[:]), every+readsToBeat*b.read)
	if !b.last.IsZero() {
		slowest = max(slowest, time.Since(b.last))
	}
	b.mu.Unlock()
	stretch := time.Duration(1)
	for stretch < mostStretch && slowest > stretch*every*3/2 {
		stretch *= 2
	}
	return aliveBeats * stretch * every
}
