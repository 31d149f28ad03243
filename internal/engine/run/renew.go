package run

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/internal/store"
)

// renewer keeps the leases of what this process has claimed, many in one statement, and ends the context of a task
// whose lease is lost. Between renewals it reads the versions, so that it notices a cancel or a lost lease within
// seconds whatever the TTR.
type renewer struct {
	*deps
	attempts    *Attempts
	runner      *runner
	short, long renewals
	patience    atomic.Int64 // twice what the last renewal took or was given, in nanoseconds
}

// renewals renew either short leases or long ones. Each kind has its own statements. Short leases leave no time to wait
// for a statement of long ones, and would leave these no time to wait for a lock.
type renewals struct {
	quiet chan struct{} // holds one while leases are renewed
	wake  chan struct{} // a lease was due for renewal when its claim was answered
	askAt time.Time     // no lock check is made before; of the loop alone
	apart *table.Turns
}

func newRenewer(r *runner) *renewer {
	kind := func() renewals {
		return renewals{
			quiet: make(chan struct{}, 1), wake: make(chan struct{}, 1), apart: table.NewTurns(renewRows),
		}
	}
	return &renewer{deps: r.deps, attempts: r.Attempts, runner: r, short: kind(), long: kind()}
}

// of returns the renewals that a row belongs to.
func (r *renewer) of(a *Attempt) *renewals {
	if a.renewTimeout(table.LockWait) < table.LockWait {
		return &r.short
	}
	return &r.long
}

// await returns when the statements in flight have ended.
func (r *renewer) await() {
	for _, kind := range []*renewals{&r.short, &r.long} {
		kind.quiet <- struct{}{}
		<-kind.quiet
	}
}

const watchEvery = 2 * time.Second // between two looks at the versions of what runs

const renewTick = 250 * time.Millisecond // a quarter of the shortest TTR

// loop renews the leases of one kind. The deadlines have a loop of their own, which must not wait for a database that
// hangs.
func (r *renewer) loop(ctx context.Context, kind *renewals) {
	tick := time.NewTicker(renewTick)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-kind.wake:
		case <-ctx.Done():
			return
		}
		kind.quiet <- struct{}{}
		now := time.Now()
		due, _ := batch.Split(r.attempts.list(), func(a *Attempt) bool { return r.of(a) == kind && a.renewable(now) })
		r.renew(kind, due)
		<-kind.quiet
	}
}

// look compares what is claimed here with the table, every watchEvery.
func (r *renewer) look(ctx context.Context) {
	for lifecycle.Sleep(ctx, watchEvery) {
		if held := r.attempts.list(); len(held) > 0 {
			r.lookAt(held)
		}
	}
}

// deadlines ends attempts whose lease is over as far as this process knows, and releases claimed rows that have got no
// slot.
func (r *renewer) deadlines(ctx context.Context) {
	for lifecycle.Sleep(ctx, renewTick) {
		now := time.Now()
		for _, a := range r.attempts.list() {
			if a.expired(now) {
				r.lose(a, delaytask.ErrLeaseLost)
			}
		}
		isOver := func(it *runqueue.Item) bool { return attemptOf(it).isOver() }
		if late := r.runqueue.Slots.Expel(now.Add(-runqueue.SlotWait), isOver); len(late) > 0 {
			r.Go(func() { r.runner.unclaim(late) }) // a full queue of results would hold up the deadlines
		}
	}
}

// renewTimeout is how long a renewal of the row waits for its answer. It leaves time for another try before the lease
// ends. As far as the lease allows, it also lets a slow server answer, or one that tells of a lock: a statement that is
// given up earlier goes on holding its rows against the next try.
func (a *Attempt) renewTimeout(answer time.Duration) time.Duration {
	return max(a.Row.TTR/4, min(a.Row.TTR/2, answer))
}

func (r *renewer) timeout(due []*Attempt) time.Duration {
	shortest, answer := r.cfg.CallTimeout, max(table.LockWait, time.Duration(r.patience.Load()))
	for _, a := range due {
		shortest = min(shortest, a.renewTimeout(answer))
	}
	return shortest
}

// renew moves the leases of rows of one kind. Where a statement may not wait for a lock, or a lock was met lately, it
// checks for locks first. It waits little for that check, and makes none for askPause after one without an answer: a
// slow database needs the time for the renewal.
func (r *renewer) renew(kind *renewals, due []*Attempt) {
	timeout := r.timeout(due)
	if now := time.Now(); (timeout < table.LockWait || r.Locks.Lately()) && !now.Before(kind.askAt) {
		var err error
		if due, err = r.unlocked(due, timeout/4); err != nil {
			kind.askAt = now.Add(askPause)
		}
	}
	r.prolong(kind, "", r.sendApart(kind, due))
}

// renewRows bounds the leases of a tag that are renewed apart from others.
const renewRows = 500

// sendApart renews leases of tags that travel apart from others, and returns the rest.
func (r *renewer) sendApart(kind *renewals, due []*Attempt) (rest []*Attempt) {
	apart, rest := table.SplitApart(r.Table, due, (*Attempt).tag)
	for tag, due := range apart {
		rows, _ := kind.apart.Begin(tag, len(due)) // the next tick finds the others
		if rows == 0 {
			continue
		}
		r.Go(func() {
			defer kind.apart.End(tag)
			r.prolong(kind, tag, due[:rows])
		})
	}
	return rest
}

const askPause = 10 * time.Second

