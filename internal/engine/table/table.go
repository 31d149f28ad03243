// Package table is the store with the steps that all writers of the engine share, and the bounds of the database's
// clock.
//
//	clock.go    the bounds of the database's time, and outages
//	table.go    the store, what it lets this process do, which locks were met, and the changes of a row
//	refusal.go  what is locked, what is refused, what a lost statement has done
//	ranges.go   which tags and keys may wait because a range of an index is locked
//	apart.go    sends their rows apart from others
//	bounded.go  the store as a pass sees it, with a timeout for each call
package table

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// Table is the store with the steps that all writers share.
//
// A statement writes many rows, and one of them may spoil it: another transaction holds it, or the database refuses it
// for what it holds. Or the reply is lost. Then a writer asks which rows are locked, finds the refused one by halves,
// or reads back. The package has these steps, and classifies the errors. A [Policy] says what a writer does in each
// case.
type Table struct {
	*Clock
	Store     store.Store
	Health    health
	Locks     locks
	Ranges    ranges
	extending chan struct{} // holds one while a lease is extended for its holder
}

// New makes the table of a store, whose time the clock tells.
func New(c *Clock, s store.Store) *Table {
	return &Table{Clock: c, Store: s, Ranges: newRanges(), extending: make(chan struct{}, 1)}
}

// After returns the rows that the writer sends again after the statement has failed with err.
func (p Policy[T]) After(rows []T, err error) (again []T) {
	next := p.Lost
	switch row.ClassOf(err) {
	case row.ClassLocked:
		next = p.Locked
	case row.ClassCaller, row.ClassDuplicate:
		next = p.Refused
	case row.ClassNotApplied:
		next = p.Unapplied
	case row.ClassOperator:
		next = p.Operator
	}
	if next == nil {
		return rows
	}
	return next(rows)
}

// ReadBack returns the rows as they are in the table. The log names a failure by op.
func (t *Table) ReadBack(ctx context.Context, op string, ids []int64) (map[int64]row.State, error) {
	states, err := t.Store.States(ctx, ids)
	if err != nil {
		t.Failed(op, err)
	}
	return row.StatesByID(states), err
}

// Update writes changes of operators, of holders of lease tokens, and those at the end of their leases. They share
// connections with the results, and a wait for a lock takes one of these for a second. So for [LockCheckFor] after a
// lock was met they ask for locks first.
func (t *Table) Update(ctx context.Context, changes []row.Change) (applied int, err error) {
	id := func(c row.Change) int64 { return c.ID }
	err = askingFirst(ctx, t, "settle tasks", changes, id, func(ctx context.Context) (err error) {
		applied, err = t.Store.Update(ctx, nil, changes)
		return err
	})
	return applied, err
}

// Extend moves leases for their holders. They share two connections with the renewals of everything that runs here, so
// no more than one of them waits for a lock.
func (t *Table) Extend(ctx context.Context, leases []row.Lease) (states []row.State, err error) {
	select {
	case t.extending <- struct{}{}:
		defer func() { <-t.extending }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	id := func(l row.Lease) int64 { return l.ID }
	err = askingFirst(ctx, t, "renew leases", leases, id, func(ctx context.Context) (err error) {
		states, err = t.Store.Renew(ctx, leases)
		return err
	})
	return states, err
}

// Adopt gives rows without a due time the one that they lack. A row that another transaction holds is left for the next
// time, and holds up no other.
func (t *Table) Adopt(ctx context.Context, refs []row.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	err := t.Store.Adopt(ctx, refs)
	if !IsLocked(err) {
		return err
	}
	held, free, err := SplitLocked(ctx, t, refs, func(ref row.Ref) int64 { return ref.ID })
	if err != nil || len(held) == 0 || len(free) == 0 {
		return err
	}
	return t.Store.Adopt(ctx, free)
}

// Due reads rows of the window, and notes that this works.
func (t *Table) Due(ctx context.Context, w row.Window) ([]row.Due, error) {
	begun := time.Now()
	page, err := t.Store.Due(ctx, w)
	if err == nil {
		t.Health.mu.Lock()
		defer t.Health.mu.Unlock()
		t.Health.looked = begun
	}
	return page, err
}

// Fault returns err unless it is about rows, such as another transaction's lock: then the database has answered.
func Fault(err error) error {
	if row.IsOneOf(err, row.ClassLocked, row.ClassCaller, row.ClassDuplicate) {
		return nil
	}
	return err
}

// health knows what the database lets this process do. A pop that gets nothing has to tell whether nothing is due, or
// whether that cannot be read or claimed. A full disk may take heartbeats and refuse saves.
type health struct {
	mu     sync.Mutex // guards what follows; innermost
	looked time.Time  // when the last read of due rows began that was answered
	claim  failure
	save   failure

	ClaimsFail hindrance // claims fail for the database's fault

	slow int // how many claims in a row took long

	mend string    // ends that rows get ids beyond the last one
	met  time.Time // when such rows were met
}

// failure is the error of the last statement of a kind, nil when it succeeded.
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
	// slowClaims claims in a row that took slowClaim wait for the disk.
	slowClaim  = 250 * time.Millisecond
	slowClaims = 3
)

