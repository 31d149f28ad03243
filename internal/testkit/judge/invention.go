package judge

import "github.com/delaytask/delaytask/internal/testkit/journal"

// inventedNothing: whatever is stored or runs was saved by somebody, just so.
func (c *court) inventedNothing() {
	for _, t := range c.byID() {
		if first := t.first(); first != nil {
			c.saved(t, first, "is stored")
		}
		for _, r := range t.runs {
			c.saved(t, r.begin, "ran")
		}
	}
}

func (c *court) saved(t *task, e *journal.Event, how string) {
	s := c.saves[e.Body]
	if s == nil {
		c.breach(0, t.id, "it "+how+", and nobody has saved it", e)
		return
	}
	asked := s.tries[0].begin
	if asked.Tag != e.Tag || asked.Key != e.Key {
		c.breach(0, t.id, "it "+how+" with another tag or key than it was saved with", asked, e)
	}
}
