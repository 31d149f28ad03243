package engine

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/scanner"
)

// handed is a task in a caller's hand, and the alarm at the end of its lease.
type handed struct {
	run   *run
	alarm *time.Timer
	tries int // to end its lease, while somebody's transaction holds the row
}

// alarm ends the hold when the lease is over.
func (p *pops) alarm(id int64, leaseEnd row.Time) *time.Timer {
	wait, anchored := p.clock.Until(leaseEnd)
	if !anchored {
		wait = time.Second
	}
	return time.AfterFunc(max(wait, 0), func() { p.expire(id) })
}

// expire returns a task that was not finished in time to pending: an attempt is spent, nothing crashed, and there is no backoff.
func (p *pops) expire(id int64) {
	h := p.holds(id)
	if h == nil {
		return
	}
	ctx, cancel := p.call()
	defer cancel()
	rows, _, err := p.store.Get(ctx, nil, []int64{id})
	switch {
	case p.holds(id) != h:
		return // it was let go meanwhile, and may have been popped again
	case err != nil:
		p.failed("looking at a lease that ended", err)
		p.again(h, p.now().Add(time.Second))
		return
	case len(rows) == 0 || rows[0].Status != row.Executing || rows[0].Version != h.run.row.Version:
		p.letGo(h)
		return
	case rows[0].Due > p.now():
		p.again(h, rows[0].Due)
		return
	}
	p.expiring <- struct{}{} // that of one row may wait for a lock, and the next ones know of it then
	defer func() { <-p.expiring }()
	now, err := p.certain(ctx)
	if err != nil {
		p.again(h, 0)
		return
	}
	rows[0].Execution = h.run.firstStart()
	change := scanner.Verdict(rows[0], h.run.started, now, p.cfg.Quarantine)
	applied, err := p.update(ctx, []row.Change{change})
	switch {
	case err != nil && row.ClassOf(err) == row.ClassLocked:
		h.tries++
		p.again(h, p.now().Add(asideFor(h.tries)))
		return
	case err != nil:
		p.failed("ending the lease of a popped task", err)
		p.again(h, p.now().Add(time.Second))
		return
	case applied == 0: // it has changed since it was looked at
		p.again(h, p.now().Add(100*time.Millisecond))
		return
	}
	p.letGo(h)
	if change.To == row.Failed {
		p.metrics.Run(h.run.row.Tag, metrics.RunFailed)
		p.taskFailed(&rows[0], h.run.due, errLeasesLost)
		return
	}
	p.metrics.Run(h.run.row.Tag, metrics.RunRetried)
	p.metrics.Retried(h.run.row.Tag)
	p.attemptFailed(&rows[0], errNotFinished, change.Due)
	d := dueOf(&rows[0])
	d.Version, d.Due = d.Version+1, change.Due
	p.arm.written(d)
}

// holds returns the hold of a task that is in a caller's hand, nil when it is not, or the pops have ended.
func (p *pops) holds(id int64) *handed {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	return p.handed[id]
}

func (p *pops) again(h *handed, at row.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		h.alarm.Stop()
		h.alarm = p.alarm(h.run.row.ID, at)
	}
}

func (p *pops) letGo(h *handed) {
	p.mu.Lock()
	h.alarm.Stop()
	if p.handed[h.run.row.ID] == h {
		delete(p.handed, h.run.row.ID)
	}
	p.mu.Unlock()
	p.hands.letGo(h.run.item)
}

// leaseOver lets go of a task whose lease a rescue has ended before the alarm did: while it is in hand, nobody here takes it.
func (p *pops) leaseOver(id, version int64) {
	if h := p.get(id, version); h != nil {
		p.letGo(h)
	}
}

func (p *pops) get(id, version int64) *handed {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.handed[id]; h != nil && h.run.row.Version == version {
		return h
	}
	return nil
}

// setTTR gives what was popped the lease that the caller asked for. When that fails each task keeps its own.
func (p *pops) setTTR(ctx context.Context, got []*run, ttr time.Duration) {
	if ttr == 0 {
		return
	}
	leases := make([]row.Lease, len(got))
	for i, u := range got {
		leases[i] = row.Lease{Ref: row.Ref{ID: u.row.ID, Version: u.row.Version}, TTR: ttr, Execution: u.firstStart()}
	}
	states, err := p.touch(ctx, leases)
	if err != nil {
		p.failed("setting the lease of popped tasks", err)
		return
	}
	for _, s := range states {
		p.moved(s)
	}
}

// moved sets the alarm of a task that is in hand to the new end of its lease.
func (p *pops) moved(s row.State) {
	if h := p.get(s.ID, s.Version); h != nil && s.Status == row.Executing {
		p.again(h, s.Due)
	}
}
