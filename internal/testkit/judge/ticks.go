package judge

import (
	"fmt"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

// ticksOnce (13): the decisions about a schedule follow each other. Each tick from the first to the cursor is in one
// row of the history, unless a resume or another definition leaves it out. A run is the run of one tick of the spec.
func (c *checker) ticksOnce() {
	for _, s := range c.calendars {
		l := &ledger{checker: c, tasks: map[int64]bool{}}
		for _, d := range s.decisions {
			l.apply(d)
		}
		l.compare(s)
	}
}

// ledger is the history of a schedule, as its decisions one after the other leave it.
type ledger struct {
	*checker
	now    *row.Schedule // nil before its first
	last   *decided
	rows   []row.ScheduleRun // of ticks, in their order
	manual []row.ScheduleRun
	tasks  map[int64]bool
}

func (l *ledger) wrong(task int64, what string, d *decided) {
	events := []*decided{l.last, d}
	if l.last == nil {
		events = events[1:]
	}
	v := Violation{Invariant: 13, Task: task, What: d.Schedule.Name + ": " + what}
	for _, e := range events {
		v.Events = append(v.Events, *e.Event)
	}
	l.violations = append(l.violations, v)
}

func (l *ledger) apply(d *decided) {
	before, to := l.now, d.Schedule
	switch {
	case d.Write == row.WriteNew:
		to.Version = 0
		if before != nil {
			l.wrong(0, "it is stored anew", d)
		}
	case before == nil:
		l.wrong(0, "a decision about a schedule that is not stored", d)
		return
	case before.Version != to.Version:
		l.wrong(0, fmt.Sprintf("a decision made for version %d was applied to %d", to.Version, before.Version), d)
	}
	if d.Write != row.WriteNew {
		to.Version++
	}
	if d.Write == row.WriteDelete {
		l.now, l.last, l.rows, l.manual = nil, d, nil, nil
		return
	}
	from := l.undo(d)
	l.plant(d)
	for _, r := range d.Ended {
		if e := l.find(r); e == nil || e.Outcome != row.OutcomeOpen {
			l.wrong(r.TaskID, "a run that is not open is ended", d)
		} else {
			e.Outcome, e.Note, e.Start, e.Finish = r.Outcome, r.Note, r.Start, r.Finish
		}
	}
	if before != nil && goesOn(before, d) {
		l.covers(firstOf(from, before.Next), d)
	}
	l.now, l.last = &to, d
}

// goesOn reports whether the cursor moves over decided ticks alone: not where a pause ends or the definition changes.
func goesOn(before *row.Schedule, d *decided) bool {
	s := &d.Schedule
	if before.State != row.ScheduleActive && s.State == row.ScheduleActive {
		return false
	}
	failed := slices.ContainsFunc(d.Ended, func(r row.ScheduleRun) bool { return r.Outcome == row.OutcomeFailed })
	if s.PauseAfter > 0 && s.Failures == 0 && (failed || before.Failures >= s.PauseAfter) {
		return false // a resume has met the failures that pause, and ended that pause at once
	}
	return before.Spec == s.Spec && before.Jitter == s.Jitter && before.MaxRuns == s.MaxRuns
}

// undo deletes the rows of runs that were withdrawn, and returns the first of their ticks.
func (l *ledger) undo(d *decided) (first row.Time) {
	for _, r := range d.Undone {
		e := l.find(r)
		if e == nil || e.Outcome != row.OutcomeOpen {
			l.wrong(r.TaskID, "a run that is not open is withdrawn", d)
			continue
		}
		first = firstOf(first, r.Tick)
		l.rows = slices.DeleteFunc(l.rows, func(e row.ScheduleRun) bool { return e.TaskID == r.TaskID })
	}
	return first
}

func firstOf(a, b row.Time) row.Time {
	if a.IsZero() || !b.IsZero() && b < a {
		return b
	}
	return a
}

// plant adds the new rows.
func (l *ledger) plant(d *decided) {
	of, readable := l.ticksOf(&d.Schedule)
	if !readable {
		l.wrong(0, "its spec cannot be read", d)
		return
	}
	for _, r := range d.New {
		decided := of
		if d.Write == row.WriteDefinition && r.TaskID == 0 && l.now != nil {
			decided, _ = l.ticksOf(l.now) // an edit decides the ticks of the pause that it ends
		}
		l.plantOne(r, decided, d)
	}
	for _, task := range d.Insert {
		if l.tasks[task.ID] {
			l.wrong(task.ID, "a run is stored twice", d)
		}
		l.tasks[task.ID] = true
		if !slices.ContainsFunc(d.New, func(r row.ScheduleRun) bool { return r.TaskID == task.ID }) {
			l.wrong(task.ID, "a run without a row of the history", d)
		}
	}
}

func (l *ledger) plantOne(r row.ScheduleRun, of ticks, d *decided) {
	r.Until, r.Ticks = max(r.Until, r.Tick), max(r.Ticks, 1)
	if r.TaskID != 0 && !runOf(r, of, d) {
		l.wrong(r.TaskID, fmt.Sprintf("the run of %v is not what its tick and spec say", r.Tick), d)
	}
	if r.Cause == row.CauseManual {
		l.manual = append(l.manual, r)
		return
	}
	n := 0
	for tick := of.after(r.Tick - 1); !tick.IsZero() && tick <= r.Until && n <= r.Ticks; tick = of.after(tick) {
		n++
	}
	if !of.has(r.Tick) || !of.has(r.Until) || n != r.Ticks {
		l.wrong(r.TaskID, fmt.Sprintf("%d ticks from %v to %v are decided, and the spec has %d", r.Ticks, r.Tick,
			r.Until, n), d)
	}
	at, _ := slices.BinarySearchFunc(l.rows, r, func(a, b row.ScheduleRun) int { return int(a.Tick - b.Tick) })
	if at > 0 && l.rows[at-1].Until >= r.Tick || at < len(l.rows) && l.rows[at].Tick <= r.Until {
		l.wrong(r.TaskID, fmt.Sprintf("the tick %v is decided twice", r.Tick), d)
	}
	l.rows = slices.Insert(l.rows, at, r)
}

// runOf reports whether the task of a row is the run of its tick, and begins when that is due.
func runOf(r row.ScheduleRun, of ticks, d *decided) bool {
	i := slices.IndexFunc(d.Insert, func(t row.Row) bool { return t.ID == r.TaskID })
	if i < 0 || r.Ticks != 1 {
		return false
	}
	t := d.Insert[i]
	due := r.Tick.Add(of.jitter)
	if r.Cause == row.CauseManual {
		due = r.Tick
	}
	told := t.TickOf
	return told.Schedule == d.Schedule.Name && told.Tick == r.Tick && told.Cause == r.Cause &&
		t.Expected == due && t.Due >= due && t.Tag == d.Schedule.Tag
}

func (l *ledger) find(r row.ScheduleRun) *row.ScheduleRun {
	for _, rows := range [][]row.ScheduleRun{l.rows, l.manual} {
		for i := range rows {
			if rows[i].Tick == r.Tick && rows[i].Cause == r.Cause {
				return &rows[i]
			}
		}
	}
	return nil
}

// covers: each tick from the one that was next, up to the cursor, is in a row.
func (l *ledger) covers(tick row.Time, d *decided) {
	of, readable := l.ticksOf(&d.Schedule)
	for readable && !tick.IsZero() && (tick < d.Schedule.Next || d.Schedule.Next.IsZero() && tick <= d.Schedule.Last) {
		i := slices.IndexFunc(l.rows, func(r row.ScheduleRun) bool { return r.Tick <= tick && tick <= r.Until })
		if i < 0 {
			l.wrong(0, fmt.Sprintf("the cursor has moved over the tick %v, which nothing says more of", tick), d)
			return
		}
		tick = of.after(l.rows[i].Until)
	}
}

// compare: the history at the end is what the decisions have made. Of the oldest rows some may have been trimmed.
func (l *ledger) compare(s *calendar) {
	if l.now == nil {
		return
	}
	stored := map[row.Time]bool{}
	for _, r := range s.rows {
		stored[r.Tick] = true
		if e := l.find(r); e == nil || *e != r {
			l.wrong(r.TaskID, fmt.Sprintf("the table says something else of the tick %v", r.Tick), l.last)
		}
	}
	for _, r := range slices.Concat(l.rows, l.manual) {
		if !stored[r.Tick] && len(s.rows) < max(l.now.KeepRuns, 1) && l.rowsShown() {
			l.wrong(r.TaskID, fmt.Sprintf("what was decided of the tick %v is not in the table", r.Tick), l.last)
		}
	}
}

// rowsShown reports whether the journal ends with the table.
func (l *ledger) rowsShown() bool { return l.checker.rows }
