package run

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
)

// Attempt is one claimed row on its way through a processor.
type Attempt struct {
	Item   *runqueue.Item
	Row    row.Row
	Due    row.Time  // as the claim found it
	sent   time.Time // when the claim was sent; the lease began no earlier
	forPop bool
	unread bool     // the row has no body, see [row.Claimed]: it is released
	stamp  row.Time // the start that this claim wrote; zero when the row had one already. row.Execution lacks it
	began  row.Time // when its processor was called; zero for a pop

	mu       sync.Mutex // the innermost lock: no other is taken while it is held
	progress progress
	lease    leaseState
	decider  decider
	deadline time.Time // the lease holds for certain until then
	renewAt  time.Time
	quietAt  time.Time // the lease is not renewed from then on, at the end of timeout and grace; zero for never
	end      context.CancelCauseFunc
	started  row.Time // when it was first handed to a processor, or to a receiver of one that forwards
	late     delaytask.LateReason
	renewal  chan struct{} // closed when the renewal in flight is answered; nil for none
	settling time.Time     // when the result in flight was sent; zero for none
}

// progress is how far the processor of an attempt has come. It only goes forward.
type progress uint8

const (
	claimed     progress = iota // not called
	running                     // called
	interrupted                 // its context was ended because of the lease
	abandoned                   // it has ignored that, and its slot was given to others
	disowned                    // its row was let go besides, and may run here once more
	returned
)

// leaseState is what this process knows of the lease.
type leaseState uint8

const (
	leaseHeld      leaseState = iota
	leaseLost                 // it is over, or another process has the row
	leaseCancelled            // the task was cancelled
	leaseAnswered             // a holder of the lease token has ended the task
)

// decider is what decides about the outcome.
type decider uint8

const (
	byProcessor   decider = iota // what the processor returns
	byTransaction                // CompleteTx was called: only the row tells
	byHolder                     // the processor has returned HandOver: the holder of the lease token
)

// newAttempt returns the attempt of a row that a claim has won. The claim was sent at the local time sent, and the
// database's time of its reply is met.
func newAttempt(it *runqueue.Item, r row.Row, met row.Time, sent time.Time) *Attempt {
	a := &Attempt{
		Item: it, Due: max(it.Due, stillToCome(&r, met)), sent: sent, forPop: r.Executor.Popped(),
		deadline: sent.Add(r.TTR), renewAt: sent.Add(r.TTR / 3),
	}
	if r.FirstStart() {
		a.stamp, r.Execution = r.Execution, 0
	}
	a.Row = r
	return a
}

// stillToCome returns the due time of a claimed row that is after met, or zero. The lease counts from the due time. The
// run queue may know an earlier one of the same version, because an operator's SQL may put rows off without counting
// the version up.
func stillToCome(r *row.Row, met row.Time) row.Time {
	if due := r.Due.Add(-r.TTR); due > met {
		return due
	}
	return 0
}

// A statement holds the locks of its rows until its commit is on disk. On a slow disk that takes longer than another
// statement waits for a lock. So a renewal and the result of an attempt wait for each other, for ownWait: what has no
// answer by then may have none at all.
func (a *Attempt) ownWait() time.Duration { return min(a.Row.TTR/4, time.Second) }

// beginRenewal reports whether the lease may be renewed now. Then endRenewal is to be called when that is answered.
func (a *Attempt) beginRenewal() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.renewal != nil || !a.settling.IsZero() && time.Since(a.settling) < a.ownWait() {
		return false
	}
	a.renewal = make(chan struct{})
	return true
}

func (a *Attempt) endRenewal() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.renewal)
	a.renewal = nil
}

// beginSettling notes that the result is sent now. endSettling is to be called when that is answered.
func (a *Attempt) beginSettling() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settling = time.Now()
}

func (a *Attempt) endSettling() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settling = time.Time{}
}

// renewalInFlight returns what is closed when the lease is renewed, or nil.
func (a *Attempt) renewalInFlight() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.renewal
}

func (a *Attempt) id() int64 { return a.Row.ID }

func (a *Attempt) tag() string { return a.Row.Tag }

