// Package store keeps tasks in a SQL database: MySQL and what speaks like it, or SQLite.
//
// Two rules hold in every statement. A write carries its guard (version and status) in its own WHERE, so that no isolation level
// and no lock is needed for correctness. And a write enters by the primary key, because a plan over a secondary index locks and
// waits for rows that it was never asked to change.
package store

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/engine"
)

var _ engine.Store = (*Store)(nil)

// statementTimeout bounds every statement whose context brings no deadline.
const statementTimeout = 10 * time.Second

// How many connections each kind of write keeps for itself, so that none waits behind another.
const (
	savers      = 5 // rows that can meet no other, which as a rule wait for nothing: two single saves, three bulk ones
	keyedSavers = 4 // rows with a key: each can wait a second for the open transaction that holds it
	claimers    = 3
	settlers    = 2
	renewers    = 2 // short leases cannot wait while the statement of longer ones waits for a lock
	beaters     = 1 // node rows: a node whose heartbeat waits behind a lease drops out of its own view
	probers     = 1 // looks for locked rows while others wait for them
	keepers     = 1 // purge and rare writes

	// readers is how many connections of the pool the reads need beside the reserved ones.
	readers = 2

	// smallestPool is what the lanes and the reads get along with.
	smallestPool = savers + keyedSavers + claimers + settlers + renewers + beaters + probers + keepers + readers
)

// Store implements [engine.Store] on a SQL database. It also keeps the requests, tokens and workers of the HTTP service. The
// engine knows nothing of these, so the store in memory has none, and the conformance suite does not ask for them.
type Store struct {
	db      *sqlx.DB
	dialect dialect
	own     dialect // on the connections of the lanes

	save, saveKeyed, claim, settle, renew, beat, probe, keep *lane

	version atomic.Pointer[version] // what the server said last, while the probes succeed
}

// New returns a store on db, which stays the caller's. Connections are reserved as they are first needed.
func New(db *sqlx.DB, kind Kind) *Store {
	d := dialectOf(kind)
	kept := func(size int) *lane { return newLane(db, d, size, nil) }
	if !d.reserves {
		turn := make(chan struct{}, 1)
		kept = func(int) *lane { return newLane(db, d, 1, turn) }
	}
	return &Store{
		db: db, dialect: d, own: d.onOwnSession(),
		save:      kept(savers),
		saveKeyed: kept(keyedSavers),
		claim:     kept(claimers),
		settle:    kept(settlers),
		renew:     kept(renewers),
		beat:      kept(beaters),
		probe:     kept(probers),
		keep:      kept(keepers),
	}
}

// Close discards the reserved connections, waiting for those in use until ctx ends; these are discarded when their statement is
// done. The pool stays open.
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
