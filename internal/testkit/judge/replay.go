package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
)

// plantedAhead is how long before they are due nodes plant ticks.
const plantedAhead = 10 * time.Second

// closeBy is how near to the due time of a tick a run may end and the tick be decided either way: what stores the end
// takes a moment.
const closeBy = 100 * time.Millisecond

// asOneNode (16): without faults and operations, what becomes of each tick is what a single node would have decided. It
// decides by the times when runs were stored, started and ended.
func (c *checker) asOneNode() {
	from, to, ok := c.bounded()
	for _, crash := range c.crashed {
		ok = ok && crash.At.Before(c.drain.At)
	}
	for _, s := range c.calendars {
		i := slices.IndexFunc(s.decisions, func(d *decided) bool { return d.At.After(from) })
		if ok && i >= 0 && !c.isTouched(s.decisions[i], from) {
			c.replay(s, i, row.At(clock(c.drain).Add(to.Sub(c.drain.At))))
		}
	}
}

// isTouched reports whether an operation may have changed the schedule after the moment.
func (c *checker) isTouched(d *decided, from time.Time) bool {
	return slices.ContainsFunc(c.asked, func(o *span) bool {
		return strings.HasPrefix(d.Schedule.Name, o.begin.Key) && (o.end == nil || o.end.At.After(from))
	})
}

// node replays a schedule.
type node struct {
	*checker
	state  decide.State
	stored *ledger                   // what was decided
	ends   map[int64]row.ScheduleRun // of runs, by their tasks
	ticks  map[int64]*row.TickOf     // likewise
	last   *decided
}

// ledgerOf returns what the first n decisions about a schedule have made.
func (c *checker) ledgerOf(s *calendar, n int) *ledger {
	l := &ledger{checker: &checker{history: c.history}, tasks: map[int64]bool{}}
	for _, d := range s.decisions[:n] {
		l.apply(d)
	}
	return l
}

// replay decides from the state after the i-th decision on.
func (c *checker) replay(s *calendar, i int, until row.Time) {
	begin := c.ledgerOf(s, i+1)
	n := node{
		checker: c, stored: c.ledgerOf(s, len(s.decisions)), ends: map[int64]row.ScheduleRun{},
		ticks: map[int64]*row.TickOf{}, last: s.decisions[i],
	}
	if begin.now == nil || n.stored.now == nil {
		return
	}
	of, readable := c.ticksOf(begin.now)
	if !readable {
		return
	}
	for _, d := range s.decisions {
		for _, r := range d.Ended {
			n.ends[r.TaskID] = r
		}
		for _, t := range d.Insert {
			n.ticks[t.ID] = t.TickOf
		}
	}
	n.state = decide.State{
		Schedule: *begin.now, Spec: of.Spec, Now: row.At(clock(s.decisions[i].Event)), Ahead: plantedAhead,
		NextID: func() int64 { return 0 },
	}
	for _, r := range slices.Concat(begin.rows, begin.manual) {
		if r.Outcome == row.OutcomeOpen {
			n.state.Open = append(n.state.Open, decide.Open{Run: r})
		}
	}
	if c.unfinishedBut(n.state.Open, s, s.decisions[i].At) {
		return // an old run was retried
	}
	for range 100_000 {
		if n.wait(); n.state.Now >= until || !n.decide() {
			return
		}
	}
}

// unfinishedBut reports whether a run that is not open was unfinished.
func (c *checker) unfinishedBut(open []decide.Open, s *calendar, at time.Time) bool {
	for _, p := range c.runs(s) {
		known := slices.ContainsFunc(open, func(o decide.Open) bool { return o.Run.TaskID == p.ID })
		if t := c.tasks[p.ID]; t != nil && !known && p.by.At.Before(at) {
			for _, u := range t.unfinished() {
				if u.end == nil || u.end.At.After(at) {
					return true
				}
			}
		}
	}
	return false
}

// wait goes on to when the schedule needs attention: to the next look, or to the end of a run.
func (n *node) wait() {
	next := row.MaxTime
	if look := n.state.Schedule.Look; !look.IsZero() {
		next = look
	}
	for i := range n.state.Open {
		if r, ended := n.ends[n.state.Open[i].Run.TaskID]; ended {
			next = min(next, r.Finish)
		}
	}
	n.state.Now = max(n.state.Now, next)
	for i := range n.state.Open {
		n.show(&n.state.Open[i])
	}
}

