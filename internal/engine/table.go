package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/batch"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// table is the store with the steps that all writers share.
//
// A statement writes many rows, and one of them may spoil it: another transaction holds it, or the database refuses it
// for what it holds. Or the reply is lost. Then a writer asks which rows are locked, finds the refused one by halves,
// or reads back. This file has these steps and classifies the errors. A [policy] says what a writer does in each case.
type table struct {
	*dbClock
	store     store.Store
	health    health
	locks     locks
	extending chan struct{} // holds one while a lease is extended for its holder
}

func newTable(c *dbClock, s store.Store) *table {
	return &table{dbClock: c, store: s, extending: make(chan struct{}, 1)}
}

// policy says how a writer goes on with the rows of a statement that has failed. Each function returns the rows that
// the writer sends again after a pause. Without a function these are all rows.
type policy[T any] struct {
	locked    func(rows []T) (again []T) // another transaction holds one of the rows
	refused   func(rows []T) (again []T) // the database refuses one of the rows for what it holds
	lost      func(rows []T) (again []T) // the reply was lost: the statement may still be applied
	unapplied func(rows []T) (again []T) // the database was not there, or could not do it now
	operator  func(rows []T) (again []T) // an operator has to mend the database
}

// after returns the rows that the writer sends again after the statement has failed with err.
func (p policy[T]) after(rows []T, err error) (again []T) {
	next := p.lost
	switch row.ClassOf(err) {
	case row.ClassLocked:
		next = p.locked
	case row.ClassCaller, row.ClassDuplicate:
		next = p.refused
	case row.ClassNotApplied:
		next = p.unapplied
	case row.ClassOperator:
		next = p.operator
	}
	if next == nil {
		return rows
	}
	return next(rows)
}

// fault returns err unless it is about rows, such as another transaction's lock: then the database has answered.
func fault(err error) error {
	switch row.ClassOf(err) {
	case row.ClassLocked, row.ClassCaller, row.ClassDuplicate:
		return nil
	default:
		return err
	}
}

func isLocked(err error) bool { return err != nil && row.ClassOf(err) == row.ClassLocked }

// whileLocked calls a statement again while another transaction holds its row, n times at most. That may be a process
// that only asks whether the row is locked.
func whileLocked(ctx context.Context, n int, call func() error) (err error) {
	for i := range n {
		if i > 0 && !lifecycle.Sleep(ctx, lifecycle.Backoff(i)) {
			break
		}
		if err = call(); !isLocked(err) {
			break
		}
	}
	return err
}

// halves parts rows of which one is refused.
func halves[T any](rows []T) [][]T { return [][]T{rows[:len(rows)/2], rows[len(rows)/2:]} }

// eachAlone sends each row in a statement of its own.
func eachAlone[T any](rows []T, send func([]T) (again []T)) (again []T) {
	for i := range rows {
		again = append(again, send([]T{rows[i]})...)
	}
	return again
}

func idsOf[T any](all []T, id func(T) int64) []int64 {
	ids := make([]int64, len(all))
	for i, v := range all {
		ids[i] = id(v)
	}
	return ids
}

// readBack returns the rows as they are in the table. What a failure is called in the log is op.
func (t *table) readBack(ctx context.Context, op string, ids []int64) (map[int64]row.State, error) {
	states, err := t.store.States(ctx, ids)
	if err != nil {
		t.Failed(op, err)
	}
	return statesByID(states), err
}

// statesByID orders what a store says of rows by their ids.
func statesByID(states []row.State) map[int64]row.State {
	byID := make(map[int64]row.State, len(states))
	for _, s := range states {
		byID[s.ID] = s
	}
	return byID
}

// splitLocked asks which of the rows other transactions hold. With an error all rows count as free.
func splitLocked[T any](ctx context.Context, t *table, rows []T, id func(T) int64) (held, free []T, err error) {
	found, err := t.store.Locked(ctx, idsOf(rows, id))
	if err != nil {
		t.Failed("looking for locked rows", err)
		return nil, rows, err
	}
	locked := make(map[int64]bool, len(found))
	for _, f := range found {
		locked[f] = true
	}
	held, free = batch.Split(rows, func(r T) bool { return locked[id(r)] })
	return held, free, nil
}

