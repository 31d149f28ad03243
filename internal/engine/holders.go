package engine

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/batch"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/scanner"
)

// holders knows the tasks that callers hold by their lease tokens: popped ones, and those that a processor has handed
// over. It ends their leases.
type holders struct {
	*leaseDeps
	expiries *batch.Coalescer[int64] // tasks whose leases are over

	// mu guards what follows. The locks of the run queue and of an attempt may be taken while it is held.
	mu     sync.Mutex
	handed map[int64]*handed
	closed bool
}

// errNotFinished is what the log says of an attempt whose holder did not end it in time.
var errNotFinished = errors.New("handed out and not finished within its lease")

func newHolders(c *leaseDeps) *holders {
	o := &holders{leaseDeps: c, handed: map[int64]*handed{}}
	o.expiries = o.newExpiries()
	return o
}

// handed is a task that was handed to a caller, and the alarm at the end of its lease.
type handed struct {
	attempt *attempt
	alarm   *time.Timer
	tries   int // to end its lease, while another transaction holds the row
}

// newExpiries ends leases that are over at the same time in one statement. One batch is in flight at a time, because it
// may wait for a lock, of which the next one has to know.
func (o *holders) newExpiries() *batch.Coalescer[int64] {
	return batch.New(batch.Config[int64]{Flush: o.expire, MaxItems: rescuePage, Panicked: func(ids []int64, value any) {
		o.Log.Error("ending leases panicked", "panic", value, "stack", string(debug.Stack()))
		o.againAll(o.held(ids), time.Second)
	}})
}

// alarm returns a timer that ends the lease when it is over.
func (o *holders) alarm(id int64, leaseEnd row.Time) *time.Timer {
	wait, anchored := o.clock.Until(leaseEnd)
	if !anchored {
		wait = time.Second
	}
	return time.AfterFunc(max(wait, 0), func() { _ = o.expiries.Add(id) }) // refused when the engine ends
}

// expire ends the attempts of tasks that were not ended in time. They become pending without backoff, and count no
// crash.
func (o *holders) expire(ids []int64) {
	ctx, cancel := o.Call()
	defer cancel()
	held := o.held(ids) // a task that is popped again meanwhile is handed anew
	states, err := o.readBack(ctx, "looking at leases that ended", idsOf(held, (*handed).id))
	if err != nil {
		o.againAll(held, time.Second)
		return
	}
	over := o.over(held, states)
	now, err := o.certain(ctx)
	if err != nil {
		o.againAll(over, 0)
		return
	}
	o.endLeases(ctx, over, now, true)
}

// over returns those whose leases the table shows as over. The others were ended, or their leases were moved.
func (o *holders) over(held []*handed, states map[int64]row.State) (over []*handed) {
	for _, h := range held {
		s, exists := states[h.attempt.row.ID]
		switch {
		case !exists || s.Status != row.Executing || s.Version != h.attempt.row.Version:
			o.letGo(h)
		case s.Due > o.now():
			o.again(h, s.Due)
		default:
			over = append(over, h)
		}
	}
	return over
}

// endLeases ends leases in one statement. Rows that other transactions hold are tried later, and the others sent again.
func (o *holders) endLeases(ctx context.Context, over []*handed, now row.Time, askLocked bool) {
	if len(over) == 0 {
		return
	}
	changes := make([]row.Change, len(over))
	for i, h := range over {
		r := h.attempt.row
		r.Execution, r.Late = h.attempt.firstStart()
		changes[i] = scanner.Verdict(r, h.attempt.started, now, o.cfg.Quarantine)
	}
	applied, err := o.update(ctx, changes)
	switch {
	case err == nil && applied == len(over):
		for i, h := range over {
			o.expired(h, changes[i])
		}
		return
	case err == nil: // some have changed since they were read
		o.readExpired(ctx, over, changes)
		return
	}
	retry := policy[*handed]{
		locked: func(over []*handed) []*handed {
			o.endFree(ctx, over, now, askLocked)
			return nil
		},
		refused: func(over []*handed) []*handed {
			for _, half := range halves(over) {
				o.endLeases(ctx, half, now, askLocked)
			}
			return nil
		},
	}
	if len(over) == 1 {
		retry.refused = nil
	}
	if again := retry.after(over, err); len(again) > 0 {
		o.Failed("ending the leases of popped tasks", err)
		o.againAll(again, time.Second)
	}
}

// endFree puts off the rows that other transactions hold, and ends the leases of the others. When it is not known which
// rows are locked, it puts off all.
func (o *holders) endFree(ctx context.Context, over []*handed, now row.Time, askLocked bool) {
	var locked, free []*handed
	if askLocked && len(over) > 1 {
		locked, free, _ = splitLocked(ctx, o.table, over, (*handed).id)
	}
	if len(locked) == 0 {
		locked, free = over, nil
	}
	for _, h := range locked {
		h.tries++
		o.again(h, o.now().Add(lockBackoff(h.tries)))
	}
	o.endLeases(ctx, free, now, false)
}

