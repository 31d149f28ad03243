package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

// refused says that the state of the schedule does not allow what was asked for.
func (p *plan) refused(why string) error {
	return fmt.Errorf("%w: it is %s", delaytask.ErrScheduleState, why)
}

func (p *plan) refusedState() error { return p.refused(p.s.State.String()) }

// operation collects what has ended, lets change do its work, and sets when to look again.
func operation(st State, change func(p *plan) error) (row.Decision, error) {
	p := newPlan(st)
	p.collect()
	if err := change(p); err != nil {
		return row.Decision{}, err
	}
	return p.finish(), nil
}

// Pause stops the schedule. A run that waits for its time is withdrawn, one that executes goes on.
func Pause(st State, reason string) (row.Decision, error) {
	return operation(st, func(p *plan) error {
		if p.s.State != row.ScheduleActive && p.s.State != row.SchedulePaused {
			return p.refusedState()
		}
		p.pause(reason)
		return nil
	})
}

func (p *plan) pause(reason string) {
	p.withdraw()
	p.become(row.SchedulePaused, reason)
}

// become puts the schedule into a state, from now on. One that is in it already keeps its beginning.
func (p *plan) become(state row.ScheduleState, reason string) {
	if p.s.State != state {
		p.s.State, p.s.Since = state, p.Now
	}
	p.s.Reason, p.s.By = row.Shorten(reason, mostNote), row.Shorten(p.Actor, mostBy)
}

// mostBy bounds the name of who has brought a schedule into its state, in bytes.
const mostBy = 255

// Resume lets a paused schedule go on with the first tick that is not due yet. Nothing counts as missed, and the
// history tells of the pause. A backfill goes on where it was: all its ticks are past.
func Resume(st State) (row.Decision, error) {
	return operation(st, func(p *plan) error {
		if p.s.State != row.SchedulePaused {
			return p.refusedState()
		}
		p.dropPaused()
		p.become(row.ScheduleActive, "")
		p.s.Failures = 0
		if p.s.Parent == "" {
			p.skipToFuture()
		}
		return nil
	})
}

// dropPaused writes down who has let the ticks of a pause not run, when and why. They do not count as missed.
func (p *plan) dropPaused() {
	last := p.dueBy(p.Now)
	if p.s.State != row.SchedulePaused || p.s.Parent != "" || p.s.Next.IsZero() || last < p.s.Next {
		return
	}
	note, missed := "paused", p.s.MissedTicks
	if p.s.By != "" {
		note += " by " + p.s.By
	}
	if !p.s.Since.IsZero() {
		note += " from " + p.s.Since.Std().Format(time.RFC3339)
	}
	note += " to " + p.Now.Std().Format(time.RFC3339)
	if p.s.Reason != "" {
		note += ": " + p.s.Reason
	}
	p.dropAll(last, row.OutcomeSkipped, note)
	p.s.MissedTicks = missed
	p.History = slices.Concat(p.History, p.to.New)
}

// Reset sets the cursor to the first tick that is not due yet, whatever was decided: for a clock that was wrong. The
// history of ticks from there on is deleted, or they could not be decided again. A backfill has no tick to come.
func Reset(st State) (row.Decision, error) {
	return operation(st, func(p *plan) error {
		if p.s.Parent != "" {
			return p.refused("a backfill: all its ticks are past; delete it, or backfill another range")
		}
		p.withdraw()
		p.dropPaused()
		p.ahead = nil // forgotten as well
		p.s.Last = p.dueBy(p.Now)
		p.setNext(p.dueAfter(p.Now))
		p.to.Forget = max(p.s.Last, p.Now) + 1
		forgotten := func(r row.ScheduleRun) bool { return r.Tick >= p.to.Forget }
		p.to.Undone = slices.DeleteFunc(p.to.Undone, forgotten)
		p.to.Ended = slices.DeleteFunc(p.to.Ended, forgotten)
		if p.s.State == row.ScheduleEnded {
			p.become(row.ScheduleActive, "")
		}
		return nil
	})
}

