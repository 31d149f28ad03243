package decide

import (
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// UnattendedAfter is how late a schedule is looked at when no process has looked in time. A node that takes over the
// share of another one needs less.
const UnattendedAfter = 3 * time.Second

// boundOf returns the last moment at which the task may begin, or zero.
func boundOf(t *row.Row) row.Time {
	if t.MaxLate > 0 {
		return t.Expected.Add(t.MaxLate)
	}
	return 0
}

// startsBy is boundOf, or what the policy for missed ticks says if that is sooner. The tick of a run that has waited
// for the run before has a minute from then.
func (p *plan) startsBy(o *Open) row.Time {
	t, by := &o.Task, boundOf(&o.Task)
	if p.s.Missed != delaytask.MissedSkip || o.Run.Cause == row.CauseManual || o.Run.Cause == row.CauseBackfill {
		return by
	}
	from := t.Expected
	if ready := max(t.Created, t.Due); ready.Sub(from) > LateAfter {
		from = ready
	}
	if latest := from.Add(LateAfter); by.IsZero() || latest < by {
		by = latest
	}
	return by
}

// unattended reports whether later ticks fell due in an outage, while the run was open and had not begun. Under
// [delaytask.OverlapQueueOne] a tick that waits for the run is no sign of one.
func (p *plan) unattended(o *Open) bool {
	next := p.Schedule.Next
	if next.IsZero() || o.Task.Created >= p.due(next) || p.Now.Sub(p.due(next)) <= UnattendedAfter {
		return false
	}
	return p.s.Overlap != delaytask.OverlapQueueOne || p.Now.Sub(p.Schedule.Look) > UnattendedAfter
}

// takeBack withdraws runs of ticks that may not begin any more, and the runs that an outage has kept from beginning
// while later ticks fell due. The policy for missed ticks then decides about all these ticks. So the second in which an
// outage began, before a run was planted or after, changes nothing.
func (p *plan) takeBack() {
	p.withdrawWhere(func(o *Open, undo bool) (row.Outcome, string) {
		by := p.startsBy(o)
		switch {
		case o.Run.Cause == row.CauseManual || o.Run.Cause == row.CauseBackfill:
			return row.OutcomeOpen, ""
		case !by.IsZero() && p.Now > by:
			return row.OutcomeMissed, "later than it may start"
		case p.unattended(o) && (undo || p.s.Missed != delaytask.MissedAll):
			return row.OutcomeMissed, "no process has begun it in time; a later tick runs"
		}
		return row.OutcomeOpen, ""
	})
	cancelled := map[int64]bool{}
	for i := range p.to.Changes {
		cancelled[p.to.Changes[i].ID] = true
	}
	p.runs = slices.DeleteFunc(p.runs, func(o Open) bool { return cancelled[o.Task.ID] })
}

// idleThen reports whether the run had not begun when the tick at the cursor was due, nor for so long after it that the
// tick was decided in an outage. Then the policy for missed ticks decides. The others tell what runs beside an open run
// in any case.
func (p *plan) idleThen(o *Open) bool {
	switch {
	case p.s.Overlap == delaytask.OverlapQueueOne:
		return false
	case p.s.Overlap == delaytask.OverlapReplace && p.s.Missed != delaytask.MissedAll:
		return false
	case o.ended() && o.Task.Execution.IsZero():
		return !boundOf(&o.Task).IsZero() && o.Task.Finish() > boundOf(&o.Task)
	}
	began := p.Now
	if !o.unstarted() {
		began = o.Task.Execution
	}
	return began.Sub(p.due(p.s.Next)) > UnattendedAfter
}

// notRun counts the tick of a run that was claimed too late to begin. Its schedule may have one more run.
func (p *plan) notRun(o *Open) {
	p.s.Runs--
	if p.s.Next.IsZero() && !p.s.Last.IsZero() {
		p.setNext(p.next(p.s.Last))
	}
	if o.Run.TaskID == p.s.RunID && o.Task.TickOf != nil {
		p.s.MissedTicks += int64(o.Task.TickOf.Missed) + 1
	}
}

// Late reports whether a node that has claimed a task asks first whether it may begin: it is a run that may be too
// late, or whose next tick fell due in an outage.
func Late(r *row.Row, now row.Time) bool {
	of := r.TickOf
	if of == nil || of.Cause == row.CauseManual || of.Cause == row.CauseBackfill {
		return false
	}
	late := now.Sub(r.Expected)
	if late > LateAfter || r.MaxLate > 0 && late > r.MaxLate {
		return true
	}
	return !of.Following.IsZero() && late > of.Following.Sub(of.Tick)+UnattendedAfter
}

// Begin decides about a run that a node has claimed late and not begun. The due time of claimed is the one before the
// claim. Begin reports whether the decision takes the run back: then it is to be stored, and otherwise the run begins.
func Begin(st State, claimed *row.Row) (d row.Decision, taken bool) {
	at := slices.IndexFunc(st.Open, func(o Open) bool {
		return o.Task.ID == claimed.ID && o.Task.Version == claimed.Version
	})
	if at < 0 {
		return row.Decision{}, false
	}
	st.Open = slices.Clone(st.Open)
	o := &st.Open[at]
	o.Held = true
	o.Task.Execution, o.Task.Attempt, o.Task.Due = 0, o.Task.Attempt-1, claimed.Due // as before the claim
	d = Decide(st)
	return d, slices.ContainsFunc(d.Changes, func(c row.Change) bool { return c.ID == claimed.ID })
}
