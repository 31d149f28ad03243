// Package store keeps tasks in a SQL database: MySQL and what speaks like it, or SQLite.
//
// Two rules hold in every statement. A write carries its guard (version and status) in its own WHERE, so that no
// isolation level and no lock is needed for correctness. And a write enters by the primary key, because a plan over a
// secondary index locks and waits for rows that it was never asked to change.
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
// service. The engine knows nothing of these, so the store in memory has none, and the conformance suite does not ask
// for them.
type Store struct {
	db          *sqlx.DB
	dialect     dialect
	own         dialect // on the connections of the lanes
	concurrency int     // tasks that run at once: the least pool follows from them

	save, saveKeyed, claim, settle, renew, beat, probe, keep *lane

	version atomic.Pointer[version] // what the server said last, while the probes succeed
}

// New returns a store on db, which stays the caller's, for any concurrency.
func New(db *sqlx.DB, kind Kind) *Store { return NewFor(db, kind, len(turns)) }

// NewFor returns a store on db, which stays the caller's, for a process that runs so many tasks at once. Connections
// are reserved as they are first needed. Of a pool that is too small for all that help, concurrency says how many.
func NewFor(db *sqlx.DB, kind Kind, concurrency int) *Store {
	d := dialectOf(kind)
	turn := make(chan struct{}, 1)
	lanes := share(reserved(db.Stats().MaxOpenConnections, concurrency), func(size int) *lane {
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
		probe:     lanes[probes],
		keep:      lanes[chores],
	}
}

// Close discards the reserved connections, waiting for those in use until ctx ends; these are discarded when their
// statement is done. The pool stays open.
func (s *Store) Close(ctx context.Context) error {
	var errs []error
	for _, l := range []*lane{s.save, s.saveKeyed, s.claim, s.settle, s.renew, s.beat, s.probe, s.keep} {
		errs = append(errs, l.close(ctx))
	}
	return errors.Join(errs...)
}

// use is a kind of write. Each has connections of its own, so that none waits behind another.
type use int

const (
	saves      use = iota // of rows that can meet no other, which as a rule wait for nothing
	keyedSaves            // each can wait a second for the open transaction that holds its key
	claims
	results
	renewals // short leases cannot wait while the statement of longer ones waits for a lock
	beats    // a node whose heartbeat waits behind a lease drops out of its own view
	probes   // look for locked rows while others wait for them
	chores   // purge and rare writes
	uses
)

// turns is which kind gets the next connection. In the end single saves have two and bulk ones three.
var turns = [...]use{
	saves, keyedSaves, claims, renewals, beats, results, chores, probes, claims, results, renewals,
	saves, keyedSaves, saves, claims, keyedSaves, saves, keyedSaves, saves,
}

// hosts is whose connections a kind uses while it has none of its own. No chore and no result waits longer for a lock
// than its host does, and what waits for none is behind a renewal.
var hosts = map[use]use{beats: renewals, probes: renewals, results: claims, chores: keyedSaves}

const (
	// fewest is how many connections the writes get along with.
	fewest = 4
	// readers is how many connections of the pool the reads need beside the reserved ones.
	readers = 2
)

// needed is the smallest pool for that concurrency. Tasks that end at once need connections to end on, up to where more
// of them help no further.
func needed(concurrency int) int { return readers + min(max(concurrency, fewest), len(turns)) }

// reserved is how many connections of a pool the writes keep; 0 stands for a pool without a limit.
func reserved(pool, concurrency int) int {
	if pool == 0 || pool >= readers+len(turns) {
		return len(turns)
	}
	return needed(concurrency) - readers
}

// share opens the lanes that n connections allow.
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