// Retire stops a schedule that its code declares no more. Its cursor stays.
func Retire(st State, reason string) (row.Decision, error) {
	return operation(st, func(p *plan) error {
		p.withdraw()
		if p.s.State == row.SchedulePaused {
			p.s.State = row.ScheduleRetiredPaused // and the reason stays
			return nil
		}
		p.become(row.ScheduleRetired, reason)
		return nil
	})
}

// Delete deletes the schedule with its history. A run that nothing has begun is cancelled, one that executes goes on.
func Delete(st State) (row.Decision, error) {
	return operation(st, func(p *plan) error {
		for i := range p.open {
			if o := &p.open[i]; o.unstarted() && !o.Foreign {
				p.cancel(o, "withdrawn: its schedule was deleted")
			}
		}
		p.to.Write, p.to.Ended = row.WriteDelete, nil // the history goes with it
		return nil
	})
}

// SkipNext decides that the next tick does not run, and returns it.
func SkipNext(st State, reason string) (d row.Decision, tick row.Time, err error) {
	d, err = operation(st, func(p *plan) error {
		if p.s.State != row.ScheduleActive && p.s.State != row.SchedulePaused {
			return p.refusedState()
		}
		p.withdraw()
		p.dropPaused()
		if tick = p.s.Next; tick.IsZero() {
			return p.refused("without a tick to come")
		}
		missed := p.s.MissedTicks
		p.dropAll(tick, row.OutcomeSkipped, reason)
		p.s.MissedTicks = missed // the operator knows
		return nil
	})
	return d, tick, err
}

// Trigger plants a run that begins at once, whatever the state of the schedule. A run that waits for its time is
// withdrawn, and its tick decided when it is due. With beside the new run may be open beside one that executes.
func Trigger(st State, beside bool) (d row.Decision, run row.Row, err error) {
	d, err = operation(st, func(p *plan) error {
		p.withdraw()
		if p.full() && !beside {
			return delaytask.ErrScheduleBusy
		}
		run = p.task(p.Now, row.CauseManual)
		if beside {
			run.Key = keyBeside(p.s.Name, p.Now, row.CauseManual)
		}
		run.Expected, run.Due = p.Now, p.Now
		p.insert(run)
		return nil
	})
	return d, run, err
}

// New returns the decision that stores a schedule for the first time. Its first tick is the first one to come.
func New(st State) row.Decision {
	p := newPlan(st)
	p.collect() // of a deleted schedule of the name
	p.to.Write = row.WriteNew
	p.s.ZoneData, p.s.Since, p.s.By = p.ZoneData, p.Now, row.Shorten(p.Actor, mostBy)
	p.s.Next = p.dueAfter(p.Now)
	p.plantAhead()
	return p.finish()
}

// Edit gives the schedule of a state another definition: to has its fields, sp its ticks. With the same ticks the
// cursor stays. Other ticks count from now on, whatever the old ones were: an edit runs nothing at once.
func Edit(st State, to row.Schedule, sp *spec.Spec) (row.Decision, error) {
	return operation(st, func(p *plan) error {
		if p.s.Parent != "" {
			return p.refused("a backfill, which runs as its schedule was; delete it, and backfill the range again")
		}
		p.withdraw()
		if p.s.Spec != to.Spec || p.s.Jitter != to.Jitter || p.s.MaxRuns != to.MaxRuns {
			p.dropPaused() // by the ticks that it had
		}
		was := *p.s
		*p.s = to
		keepProgress(p.s, &was)
		p.s.Defined = was.Version + 1
		p.ticks = newTicks(p.s, sp, p.ahead)
		p.to.Write = row.WriteDefinition
		p.takeNewerZoneData()
		over := p.revive()
		if over || was.Spec != to.Spec || was.Jitter != to.Jitter || was.MaxRuns != to.MaxRuns {
			p.skipToFuture()
		}
		if p.s.State == row.ScheduleActive {
			p.plantAhead()
		}
		return nil
	})
}

// revive lets a schedule go on that has ended or was retired, and reports whether it had.
func (p *plan) revive() bool {
	switch p.s.State {
	case row.ScheduleEnded, row.ScheduleRetired:
		p.become(row.ScheduleActive, "")
	case row.ScheduleRetiredPaused:
		p.s.State = row.SchedulePaused
	default:
		return false
	}
	return true
}