// show gives an open run the state of its task in the table.
func (n *node) show(o *decide.Open) {
	o.Task = row.Row{ID: o.Run.TaskID, Status: row.Pending, Due: o.Run.Tick}
	if t := n.tasks[o.Run.TaskID]; t != nil && len(t.writes) > 0 {
		o.Task.Created = row.At(clock(t.writes[0]))
	}
	r, ended := n.ends[o.Run.TaskID]
	if !r.Start.IsZero() && r.Start <= n.state.Now {
		o.Task.Status, o.Task.Attempt, o.Task.Execution = row.Executing, 1, r.Start
		o.Task.Due = n.leaseAt(o.Run.TaskID)
		n.takeBack(o)
	}
	if !ended || r.Finish > n.state.Now {
		return
	}
	o.Task.Due, o.Task.ErrorStack = r.Finish, r.Note
	switch r.Outcome {
	case row.OutcomeCompleted:
		o.Task.Status = row.Completed
	case row.OutcomeFailed:
		o.Task.Status = row.Failed
	case row.OutcomeCancelled:
		o.Task.Status = row.Cancelled
	default:
		o.Gone = true
	}
}

// takeBack shows a run as pending that began and was taken back or failed, when the table did.
func (n *node) takeBack(o *decide.Open) {
	t, of := n.tasks[o.Run.TaskID], n.ticks[o.Run.TaskID]
	for _, w := range slices.Backward(t.writes) {
		if row.At(clock(w)) > n.state.Now {
			continue
		}
		if w.Status == pending && of != nil {
			o.Task.Status, o.Task.Due, o.Task.TickOf = row.Pending, row.At(w.Due), of
		}
		return
	}
}

// leaseAt returns the end of the lease that the table showed last.
func (n *node) leaseAt(id int64) (end row.Time) {
	t := n.tasks[id]
	var last time.Time
	for _, e := range slices.Concat(t.writes, t.leases) {
		if at := clock(e); row.At(at) <= n.state.Now && !at.Before(last) && e.Status == executing {
			last, end = at, row.At(e.Due)
		}
	}
	return end
}

// decide decides as the node does, and reports whether the cluster has decided the same.
func (n *node) decide() bool {
	d := decide.Decide(n.state)
	open := slices.DeleteFunc(n.state.Open, func(o decide.Open) bool {
		return slices.ContainsFunc(d.Ended, func(r row.ScheduleRun) bool { return r.TaskID == o.Run.TaskID }) ||
			slices.ContainsFunc(d.Undone, func(r row.ScheduleRun) bool { return r.Tick == o.Run.Tick })
	})
	for _, r := range d.New {
		runs := slices.ContainsFunc(d.Insert, func(t row.Row) bool { return t.TickOf.Tick == r.Tick })
		stored, same := n.compare(r, runs)
		if !same {
			return false
		}
		if runs {
			open = append(open, decide.Open{Run: *stored})
		}
	}
	n.state.Open, n.state.Schedule = open, d.Schedule
	return true
}

// compare reports whether the cluster has decided the ticks of a row in the same way.
func (n *node) compare(r row.ScheduleRun, runs bool) (stored *row.ScheduleRun, same bool) {
	of, _ := n.ticksOf(&n.state.Schedule)
	for tick := r.Tick; !tick.IsZero() && tick <= max(r.Until, r.Tick); tick = of.after(tick) {
		i := slices.IndexFunc(n.stored.rows, func(e row.ScheduleRun) bool { return e.Tick <= tick && tick <= e.Until })
		if i < 0 {
			return nil, false // it is still to be decided: invariant 15 says by when
		}
		stored = &n.stored.rows[i]
		n.counts.Replayed++
		if runs == (stored.TaskID != 0) && (runs || stored.Outcome == r.Outcome) {
			continue
		}
		// The latest tick runs instead where it is due before the table shows the end, and where this one may not start
		// any more by then.
		next, by := of.after(tick), tick.Add(of.jitter+n.state.Schedule.StartWithin)
		if !n.isClose(tick.Add(of.jitter)) && !n.isClose(by) && (next.IsZero() || !n.isClose(next.Add(of.jitter))) {
			single := "run"
			if !runs {
				single = r.Outcome.String() + ": " + r.Note
			}
			n.report(16, stored.TaskID, fmt.Sprintf("%s: the tick %v is %v (%s), and a single node decides: %s",
				n.state.Schedule.Name, tick, stored.Outcome, stored.Note, single), n.last.Event)
		}
		return nil, false
	}
	return stored, true
}

// isClose reports whether a run ended so near to the moment that a tick which is due then may be decided either way:
// from when its processor returned until the table showed that.
func (n *node) isClose(moment row.Time) bool {
	for id, r := range n.ends {
		shown := r.Finish
		if t := n.tasks[id]; t != nil && len(t.writes) > 0 {
			shown = max(shown, row.At(clock(t.writes[len(t.writes)-1])))
		}
		if moment > r.Finish.Add(-closeBy) && moment < shown.Add(closeBy) {
			return true
		}
	}
	return false
}
