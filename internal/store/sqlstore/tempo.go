package sqlstore

import (
	"slices"
	"sync"
	"time"
)

const (
	// lastDone is of how many statements the quickest counts: one that waits for a lock says nothing of the others.
	lastDone = 8
	// usualFor is for how long the quickest statement of all says what is usual.
	usualFor = 5 * time.Minute
	// leastUsual counts as usual where statements take less: they cannot be slow by much.
	leastUsual = 500 * time.Microsecond
	// slowFrom is how many times longer than usual even the quickest statements take from a server that is overloaded.
	slowFrom = 8

	// A statement waits for a connection that is in use for as long as some quick ones take, within bounds. The least
	// is about what it takes to open one.
	quickOnes   = 4
	leastWait   = 5 * time.Millisecond
	longestWait = 250 * time.Millisecond
	// freshFor is for how long the bounds are larger after the server was found, or had no connection left: others are
	// about to find it as well. The largest is for calm statements, whose least is freshWait.
	freshFor     = 10 * time.Second
	freshWait    = time.Second
	longestFresh = 5 * time.Second
)

// tempo is how quickly a server answers statements.
type tempo struct {
	mu    sync.Mutex // innermost
	took  [lastDone]time.Duration
	next  int
	usual [2]time.Duration // the quickest since, and of the time before
	since time.Time
	fresh time.Time
}

// note takes how long a statement took.
func (t *tempo) note(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took[t.next] = took
	t.next = (t.next + 1) % len(t.took)
	if now := time.Now(); now.Sub(t.since) >= usualFor {
		t.usual, t.since = [2]time.Duration{took, t.usual[0]}, now
	}
	t.usual[0] = min(t.usual[0], took)
}

// restart notes that the server was just found, or that it has no connection left.
func (t *tempo) restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fresh = time.Now()
}

// patience is how long a statement waits for a connection that is in use.
func (t *tempo) patience(calm bool) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	least, most := leastWait, longestWait
	switch fresh := time.Since(t.fresh) < freshFor; {
	case fresh && calm:
		least, most = freshWait, longestFresh
	case fresh:
		most = freshWait
	}
	return min(max(quickOnes*t.quickest(), least), most)
}

// atOnce is how many of so many statements are sent at the same time. An overloaded server gets fewer: what waits is
// sent together, and costs it less.
func (t *tempo) atOnce(most int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	usual := max(t.usual[0], leastUsual)
	if t.usual[1] > 0 {
		usual = max(min(usual, t.usual[1]), leastUsual)
	}
	return max(1, min(most, int(time.Duration(most)*slowFrom*usual/max(t.quickest(), 1))))
}

// slow is how long some quick statements take, at least that long.
func (t *tempo) slow(least time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(least, slowFrom*t.quickest())
}

// quickest is what the quickest of the last statements took, 0 before the first.
func (t *tempo) quickest() time.Duration {
	quickest := slices.Max(t.took[:])
	for _, took := range t.took {
		if took > 0 {
			quickest = min(quickest, took)
		}
	}
	return quickest
}
