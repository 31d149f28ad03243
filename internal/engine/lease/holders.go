package lease

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/engine/events"
	"github.com/delaytask/delaytask/internal/engine/run"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/scanner"
)

// holders knows the tasks that callers hold by their lease tokens: popped ones, and those that a processor has handed
// over. It ends their leases.
type holders struct {
	*deps
	expiries *batch.Coalescer[int64] // tasks whose leases are over

	// mu guards what follows. The locks of the run queue and of an attempt may be taken while it is held.
	mu     sync.Mutex
	handed map[int64]*handed
	closed bool
}

// errNotFinished is what the log says of an attempt whose holder did not end it in time.
var errNotFinished = errors.New("handed out and not finished within its lease")

func newHolders(c *deps) *holders {
	o := &holders{deps: c, handed: map[int64]*handed{}}
	// One batch is in flight at a time, because it may wait for a lock, and the next one has to know of that lock.
	o.expiries = batch.New(batch.Config[int64]{Flush: o.expire, Panicked: o.expirePanicked, MaxItems: expiryPage})
	return o
}

// expiryPage is how many leases that are over one statement ends.
const expiryPage = 200

// handed is a task that was handed to a caller, and the alarm at the end of its lease.
type handed struct {
	attempt *run.Attempt
	alarm   *time.Timer
	tries   int // to end its lease, while another transaction holds the row
}

func (o *holders) expirePanicked(ids []int64, value any) {
	o.Log.Error("ending leases panicked", "panic", value, "stack", string(debug.Stack()))
	o.againAll(o.held(ids), time.Second)
}

// alarm returns a timer that ends the lease when it is over.
func (o *holders) alarm(id int64, leaseEnd row.Time) *time.Timer {
	wait, anchored := o.Bounds.Until(leaseEnd)
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
	states, err := o.ReadBack(ctx, "looking at leases that ended", row.IDsOf(held, (*handed).id))
	if err != nil {
		o.againAll(held, time.Second)
		return
	}
	over := o.over(held, states)
	now, err := o.Certain(ctx)
	if err != nil {
		o.againAll(over, 0)
		return
	}
	apart, over := table.SplitApart(o.Table, over, (*handed).tag)
	for _, over := range apart {
		o.Go(func() {
			ctx, cancel := o.Call()
			defer cancel()
			o.endLeases(ctx, over, now, true)
		})
	}
	o.endLeases(ctx, over, now, true)
}