// prolong sends the leases. A lease that a holder of the lease token has prolonged stays so. The deadline of an attempt
// moves only when the answer confirms it. When the statement meets a lock, the rows that are free are sent again. apart
// is the tag of all rows when they travel apart from others.
func (r *renewer) prolong(kind *renewals, apart string, due []*Attempt) {
	due, _ = batch.Split(due, (*Attempt).beginRenewal)
	if len(due) == 0 {
		return
	}
	leases := make([]row.Lease, len(due))
	for i, a := range due {
		leases[i] = row.Lease{Ref: row.Ref{ID: a.Row.ID, Version: a.Row.Version}, TTR: a.Row.TTR, Least: true}
		leases[i].Execution, leases[i].Late = a.misdated()
	}
	timeout := r.timeout(due)
	if apart != "" { // the server has to say whether it waits
		timeout = max(timeout, table.LockWait)
	}
	ctx, cancel := context.WithTimeout(r.Life, timeout)
	defer cancel()
	if apart != "" {
		ctx = store.Apart(ctx)
	}
	sent := time.Now()
	states, err := r.Store.Renew(ctx, leases)
	r.patience.Store(int64(min(2*time.Since(sent), r.cfg.CallTimeout)))
	for _, a := range due {
		a.endRenewal()
	}
	r.Metrics.Batch("renew", len(due))
	if err != nil {
		r.Failed("renewing leases", err)
		// The server has told of a lock before the timeout, unless that was shorter.
		isSlow := ctx.Err() != nil && timeout >= table.LockWait
		if locked := r.Locks.NoteIn(err); !locked && (ctx.Err() == nil || isSlow) {
			return
		}
		rest, _ := r.unlocked(due, timeout)
		switch {
		case len(rest) < len(due):
			r.Locks.Note()
			r.prolong(kind, apart, rest)
		case apart == "": // a range may be locked
			table.MayWait(r.Table, due, (*Attempt).tag)
			r.sendApart(kind, due)
		default:
			if table.IsLocked(err) {
				r.TellRange(apart, sent)
			}
			kind.apart.Locked(apart, len(due))
		}
		return
	}
	if apart != "" {
		kind.apart.Passed(apart)
	}
	r.compare(due, row.StatesByID(states), func(a *Attempt) { a.renewed(sent) })
}

// unlocked returns the rows that no other transaction holds, or all of them with an error. It puts the others off for a
// while, because each try with one of them makes the rest of the statement wait for its lock.
func (r *renewer) unlocked(due []*Attempt, timeout time.Duration) (rest []*Attempt, err error) {
	if len(due) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(r.Life, timeout)
	defer cancel()
	locked, rest, err := table.SplitLocked(ctx, r.Table, due, (*Attempt).id)
	for _, a := range locked {
		a.renewLater()
	}
	return rest, err
}

// lookAt compares attempts with the table.
func (r *renewer) lookAt(held []*Attempt) {
	ctx, cancel := context.WithTimeout(r.Life, watchEvery)
	defer cancel()
	if states, err := r.ReadBack(ctx, "looking at running tasks", row.IDsOf(held, (*Attempt).id)); err == nil {
		r.compare(held, states, func(*Attempt) {})
	}
}

// compare ends the attempts whose rows this process has lost, and calls confirmed for the rest.
func (r *renewer) compare(held []*Attempt, states map[int64]row.State, confirmed func(*Attempt)) {
	for _, a := range held {
		s, exists := states[a.Row.ID]
		if exists && s.Version == a.Row.Version && s.Status == row.Executing {
			confirmed(a)
			continue
		}
		if a.isCompleted(s) {
			r.runqueue.Yield(a.Item, runqueue.Turn) // its processor may go on after its commit
			continue
		}
		cause := delaytask.ErrLeaseLost
		if exists && s.Status == row.Cancelled && s.Version == a.Row.Version+1 { // else it was lost before
			cause = delaytask.ErrCancelled
		}
		r.lose(a, cause)
		r.disown(a)
	}
}

// disown lets go of a row that this process has lost for certain while its processor is abandoned. The row may run in
// this process once more, beside the abandoned processor, whose result the fence refuses.
func (r *renewer) disown(a *Attempt) {
	if !a.disown() {
		return // it has returned, or it may still return
	}
	r.attempts.Remove(a)
	r.runqueue.Release(a.Item, runqueue.Ended)
	r.runqueue.ScanWake.Set() // nothing could add the row while it was owned
}

// isCompleted reports whether the processor itself has completed the row, in its own transaction.
func (a *Attempt) isCompleted(s row.State) bool {
	_, _, by := a.state()
	return by == byTransaction && s.Status == row.Completed && s.Version == a.Row.Version+1
}

// lose ends the context of an attempt. A processor that ignores that loses its slot. It loses its row when the table
// shows that another process has it; until then the row stays owned.
func (r *renewer) lose(a *Attempt, cause error) {
	if a.lose(cause) {
		r.Go(func() { r.expectReturn(a) })
	}
}

// expectReturn gives a processor a moment to obey its context, and abandons it afterwards.
func (r *renewer) expectReturn(a *Attempt) {
	lifecycle.Sleep(r.Life, stopReleaseWait)
	if !a.abandon() {
		return
	}
	r.attempts.hanging.add(a)
	r.Metrics.IgnoredContext()
	r.Log.Error("a processor ignores that its context has ended; its slot is given to others",
		"task", a.Row.ID, "tag", a.Row.Tag, "attempt", a.Row.Attempt, "stack", stackOf(a))
	r.runqueue.Yield(a.Item, runqueue.Slot)
	r.runner.leave(a)
}

// cancelled ends the attempt of a task that was cancelled through this process, before the next look.
func (r *renewer) cancelled(id int64) {
	if a := r.attempts.Get(id); a != nil {
		r.lose(a, delaytask.ErrCancelled)
	}
}
