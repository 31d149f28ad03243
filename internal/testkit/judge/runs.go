package judge

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// runsApart (14): no run of a schedule that runs one at a time is unfinished beside another one. Keys are unique in a
// tag, so an old run of another tag that an operator has retried is in no way of others. Where a tick replaces a run,
// no processor of the new run starts before the old one's has returned, or its lease is over.
func (c *checker) runsApart() {
	for _, s := range c.calendars {
		runs := slices.DeleteFunc(c.runs(s), func(p *planted) bool { return !p.serial() })
		c.openAlone(runs)
		c.waitsForReplaced(runs)
	}
}

func (c *checker) openAlone(runs []*planted) {
	byTag := map[string][]unfinished{}
	for _, p := range runs {
		if t := c.tasks[p.ID]; t != nil {
			byTag[p.Tag] = append(byTag[p.Tag], t.unfinished()...)
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(byTag)) {
		c.oneByOne(byTag[tag])
	}
}

func (c *checker) oneByOne(held []unfinished) {
	slices.SortStableFunc(held, func(a, b unfinished) int { return a.from.At.Compare(b.from.At) })
	for i := 1; i < len(held); i++ {
		before, u := held[i-1], held[i]
		if before.task != u.task && (before.end == nil || u.from.At.Before(before.end.At.Add(-c.rules.Blur))) {
			c.report(14, u.task, "it is open beside another run of its schedule", before.from, before.end, u.from)
		}
	}
}

// waitsForReplaced compares each start with the runs before it that decisions have cancelled. An executor that works
// beyond its lease is held back by nothing.
func (c *checker) waitsForReplaced(runs []*planted) {
	for i, p := range runs {
		if p.by.Schedule.Overlap != delaytask.OverlapReplace || c.tasks[p.ID] == nil {
			continue
		}
		for _, start := range c.tasks[p.ID].runs {
			for _, old := range runs[max(0, i-5):i] {
				if c.withdrawn[old.ID] != nil && c.tasks[old.ID] != nil {
					c.hasEnded(c.tasks[old.ID], start)
				}
			}
		}
	}
}

// hasEnded: at the start of another run no processor of the task was at work under a lease.
func (c *checker) hasEnded(t *task, start *span) {
	for _, r := range t.runs {
		crash := c.crashed[r.begin.Node]
		if r.begin.At.After(start.begin.At) || r.end != nil && !r.end.At.After(start.begin.At.Add(c.rules.Blur)) ||
			crash != nil && !crash.At.After(start.begin.At) {
			continue
		}
		if end := c.leaseOf(t, r.begin.Version); clock(start.begin).Before(end) {
			early := end.Sub(clock(start.begin))
			what := fmt.Sprintf("it starts while the run that it replaces is at work, whose lease lasts %v more", early)
			c.report(14, start.begin.ID, what, r.begin, r.end, start.begin)
		}
	}
}

// leaseOf returns the end of the lease of a version, by the database's clock. A process that stops gives it back, also
// while a processor ignores that.
func (c *checker) leaseOf(t *task, version int64) (end time.Time) {
	for _, w := range slices.Concat(t.leases, t.writes) {
		switch {
		case w.Version == version && w.Status == executing && w.Due.After(end):
			end = w.Due
		case w.Version == version+1 && w.Status != cancelled && clock(w).Before(end):
			end = clock(w)
		}
	}
	return end
}

// retriedInTime (14): no attempt of a run is planned, after one that has failed or lost its lease, for when the next
// tick is due and may not run beside it.
func (c *checker) retriedInTime() {
	for _, t := range c.ordered {
		p := c.planted[t.id]
		if p == nil {
			continue
		}
		for i, w := range t.writes {
			next := t.next(i)
			if w.Status != executing || next == nil || next.Status != pending {
				continue
			}
			failed := next.CrashCount > w.CrashCount || t.run(w.Version).ended(journal.Failed)
			if failed && p.TickOf.Past(row.At(next.Due)) {
				c.report(14, t.id, "another attempt is planned for when the next tick is due", p.by.Event, w, next)
			}
		}
	}
}
