package engine

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/delaytask/delaytask/internal/batch"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/scanner"
)

// handed is a task that was handed to a caller, and the alarm at the end of its lease.
type handed struct {
	attempt *attempt
	alarm   *time.Timer
	tries   int // to end its lease, while another transaction holds the row
}

// newExpiries ends leases that are over at the same time in one statement. One batch is in flight at a time, because it
// may wait for a lock, of which the next one has to know.
func (p *pops) newExpiries() *batch.Coalescer[int64] {
	return batch.New(batch.Config[int64]{Flush: p.expire, MaxItems: rescuePage, Panicked: func(ids []int64, value any) {
		p.Log.Error("ending leases panicked", "panic", value, "stack", string(debug.Stack()))
		p.againAll(p.held(ids), time.Second)
	}})
}

// alarm returns a timer that ends the lease when it is over.
func (p *pops) alarm(id int64, leaseEnd row.Time) *time.Timer {
	wait, anchored := p.clock.Until(leaseEnd)
	if !anchored {
		wait = time.Second
	}
	return time.AfterFunc(max(wait, 0), func() { _ = p.expiries.Add(id) }) // refused when the engine ends
}

// expire ends the attempts of tasks that were not ended in time. They become pending without backoff, and count no
// crash.
func (p *pops) expire(ids []int64) {
	ctx, cancel := p.Call()
	defer cancel()
	held := p.held(ids) // a task that is popped again meanwhile is handed anew
	states, err := p.readBack(ctx, "looking at leases that ended", idsOf(held, (*handed).id))
	if err != nil {
		p.againAll(held, time.Second)
		return
	}
	over := p.over(held, states)
	now, err := p.certain(ctx)
	if err != nil {
		p.againAll(over, 0)
		return
	}
	p.endLeases(ctx, over, now, true)
}

// over returns those whose leases the table shows as over. The others were ended, or their leases were moved.
func (p *pops) over(held []*handed, states map[int64]row.State) (over []*handed) {
	for _, h := range held {
		s, exists := states[h.attempt.row.ID]
		switch {
		case !exists || s.Status != row.Executing || s.Version != h.attempt.row.Version:
			p.letGo(h)
		case s.Due > p.now():
			p.again(h, s.Due)
		default:
			over = append(over, h)
		}
	}
	return over
}

// endLeases ends leases in one statement. Rows that other transactions hold are tried later, and the others sent again.
func (p *pops) endLeases(ctx context.Context, over []*handed, now row.Time, askLocked bool) {
	if len(over) == 0 {
		return
	}
	changes := make([]row.Change, len(over))
	for i, h := range over {
		r := h.attempt.row
		r.Execution = h.attempt.firstStart()
		changes[i] = scanner.Verdict(r, h.attempt.started, now, p.cfg.Quarantine)
	}
	applied, err := p.update(ctx, changes)
	switch {
	case err == nil && applied == len(over):
		for i, h := range over {
			p.expired(h, changes[i])
		}
		return
	case err == nil: // some have changed since they were read
		p.readExpired(ctx, over, changes)
		return
	}
	retry := policy[*handed]{
		locked: func(over []*handed) []*handed {
			p.endFree(ctx, over, now, askLocked)
			return nil
		},
		refused: func(over []*handed) []*handed {
			for _, half := range halves(over) {
				p.endLeases(ctx, half, now, askLocked)
			}
			return nil
		},
	}
	if len(over) == 1 {
		retry.refused = nil
	}
	if again := retry.after(over, err); len(again) > 0 {
		p.Failed("ending the leases of popped tasks", err)
		p.againAll(again, time.Second)
	}
}

// endFree puts off the rows that other transactions hold, and ends the leases of the others. When it is not known which
// rows are locked, it puts off all.
func (p *pops) endFree(ctx context.Context, over []*handed, now row.Time, askLocked bool) {
	var locked, free []*handed
	if askLocked && len(over) > 1 {
		locked, free, _ = splitLocked(ctx, p.table, over, (*handed).id)
	}
	if len(locked) == 0 {
		locked, free = over, nil
	}
	for _, h := range locked {
		h.tries++
		p.again(h, p.now().Add(lockBackoff(h.tries)))
	}
	p.endLeases(ctx, free, now, false)
}

