// Package ids makes the ids of tasks, and tells what they are made of.
package ids

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// An id is 63 bits: 41 of milliseconds since 2020, 10 of node number, 12 of sequence.
const (
	seqBits  = 12
	nodeBits = 10
	msShift  = seqBits + nodeBits

	seqMask  = 1<<seqBits - 1
	nodeMask = 1<<nodeBits - 1

	// LeasedNodes is how many node numbers can be leased: 0 to LeasedNodes-1. The numbers above are drawn at random,
	// never leased.
	LeasedNodes = 1 << (nodeBits - 1)
)

// The 41 bits last until September 2089.
var epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// Source makes ids that are unique as long as no two processes use one node number at a time. They only grow within a
// process, also when its time source steps back. It is safe for concurrent use.
type Source struct {
	now func() time.Time

	mu     sync.Mutex
	spare  int64 // the node number while none is leased
	leased int64
	until  time.Time // when the lease ends; has a monotonic reading
	seq    int64
	last   int64
}

// NewSource returns a source of ids that carry the node number, while none is leased, and the time that now tells.
func NewSource(node int, now func() time.Time) *Source {
	// The sequence starts anywhere, so that two processes that drew the same number at random hardly ever meet.
	return &Source{now: now, spare: int64(node), seq: rand.Int64N(seqMask + 1)}
}

// Lease gives the ids to come another node number until the lease ends. EndLease ends it sooner.
func (s *Source) Lease(node int, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leased, s.until = int64(node), until
}

// EndLease takes the leased number back. Ids carry the source's own again.
func (s *Source) EndLease() { s.Lease(0, time.Time{}) }

// Node returns the node number that ids carry at this moment, and whether it is leased.
func (s *Source) Node() (number int, leased bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	node, leased := s.node()
	return int(node), leased
}

// node is Node for a caller that locks.
func (s *Source) node() (number int64, leased bool) {
	if time.Now().Before(s.until) {
		return s.leased, true
	}
	return s.spare, false
}

// Next returns a new id, larger than all before it.
func (s *Source) Next() int64 {
	ms := s.now().Sub(epoch).Milliseconds()
	s.mu.Lock()
	defer s.mu.Unlock()

	node, _ := s.node()
	s.seq = (s.seq + 1) & seqMask
	ms = max(ms, s.last>>msShift, 1)
	id := ms<<msShift | node<<seqBits | s.seq
	if id <= s.last {
		// The sequence wrapped within the millisecond, or the node number became smaller: borrow from the next one.
		id += 1 << msShift
	}
	s.last = id
	return id
}

// RandomNode draws a node number that is never leased, for processes that hold no lease.
func RandomNode() int { return LeasedNodes + rand.IntN(LeasedNodes) }

// Split returns what an id was made of: its time (milliseconds), node number and sequence number.
func Split(id int64) (at time.Time, node, seq int) {
	return epoch.Add(time.Duration(id>>msShift) * time.Millisecond), int(id >> seqBits & nodeMask), int(id & seqMask)
}

// reservedIDs is how many of the largest ids are never used: more than the ids of the last eight years.
const reservedIDs = 1 << 60

// Valid reports whether an id can come from a [Source]. Small numbers, of AUTO_INCREMENT or written by hand, cannot.
// The largest ones are refused too: a single row there would use AUTO_INCREMENT up and end all inserts without an id.
func Valid(id int64) bool { return id >= 1<<msShift && id <= Last }

// Last is the largest id that a task may have.
const Last = math.MaxInt64 - reservedIDs
