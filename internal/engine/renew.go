package engine

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/batch"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/processor"
)

// renewer keeps the leases of what this process has claimed, many in one statement, and ends the context of a task that
// is no longer its own. Between two renewals it looks at the versions, so that a cancel or a lost lease is noticed
// within seconds whatever the TTR.
type renewer struct {
	*deps
	attempts    *attempts
	runner      *runner
	short, long renewals
}

// renewals are those of the leases of one kind. Short ones leave no time to wait for a statement of the others, and
// would leave these no time for theirs: each kind has its own statements.
type renewals struct {
	quiet chan struct{} // holds one while leases are renewed
	wake  chan struct{} // a lease was due for renewal when its claim was answered
	askAt time.Time     // nobody is asked for locks before; the loop's own
}

func newRenewer(c *deps, attempts *attempts, runner *runner) *renewer {
	kind := func() renewals { return renewals{quiet: make(chan struct{}, 1), wake: make(chan struct{}, 1)} }
	return &renewer{deps: c, attempts: attempts, runner: runner, short: kind(), long: kind()}
}

// of returns the renewals that a row belongs to.
func (r *renewer) of(a *attempt) *renewals {
	if a.renewTimeout() < lockWait {
		return &r.short
	}
	return &r.long
}

// await returns when the statements that are under way have ended.
func (r *renewer) await() {
	for _, kind := range []*renewals{&r.short, &r.long} {
		kind.quiet <- struct{}{}
		<-kind.quiet
	}
}

const renewTick = 250 * time.Millisecond // a quarter of the shortest TTR

// loop renews the leases of one kind. What ends attempts by this process's own reckoning is a loop of its own: it must
// not wait for a database that hangs.
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
		held, _ := batch.Split(r.attempts.list(), func(a *attempt) bool { return r.of(a) == kind })
		kind.quiet <- struct{}{}
		r.renew(kind, dueForRenewal(held, time.Now()))
		<-kind.quiet
	}
}

// look watches what is held.
func (r *renewer) look(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if held := r.attempts.list(); len(held) > 0 {
			r.watch(held)
		}
	}
}

// deadlines ends attempts whose lease is over for all that this process knows, and gives back claimed rows that no slot
// was found for.
func (r *renewer) deadlines(ctx context.Context) {
	tick := time.NewTicker(renewTick)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			r.endLost(r.attempts.list(), now)
			isOver := func(it *runqueue.Item) bool { return attemptOf(it).isOver() }
			if late := r.runqueue.Slots.Expel(now.Add(-runqueue.SlotWait), isOver); len(late) > 0 {
				r.Go(func() { r.runner.unclaim(late) }) // a full queue of results must not hold up the deadlines
			}
		case <-ctx.Done():
			return
		}
	}
}

// dueForRenewal leaves out rows that a caller's transaction holds, those that are being handed over, and attempts that
// have outlived their timeout and its grace.
func dueForRenewal(held []*attempt, now time.Time) (due []*attempt) {
	for _, a := range held {
		if a.renewable(now) {
			due = append(due, a)
		}
	}
	return due
}

// lockWait is more than a statement waits for a row that somebody else holds.
const lockWait = 2500 * time.Millisecond

// patience is how long an answer to the renewal of the row is waited for. It leaves time for another try before the
// lease ends. It also lets the server answer that a row is locked, as far as the lease allows: a statement that is
// given up earlier goes on holding the other rows against the next try.
func (a *attempt) renewTimeout() time.Duration { return max(a.row.TTR/4, min(a.row.TTR/2, lockWait)) }

func renewTimeout(due []*attempt, most time.Duration) time.Duration {
	shortest := most
	for _, a := range due {
		shortest = min(shortest, a.renewTimeout())
	}
	return shortest
}

// renew moves the leases of rows of one kind. Where a statement may not wait for a lock, or a lock was met lately, it
// asks for locks first. It asks for a short time, and not again soon when there was no answer: with a slow database
// that time is needed to renew.
func (r *renewer) renew(kind *renewals, due []*attempt) {
	timeout := renewTimeout(due, r.cfg.CallTimeout)
	if now := time.Now(); (timeout < lockWait || r.locks.lately()) && !now.Before(kind.askAt) {
		var err error
		if due, err = r.unlocked(due, timeout/4); err != nil {
			kind.askAt = now.Add(askPause)
		}
	}
	r.prolong(due)
}

const askPause = 10 * time.Second