// readExpired finds out which leases were ended. Rows that another process has changed are read again in a moment.
func (p *pops) readExpired(ctx context.Context, over []*handed, changes []row.Change) {
	states, _ := p.readBack(ctx, "reading back leases that ended", idsOf(over, (*handed).id))
	for i, h := range over {
		c := changes[i]
		s, exists := states[h.id()]
		if exists && s.Version == c.Version+1 && s.Status == c.To && s.Due == c.Due && s.Executor == c.Executor {
			p.expired(h, c)
		} else {
			p.again(h, p.now().Add(100*time.Millisecond))
		}
	}
}

// expired does what follows the end of a lease.
func (p *pops) expired(h *handed, c row.Change) {
	r := &h.attempt.row
	p.letGo(h)
	if c.To == row.Failed {
		p.Metrics.Run(r.Tag, metrics.RunFailed)
		p.taskFailed(r, h.attempt.due, errLeasesLost)
		return
	}
	p.Metrics.Run(r.Tag, metrics.RunRetried)
	p.Metrics.Retried(r.Tag)
	p.attemptFailed(r, errNotFinished, c.Due)
	d := r.Sighting()
	d.Version, d.Due = d.Version+1, c.Due
	p.arm.written(d)
}

func (h *handed) id() int64 { return h.attempt.row.ID }

// held returns which of the tasks are handed to callers, none when the pops have ended.
func (p *pops) held(ids []int64) (held []*handed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range distinct(ids) { // a lease can be moved and end again while a batch is in flight
		if h := p.handed[id]; h != nil && !p.closed {
			held = append(held, h)
		}
	}
	return held
}

// againAll reads the leases once more after d.
func (p *pops) againAll(held []*handed, d time.Duration) {
	at := p.now().Add(d)
	for _, h := range held {
		p.again(h, at)
	}
}

func (p *pops) again(h *handed, at row.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && p.handed[h.id()] == h {
		h.alarm.Stop()
		h.alarm = p.alarm(h.attempt.row.ID, at)
	}
}

func (p *pops) letGo(h *handed) {
	p.mu.Lock()
	h.alarm.Stop()
	if p.handed[h.attempt.row.ID] == h {
		delete(p.handed, h.attempt.row.ID)
	}
	p.mu.Unlock()
	p.runqueue.Release(h.attempt.item, runqueue.Ended)
}

// leaseOver lets go of a task whose lease a rescue has ended before the alarm did. It would not run here while it is
// owned.
func (p *pops) leaseOver(id, version int64) {
	if h := p.get(id, version); h != nil {
		p.letGo(h)
	}
}

func (p *pops) get(id, version int64) *handed {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.handed[id]; h != nil && h.attempt.row.Version == version {
		return h
	}
	return nil
}

// setTTR gives popped tasks the lease that the caller asked for. When that fails, each task keeps its own.
func (p *pops) setTTR(ctx context.Context, got []*attempt, ttr time.Duration) {
	if ttr == 0 {
		return
	}
	leases := make([]row.Lease, len(got))
	for i, a := range got {
		leases[i] = row.Lease{Ref: row.Ref{ID: a.row.ID, Version: a.row.Version}, TTR: ttr, Execution: a.firstStart()}
	}
	states, err := p.extend(ctx, leases)
	if err != nil {
		p.Failed("setting the lease of popped tasks", err)
		return
	}
	for _, s := range states {
		p.moved(s)
	}
}

// moved sets the alarm of a handed task to the new end of its lease.
func (p *pops) moved(s row.State) {
	if h := p.get(s.ID, s.Version); h != nil && s.Status == row.Executing {
		p.again(h, s.Due)
	}
}

// adopt keeps a row owned like one that was popped. It returns false when its holder has ended it here by now, and when
// the pops have ended. Then other nodes take it when its lease is over.
func (p *pops) adopt(t *transfer, leaseEnd row.Time) bool {
	a := t.attempt
	r := a.row
	r.Executor, r.Execution = t.lease.Executor, t.lease.Execution
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, lease, _ := a.state(); p.closed || lease == leaseAnswered {
		return false
	}
	p.runqueue.Lend(a.item, r.Version)
	p.handed[r.ID] = &handed{
		attempt: &attempt{item: a.item, row: r, due: a.due, started: a.started}, alarm: p.alarm(r.ID, leaseEnd),
	}
	return true
}
