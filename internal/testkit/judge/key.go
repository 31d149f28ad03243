package judge

import (
	"cmp"
	"maps"
	"slices"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// unfinished is a time during which a task holds its key.
type unfinished struct {
	task      int64
	from, end *journal.Event // end is nil while it holds it
}

// keysUnique (10): at no moment do two unfinished tasks carry the same tag and key.
func (c *court) keysUnique() {
	held := map[[2]string][]unfinished{}
	for _, t := range c.byID() {
		first := t.first()
		if first == nil || first.Key == "" {
			continue
		}
		name := [2]string{first.Tag, first.Key}
		held[name] = append(held[name], t.unfinished()...)
	}
	for _, name := range slices.SortedFunc(maps.Keys(held), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	}) {
		all := held[name]
		slices.SortStableFunc(all, func(a, b unfinished) int { return a.from.At.Compare(b.from.At) })
		for i := 1; i < len(all); i++ {
			before, u := all[i-1], all[i]
			if before.task != u.task && (before.end == nil || u.from.At.Before(before.end.At.Add(-c.rules.Blur))) {
				c.breach(10, u.task, "another unfinished task carries its key", before.from, before.end, u.from)
			}
		}
	}
}

// unfinished returns when the task held its key.
func (t *task) unfinished() (all []unfinished) {
	for _, w := range t.writes {
		last := len(all) - 1
		holds := last >= 0 && all[last].end == nil
		switch {
		case holds && isFinal(w.Status):
			all[last].end = w
		case !holds && !isFinal(w.Status):
			all = append(all, unfinished{task: t.id, from: w})
		}
	}
	if len(t.writes) == 0 && t.row != nil && !isFinal(t.row.Status) {
		all = append(all, unfinished{task: t.id, from: t.row})
	}
	return all
}
