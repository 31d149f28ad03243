// Package sqlstore keeps tasks in a SQL database: MySQL and servers compatible with it, or SQLite.
//
// Two rules hold. A write to a task carries its guard in its own WHERE, so that correctness needs no isolation level
// and no lock. The guard is version and status; for a purge it is status and due time, for a new id the status alone. A
// write to a node is guarded by its token, one to a schedule by its version. The last write counts for tags, tokens,
// requests and receivers. And a write enters by the primary key, because a plan over a secondary index locks, and waits
// for, rows that it does not change.
package sqlstore

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/store"
)

var _ store.Store = (*Store)(nil)

// Store implements [store.Store] on a SQL database. It also keeps the requests, tokens and receivers of the HTTP
// service. The engine does not use these, so the store in memory has none, and the conformance suite does not test
// them.
type Store struct {
	db          *sqlx.DB
	dialect     dialect
	own         dialect // on the connections of the lanes
	concurrency int     // tasks that run at once: the smallest pool for processors depends on it

	save, saveKeyed, claim, settle, renew, beat, lockCheck, decide, keep *lane

	fileVersion fileVersion

	version atomic.Pointer[version] // the server's last answer; nil after a lock check has failed
}

// New returns a store on db, which stays the caller's, for any concurrency.
func New(db *sqlx.DB, kind Kind) *Store { return NewFor(db, kind, len(turns)) }

// NewFor returns a store on db, which stays the caller's, for a process that runs concurrency tasks at once.
// Connections are reserved when they are first needed: all that help, or in a smaller pool as many as concurrency says.
func NewFor(db *sqlx.DB, kind Kind, concurrency int) *Store {
	d := dialectOf(kind)
	turn := make(chan struct{}, 1)
	pool := db.Stats().MaxOpenConnections
	if !d.reserves {
		pool = 0
	}
	lanes := share(reserved(pool, concurrency), func(size int) *lane {
		if d.reserves {
			return newLane(db, d, size, nil)
		}
		return newLane(db, d, 1, turn)
	})
	return &Store{
		db: db, dialect: d, own: d.onOwnSession(), concurrency: concurrency,
		save:      lanes[saves],
		saveKeyed: lanes[keyedSaves],
		claim:     lanes[claims],
		settle:    lanes[results],
		renew:     lanes[renewals],
		beat:      lanes[beats],
		lockCheck: lanes[lockChecks],
		decide:    lanes[decisions],
		keep:      lanes[chores],
	}
}

// Close discards the reserved connections. It waits for those in use until ctx ends: they are discarded when their
// statement is done. The pool stays open.
func (s *Store) Close(ctx context.Context) error {
	var errs []error
	for _, l := range []*lane{s.save, s.saveKeyed, s.claim, s.settle, s.renew, s.beat, s.lockCheck, s.decide, s.keep} {
		errs = append(errs, l.close(ctx))
	}
	return errors.Join(append(errs, s.fileVersion.close())...)
}

// use is a kind of write. Each has connections of its own, so that none waits behind another.
type use int

const (
	saves      use = iota // of rows without a key, which as a rule wait for no lock
	keyedSaves            // each may wait a second for an open transaction with the same key
	claims
	results
	renewals   // short leases cannot wait while the statement of longer ones waits for a lock
	beats      // a node whose heartbeat waits behind a lease drops out of its own cluster state
	lockChecks // look for locked rows while other writes wait for them
	decisions  // of schedules: a transaction that waits for its schedules must hold up no save, and no save it
	chores     // purge and rare writes
	uses
)

// turns lists which kind gets the next connection. In the end single saves have two connections and bulk saves three.
var turns = [...]use{
	saves, keyedSaves, claims, renewals, beats, results, chores, lockChecks, decisions, claims, results, renewals,
	saves, keyedSaves, saves, claims, keyedSaves, saves, keyedSaves, saves,
}

// hosts names the kind whose connections another kind uses while it has none. A chore or a result waits for locks no
// longer than its host does. Kinds that wait for no lock share with renewals.
var hosts = map[use]use{
	beats: renewals, lockChecks: renewals, results: claims, decisions: claims, chores: keyedSaves,
}

const (
	// fewest is the smallest number of connections for writes.
	fewest = 4
	// readers is how many connections of the pool the reads need beside the reserved ones.
	readers = 2
)

// needed returns the smallest pool for processors of that concurrency. Tasks that end at the same time each need a
// connection, up to the number that all lanes can use.
func needed(concurrency int) int { return readers + min(max(concurrency, fewest), len(turns)) }

// reserved returns how many connections of a pool the writes keep. A pool of 0 has no limit.
func reserved(pool, concurrency int) int {
	if pool == 0 || pool >= readers+len(turns) {
		return len(turns)
	}
	return max(min(needed(concurrency), pool)-readers, fewest)
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