// prolong sends the leases. One that a holder of the token has prolonged stays so. The own deadline moves only when the
// answer confirms it. When the statement meets a lock, those go on that nobody else holds.
func (r *renewer) prolong(due []*attempt) {
	if len(due) == 0 {
		return
	}
	leases := make([]row.Lease, len(due))
	for i, a := range due {
		leases[i] = row.Lease{Ref: row.Ref{ID: a.row.ID, Version: a.row.Version}, TTR: a.row.TTR, Least: true,
			Execution: a.misdated()}
	}
	timeout := renewTimeout(due, r.cfg.CallTimeout)
	ctx, cancel := context.WithTimeout(r.Life, timeout)
	defer cancel()
	sent := time.Now()
	states, err := r.store.Renew(ctx, leases)
	r.Metrics.Batch("renew", len(due))
	if err != nil {
		r.Failed("renewing leases", err)
		if !r.locks.noteIn(err) && ctx.Err() == nil {
			return
		}
		if rest, _ := r.unlocked(due, timeout); len(rest) < len(due) {
			r.locks.note()
			r.prolong(rest)
		}
		return
	}
	r.compare(due, statesByID(states), func(a *attempt) { a.renewed(sent) })
}

// unlocked returns the rows that no other transaction holds, and all of them when that could not be found out. The
// others are left out for a while: each try with one of them costs all that travel along the wait for its lock.
func (r *renewer) unlocked(due []*attempt, timeout time.Duration) (rest []*attempt, err error) {
	if len(due) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(r.Life, timeout)
	defer cancel()
	locked, rest, err := splitLocked(ctx, r.table, due, (*attempt).id)
	for _, a := range locked {
		a.renewLater()
	}
	return rest, err
}

// watch compares what is held with the table.
func (r *renewer) watch(held []*attempt) {
	ctx, cancel := context.WithTimeout(r.Life, watchEvery)
	defer cancel()
	if states, err := r.readBack(ctx, "looking at running tasks", idsOf(held, (*attempt).id)); err == nil {
		r.compare(held, states, func(*attempt) {})
	}
}

// compare ends what is no longer ours and calls confirmed for the rest.
func (r *renewer) compare(held []*attempt, states map[int64]row.State, confirmed func(*attempt)) {
	for _, a := range held {
		s, exists := states[a.row.ID]
		if exists && s.Version == a.row.Version && s.Status == row.Executing {
			confirmed(a)
			continue
		}
		if a.isCompleted(s) {
			r.runqueue.Yield(a.item, runqueue.Turn) // its processor may go on for as long as it likes
			continue
		}
		cause := processor.ErrLeaseLost
		if exists && s.Status == row.Cancelled {
			cause = processor.ErrCancelled
		}
		r.lose(a, cause)
		r.disown(a)
	}
}

// disown lets go of a row that has ended here for certain while its processor hangs: it may run in this process once
// more, beside the hung attempt, whose result is refused.
func (r *renewer) disown(a *attempt) {
	if !a.disown() {
		return // it may still return; or it has, and the fence refuses its result
	}
	r.attempts.remove(a)
	r.runqueue.Release(a.item, runqueue.Ended)
	r.runqueue.ScanWake.Set() // sightings were turned away while it was owned
}

// isCompleted reports whether the processor itself has completed the row, in its own transaction.
func (a *attempt) isCompleted(s row.State) bool {
	_, _, by := a.state()
	return by == byTransaction && s.Status == row.Completed && s.Version == a.row.Version+1
}

func (r *renewer) endLost(held []*attempt, now time.Time) {
	for _, a := range held {
		if a.expired(now) {
			r.lose(a, processor.ErrLeaseLost)
		}
	}
}

// lose ends the context of an attempt. A processor that ignores it does not keep its slot, nor its row when that was
// seen in other hands: until then the row stays owned, because nobody else may have it.
func (r *renewer) lose(a *attempt, cause error) {
	if a.lose(cause) {
		r.Go(func() { r.expectReturn(a) })
	}
}

// expectReturn gives a processor a moment to obey its context before it is reported.
func (r *renewer) expectReturn(a *attempt) {
	lifecycle.Sleep(r.Life, stopReleaseWait)
	if !a.abandon() {
		return
	}
	r.Metrics.IgnoredContext()
	r.Log.Error("a processor ignores that its context has ended; its slot is given to others", "task", a.row.ID, "tag", a.row.Tag,
		"attempt", a.row.Attempt, "stack", stackOf(a))
	r.runqueue.Yield(a.item, runqueue.Slot)
	r.runner.leave(a)
}

// cancelled ends a task that was cancelled through this process, without waiting for the next look.
func (r *renewer) cancelled(id int64) {
	if a := r.attempts.get(id); a != nil {
		r.lose(a, processor.ErrCancelled)
	}
}
