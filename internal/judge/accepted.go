package judge

import "github.com/delaytask/delaytask/internal/journal"

// acceptedIsStored (1): a save that was accepted is in the table in the end, with its content.
func (c *court) acceptedIsStored() {
	for _, s := range c.byBody() {
		for _, try := range s.tries {
			if try.ret == nil || try.ret.Error != journal.OK {
				continue
			}
			switch t := c.tasks[try.ret.ID]; {
			case t == nil || !t.exists() || c.rows && t.row == nil:
				c.breach(1, try.ret.ID, "it was accepted, and is lost", try.call, try.ret)
			case t.body() != try.call.Body:
				c.breach(1, try.ret.ID, "its id was given to the saver of another task", try.call, try.ret, t.first())
			}
		}
	}
}
