package decide

import (
	"fmt"
	"strconv"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

const (
	// MostBackfilled bounds the ticks of a backfill.
	MostBackfilled = 100_000
	// backfillPriority is the lowest: runs of now come first.
	backfillPriority = -100
)

// BackfillName returns the name of the backfill of a schedule with an id.
func BackfillName(parent string, id int64) string {
	return parent + "/backfill/" + strconv.FormatInt(id, 10)
}

// Backfill returns the decision that stores a schedule which runs past ticks of another one, both ends of the range
// included: each once, the oldest first, and as many at once as given. It is a schedule of its own, so it can be
// paused and deleted, and goes on after a crash where it was. It also runs while its parent is paused.
func Backfill(parent State, id int64, from, to row.Time, atOnce int) (row.Decision, error) {
	s := parent.Schedule
	if s.Parent != "" {
		return row.Decision{}, fmt.Errorf("%w: it is a backfill itself", delaytask.ErrScheduleState)
	}
	def := parent.Spec.Definition()
	if from.Std().After(def.Start) {
		def.Start = from.Std()
	}
	if def.End.IsZero() || to.Std().Before(def.End) {
		def.End = to.Std()
	}
	sp, err := spec.Parse(def)
	switch {
	case from > to:
		return row.Decision{}, fmt.Errorf("%w: it ends before it begins", delaytask.ErrInvalidRange)
	case err != nil: // the definition alone is valid
		return row.Decision{}, fmt.Errorf("%w: no tick was found in it", delaytask.ErrInvalidRange)
	}
	child := row.Schedule{
		ID: id, Name: BackfillName(s.Name, id), Parent: s.Name, Grammar: s.Grammar, Spec: sp.String(),
		ZoneData: s.ZoneData, Tag: s.Tag, Body: s.Body, Headers: s.Headers, MaxAttempts: s.MaxAttempts, TTR: s.TTR,
		Priority: backfillPriority, Overlap: delaytask.OverlapSkip, Missed: delaytask.MissedAll,
		KeepRuns: MostBackfilled,
	}
	if atOnce > 1 {
		child.Overlap, child.MaxOpen = delaytask.OverlapAllow, atOnce
	}
	st := parent
	st.Schedule, st.Spec, st.Open = child, sp, nil
	p := newPlan(st)
	first, last := p.next(from-1), p.prev(to+1)
	n := p.count(first, last)
	switch {
	case n == 0 || first > last:
		return row.Decision{}, fmt.Errorf("%w: no tick was found in it", delaytask.ErrInvalidRange)
	case last > p.Now:
		return row.Decision{}, fmt.Errorf("%w: the tick %s is to come", delaytask.ErrInvalidRange,
			last.Std().Format(time.RFC3339))
	case n > MostBackfilled:
		return row.Decision{}, fmt.Errorf("%w: more than %d ticks", delaytask.ErrInvalidRange, MostBackfilled)
	}
	p.to.Write = row.WriteNew
	p.s.Next, p.s.Since, p.s.By = first, p.Now, row.Shorten(p.Actor, mostBy)
	p.decideDue()
	return p.finish(), nil
}
