package sqlstore

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/store"
)

// use is a kind of write. Each has connections of its own, so that none waits behind another.
type use int

const (
	saves      use = iota // of rows without a key, which as a rule wait for no lock
	keyedSaves            // each may wait for an open transaction with the same key
	claims
	results
	renewals   // short leases cannot wait while the statement of longer ones waits for a lock
	beats      // a node whose heartbeat waits behind a lease drops out of its own cluster state
	lockChecks // look for locked rows while other writes wait for them
	scheduling // decisions: a transaction that waits for its schedules must hold up no save, and no save it
	chores     // purge and rare writes
	apart      // what may wait for a locked range (see [store.Apart]), and the audit log, which anyone may lock
	uses
)

// turns lists which kind gets the next connection. In the end single saves have two connections and bulk saves three.
var turns = [...]use{
	saves, keyedSaves, claims, renewals, beats, results, chores, lockChecks, scheduling, apart, claims, results,
	renewals, saves, apart, saves, claims, keyedSaves, apart, saves, apart, saves,
}

// hosts names the kind whose connections another kind uses while it has none. A chore or a result waits for locks no
// longer than its host does. Kinds that wait for no lock share with renewals.
var hosts = map[use]use{
	beats: renewals, lockChecks: renewals, results: claims, scheduling: claims, chores: keyedSaves,
	apart: keyedSaves,
}

const (
	// fewest is the smallest number of connections for writes.
	fewest = 4
	// enough is how many connections for writes processors of any concurrency can do with.
	enough = 20
	// readers is how many connections of the pool the reads need beside the reserved ones.
	readers = 2
)

// needed returns the smallest pool for processors of that concurrency. Tasks that end at the same time each need a
// connection, up to a bound.
func needed(concurrency int) int { return readers + min(max(concurrency, fewest), enough) }

// reserved returns how many connections of a pool the writes keep. A pool of 0 has no limit.
func reserved(pool, concurrency int) int {
	if pool == 0 || pool >= readers+len(turns) {
		return len(turns)
	}
	return max(min(needed(concurrency), pool)-readers, fewest)
}

// lane returns the connections for a use, or those for what is sent apart.
func (s *Store) lane(ctx context.Context, u use) *lane {
	if store.IsApart(ctx) {
		u = apart
	}
	return s.lanes[u]
}

// share opens the lanes for n connections.
func share(n int, open func(size int) *lane) (lanes [uses]*lane) {
	var sizes [uses]int
	for _, u := range turns[:n] {
		sizes[u]++
	}
	for u, size := range sizes {
		if size > 0 {
			lanes[u] = open(size)
		}
	}
	for guest, host := range hosts {
		if lanes[guest] == nil {
			lanes[guest] = lanes[host]
		}
	}
	return lanes
}

// probe asks on an idle connection from before that time, if there is one.
func (s *Store) probe(ctx context.Context, before time.Time) error {
	for _, l := range s.lanes {
		if r, idle := l.idle(before); idle {
			err := echo(ctx, r.conn)
			l.release(r, err, false)
			return err
		}
	}
	return nil
}