// call notes that the processor is called. The context that end ends is ended at once when the lease is over.
func (a *Attempt) call(end context.CancelCauseFunc, quietAt time.Time, started row.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.progress, a.end, a.quietAt = running, end, quietAt
	if !started.IsZero() {
		a.started = started
	}
	if a.lease != leaseHeld {
		a.progress = interrupted
		end(delaytask.ErrLeaseLost)
	}
}

// start notes that the attempt was handed to a receiver that can run it. It reports whether this is the first such call
// before the processor has returned.
func (a *Attempt) start(now row.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.inside() || !a.started.IsZero() {
		return false
	}
	a.started = now
	return true
}

// HandedOut notes that the task was given to the caller of a pop, and why that was late.
func (a *Attempt) HandedOut(now row.Time, late delaytask.LateReason) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.started, a.late = now, late
}

// PassedOn returns the attempt as the holder of the lease token has it. The row and why it was late are as the
// hand-over has stored them.
func (a *Attempt) PassedOn(r row.Row, late delaytask.LateReason) *Attempt {
	return &Attempt{Item: a.Item, Row: r, Due: a.Due, started: a.StartedAt(), late: late}
}

// Held returns the attempt of a popped task as it is kept until the end of its lease, without the body.
func (a *Attempt) Held() *Attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	held := &Attempt{
		Item: a.Item, Row: a.Row, Due: a.Due, sent: a.sent, forPop: a.forPop, stamp: a.stamp, began: a.began,
		deadline: a.deadline, renewAt: a.renewAt, started: a.started, late: a.late,
	}
	held.Row.Body = nil
	return held
}

// StartedAt returns when the task was first handed to a processor, a receiver or the caller of a pop.
func (a *Attempt) StartedAt() row.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.started
}

// inside reports whether the processor was called and has not returned. The caller locks.
func (a *Attempt) inside() bool { return a.progress > claimed && a.progress < returned }

// completeInTx notes that CompleteTx was called: the caller's transaction holds the row's lock from here on.
func (a *Attempt) completeInTx() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decider = byTransaction
}

// HandOver notes that the processor has passed the task on to the holder of its lease token.
func (a *Attempt) HandOver() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decider = byHolder
}

// Answer notes that a holder of the lease token has ended the task.
func (a *Attempt) Answer() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lease = leaseAnswered
}

// IsAnswered reports whether a holder of the lease token has ended the task.
func (a *Attempt) IsAnswered() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lease == leaseAnswered
}

// lose notes that the lease is over, and ends the context of the processor. It reports whether the processor has to
// return now. An attempt whose processor was not called is released instead. The fence refuses that when another
// process has the row.
func (a *Attempt) lose(cause error) (interrupts bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.lease != leaseHeld:
	case errors.Is(cause, delaytask.ErrCancelled):
		a.lease = leaseCancelled
	default:
		a.lease = leaseLost
	}
	if a.progress != running {
		return false
	}
	a.progress = interrupted
	a.end(cause)
	return true
}

// abandon gives up waiting for the processor, and reports whether it has not returned.
func (a *Attempt) abandon() bool { return a.advance(interrupted, abandoned) }

// disown lets go of the row of an abandoned processor, and reports whether it is one.
func (a *Attempt) disown() bool { return a.advance(abandoned, disowned) }

// advance notes how far the processor has come, if it was as far as expected.
func (a *Attempt) advance(from, to progress) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.progress != from {
		return false
	}
	a.progress = to
	return true
}

// finish notes that the processor has returned. It returns what decides, and whether the row was let go before.
func (a *Attempt) finish() (by decider, wasDisowned bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	wasDisowned = a.progress == disowned
	a.progress = returned
	return a.decider, wasDisowned
}

func (a *Attempt) state() (progress, leaseState, decider) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.progress, a.lease, a.decider
}

// isOver reports whether the lease may have ended before the task was started. A lost lease stays lost when a renewal
// is answered later.
func (a *Attempt) isOver() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lease != leaseHeld || time.Now().After(a.deadline)
}

