package decide

import (
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

const (
	// LateAfter is how late a tick may be and still not count as missed. A node that starts, or a failover, takes less.
	LateAfter = time.Minute
	// mostMissed bounds how many ticks [delaytask.MissedAll] runs after an outage: the newest of them.
	mostMissed = 1000
	// waitingLook is how often a schedule is looked at whose next tick waits for a run. The process that stores the end
	// of a run looks at once, so this is for the case that it dies in between.
	waitingLook = 5 * time.Second
	// refusedWithin is how long after its claim a run may still be refused. It is below the time between two renewals
	// of a lease, which also are updates.
	refusedWithin = row.MinTTR / 4
	// openLook is the same where no tick waits.
	openLook = 30 * time.Second
)

// State is all that a decision is made of.
type State struct {
	Schedule row.Schedule
	Spec     *spec.Spec
	Open     []Open            // the runs whose end was not collected, the oldest tick first
	History  []row.ScheduleRun // its newest rows: for an operation that may take back a run, and see [Ahead]
	Now      row.Time          // not later than the database's clock
	Actor    string            // who asks for it; "": a program
	ZoneData string            // version of the zone data that Spec computes by; "" when it is not known
	Ahead    time.Duration     // how long before they are due ticks are planted
	NextID   func() int64      // ids of tasks
}

// Open is an open run and its task.
type Open struct {
	Run  row.ScheduleRun
	Task row.Row
	Gone bool // the task is not stored any more
	// Foreign says that the task is an old run that an operator has retried. It is in the way like any run. Its row of
	// the history tells of its first end.
	Foreign bool
	// Held says that the node which has claimed the task asks whether it may begin. See [Begin].
	Held bool
}

func (o *Open) ended() bool { return o.Gone || o.Task.Status.Final() }

// unstarted reports whether nothing has begun to run the task, or has given it back.
func (o *Open) unstarted() bool { return (o.Task.Status == row.Pending || o.Held) && !o.again() }

// heldBack reports whether the run waits although its tick is due, as for a lease.
func (o *Open) heldBack(now row.Time) bool { return o.Task.Expected <= now && now < o.Task.Due }

// endOf returns when the run ended, or the moment where it has not. Nothing works on a run whose lease is over, nor on
// one whose further attempts would begin too late: in an outage both are in the way until that time, not to its end.
// The task has that time as its finish when it is ended for that reason.
func (o *Open) endOf(now row.Time) row.Time {
	t := &o.Task
	switch {
	case o.Held:
		return now
	case o.ended() && !t.Finish().IsZero():
		return t.Finish()
	case t.Status == row.Executing && !t.Due.IsZero():
		return min(now, t.Due)
	case t.Status == row.Pending && o.again():
		return t.TickOf.End(now)
	default:
		return now
	}
}

// again reports whether the next attempt of the run, or the one that is under way, is not its first.
func (o *Open) again() bool {
	first := 0
	if o.Task.Status == row.Executing {
		first = 1
	}
	return o.Task.Attempt > first || o.Task.CrashCount > 0
}

// plan is a decision in the making.
type plan struct {
	State
	ticks

	s     *row.Schedule // the schedule of the decision, with its new values
	runs  []Open        // the runs of Open, and the runs that ended
	open  []Open
	to    row.Decision
	waits bool          // a due tick waits for an open run
	wait  time.Duration // until the next look then
}

func newPlan(st State) *plan {
	p := &plan{State: st, wait: waitingLook}
	p.to.Schedule = st.Schedule
	p.s = &p.to.Schedule
	p.ticks = newTicks(p.s, st.Spec, skipped(st.History, p.cursor()))
	if p.isAhead(p.s.Next) { // the history is newer than the schedule: what is decided here will be refused
		p.setNext(p.next(p.s.Next))
	}
	return p
}

// cursor returns the first tick that is not decided. Where none is left, it is the moment after the last one.
func (p *plan) cursor() row.Time {
	if p.s.Next.IsZero() {
		return p.s.Last + 1
	}
	return p.s.Next
}

// Decide returns what is to be written of a schedule that needs attention: the ends of its runs, what becomes of the
// ticks that are due, the run that is due next, and when to look again.
func Decide(st State) row.Decision {
	p := newPlan(st)
	p.collect()
	p.takeNewerZoneData()
	if p.s.State == row.ScheduleActive {
		p.takeBack()
		p.decideDue()
		p.plantAhead()
	}
	return p.finish()
}

// finish sets when to look again, and ends a schedule that has no tick left.
func (p *plan) finish() row.Decision {
	if p.s.State == row.ScheduleActive && p.s.Next.IsZero() && len(p.open) == 0 {
		p.become(row.ScheduleEnded, "no tick is left")
	}
	p.s.Look = p.look()
	return p.to
}

// look returns when the schedule next needs attention.
func (p *plan) look() (at row.Time) {
	sooner := func(t row.Time) {
		if at.IsZero() || t < at {
			at = t
		}
	}
	for i := range p.open {
		o := &p.open[i]
		sooner(max(p.Now, o.Task.Due).Add(openLook))
		if by := p.startsBy(o); o.unstarted() && !by.IsZero() {
			sooner(max(p.Now, by) + 1)
		}
	}
	switch {
	case p.s.State != row.ScheduleActive || p.s.Next.IsZero():
	case p.waits:
		sooner(p.Now.Add(p.wait))
	case p.full():
		sooner(max(p.Now, p.due(p.s.Next))) // overlap is decided when the tick is due
	default:
		sooner(max(p.Now, p.due(p.s.Next).Add(-p.Ahead)))
	}
	return at
}

// most returns how many runs may be open at once.
func (p *plan) most() int {
	if p.s.Serial() {
		return 1
	}
	return max(p.s.MaxOpen, 1)
}

func (p *plan) full() bool { return len(p.open) >= p.most() }

// collect writes down which runs have ended.
func (p *plan) collect() {
	failure := ""
	p.runs = slices.Clone(p.Open)
	for i := range p.runs {
		o := &p.runs[i]
		if !o.ended() {
			p.open = append(p.open, *o)
			continue
		}
		if o.Foreign {
			continue
		}
		run := endOf(o, p.Now)
		p.to.Ended = append(p.to.Ended, run)
		if run.Outcome == row.OutcomeMissed {
			p.notRun(o)
			continue
		}
		switch run.Outcome {
		case row.OutcomeCompleted:
			p.s.Failures = 0
			if run.Cause != row.CauseManual {
				p.s.Success = max(p.s.Success, run.Tick)
			}
		case row.OutcomeFailed:
			p.s.Failures++
			failure = run.Note
		default: // a cancel says nothing of the processor
		}
	}
	// An operator looks before a job fails for ever.
	if p.s.State == row.ScheduleActive && p.s.PauseAfter > 0 && p.s.Failures >= p.s.PauseAfter {
		p.Actor = "" // by itself
		p.pause(fmt.Sprintf("%d runs failed in a row: %s", p.s.Failures, failure))
	}
}

// maybeTooLate reports whether an open run may have been claimed too late. Then its node ends it within a moment: a
// further attempt as of an earlier time, and a first one that is to be taken back.
func (p *plan) maybeTooLate() bool {
	return slices.ContainsFunc(p.open, func(o Open) bool {
		t := &o.Task
		if t.Status != row.Executing || o.Held || p.Now.Sub(t.Updated) >= refusedWithin {
			return false
		}
		return o.again() && t.TickOf.Past(p.Now) || !o.again() && p.unattended(&o)
	})
}

// decideDue decides the ticks that are due, or leaves the cursor at the first one that has to wait.
func (p *plan) decideDue() {
	for !p.s.Next.IsZero() && p.due(p.s.Next) <= p.Now && !p.waits {
		if p.s.Overlap != delaytask.OverlapReplace && p.maybeTooLate() {
			p.waits, p.wait = true, refusedWithin
		} else if last := p.overlapped(); !last.IsZero() {
			p.overlap(last)
		} else {
			p.missed(p.dueBy(p.Now))
		}
	}
}

// takeNewerZoneData moves the cursor where a newer version of the zone data says. A node with an older version takes
// the cursor as it is, so two nodes that differ cannot move it to and fro.
func (p *plan) takeNewerZoneData() {
	if p.ZoneData <= p.s.ZoneData {
		return
	}
	p.s.ZoneData = p.ZoneData
	if !p.s.Next.IsZero() && !p.s.Last.IsZero() {
		p.setNext(p.next(min(p.s.Last, p.s.Next-1))) // what was skipped ahead is no bound
	}
}

// plantAhead plants what is due soon, so that the timers of a node start it on its millisecond.
func (p *plan) plantAhead() {
	for !p.s.Next.IsZero() && !p.full() && p.due(p.s.Next) <= p.Now.Add(p.Ahead) && p.s.State == row.ScheduleActive {
		p.plant(p.s.Next, row.CauseTick, 0)
	}
}

// moveTo moves the cursor over all ticks up to one.
func (p *plan) moveTo(tick row.Time) {
	p.setNext(p.next(tick))
	p.setLast(tick)
}

// setLast sets the last tick that is decided. While that is not before the cursor, ticks were skipped ahead, and each
// decision reads which: see [Ahead].
func (p *plan) setLast(tick row.Time) {
	p.s.Last = tick
	if p.s.Next.IsZero() {
		return
	}
	for _, r := range p.ahead {
		p.s.Last = max(p.s.Last, r.Until)
	}
}

// MostAhead bounds how many of the newest rows of the history are read where [Ahead] asks for them.
const MostAhead = 1000

// Ahead reports whether a decision about the schedule needs its history: ticks behind the cursor were skipped.
func Ahead(s *row.Schedule) bool { return !s.Next.IsZero() && s.Next <= s.Last }

// setNext sets the cursor, unless no run is left.
func (p *plan) setNext(tick row.Time) {
	if p.s.MaxRuns > 0 && p.s.Runs >= int64(p.s.MaxRuns) {
		tick = 0
	}
	p.s.Next = tick
}
