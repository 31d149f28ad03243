package judge

import (
	"fmt"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// unknownIsSaid (2): an unknown outcome is reported as one and carries the id to save again with. Saving again stores
// nothing twice, and a save that was refused in the end is not stored.
func (c *checker) unknownIsSaid() {
	for _, s := range c.byBody() {
		if len(s.stored) > 1 {
			what := fmt.Sprintf("it was saved once and is stored as the tasks %v", s.stored)
			c.report(2, s.stored[1], what, s.events()...)
		}
		for _, try := range s.tries {
			switch {
			case try.end == nil:
			case try.end.Error == journal.Unknown && try.end.ID == 0:
				c.report(2, 0, "an unknown outcome carries no id to save again with", try.begin, try.end)
			case try.end.Error == journal.Duplicate:
				c.duplicateIsTrue(try)
			}
		}
		if len(s.stored) > 0 && s.refused() {
			c.report(2, s.stored[0], "its saver was told that it is not stored, and it is", s.events()...)
		}
	}
}

// refused reports whether the last answer says that nothing is stored. A caller without a last answer knows nothing. A
// duplicate is about its own try: when the key is free again, an earlier try of unknown outcome may still be stored.
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

// duplicateIsTrue: the task that a duplicate names had the key and was unfinished during the save.
func (c *checker) duplicateIsTrue(try *span) {
	t := c.tasks[try.end.ID]
	if t == nil || len(t.writes) == 0 {
		if t == nil || t.row == nil {
			c.report(2, try.end.ID, "a duplicate names a task that does not exist", try.begin, try.end)
		}
		return
	}
	if first := t.first(); first.Key != try.begin.Key || first.Tag != try.begin.Tag {
		c.report(2, t.id, "a duplicate names a task without the key", try.begin, try.end, first)
		return
	}
	for i, w := range t.writes {
		ends := i+1 < len(t.writes) && t.writes[i+1].At.Before(try.begin.At.Add(-c.rules.Blur-c.rules.Commit))
		if !isFinal(w.Status) && !ends && !w.At.After(try.end.At.Add(c.rules.Blur)) {
			return
		}
	}
	c.report(2, t.id, "a duplicate names a task that was not unfinished meanwhile", try.begin, try.end)
}

// noPhantoms (0): each task that is stored or runs was saved, or planted by a decision, with the same tag and key.
func (c *checker) noPhantoms() {
	for _, t := range c.ordered {
		if first := t.first(); first != nil {
			c.saved(t, first, "is stored")
		}
		for _, r := range t.runs {
			c.saved(t, r.begin, "ran")
		}
	}
}

func (c *checker) saved(t *task, e *journal.Event, how string) {
	if p := c.planted[t.id]; p != nil {
		told := journal.Told(p.TickOf.Schedule, p.TickOf.Tick.Std())
		if p.Tag != e.Tag || p.Key != e.Key || string(p.Body) != e.Body ||
			e.Kind == journal.RunStart && e.Detail != told {
			c.report(0, t.id, "it "+how+" otherwise than it was planted", p.by.Event, e)
		}
		return
	}
	s := c.saves[e.Body]
	if s == nil {
		c.report(0, t.id, "it "+how+" without a save", e)
		return
	}
	asked := s.tries[0].begin
	if asked.Tag != e.Tag || asked.Key != e.Key {
		c.report(0, t.id, "it "+how+" with another tag or key than it was saved with", asked, e)
	}
}

// acceptedIsStored (1): a save that was accepted is in the table in the end, with its content.
func (c *checker) acceptedIsStored() {
	for _, s := range c.byBody() {
		for _, try := range s.tries {
			if try.end == nil || try.end.Error != journal.OK {
				continue
			}
			switch t := c.tasks[try.end.ID]; {
			case t == nil || !t.exists() || c.rows && t.row == nil:
				c.report(1, try.end.ID, "it was accepted, and is lost", try.begin, try.end)
			case t.body() != try.begin.Body:
				c.report(1, try.end.ID, "its id was given to the saver of another task", try.begin, try.end, t.first())
			}
		}
	}
}
