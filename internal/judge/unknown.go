package judge

import (
	"fmt"

	"github.com/delaytask/delaytask/internal/journal"
)

// unknownIsSaid (2): an unknown outcome is called one and carries the id to save again with; saving again stores nothing twice,
// and what was refused in the end is not stored.
func (c *court) unknownIsSaid() {
	for _, s := range c.byBody() {
		if len(s.stored) > 1 {
			c.breach(2, s.stored[1], fmt.Sprintf("it was saved once and is stored as the tasks %v", s.stored), s.events()...)
		}
		for _, try := range s.tries {
			switch {
			case try.ret == nil:
			case try.ret.Error == journal.Unknown && try.ret.ID == 0:
				c.breach(2, 0, "an unknown outcome carries no id to save again with", try.call, try.ret)
			case try.ret.Error == journal.Duplicate:
				c.duplicateIsTrue(try)
			}
		}
		if len(s.stored) > 0 && s.refused() {
			c.breach(2, s.stored[0], "its saver was told that it is not stored, and it is", s.events()...)
		}
	}
}

// refused reports whether the last answer says that nothing is stored. A caller who never got his last one knows nothing, and a
// duplicate speaks of its own try: when the key is free again, an earlier one of unknown outcome may still be stored.
func (s *save) refused() bool {
	unknown := false
	for _, try := range s.tries {
		if try.ret == nil || try.ret.Error == journal.OK {
			return false
		}
		unknown = unknown || try.ret.Error == journal.Unknown
	}
	last := s.tries[len(s.tries)-1].ret.Error
	return last != journal.Unknown && (!unknown || last != journal.Duplicate)
}

func (s *save) events() (all []*journal.Event) {
	for _, try := range s.tries {
		all = append(all, try.call, try.ret)
	}
	return all
}

// duplicateIsTrue: the task that a duplicate names carried the key, unfinished, while the save was under way.
func (c *court) duplicateIsTrue(try *op) {
	t := c.tasks[try.ret.ID]
	if t == nil || len(t.writes) == 0 {
		if t == nil || t.row == nil {
			c.breach(2, try.ret.ID, "a duplicate names a task that does not exist", try.call, try.ret)
		}
		return
	}
	if first := t.first(); first.Key != try.call.Key || first.Tag != try.call.Tag {
		c.breach(2, t.id, "a duplicate names a task without the key", try.call, try.ret, first)
		return
	}
	for i, w := range t.writes {
		ends := i+1 < len(t.writes) && t.writes[i+1].At.Before(try.call.At.Add(-c.rules.Blur-c.rules.Commit))
		if !isFinal(w.Status) && !ends && !w.At.After(try.ret.At.Add(c.rules.Blur)) {
			return
		}
	}
	c.breach(2, t.id, "a duplicate names a task that was not unfinished meanwhile", try.call, try.ret)
}
