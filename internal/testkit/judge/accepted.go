package judge

import "github.com/delaytask/delaytask/internal/testkit/journal"

// acceptedIsStored (1): a save that was accepted is in the table in the end, with its content.
func (c *court) acceptedIsStored() {
	for _, s := range c.byBody() {
		for _, try := range s.tries {
			if try.end == nil || try.end.Error != journal.OK {
				continue
			}
			switch t := c.tasks[try.end.ID]; {
			case t == nil || !t.exists() || c.rows && t.row == nil:
				c.breach(1, try.end.ID, "it was accepted, and is lost", try.begin, try.end)
			case t.body() != try.begin.Body:
				c.breach(1, try.end.ID, "its id was given to the saver of another task", try.begin, try.end, t.first())
			}
		}
	}
}
