package judge

import "fmt"

// caughtUp (7): once there are no more faults, everything that is due and served is claimed within the bound.
func (c *court) caughtUp() {
	from, to, ok := c.bounded()
	if !ok {
		return
	}
	for _, t := range c.byID() {
		for i, w := range t.writes {
			if w.Status != pending {
				continue
			}
			ends, next := to, t.next(i)
			if next != nil {
				ends = next.At
			}
			bound := latest(from, w.At, c.inJournal(w.Due)).Add(c.rules.CaughtUp)
			if !ends.After(bound) {
				continue // nearly all of them: who serves the tag is asked for the others only
			}
			if bound = latest(bound, c.servedFrom(t.writes[0].Tag, from).Add(c.rules.CaughtUp)); ends.After(bound) {
				c.breach(7, t.id, fmt.Sprintf("it was not taken for %v after it was due and there were no more faults",
					ends.Sub(bound)+c.rules.CaughtUp), w, next)
			}
		}
	}
}
