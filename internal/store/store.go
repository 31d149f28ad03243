// Package store keeps tasks in a SQL database: MySQL and what speaks like it, or SQLite.
//
// Two rules hold in every statement. A write carries its guard (version and status) in its own WHERE, so that no isolation level
// and no lock is needed for correctness. And a write enters by the primary key, because a plan over a secondary index locks and
// waits for rows that it was never asked to change.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/engine"
)

var _ engine.Store = (*Store)(nil)

// statementTimeout bounds every statement whose context brings no deadline.
const statementTimeout = 10 * time.Second

// Options says how many connections each kind of write keeps for itself, so that none waits behind another. Zero means the default.
type Options struct {
	Save   int // new tasks; default 2
	Claim  int // claims; default 2
	Settle int // results; default 2
	Renew  int // leases and heartbeats; default 1
	Keep   int // purge and rare writes; default 1
}

func (o Options) withDefaults() Options {
	for _, n := range []struct {
		of *int
		to int
	}{{&o.Save, 2}, {&o.Claim, 2}, {&o.Settle, 2}, {&o.Renew, 1}, {&o.Keep, 1}} {
		if *n.of <= 0 {
			*n.of = n.to
		}
	}
	return o
}

// readers is how many connections of the pool the reads need beside the reserved ones.
const readers = 2

// connections is the smallest pool that the lanes and the reads get along with.
func (o Options) connections() int { return o.Save + o.Claim + o.Settle + o.Renew + o.Keep + readers }

// Store implements [engine.Store] on a SQL database.
type Store struct {
	db      *sqlx.DB
	dialect dialect
	options Options

	save, claim, settle, renew, keep *lane
}

// New returns a store on db, which stays the caller's. Connections are reserved as they are first needed.
func New(db *sqlx.DB, kind Kind, opts Options) *Store {
	s := &Store{db: db, dialect: dialectOf(kind), options: opts.withDefaults()}
	s.save = newLane(db, s.dialect, s.options.Save)
	s.claim = newLane(db, s.dialect, s.options.Claim)
	s.settle = newLane(db, s.dialect, s.options.Settle)
	s.renew = newLane(db, s.dialect, s.options.Renew)
	s.keep = newLane(db, s.dialect, s.options.Keep)
	return s
}

// Close discards the reserved connections, waiting for those in use until ctx ends; these are discarded when their statement is
// done. The pool stays open.
func (s *Store) Close(ctx context.Context) error {
	var errs []error
	for _, l := range []*lane{s.save, s.claim, s.settle, s.renew, s.keep} {
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
