package decide

import (
	"strconv"
	"strings"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// KeyPrefix begins the keys of runs. Callers cannot use it.
const KeyPrefix = "schedule:"

// Key returns the key of a run that no other run of its schedule may be open beside. The index on the keys of
// unfinished tasks is then the lock against overlap. It survives crashes, and a retry of an old run meets it.
func Key(name string) string { return KeyPrefix + name }

// keyBeside returns the key of a run that may be open beside others. A tick is still planted once.
func keyBeside(name string, tick row.Time, cause row.Cause) string {
	return Key(name) + ":" + strconv.Itoa(int(cause)) + ":" + tick.Std().Format("2006-01-02T15:04:05.999999Z")
}

// mostNote bounds notes of the history, in bytes.
const mostNote = 500

// plant writes the run of a tick, which begins when the tick is due, but not before a moment. It moves the cursor.
func (p *plan) plant(tick row.Time, cause row.Cause, from row.Time) {
	if p.s.Parent != "" {
		cause = row.CauseBackfill
	}
	r := p.task(tick, cause)
	r.Expected = p.due(tick)
	r.Due = max(r.Expected, from)
	if p.s.StartWithin > 0 && cause != row.CauseBackfill {
		r.MaxLate, r.LatePolicy = p.s.StartWithin, delaytask.LateSkip
	}
	p.s.MissedTicks = 0
	p.s.Runs++
	p.insert(r)
	p.moveTo(tick)
}

// task returns the task of a run, without its times.
func (p *plan) task(tick row.Time, cause row.Cause) row.Row {
	key := keyBeside(p.s.Name, tick, cause)
	if p.s.Serial() {
		key = Key(p.s.Name)
	}
	return row.Row{
		ID: p.NextID(), Tag: p.s.Tag, Key: key, Body: p.s.Body, Headers: p.s.Headers,
		MaxAttempts: p.s.MaxAttempts, TTR: p.s.TTR, Priority: p.s.Priority,
		TickOf: &row.TickOf{
			Schedule: p.s.Name, Tick: tick, Cause: cause, RetryBefore: p.retryBefore(tick, cause),
			Previous: p.prev(tick), Following: p.next(tick), Success: p.s.Success, Missed: int(p.s.MissedTicks),
			Zone: p.zone(),
		},
	}
}

// retryBefore returns when the next tick is due, where that one may not run beside this one: the back-off of a run that
// fails would otherwise silence a schedule for an hour.
func (p *plan) retryBefore(tick row.Time, cause row.Cause) row.Time {
	if !p.s.Serial() || p.s.RetryPastNext || cause == row.CauseBackfill {
		return 0
	}
	next := p.dueAfter(max(p.Now, p.due(tick)))
	if next.IsZero() {
		return 0
	}
	return p.due(next)
}

// insert adds a task and its row of the history.
func (p *plan) insert(r row.Row) {
	run := row.ScheduleRun{
		ScheduleID: p.s.ID, Tick: r.TickOf.Tick, Cause: r.TickOf.Cause, Until: r.TickOf.Tick, Ticks: 1, TaskID: r.ID,
	}
	p.to.New = append(p.to.New, run)
	p.to.Insert = append(p.to.Insert, r)
	p.open = append(p.open, Open{Run: run, Task: r})
	p.s.RunID = r.ID
}

// drop writes down why the ticks from the cursor up to one, which is left, do not run.
func (p *plan) drop(tick row.Time, outcome row.Outcome, note string) {
	if p.s.Next < tick {
		p.dropAll(p.prev(tick), outcome, note)
	}
}

// dropAll writes down why the ticks from the cursor up to one, which is included, do not run.
func (p *plan) dropAll(last row.Time, outcome row.Outcome, note string) {
	for first, until := p.s.Next, row.Time(0); until != last; first = p.next(until) {
		until = last
		for _, r := range p.ahead { // it has a row already
			if first < r.Tick && r.Tick <= until {
				until = p.prev(r.Tick)
			}
		}
		n := p.count(first, until)
		p.to.New = append(p.to.New, row.ScheduleRun{
			ScheduleID: p.s.ID, Tick: first, Until: until, Ticks: n, Outcome: outcome,
			Note: row.Shorten(note, mostNote),
		})
		p.s.MissedTicks += int64(n)
	}
	p.moveTo(last)
}

// endOf returns what the history says of a run that has ended.
func endOf(o *Open, now row.Time) row.ScheduleRun {
	run := o.Run
	if o.Gone {
		run.Outcome, run.Finish, run.Note = row.OutcomeUnknown, now, "its task was deleted before its end was seen"
		return run
	}
	run.Start, run.Finish = o.Task.Execution, o.Task.Finish()
	switch o.Task.Status {
	case row.Completed:
		run.Outcome = row.OutcomeCompleted
	case row.Failed:
		run.Outcome = row.OutcomeFailed
	default:
		run.Outcome = row.OutcomeCancelled
		if by := boundOf(&o.Task); run.Start.IsZero() && !by.IsZero() && run.Finish > by {
			run.Outcome = row.OutcomeMissed
		}
	}
	if run.Outcome != row.OutcomeCompleted {
		first, _, _ := strings.Cut(o.Task.ErrorStack, "\n")
		run.Note = row.Shorten(first, mostNote)
	}
	return run
}