// hasRun reports whether the processor was called.
func (a *Attempt) hasRun() bool {
	progress, _, _ := a.state()
	return progress != claimed
}

// renewable reports whether the lease is to be renewed now. It is not while a caller's transaction holds the row, after
// a hand-over, and when timeout and grace have passed.
func (a *Attempt) renewable(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.decider == byProcessor && a.lease == leaseHeld && !now.Before(a.renewAt) &&
		(a.quietAt.IsZero() || now.Before(a.quietAt))
}

// expired reports whether the lease is over as far as this process knows. It is false after a hand-over and after
// CompleteTx, because this process does not renew the lease then.
func (a *Attempt) expired(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.decider == byProcessor && now.After(a.deadline)
}

// renewed notes that the lease was renewed by a statement that was sent at sent.
func (a *Attempt) renewed(sent time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deadline, a.renewAt = sent.Add(a.Row.TTR), sent.Add(a.Row.TTR/3)
}

// renewLater puts the next renewal off for a while.
func (a *Attempt) renewLater() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.renewAt = time.Now().Add(a.Row.TTR / 6)
}

// noteLate notes why the task was late when it started.
func (a *Attempt) noteLate(why delaytask.LateReason) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.late = why
}

// FirstStart is what execution_time and late_reason hold: when the task was first handed to a processor or receiver
// that could run it, or zero, and why that was late.
func (a *Attempt) FirstStart() (row.Time, delaytask.LateReason) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return cmp.Or(a.Row.Execution, a.started), a.late
}

// misdated returns the start when it is over 10 ms after the one that the claim has written, otherwise zero. It also
// returns why the start was late.
func (a *Attempt) misdated() (row.Time, delaytask.LateReason) {
	start, late := a.FirstStart()
	if !a.stamp.IsZero() && start.Sub(a.stamp) > 10*time.Millisecond {
		return start, late
	}
	return 0, late
}

// expected is the moment that lateness counts from. It is the expected time until the task was first handed to a
// processor, however often that was tried. Later attempts count from their own due time. So does a task that an
// operator has put back, which keeps its error.
func (a *Attempt) expected() row.Time {
	if !a.Row.Execution.IsZero() || a.Row.Attempt == 1 && a.Row.ErrorStack != "" {
		return a.Due
	}
	return a.Row.Expected
}

// Attempts holds the attempts of all rows that this process has claimed and whose results are not stored.
type Attempts struct {
	mu   sync.Mutex // no other lock is taken while it is held
	byID map[int64]*Attempt
	gone chan struct{} // one was removed

	hanging hanging
}

func newAttempts() *Attempts {
	return &Attempts{byID: map[int64]*Attempt{}, gone: make(chan struct{}, 1)}
}

func (all *Attempts) add(a *Attempt) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.byID[a.Row.ID] = a
}

// Remove takes an attempt out whose result is stored or refused.
func (all *Attempts) Remove(a *Attempt) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.byID[a.Row.ID] == a {
		delete(all.byID, a.Row.ID)
	}
	table.Signal(all.gone)
}

func (all *Attempts) list() []*Attempt {
	all.mu.Lock()
	defer all.mu.Unlock()
	return slices.Collect(maps.Values(all.byID))
}

// Len returns how many attempts there are.
func (all *Attempts) Len() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return len(all.byID)
}

// Get returns the attempt of a row, or nil.
func (all *Attempts) Get(id int64) *Attempt {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.byID[id]
}

// OfRow returns what is known here of the attempt of an executing row. The node that still runs its processor knows
// all. For another node it began with the last change of its row.
func (all *Attempts) OfRow(r *row.Row, now row.Time) *Attempt {
	known := &Attempt{Row: *r, Due: r.Expected, started: min(max(r.Updated, r.Expected), now)}
	if r.FirstStart() {
		known.started = r.Execution
	}
	if a := all.Get(r.ID); a != nil && a.Row.Version == r.Version {
		a.mu.Lock()
		defer a.mu.Unlock()
		known.Due, known.started, known.Row.Execution = a.Due, cmp.Or(a.started, known.started), a.Row.Execution
	}
	return known
}