// lockBackoff is how long a row is left out that has met a lock so often. It grows, so that one open transaction costs
// little.
func lockBackoff(tries int) time.Duration {
	return min(50*time.Millisecond<<min(tries, 8), 5*time.Second)
}

// locks remembers when a locked row was met last.
type locks struct{ met atomic.Pointer[time.Time] }

func (l *locks) note() { l.met.Store(new(time.Now())) }

// noteIn notes the lock that a statement has met, and reports whether it has met one.
func (l *locks) noteIn(err error) bool {
	if !isLocked(err) {
		return false
	}
	l.note()
	return true
}

func (l *locks) lately() bool {
	met := l.met.Load()
	return met != nil && time.Since(*met) < lockCheckFor
}

// errHeld is what the statement would end with, after a wait.
func errHeld(op string) error {
	return &row.Error{Class: row.ClassLocked, Op: op, Err: errors.New("another transaction holds the row")}
}

// update writes changes of operators, of holders of lease tokens, and those at the end of their leases. They share
// connections with the results, and a wait for a lock takes one of these for a second. So for lockCheckFor after a lock
// was met they ask for locks first.
func (t *table) update(ctx context.Context, changes []row.Change) (applied int, err error) {
	err = askingFirst(ctx, t, "settle tasks", changes, func(c row.Change) int64 { return c.ID }, func() (err error) {
		applied, err = t.store.Update(ctx, nil, changes)
		return err
	})
	return applied, err
}

// extend moves leases for their holders. They share two connections with the renewals of everything that runs here, so
// no more than one of them waits for a lock.
func (t *table) extend(ctx context.Context, leases []row.Lease) (states []row.State, err error) {
	select {
	case t.extending <- struct{}{}:
		defer func() { <-t.extending }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	err = askingFirst(ctx, t, "renew leases", leases, func(l row.Lease) int64 { return l.ID }, func() (err error) {
		states, err = t.store.Renew(ctx, leases)
		return err
	})
	return states, err
}

// askingFirst writes unless a row is locked. It asks for locks only within lockCheckFor after one was met.
func askingFirst[T any](
	ctx context.Context, t *table, op string, rows []T, id func(T) int64, write func() error,
) error {
	if t.locks.lately() {
		if held, _, _ := splitLocked(ctx, t, rows, id); len(held) > 0 {
			return errHeld(op)
		}
	}
	err := write()
	t.locks.noteIn(err)
	return err
}

// adopt gives rows without a due time the one that they lack. A row that another transaction holds is left for the next
// time, and holds up no other.
func (t *table) adopt(ctx context.Context, refs []row.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	err := t.store.Adopt(ctx, refs)
	if !isLocked(err) {
		return err
	}
	held, free, err := splitLocked(ctx, t, refs, func(ref row.Ref) int64 { return ref.ID })
	if err != nil || len(held) == 0 || len(free) == 0 {
		return err
	}
	return t.store.Adopt(ctx, free)
}

// due reads rows of the window, and notes that this works.
func (t *table) due(ctx context.Context, w row.Window) ([]row.Due, error) {
	begun := time.Now()
	page, err := t.store.Due(ctx, w)
	if err == nil {
		t.health.mu.Lock()
		defer t.health.mu.Unlock()
		t.health.looked = begun
	}
	return page, err
}

// health knows what the database lets this process do. A pop that gets nothing has to tell whether nothing is due, or
// whether that cannot be read or claimed. A full disk may take heartbeats and refuse saves.
type health struct {
	mu     sync.Mutex // guards what follows; innermost
	looked time.Time  // when the last read of due rows began that was answered
	claim  failure
	save   failure

	claimsFail hindrance // claims fail for the database's fault

	mend string    // ends that rows get ids beyond the last one
	met  time.Time // when such rows were met
}

// failure is that of the last statement of a kind, without an error when that did not fail.
type failure struct {
	err error
	at  time.Time
}

// lately returns the error while it counts.
func (f failure) lately() error {
	if time.Since(f.at) > failureCounts {
		return nil
	}
	return f.err
}

const (
	// lookCounts is how old a read of due rows may be that tells a pop that nothing is due. Polls are more frequent.
	lookCounts = time.Second
	// failureCounts is how long a failure counts when no other statement of its kind follows. A statement that failed
	// is repeated sooner.
	failureCounts = 5 * time.Second
	// warnedFor is how long the warning of rows with ids beyond the last one stays. Its cause goes on, but such rows
	// may be rare.
	warnedFor = 5 * time.Minute
)

var errSilent = errors.New("the database did not answer in time")

// sees reports whether what was due a moment ago is known here.
func (h *health) sees() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.looked) < lookCounts
}

