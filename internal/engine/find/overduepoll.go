package find

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
)

const (
	pollFrom = 100 * time.Millisecond // younger rows are being claimed
	pollBusy = 100 * time.Millisecond
	pollIdle = 400 * time.Millisecond
	// pollIdleMany is the pause of one of many processes.
	pollIdleMany = 800 * time.Millisecond
	// pollReach is how far back it looks at most.
	pollReach = 2 * time.Second
)

// overduePoll finds rows that have just become overdue and that this process does not own. It takes rows of its node's
// share at once, and others when they were left for longer than [arm.Arm.Leaves]: their node may have died, or they
// were saved too late for its look-ahead. Rows that are overdue for more than a second are left to the scan.
type overduePoll struct {
	*deps
	quick *quickPoll
	busy  time.Time // when it last found something, or something ran
	seen  row.Time  // it has read in time what became due until then
}

const pollRows = 200

// loop polls as soon as the scan of the start. What is a little overdue for that would be too old for a later poll.
func (p *overduePoll) loop(ctx context.Context) {
	for p.arm.Joining.Wait(ctx) {
		began := time.Now()
		err := p.RunOnce(ctx)
		rest := lifecycle.Rest(time.Since(began))
		if err != nil && ctx.Err() == nil {
			p.Failed("polling for overdue tasks", err)
			lifecycle.Sleep(ctx, lifecycle.Backoff(6))
		}
		every := pollIdle
		if p.pool.Attempts.Len() > 0 {
			p.busy = time.Now()
		}
		if time.Since(p.busy) < time.Second {
			every = pollBusy
		}
		idle, longest := pollIdle, lifecycle.Rest(pollIdle)
		if p.arm.Census.Many() {
			idle, longest = pollIdleMany, p.cfg.ScanEvery // what a poll does not see the scan does
		}
		every = max(min(every*p.arm.Census.Crowd(), idle), min(rest, longest))
		if !lifecycle.Sleep(ctx, lifecycle.Jitter(every, 0.1)) {
			return
		}
	}
}

// RunOnce takes the rows that have just become overdue.
func (p *overduePoll) RunOnce(ctx context.Context) error {
	tags := p.runqueue.WithTaker(p.arm.Tags.List())
	now, anchored := p.Bounds.AtLeast()
	if len(tags) == 0 || !anchored {
		return nil
	}
	ctx, cancel := p.CallIn(ctx)
	defer cancel()
	all := row.Window{Tags: tags, From: p.from(now), To: now.Add(-pollFrom), Limit: pollRows}
	var found []row.Due
	seen := all.To
	for _, w := range p.arm.Parts(all, cluster.Turns-1) { // behind the process that has saved a row, its owner
		page, err := p.Due(ctx, w)
		if err != nil {
			return err
		}
		if len(page) == w.Limit {
			seen = min(seen, page[len(page)-1].Due)
		}
		found = append(found, page...)
	}
	p.looked(all.From, seen)
	if len(found) == 0 {
		return nil
	}
	p.busy = time.Now()
	found = slices.DeleteFunc(found, func(d row.Due) bool { return now.Sub(d.Due) < p.arm.Leaves(d) })
	// Nodes that do not know each other yet find the same rows. In a random order each of them wins some.
	rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	p.runqueue.AddDue(found, false, now)
	p.quick.note(found)
	return nil
}

// from is where a poll begins. One of many processes polls seldom, and less often yet where the database is slow. A
// scan each time would make it slower still: it reads through all that the others have run meanwhile.
func (p *overduePoll) from(now row.Time) row.Time {
	from := now.Add(-runqueue.Overdue)
	if p.arm.Census.Many() && p.seen < from {
		return max(p.seen, now.Add(-pollReach))
	}
	return from
}

// looked wakes the scan when rows may have grown too old for the poll unseen: at the start, after an outage or a long
// wait for the database, and while pages are full. They would wait for the next scan otherwise.
func (p *overduePoll) looked(from, until row.Time) {
	if p.seen < from {
		p.runqueue.ScanWake.Set()
	}
	p.seen = until
}
