package engine

import (
	"sync/atomic"
	"time"
)

// lead is how far ahead of its due time a task is claimed. It follows the round trip of the claims: a task is claimed early
// enough that a claim of four times the usual length is back in time, and everything due within a little more travels along.
type lead struct {
	roundTrip atomic.Int64 // smoothed, in nanoseconds
}

const (
	leadFloor   = 15 * time.Millisecond
	leadGather  = 25 * time.Millisecond // what falls due in so much more time is claimed in the same statement
	leadSamples = 8
)

// span returns when the first task has to be claimed, and up to where others are taken along.
func (l *lead) span() (first, window time.Duration) {
	first = min(max(4*time.Duration(l.roundTrip.Load()), leadFloor), maxLead-leadGather)
	return first, first + leadGather
}

// took records the round trip of a claim.
func (l *lead) took(d time.Duration) {
	old := l.roundTrip.Load()
	if old == 0 {
		l.roundTrip.Store(int64(d))
		return
	}
	l.roundTrip.Store(old + (int64(d)-old)/leadSamples)
}