// claimed notes how a claim ended that was sent at a moment, or that it takes long.
func (h *health) claimed(err error, sent time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claim = failure{fault(err), time.Now()}
	if h.claim.err != nil {
		h.claimsFail.begin(sent)
	} else {
		h.claimsFail.end(h.claim.at)
	}
}

// saved notes how a save ended.
func (h *health) saved(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.save = failure{fault(err), time.Now()}
}

// warning returns the statement that ends that rows get ids beyond the last one, or "" when none were met lately.
func (h *health) warning() (mend string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.met) > warnedFor {
		return ""
	}
	return h.mend
}

// misnumbered notes that rows had ids beyond the last one, and the statement that ends that.
func (h *health) misnumbered(mend string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mend, h.met = mend, time.Now()
}

// failing returns why tasks could not be claimed, or not be saved, a moment ago.
func (h *health) failing() (claim, save error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.claim.lately(), h.save.lately()
}

// span is a time between two moments. The zero time as its begin is the beginning.
type span struct{ from, to time.Time }

func (s span) overlap(other span) time.Duration {
	from, to := s.from, s.to
	if other.from.After(from) {
		from = other.from
	}
	if other.to.Before(to) {
		to = other.to
	}
	return max(to.Sub(from), 0)
}

// hindrance remembers the last span in which something kept tasks from starting. The zero value is one that never was.
type hindrance struct {
	mu   sync.Mutex // no other lock is taken while it is held
	span span       // goes on while it has no end
}

// begin notes that it is there since a moment.
func (h *hindrance) begin(since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.span.from.IsZero() || !h.span.to.IsZero() {
		h.span = span{from: since}
	}
}

// end notes that it is over.
func (h *hindrance) end(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.span.from.IsZero() && h.span.to.IsZero() {
		h.span.to = at
	}
}

// last returns the last span, up to now when it goes on.
func (h *hindrance) last(now time.Time) span {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.span
	if !s.from.IsZero() && s.to.IsZero() {
		s.to = now
	}
	return s
}

// lockWait is longer than a statement waits for a locked row.
const lockWait = 2500 * time.Millisecond

// releaseOf is the change that gives a claimed row back as it was before the claim.
func releaseOf(r *row.Row, due row.Time) row.Change {
	c := changeOf(r, row.Pending)
	c.Due = due
	c.Attempt = max(r.Attempt-1, 0)
	return c
}

// changeOf is a transition that keeps everything of the row but its status. It is that of an executing row; the caller
// sets From for another one.
func changeOf(r *row.Row, to row.Status) row.Change {
	return row.Change{
		ID: r.ID, Version: r.Version, From: row.Executing, To: to, Due: r.Due, Attempt: r.Attempt,
		CrashCount: r.CrashCount, Execution: r.Execution, Finish: r.Finish, ErrorStack: r.ErrorStack, Errors: r.Errors,
		Executor: r.Executor, SameExecutor: true,
	}
}

// afterChange is what the run queue has to know of a row after the change.
func afterChange(r *row.Row, c row.Change) row.Due {
	return row.Due{
		ID: r.ID, Version: r.Version + 1, Tag: r.Tag, Due: c.Due, Priority: r.Priority, CrashCount: c.CrashCount,
	}
}

func distinct[T cmp.Ordered](all []T) []T {
	slices.Sort(all)
	return slices.Compact(all)
}

// rescuePage is how many leases that are over one statement ends.
const rescuePage = 200

// lockCheckFor is for how long after a lock was met writers ask for locks first.
const lockCheckFor = time.Minute

// signal leaves a message in a channel of capacity one; a message that is already there says the same.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