// readExpired finds out which leases were ended. Rows that another process has changed are read again in a moment.
func (o *holders) readExpired(ctx context.Context, over []*handed, changes []row.Change) {
	states, _ := o.readBack(ctx, "reading back leases that ended", idsOf(over, (*handed).id))
	for i, h := range over {
		c := changes[i]
		s, exists := states[h.id()]
		if exists && s.Version == c.Version+1 && s.Status == c.To && s.Due == c.Due && s.Executor == c.Executor {
			o.expired(h, c)
		} else {
			o.again(h, o.now().Add(100*time.Millisecond))
		}
	}
}

// expired does what follows the end of a lease.
func (o *holders) expired(h *handed, c row.Change) {
	o.letGo(h)
	s := settlement{change: c, kind: metrics.RunRetried, err: errNotFinished}
	if c.To == row.Failed {
		s.kind, s.err = metrics.RunFailed, errLeasesLost
	}
	o.pool.settler.stored(&h.attempt.row, h.attempt.due, &s)
}

func (h *handed) id() int64 { return h.attempt.row.ID }

// held returns which of the tasks are handed to callers, none when the pops have ended.
func (o *holders) held(ids []int64) (held []*handed) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range distinct(ids) { // a lease can be moved and end again while a batch is in flight
		if h := o.handed[id]; h != nil && !o.closed {
			held = append(held, h)
		}
	}
	return held
}

// againAll reads the leases once more after d.
func (o *holders) againAll(held []*handed, d time.Duration) {
	at := o.now().Add(d)
	for _, h := range held {
		o.again(h, at)
	}
}

func (o *holders) again(h *handed, at row.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed && o.handed[h.id()] == h {
		h.alarm.Stop()
		h.alarm = o.alarm(h.attempt.row.ID, at)
	}
}

func (o *holders) letGo(h *handed) {
	o.mu.Lock()
	h.alarm.Stop()
	if o.handed[h.attempt.row.ID] == h {
		delete(o.handed, h.attempt.row.ID)
	}
	o.mu.Unlock()
	o.runqueue.Release(h.attempt.item, runqueue.Ended)
}

// leaseOver lets go of a task whose lease a rescue has ended before the alarm did. It would not run here while it is
// owned.
func (o *holders) leaseOver(id, version int64) {
	if h := o.get(id, version); h != nil {
		o.letGo(h)
	}
}

func (o *holders) get(id, version int64) *handed {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h := o.handed[id]; h != nil && h.attempt.row.Version == version {
		return h
	}
	return nil
}

// setTTR gives popped tasks the lease that the caller asked for. When that fails, each task keeps its own.
func (o *holders) setTTR(ctx context.Context, got []*attempt, ttr time.Duration) {
	if ttr == 0 {
		return
	}
	leases := make([]row.Lease, len(got))
	for i, a := range got {
		leases[i] = row.Lease{Ref: row.Ref{ID: a.row.ID, Version: a.row.Version}, TTR: ttr}
		leases[i].Execution, leases[i].Late = a.firstStart()
	}
	states, err := o.extend(ctx, leases)
	if err != nil {
		o.Failed("setting the lease of popped tasks", err)
		return
	}
	for _, s := range states {
		o.moved(s)
	}
}

// moved sets the alarm of a handed task to the new end of its lease.
func (o *holders) moved(s row.State) {
	if h := o.get(s.ID, s.Version); h != nil && s.Status == row.Executing {
		o.again(h, s.Due)
	}
}

// adopt keeps a row owned like one that was popped. It returns false when its holder has ended it here by now, and when
// the pops have ended. Then other nodes take it when its lease is over.
func (o *holders) adopt(t *transfer, leaseEnd row.Time) bool {
	a := t.attempt
	r := a.row
	r.Executor, r.Execution = t.lease.Executor, t.lease.Execution
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, lease, _ := a.state(); o.closed || lease == leaseAnswered {
		return false
	}
	o.runqueue.Lend(a.item, r.Version)
	o.handed[r.ID] = &handed{
		attempt: &attempt{item: a.item, row: r, due: a.due, started: a.started, late: t.lease.Late},
		alarm:   o.alarm(r.ID, leaseEnd),
	}
	return true
}

// hand keeps the row of a popped task owned until its lease ends.
func (o *holders) hand(a *attempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runqueue.Lend(a.item, a.row.Version)
	o.handed[a.row.ID] = &handed{attempt: a, alarm: o.alarm(a.row.ID, a.row.Due)}
}

// close leaves what was handed out to its holders. Other nodes take it when its lease is over.
func (o *holders) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for _, h := range o.handed {
		h.alarm.Stop()
	}
}
