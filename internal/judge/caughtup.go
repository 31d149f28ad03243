package judge

import (
	"fmt"
	"slices"
	"time"
)

// caughtUp (7): once there are no more faults, everything that is due and served is claimed within the bound. A suspect waits for its turn,
// and its bound begins anew as long as others are taken.
func (c *court) caughtUp() {
	from, to, ok := c.bounded()
	if !ok {
		return
	}
	turns := c.suspectTurns()
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
			bound = latest(bound, c.servedFrom(t.writes[0].Tag, from).Add(c.rules.CaughtUp))
			if w.CrashCount >= suspectAt {
				bound = c.inTurn(bound, turns)
			}
			if ends.After(bound) {
				c.breach(7, t.id, fmt.Sprintf("it was not taken for %v after it was due and there were no more faults",
					ends.Sub(bound)+c.rules.CaughtUp), w, next)
			}
		}
	}
}

// suspectTurns returns when suspects were claimed, in this order. Each process runs one at a time.
func (c *court) suspectTurns() (turns []time.Time) {
	for _, t := range c.byID() {
		for _, w := range t.writes {
			if w.Status == executing && w.CrashCount >= suspectAt {
				turns = append(turns, w.At)
			}
		}
	}
	slices.SortFunc(turns, time.Time.Compare)
	return turns
}

// inTurn moves the bound of a suspect on from turn to turn, until none comes within the bound of the one before.
func (c *court) inTurn(bound time.Time, turns []time.Time) time.Time {
	for _, turn := range turns {
		if turn.After(bound) {
			break
		}
		bound = latest(bound, turn.Add(c.rules.CaughtUp))
	}
	return bound
}
