package judge

import (
	"fmt"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

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
func (c *checker) happened(t *task, o *span) bool {
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
			if to.Status == cancelled {
				return true
			}
		case journal.CallReschedule:
			if from == pending && to.Status == pending {
				return true
			}
		case journal.CallRetry:
			if from == failed && to.Status == pending {
				return true
			}
		}
	}
	return len(t.writes) == 0 // the journal shows no transitions
}

// ranAtLeastOnce (3): a task ends because its processor succeeded, because it was cancelled, or because its attempts
// are used up. Invariant 4 covers the success.
func (c *checker) ranAtLeastOnce() {
	for _, t := range c.byID() {
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

func (c *checker) cancelAsked(id int64, w *journal.Event) bool {
	for _, o := range c.cancels[id] {
		if !o.begin.At.After(w.At.Add(c.rules.Blur)) {
			return true
		}
	}
	return false
}

// mayFail reports whether the attempts are used up, the error was permanent, or too many leases were lost.
func (c *checker) mayFail(t *task, before, w *journal.Event) bool {
	if c.rules.Quarantine > 0 && w.CrashCount >= c.rules.Quarantine && w.CrashCount > before.CrashCount {
		return true
	}
	if r := t.run(before.Version); r != nil && r.end != nil && r.end.Error == journal.Permanent {
		return true
	}
	return c.rules.MaxAttempts == 0 || before.Attempt >= c.rules.MaxAttempts
}

// isQuarantined reports whether a lost lease was what failed the task.
func isQuarantined(t *task) bool {
	n := len(t.writes)
	return n > 1 && t.writes[n-1].Status == failed && t.writes[n-1].CrashCount > t.writes[n-2].CrashCount
}

// describe names a transition.
func describe(from, to *journal.Event) string {
	return fmt.Sprintf("%s (attempt %d, crashes %d) to %s (attempt %d, crashes %d)",
		from.Status, from.Attempt, from.CrashCount, to.Status, to.Attempt, to.CrashCount)
}
