package judge

import "github.com/delaytask/delaytask/internal/testkit/journal"

// toldTheTruth (2): a cancel, reschedule or retry that was accepted has happened while it was asked for, and a task
// that was accepted is found.
func (c *court) toldTheTruth() {
	for _, o := range c.ops {
		t := c.tasks[o.begin.ID]
		switch {
		case o.end == nil:
		case o.end.Error == journal.NotFound && t != nil && t.exists() && t.first().At.Before(o.begin.At.Add(-c.rules.Blur-c.rules.Commit)):
			c.breach(2, o.begin.ID, "a task that is there was not found", o.begin, o.end, t.first())
		case o.end.Error == journal.OK && !c.happened(t, o):
			c.breach(2, o.begin.ID, "a change was accepted, and has not happened", o.begin, o.end)
		}
	}
}

// happened reports whether the database shows the change between call and return.
func (c *court) happened(t *task, o *span) bool {
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