// keepProgress copies all that a definition does not say.
func keepProgress(to, from *row.Schedule) {
	to.SetProgress(from)
	to.ID, to.Version = from.ID, from.Version
	to.Created, to.Updated = from.Created, from.Updated
}

// skipToFuture moves the cursor to the first tick after the last decided one that is not due yet. A tick that is
// skipped ahead stays skipped, and those before it run.
func (p *plan) skipToFuture() {
	last := p.lastInOrder()
	p.ahead = skipped(p.History, last+1)
	next := p.dueAfter(p.Now)
	if !next.IsZero() && next <= last {
		next = p.next(last)
	}
	p.setNext(next)
	p.setLast(last)
}

// lastInOrder returns the last tick that is decided, except for those that were skipped before they were due.
func (p *plan) lastInOrder() (last row.Time) {
	old := newTicks(&p.Schedule, p.Spec, nil)
	ahead := func(r row.ScheduleRun) bool { return r.TaskID == 0 && old.due(r.Tick) > p.Now }
	if !slices.ContainsFunc(p.History, ahead) {
		return p.s.Last
	}
	for _, r := range p.History {
		if r.Cause != row.CauseManual && !ahead(r) {
			last = max(last, r.Until)
		}
	}
	return last
}

// decidedBefore returns the last tick before another one that the history has. Another definition may have had it, and
// have skipped it before it was due.
func (p *plan) decidedBefore(tick row.Time) (last row.Time) {
	for _, r := range p.History {
		if r.Tick < tick && r.Cause != row.CauseManual {
			last = max(last, r.Until)
		}
	}
	return last
}

// withdraw takes back runs that nothing has begun, so that their ticks are decided anew. A run that has waited while
// later ticks were decided is cancelled: the cursor cannot go back behind those. So is the run of a tick that another
// definition had. A run that waits for the lease of the run that it replaces stays, because nothing else remembers that
// lease. A run of a backfill behind later ones stays as well: no other run would cover its tick.
func (p *plan) withdraw() {
	p.withdrawWhere(func(o *Open, undo bool) (row.Outcome, string) {
		if o.Run.Cause == row.CauseBackfill && !undo {
			return row.OutcomeOpen, ""
		}
		return row.OutcomeCancelled, "withdrawn: its schedule was changed, paused or triggered"
	})
}

// withdrawWhere withdraws the runs for which verdict returns another outcome than open, and why. It is told whether the
// tick of the run can be decided anew. If it cannot, the history has the outcome.
func (p *plan) withdrawWhere(verdict func(o *Open, undo bool) (row.Outcome, string)) {
	kept := p.open[:0:0]
	slices.SortStableFunc(p.open, func(a, b Open) int { return cmp.Compare(b.Run.Tick, a.Run.Tick) })
	for i := range p.open {
		o := p.open[i]
		if !o.unstarted() || o.Foreign || o.heldBack(p.Now) {
			kept = append(kept, o)
			continue
		}
		undo := o.Run.Tick == p.lastInOrder() && p.next(o.Run.Tick-1) == o.Run.Tick
		outcome, why := verdict(&o, undo)
		if outcome == row.OutcomeOpen {
			kept = append(kept, o)
			continue
		}
		p.cancel(&o, why)
		p.to.Ended[len(p.to.Ended)-1].Outcome = outcome
		if o.Run.Cause == row.CauseManual {
			continue // the history keeps that someone asked for it
		}
		p.s.Runs--
		if !undo {
			continue
		}
		p.to.Ended = p.to.Ended[:len(p.to.Ended)-1]
		p.to.Undone = append(p.to.Undone, o.Run)
		p.History = slices.DeleteFunc(slices.Clone(p.History), func(r row.ScheduleRun) bool {
			return r.TaskID == o.Run.TaskID
		})
		p.s.Next, p.ahead = o.Run.Tick, skipped(p.History, o.Run.Tick)
		p.setLast(max(p.prev(o.Run.Tick), p.decidedBefore(o.Run.Tick)))
		if of := o.Task.TickOf; of != nil {
			p.s.MissedTicks = int64(of.Missed)
		}
	}
	slices.Reverse(kept)
	p.open = kept
}
