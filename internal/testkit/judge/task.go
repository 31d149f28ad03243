package judge

import (
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// span is what begins and may end: a call and its return, a run, a graceful stop, a fault. The end is nil when the
// process ended before, and for a fault of a moment.
type span struct{ begin, end *journal.Event }

// ended reports whether it has ended, as the class says.
func (s *span) ended(class journal.Class) bool {
	return s != nil && s.end != nil && s.end.Error == class
}

// save is everything that was tried to store one task.
type save struct {
	tries  []*span
	stored []int64 // ids of the tasks with its body, as the database shows them
}

// task is everything that is known of one id.
type task struct {
	id       int64
	runs     []*span
	writes   []*journal.Event // in the order of their versions
	leases   []*journal.Event
	finishes []*journal.Event // completions by token
	row      *journal.Event
}

func (t *task) exists() bool { return len(t.writes) > 0 || t.row != nil }

// first is the row as it was saved, as far as the journal shows it.
func (t *task) first() *journal.Event {
	if len(t.writes) > 0 {
		return t.writes[0]
	}
	return t.row
}

// last is the row as it stands at the end.
func (t *task) last() *journal.Event {
	if t.row != nil || len(t.writes) == 0 {
		return t.row
	}
	return t.writes[len(t.writes)-1]
}

func (t *task) body() string {
	if e := t.first(); e != nil {
		return e.Body
	}
	return ""
}

// next returns the transition after the i-th one, or nil.
func (t *task) next(i int) *journal.Event {
	if i+1 < len(t.writes) {
		return t.writes[i+1]
	}
	return nil
}

// run returns the execution of a version, nil where there was none.
func (t *task) run(version int64) *span {
	for _, r := range t.runs {
		if r.begin.Version == version {
			return r
		}
	}
	return nil
}

// popMark begins the executor of a task that was handed out by Pop.
const popMark = "pop:"

// claim is a transition to executing, until the next one.
type claim struct {
	task *task
	*journal.Event
	next *journal.Event // the transition that ended it, nil while none did
	run  *span          // its execution, nil without one
}

// elsewhere reports whether a caller popped the task, or its token was handed over. Such a task crashes no process.
func (o claim) elsewhere() bool {
	return strings.HasPrefix(o.Executor, popMark) || o.run.ended(journal.HandedOver)
}

// covers reports whether the claim was before the moment and had not ended.
func (o claim) covers(at time.Time, blur time.Duration) bool {
	return o.At.Before(at.Add(-blur)) && (o.next == nil || o.next.At.After(at.Add(blur)))
}

// process is what all claims of a process have in common: the executor without the number of the claim.
func (o claim) process() string { return o.Executor[:max(strings.LastIndexByte(o.Executor, ':'), 0)] }

// leases returns the claim, which gave the first lease, and the events that moved it.
func (o claim) leases() []*journal.Event {
	leases := []*journal.Event{o.Event}
	for _, l := range o.task.leases {
		if l.Version == o.Version {
			leases = append(leases, l)
		}
	}
	return leases
}

// lastLease is the event that moved the lease last.
func (o claim) lastLease() *journal.Event {
	leases := o.leases()
	return leases[len(leases)-1]
}

// unfinished is a time during which a task holds its key.
type unfinished struct {
	task      int64
	from, end *journal.Event // end is nil while it holds it
}

// unfinished returns when the task held its key.
func (t *task) unfinished() (all []unfinished) {
	for _, w := range t.writes {
		last := len(all) - 1
		holds := last >= 0 && all[last].end == nil
		switch {
		case holds && isFinal(w.Status):
			all[last].end = w
		case !holds && !isFinal(w.Status):
			all = append(all, unfinished{task: t.id, from: w})
		}
	}
	if len(t.writes) == 0 && t.row != nil && !isFinal(t.row.Status) {
		all = append(all, unfinished{task: t.id, from: t.row})
	}
	return all
}

func isFinal(status string) bool {
	return status == completed || status == failed || status == cancelled
}

// The statuses of a row, as [journal.Event] writes them.
const (
	pending   = "pending"
	executing = "executing"
	completed = "completed"
	failed    = "failed"
	cancelled = "cancelled"
)

// shift is how far the database's clock is ahead of the journal's at an event.
func shift(e *journal.Event) time.Duration {
	if e == nil || e.Clock.IsZero() {
		return 0
	}
	return e.Clock.Sub(e.At)
}

func clock(e *journal.Event) time.Time { return e.At.Add(shift(e)) }

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
