// Package memstore keeps tasks in memory behind the same contract as the SQL store, for simulations and tests.
//
// It waits only for its mutex and, where [Store.Lock] holds a row, for a timer. No goroutine outlives a call. So it
// runs in a testing/synctest bubble, where its clock is the bubble's and days pass in milliseconds.
package memstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// Store is a database in memory. Make one with [New].
type Store struct {
	clock func() time.Time
	watch func(row.Row, row.Time)
	told  func(row.Decision, row.Time)

	mu       sync.Mutex
	offset   time.Duration
	server   string
	tasks    *table
	tags     map[string]row.TagState
	nodes    []row.Node // by number
	known    map[int64]known
	planned  schedules
	rollups  []row.Rollup // ordered
	audit    audit
	locked   map[int64]int                               // how many calls of Lock hold the row
	ranges   []*func(tag string, status row.Status) bool // that LockRange holds
	unlocked chan struct{}                               // closed, and replaced, whenever a lock ends
}

// Option changes what [New] returns.
type Option func(*Store)

// WithClock sets the source of the store's clock. The default is time.Now.
func WithClock(now func() time.Time) Option { return func(s *Store) { s.clock = now } }

// WithWatch calls f with every row after each of its changes, and with the time of the change, as a trigger would. The
// calls are in the order of the changes. f must not call the store.
func WithWatch(f func(row.Row, row.Time)) Option { return func(s *Store) { s.watch = f } }

// WithDecisions calls f with every decision that was applied, before the watch is called with the rows of its tasks. f
// must not call the store.
func WithDecisions(f func(row.Decision, row.Time)) Option { return func(s *Store) { s.told = f } }

// New returns an empty store.
func New(opts ...Option) *Store {
	s := &Store{
		clock:    time.Now,
		watch:    func(row.Row, row.Time) {},
		told:     func(row.Decision, row.Time) {},
		server:   "memory",
		tasks:    newTable(),
		tags:     make(map[string]row.TagState),
		known:    make(map[int64]known),
		planned:  newSchedules(),
		locked:   make(map[int64]int),
		unlocked: make(chan struct{}),
	}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// SetOffset makes the store's clock differ from its source by d, as when the clock of a database is stepped.
func (s *Store) SetOffset(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset = d
}

// SetServer changes the identity that the readings name, as a failover does; it is "memory" at first.
func (s *Store) SetServer(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = name
}

// Now implements [store.Clock].
func (s *Store) Now(ctx context.Context) (row.Reading, error) {
	return under(ctx, s, "read the clock", func() row.Reading { return s.reading() })
}

func (s *Store) reading() row.Reading { return row.Reading{Time: s.now(), Server: s.server} }

// now truncates to the microsecond, as a database's clock does. Rounding up would let a task start early.
func (s *Store) now() row.Time { return row.Time(s.clock().Add(s.offset).UnixMicro()) }

// notify calls the watch with rows that have changed.
func (s *Store) notify(ids ...int64) {
	now := s.now()
	for _, id := range ids {
		s.watch(s.tasks.rows[id], now)
	}
}

// enter takes the mutex, unless the caller's context has ended.
func (s *Store) enter(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return &row.Error{Class: row.ClassNotApplied, Op: op, Err: err}
	}
	s.mu.Lock()
	return nil
}

// do runs f under the mutex when none of the rows is locked, unless the caller's context has ended.
func (s *Store) do(ctx context.Context, op string, f func(), rows ...int64) error {
	if err := s.enterRows(ctx, op, rows); err != nil {
		return err
	}
	defer s.mu.Unlock()
	f()
	return nil
}

// under is do for an f with a result.
func under[T any](ctx context.Context, s *Store, op string, f func() T, rows ...int64) (result T, err error) {
	err = s.do(ctx, op, func() { result = f() }, rows...)
	return result, err
}

var errTx = errors.New("the in-memory store cannot take part in a transaction")

// enterTx is enter for the methods that a caller may want to be part of a transaction.
func (s *Store) enterTx(ctx context.Context, tx delaytask.Tx, op string) error {
	if tx != nil {
		return refusedTo(op, errTx)
	}
	return s.enter(ctx, op)
}

// refusedTo says that the caller asked for what cannot be done.
func refusedTo(op string, err error) error {
	return &row.Error{Class: row.ClassCaller, Op: op, Err: err}
}

// duplicate says that an id or a key is taken.
func duplicate(op string, err error) error {
	return &row.Error{Class: row.ClassDuplicate, Op: op, Err: err}
}