// over returns those whose leases the table shows as over. The others were ended, or their leases were moved.
func (o *holders) over(held []*handed, states map[int64]row.State) (over []*handed) {
	for _, h := range held {
		s, exists := states[h.attempt.Row.ID]
		switch {
		case !exists || s.Status != row.Executing || s.Version != h.attempt.Row.Version:
			o.letGo(h)
		case s.Due > o.Now():
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
		r := h.attempt.Row
		r.Execution, r.Late = h.attempt.FirstStart()
		changes[i] = scanner.Verdict(r, h.attempt.StartedAt(), now, o.cfg.Quarantine)
	}
	applied, err := o.Update(ctx, changes)
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
	retry := table.Policy[*handed]{
		Locked: func(over []*handed) []*handed {
			o.endFree(ctx, over, now, askLocked)
			return nil
		},
		Refused: func(over []*handed) []*handed {
			for _, half := range table.Halves(over) {
				o.endLeases(ctx, half, now, askLocked)
			}
			return nil
		},
	}
	if len(over) == 1 {
		retry.Refused = nil
	}
	if again := retry.After(over, err); len(again) > 0 {
		o.Failed("ending the leases of popped tasks", err)
		o.againAll(again, time.Second)
	}
}

// endFree puts off the rows that other transactions hold, and ends the leases of the others. When it is not known which
// rows are locked, it puts off all.
func (o *holders) endFree(ctx context.Context, over []*handed, now row.Time, askLocked bool) {
	var locked, free []*handed
	if askLocked && len(over) > 1 {
		locked, free, _ = table.SplitLocked(ctx, o.Table, over, (*handed).id)
	}
	if len(locked) == 0 {
		if len(over) > 1 {
			table.MayWait(o.Table, over, (*handed).tag)
		}
		locked, free = over, nil
	}
	for _, h := range locked {
		h.tries++
		o.again(h, o.Now().Add(table.LockBackoff(h.tries)))
	}
	o.endLeases(ctx, free, now, false)
}

// readExpired finds out which leases were ended. Rows that another process has changed are read again in a moment.
func (o *holders) readExpired(ctx context.Context, over []*handed, changes []row.Change) {
	states, _ := o.ReadBack(ctx, "reading back leases that ended", row.IDsOf(over, (*handed).id))
	for i, h := range over {
		c := changes[i]
		s, exists := states[h.id()]
		if exists && s.Version == c.Version+1 && s.Status == c.To && s.Due == c.Due && s.Executor == c.Executor {
			o.expired(h, c)
		} else {
			o.again(h, o.Now().Add(100*time.Millisecond))
		}
	}
}

// expired does what follows the end of a lease.
func (o *holders) expired(h *handed, c row.Change) {
	o.letGo(h)
	s := run.Settlement{Change: c, Kind: metrics.RunRetried, Err: errNotFinished}
	if c.To == row.Failed {
		s.Kind, s.Err = metrics.RunFailed, events.ErrLeasesLost
	}
	o.pool.Settler.Stored(&h.attempt.Row, h.attempt.Due, &s)
}

func (h *handed) id() int64 { return h.attempt.Row.ID }

func (h *handed) tag() string { return h.attempt.Row.Tag }

// held returns which of the tasks are handed to callers, none when the pops have ended.
func (o *holders) held(ids []int64) (held []*handed) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range row.Distinct(ids) { // a lease can be moved and end again while a batch is in flight
		if h := o.handed[id]; h != nil && !o.closed {
			held = append(held, h)
		}
	}
	return held
}

// againAll reads the leases once more after d.
func (o *holders) againAll(held []*handed, d time.Duration) {
	at := o.Now().Add(d)
	for _, h := range held {
		o.again(h, at)
	}
}

func (o *holders) again(h *handed, at row.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed && o.handed[h.id()] == h {
		h.alarm.Stop()
		h.alarm = o.alarm(h.attempt.Row.ID, at)
	}
}

func (o *holders) letGo(h *handed) {
	o.mu.Lock()
	h.alarm.Stop()
	if o.handed[h.attempt.Row.ID] == h {
		delete(o.handed, h.attempt.Row.ID)
	}
	o.mu.Unlock()
	o.runqueue.Release(h.attempt.Item, runqueue.Ended)
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
	if h := o.handed[id]; h != nil && h.attempt.Row.Version == version {
		return h
	}
	return nil
}

// setTTR gives popped tasks the lease that the caller asked for. When that fails, each task keeps its own.
func (o *holders) setTTR(ctx context.Context, got []*run.Attempt, ttr time.Duration) {
	if ttr == 0 {
		return
	}
	leases := make([]row.Lease, len(got))
	for i, a := range got {
		leases[i] = row.Lease{Ref: row.Ref{ID: a.Row.ID, Version: a.Row.Version}, TTR: ttr}
		leases[i].Execution, leases[i].Late = a.FirstStart()
	}
	states, err := o.Extend(ctx, leases)
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
	r := a.Row
	r.Executor, r.Execution = t.lease.Executor, t.lease.Execution
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || a.IsAnswered() {
		return false
	}
	o.runqueue.Lend(a.Item, r.Version)
	o.handed[r.ID] = &handed{
		attempt: a.PassedOn(r, t.lease.Late), alarm: o.alarm(r.ID, leaseEnd),
	}
	return true
}

// hand keeps the row of a popped task owned until its lease ends.
func (o *holders) hand(a *run.Attempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runqueue.Lend(a.Item, a.Row.Version)
	o.handed[a.Row.ID] = &handed{attempt: a, alarm: o.alarm(a.Row.ID, a.Row.Due)}
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
