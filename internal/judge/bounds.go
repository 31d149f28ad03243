package judge

import (
	"time"

	"github.com/delaytask/delaytask/internal/journal"
)

// bounded returns the time in which the bounds of promises 7 and 8 count, on the journal's clock: from when the faults have ended
// until the end. It is false for a journal without such a time.
func (c *court) bounded() (from, to time.Time, ok bool) {
	if c.drain == nil || c.done == nil {
		return from, to, false
	}
	return c.drain.At.Add(c.rules.Settle), c.done.At, true
}

// inJournal converts a moment on the database's clock, as it is after the faults, to the journal's.
func (c *court) inJournal(t time.Time) time.Time { return t.Add(-shift(c.drain)) }

// next returns the transition after the i-th one, nil while there is none.
func (t *task) next(i int) *journal.Event {
	if i+1 < len(t.writes) {
		return t.writes[i+1]
	}
	return nil
}
