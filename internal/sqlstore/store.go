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
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/store"
)

var _ store.Store = (*Store)(nil)

// statementTimeout bounds every statement whose context brings no deadline.
const statementTimeout = 10 * time.Second

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

// withDeadline makes sure that no statement waits for ever.
func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, statementTimeout)
}
