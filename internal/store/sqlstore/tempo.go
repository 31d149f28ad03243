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
	// The bounds are larger for freshFor after the server was found, or had no connection left: others are about to
	// find it as well. While statements typically take slowFresh, that may last for longestFresh. Calm statements wait
	// for calmOnes quick ones then, for longestWait at least and calmWait at most.
	freshFor     = 10 * time.Second
	longestFresh = time.Minute
	slowFresh    = 20 * time.Millisecond
	freshWait    = time.Second
	calmOnes     = 16
	calmWait     = 5 * time.Second
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
	ones, least, most := time.Duration(quickOnes), leastWait, longestWait
	switch fresh := t.isFresh(); {
	case fresh && calm:
		ones, least, most = calmOnes, longestWait, calmWait
	case fresh:
		most = freshWait
	}
	return min(max(ones*t.typical(), least), most)
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

// slow is how long some typical statements take, at least that long.
func (t *tempo) slow(least time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(least, slowFrom*t.typical())
}

// typical is what one of the last statements took. The quickest tells of the others while some wait for locks.
// Processes that start together wait for their machine, and only the median tells how long.
func (t *tempo) typical() time.Duration {
	if t.isFresh() {
		return t.median()
	}
	return t.quickest()
}

// areSlow reports whether most of the last statements were slow.
func (t *tempo) areSlow() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.median() >= slowFresh
}

// isFresh reports whether other processes are about to find the server, too.
func (t *tempo) isFresh() bool {
	found := time.Since(t.fresh)
	return found < freshFor || found < longestFresh && t.median() >= slowFresh
}

func (t *tempo) median() time.Duration {
	known := t.known()
	return known[len(known)/2]
}

func (t *tempo) quickest() time.Duration { return t.known()[0] }

// known is what the last statements took, the quickest first. Before the first it is 0.
func (t *tempo) known() []time.Duration {
	known := slices.DeleteFunc(slices.Clone(t.took[:]), func(took time.Duration) bool { return took == 0 })
	if len(known) == 0 {
		return make([]time.Duration, 1)
	}
	slices.Sort(known)
	return known
}