// ErrSilent is returned when the database did not answer in time.
var ErrSilent = errors.New("the database did not answer in time")

// Sees reports whether what was due a moment ago is known here.
func (h *health) Sees() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.looked) < lookCounts
}

// Claimed notes how a claim ended that was sent at a moment, or that it takes long.
func (h *health) Claimed(err error, sent time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claim = failure{Fault(err), time.Now()}
	if h.claim.err != nil {
		h.ClaimsFail.begin(sent)
	} else {
		h.ClaimsFail.end(h.claim.at)
	}
	switch took := h.claim.at.Sub(sent); {
	case err == nil && took < slowClaim:
		h.slow = 0
	case err == nil:
		h.slow++
	}
}

// isSlow reports whether the commits of this process take long now.
func (h *health) isSlow() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.slow >= slowClaims
}

// Saved notes how a save ended.
func (h *health) Saved(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.save = failure{Fault(err), time.Now()}
}

// Warning returns the statement that ends that rows get ids beyond the last one, or "" when none were met lately.
func (h *health) Warning() (mend string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.met) > warnedFor {
		return ""
	}
	return h.mend
}

// Misnumbered notes that rows had ids beyond the last one, and the statement that ends that.
func (h *health) Misnumbered(mend string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mend, h.met = mend, time.Now()
}

// Failing returns why tasks could not be claimed, or not be saved, a moment ago.
func (h *health) Failing() (claim, save error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.claim.lately(), h.save.lately()
}

// LockCheckFor is for how long after a lock was met writers ask for locks first.
const LockCheckFor = time.Minute

// locks remembers when a locked row was met last.
type locks struct{ met atomic.Pointer[time.Time] }

// Note notes that a locked row was met.
func (l *locks) Note() { l.met.Store(new(time.Now())) }

// NoteIn notes the lock that a statement has met, and reports whether it has met one.
func (l *locks) NoteIn(err error) bool {
	if !IsLocked(err) {
		return false
	}
	l.Note()
	return true
}

// Lately reports whether a locked row was met within [LockCheckFor].
func (l *locks) Lately() bool {
	met := l.met.Load()
	return met != nil && time.Since(*met) < LockCheckFor
}

// Span is a time between two moments. The zero time as its begin is the beginning.
type Span struct{ From, To time.Time }

// Overlap returns how long both spans last together.
func (s Span) Overlap(other Span) time.Duration {
	from, to := s.From, s.To
	if other.From.After(from) {
		from = other.From
	}
	if other.To.Before(to) {
		to = other.To
	}
	return max(to.Sub(from), 0)
}

// hindrance remembers the last span in which something kept tasks from starting. The zero value says that nothing ever
// did.
type hindrance struct {
	mu   sync.Mutex // no other lock is taken while it is held
	span Span       // goes on while it has no end
}

// begin notes that it is there since a moment.
func (h *hindrance) begin(since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.span.From.IsZero() || !h.span.To.IsZero() {
		h.span = Span{From: since}
	}
}

// end notes that it is over.
func (h *hindrance) end(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.span.From.IsZero() && h.span.To.IsZero() {
		h.span.To = at
	}
}

// Last returns the last span, up to now when it goes on.
func (h *hindrance) Last(now time.Time) Span {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.span
	if !s.From.IsZero() && s.To.IsZero() {
		s.To = now
	}
	return s
}

// ReleaseOf is the change that gives a claimed row back as it was before the claim.
func ReleaseOf(r *row.Row, due row.Time) row.Change {
	c := ChangeOf(r, row.Pending)
	c.Due = due
	c.Attempt = max(r.Attempt-1, 0)
	return c
}

// ChangeOf is a transition that keeps everything of the row but its status. It expects an executing row; the caller
// sets From for another status.
func ChangeOf(r *row.Row, to row.Status) row.Change {
	return row.Change{
		ID: r.ID, Version: r.Version, From: row.Executing, To: to, Due: r.Due, Attempt: r.Attempt,
		CrashCount: r.CrashCount, Execution: r.Execution, ErrorStack: r.ErrorStack, Errors: r.Errors,
		Executor: r.Executor, SameExecutor: true,
	}
}

// AfterChange is what the run queue has to know of a row after the change.
func AfterChange(r *row.Row, c row.Change) row.Due {
	return row.Due{
		ID: r.ID, Version: r.Version + 1, Tag: r.Tag, Due: c.Due, Priority: r.Priority, CrashCount: c.CrashCount,
	}
}

// Signal leaves a message in a channel of capacity one; a message that is already there says the same.
func Signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
