package decide

import (
	"fmt"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// overlapped returns the last of the ticks, from the cursor on, that fell due while the allowed number of runs was
// open. It returns zero when the first of them did not.
//
// The stored times alone decide, so the answer is the same whenever a node looks. A run that was planted after a tick
// was due is not in that tick's way: both were missed, and the policy for missed ticks orders them. Nor is a run that
// had not begun in an outage.
func (p *plan) overlapped() row.Time {
	var ends []row.Time
	for i := range p.runs {
		if o := &p.runs[i]; !o.Gone && o.Task.Created < p.due(p.s.Next) && !p.idleThen(o) {
			ends = append(ends, o.endOf(p.Now))
		}
	}
	if len(ends) < p.most() {
		return 0
	}
	slices.Sort(ends)
	until := min(ends[len(ends)-p.most()], p.Now)
	if p.due(p.s.Next) > until {
		return 0
	}
	return p.dueBy(until)
}

// overlap decides the overlapped ticks, which end with last.
func (p *plan) overlap(last row.Time) {
	switch p.s.Overlap {
	case delaytask.OverlapQueueOne:
		if p.full() {
			p.waits = true
			return
		}
		p.drop(last, row.OutcomeSkipped, "a later tick waited in its place")
		p.plant(last, row.CauseLate, p.Now)
	case delaytask.OverlapReplace:
		p.drop(last, row.OutcomeSkipped, "a later tick replaced it")
		p.plant(last, p.cause(last), p.replace())
	default:
		p.dropAll(last, row.OutcomeSkipped, p.inTheWay())
	}
}

// inTheWay names the run that a tick met.
func (p *plan) inTheWay() string {
	if !p.s.Serial() {
		return fmt.Sprintf("%d runs were open", p.most())
	}
	o := &p.runs[len(p.runs)-1]
	switch {
	case o.unstarted():
		return fmt.Sprintf("task %d was waiting to run: nothing has taken it", o.Task.ID)
	case o.Task.Status == row.Pending:
		return fmt.Sprintf("task %d was waiting for its next attempt", o.Task.ID)
	default:
		return fmt.Sprintf("task %d was running", o.Task.ID)
	}
}

// replace cancels the open run and returns when the next one may begin. The executor of a run that was cut off from the
// database works until its lease is over, so the next run waits for that. The executor puts it forward when it has
// ended the run before.
func (p *plan) replace() row.Time {
	from := p.Now
	for i := range p.open {
		o := &p.open[i]
		busy := o.Task.Status == row.Executing || o.unstarted() // which may wait for an executor itself
		p.cancel(o, "replaced by the next tick")
		if busy {
			from = max(from, o.Task.Due)
			p.to.Changes[len(p.to.Changes)-1].LeaseBy = o.Task.Due // a renewal may come in between
		}
	}
	p.open = nil
	return from
}

// cancel ends an open run for a reason.
func (p *plan) cancel(o *Open, reason string) {
	t := &o.Task
	p.to.Changes = append(p.to.Changes, row.Change{
		ID: t.ID, Version: t.Version, From: t.Status, To: row.Cancelled, Due: p.Now,
		Attempt: t.Attempt, CrashCount: t.CrashCount, Execution: t.Execution, Errors: t.Errors, ErrorStack: reason,
		Executor: t.Executor, SameExecutor: true,
	})
	if o.Foreign {
		return
	}
	o.Run.Outcome, o.Run.Note, o.Run.Start, o.Run.Finish = row.OutcomeCancelled, reason, t.Execution, p.Now
	p.to.Ended = append(p.to.Ended, o.Run)
}
