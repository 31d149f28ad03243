package judge

import (
	"fmt"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// unknownIsSaid (2): an unknown outcome is called one and carries the id to save again with; saving again stores
// nothing twice, and what was refused in the end is not stored.
func (c *court) unknownIsSaid() {
	for _, s := range c.byBody() {
		if len(s.stored) > 1 {
			c.breach(2, s.stored[1], fmt.Sprintf("it was saved once and is stored as the tasks %v", s.stored), s.events()...)
		}
		for _, try := range s.tries {
			switch {
			case try.end == nil:
			case try.end.Error == journal.Unknown && try.end.ID == 0:
				c.breach(2, 0, "an unknown outcome carries no id to save again with", try.begin, try.end)
			case try.end.Error == journal.Duplicate:
				c.duplicateIsTrue(try)
			}
		}
		if len(s.stored) > 0 && s.refused() {
			c.breach(2, s.stored[0], "its saver was told that it is not stored, and it is", s.events()...)
		}
	}
}

// refused reports whether the last answer says that nothing is stored. A caller who never got his last one knows
// nothing, and a duplicate speaks of its own try: when the key is free again, an earlier one of unknown outcome may
// still be stored.
func (s *save) refused() bool {
	unknown := false
	for _, try := range s.tries {
		if try.end == nil || try.end.Error == journal.OK {
			return false
		}
		unknown = unknown || try.end.Error == journal.Unknown
	}
	last := s.tries[len(s.tries)-1].end.Error
	return last != journal.Unknown && (!unknown || last != journal.Duplicate)
}

func (s *save) events() (all []*journal.Event) {
	for _, try := range s.tries {
		all = append(all, try.begin, try.end)
	}
	return all
}

// duplicateIsTrue: the task that a duplicate names carried the key, unfinished, while the save was under way.
func (c *court) duplicateIsTrue(try *span) {
	t := c.tasks[try.end.ID]
	if t == nil || len(t.writes) == 0 {
		if t == nil || t.row == nil {
			c.breach(2, try.end.ID, "a duplicate names a task that does not exist", try.begin, try.end)
		}
		return
	}
	if first := t.first(); first.Key != try.begin.Key || first.Tag != try.begin.Tag {
		c.breach(2, t.id, "a duplicate names a task without the key", try.begin, try.end, first)
		return
	}
	for i, w := range t.writes {
		ends := i+1 < len(t.writes) && t.writes[i+1].At.Before(try.begin.At.Add(-c.rules.Blur-c.rules.Commit))
		if !isFinal(w.Status) && !ends && !w.At.After(try.end.At.Add(c.rules.Blur)) {
			return
		}
	}
	c.breach(2, t.id, "a duplicate names a task that was not unfinished meanwhile", try.begin, try.end)
}
