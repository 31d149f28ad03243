package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// successors says which status may follow which. Nothing follows completed and cancelled.
var successors = map[string][]string{
	pending:   {executing, pending, cancelled},
	executing: {completed, pending, failed, cancelled},
	failed:    {pending},
}

// completedOnce (4): every transition follows from the one before, each claim has one execution, and only the execution
// that holds the current lease completes the task.
func (c *checker) completedOnce() {
	for _, t := range c.ordered {
		c.executedOncePerClaim(t)
		for i := 1; i < len(t.writes); i++ {
			before, w := t.writes[i-1], t.writes[i]
			switch {
			case w.Version == before.Version:
				c.report(4, t.id, fmt.Sprintf("version %d was written twice", w.Version), before, w)
			case w.Version != before.Version+1:
				c.report(4, t.id, fmt.Sprintf("version %d follows %d", w.Version, before.Version), before, w)
			case !slices.Contains(successors[before.Status], w.Status):
				c.report(4, t.id, "it went from "+describe(before, w), before, w)
			case w.Status == completed && !c.completes(t, before, w):
				c.report(4, t.id, "it is completed without its lease", before, w)
			}
		}
		if n := len(t.writes); n > 0 && t.row != nil {
			if w := t.writes[n-1]; w.Version != t.row.Version || w.Status != t.row.Status {
				c.report(4, t.id, "the table shows another row than the last transition", w, t.row)
			}
		}
	}
}

// completes reports whether the owner of the lease asked for the completion.
func (c *checker) completes(t *task, claim, w *journal.Event) bool {
	by := w.At.Add(c.rules.Blur)
	if r := t.run(claim.Version); r.ended(journal.OK) && !r.end.At.After(by) {
		return true
	}
	return slices.ContainsFunc(t.finishes, func(e *journal.Event) bool {
		return e.Version == claim.Version && !e.At.After(by)
	})
}

func (c *checker) executedOncePerClaim(t *task) {
	runs := map[int64]*span{}
	for _, r := range t.runs {
		version := r.begin.Version
		if other := runs[version]; other != nil {
			c.report(4, t.id, fmt.Sprintf("it was executed twice under version %d", version), other.begin, r.begin)
		}
		runs[version] = r
		claimed := slices.ContainsFunc(t.writes, func(w *journal.Event) bool {
			return w.Version == version && w.Status == executing && !w.At.After(r.begin.At.Add(c.rules.Blur))
		})
		if len(t.writes) > 0 && !claimed {
			c.report(4, t.id, fmt.Sprintf("it was executed under version %d, which was not claimed", version), r.begin)
		}
	}
}

// keysUnique (10): no two tasks with the same tag and key are unfinished at the same time.
func (c *checker) keysUnique() {
	held := map[[2]string][]unfinished{}
	for _, t := range c.ordered {
		first := t.first()
		if first == nil || first.Key == "" {
			continue
		}
		name := [2]string{first.Tag, first.Key}
		held[name] = append(held[name], t.unfinished()...)
	}
	for _, name := range slices.SortedFunc(maps.Keys(held), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	}) {
		all := held[name]
		slices.SortStableFunc(all, func(a, b unfinished) int { return a.from.At.Compare(b.from.At) })
		for i := 1; i < len(all); i++ {
			before, u := all[i-1], all[i]
			if before.task != u.task && (before.end == nil || u.from.At.Before(before.end.At.Add(-c.rules.Blur))) {
				c.report(10, u.task, "another unfinished task carries its key", before.from, before.end, u.from)
			}
		}
	}
}

// acceptedChanges (2): an accepted cancel, reschedule or retry happened between its call and its return, and an
// accepted task is found.
func (c *checker) acceptedChanges() {
	for _, o := range c.ops {
		t, seen := c.tasks[o.begin.ID], o.begin.At.Add(-c.rules.Blur-c.rules.Commit)
		switch {
		case o.end == nil:
		case o.end.Error == journal.NotFound && t != nil && t.exists() && t.first().At.Before(seen):
			c.report(2, o.begin.ID, "a task that is there was not found", o.begin, o.end, t.first())
		case o.end.Error == journal.OK && !c.happened(t, o):
			c.report(2, o.begin.ID, "a change was accepted, and has not happened", o.begin, o.end)
		}
	}
}

// happened reports whether the database shows the change between call and return.
func (c *checker) happened(t *task, o *span) (done bool) {
	if t == nil {
		return false
	}
	for i := 1; i < len(t.writes); i++ {
		from, to := t.writes[i-1].Status, t.writes[i]
		if to.At.Before(o.begin.At.Add(-c.rules.Blur)) || to.At.After(o.end.At.Add(c.rules.Blur)) {
			continue
		}
		switch o.begin.Kind {
		case journal.CallCancel:
			done = to.Status == cancelled
		case journal.CallReschedule:
			done = from == pending && to.Status == pending
		case journal.CallRetry:
			done = from == failed && to.Status == pending
		}
		if done {
			return true
		}
	}
	return len(t.writes) == 0 // the journal shows no transitions
}

// ranAtLeastOnce (3): a task ends because its processor succeeded, because it was cancelled, or because its attempts
// are used up. Invariant 4 covers the success.
func (c *checker) ranAtLeastOnce() {
	for _, t := range c.ordered {
		for i := 1; i < len(t.writes); i++ {
			before, w := t.writes[i-1], t.writes[i]
			switch {
			case w.Status == cancelled && !c.cancelAsked(t.id, w):
				c.report(3, t.id, "it is cancelled without a request", before, w)
			case w.Status == failed && before.Status == executing && !c.mayFail(t, before, w):
				c.report(3, t.id, "it is failed although attempts are left", before, w)
			}
		}
	}
}

// cancelAsked reports whether a caller or a decision asked for the cancel. A run that may not start late is cancelled
// by its executor.
func (c *checker) cancelAsked(id int64, w *journal.Event) bool {
	if p := c.planted[id]; p != nil && (p.MaxLate > 0 || c.withdrawn[id] != nil) {
		return true
	}
	return slices.ContainsFunc(c.cancels[id], func(o *span) bool {
		return !o.begin.At.After(w.At.Add(c.rules.Blur))
	})
}

// mayFail reports whether the attempts are used up, the error was permanent, or too many leases were lost.
func (c *checker) mayFail(t *task, before, w *journal.Event) bool {
	lost := c.rules.Quarantine > 0 && w.CrashCount >= c.rules.Quarantine && w.CrashCount > before.CrashCount
	return lost || t.run(before.Version).ended(journal.Permanent) ||
		c.rules.MaxAttempts == 0 || before.Attempt >= c.rules.MaxAttempts || c.mayNotRetry(t.id, w)
}

// mayNotRetry reports whether the next attempt of a run would have begun after the next tick. The attempt is planned
// when the one before has failed, by the clock that its process goes by.
func (c *checker) mayNotRetry(id int64, w *journal.Event) bool {
	p := c.planted[id]
	return p != nil && p.TickOf.Past(row.At(clock(w).Add(c.rules.Backoff+c.clocksApart())))
}

// clocksApart is how far ahead of the last server's clock a process may go by an older one.
func (c *checker) clocksApart() (apart time.Duration) {
	for _, f := range c.faults {
		if f.begin.Detail == "failover" {
			apart = c.rules.Failover
		}
	}
	return apart
}

func describe(from, to *journal.Event) string {
	return fmt.Sprintf("%s (attempt %d, crashes %d) to %s (attempt %d, crashes %d)",
		from.Status, from.Attempt, from.CrashCount, to.Status, to.Attempt, to.CrashCount)
}
