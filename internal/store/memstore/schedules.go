package memstore

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

// schedules holds the schedules and their runs.
type schedules struct {
	rows  map[int64]row.Schedule
	names map[string]int64
	runs  map[int64][]row.ScheduleRun // by schedule, ordered by tick and cause
}

func newSchedules() schedules {
	return schedules{
		rows: make(map[int64]row.Schedule), names: make(map[string]int64), runs: make(map[int64][]row.ScheduleRun),
	}
}

// firstLook returns the smallest look of a schedule.
func (p *schedules) firstLook() (first row.Time) {
	for _, s := range p.rows {
		if first.IsZero() || !s.Look.IsZero() && s.Look < first {
			first = s.Look
		}
	}
	return first
}

func cloneSchedule(s row.Schedule) row.Schedule {
	s.Body, s.Headers = bytes.Clone(s.Body), bytes.Clone(s.Headers)
	return s
}

// selected returns the first schedules of those that are wanted, in order.
func (p *schedules) selected(limit int, order func(a, b row.Schedule) int, wanted func(row.Schedule) bool) (
	found []row.Schedule) {
	for _, s := range p.rows {
		if wanted(s) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, order)
	found = found[:min(len(found), max(limit, 0))]
	for i := range found {
		found[i] = cloneSchedule(found[i])
	}
	return found
}

func byLook(a, b row.Schedule) int {
	return cmp.Or(cmp.Compare(a.Look, b.Look), cmp.Compare(a.ID, b.ID))
}

// findRun returns where the run is or belongs.
func findRun(runs []row.ScheduleRun, r row.ScheduleRun) (at int, there bool) {
	return slices.BinarySearchFunc(runs, r, func(a, b row.ScheduleRun) int {
		return cmp.Or(cmp.Compare(a.Tick, b.Tick), cmp.Compare(a.Cause, b.Cause))
	})
}

// LookAt implements [store.Schedules].
func (s *Store) LookAt(ctx context.Context, until, from row.Time, afterID int64, limit int) (
	[]row.Schedule, []row.Broken, error) {
	found, err := under(ctx, s, "look at schedules", func() []row.Schedule {
		return s.planned.selected(limit, byLook, func(r row.Schedule) bool {
			return !r.Look.IsZero() && r.Look <= until && (r.Look > from || r.Look == from && r.ID > afterID)
		})
	})
	return found, nil, err
}

// Schedules implements [store.Schedules].
func (s *Store) Schedules(ctx context.Context, f row.ScheduleFilter) ([]row.Schedule, []row.Broken, error) {
	byName := func(a, b row.Schedule) int { return strings.Compare(a.Name, b.Name) }
	found, err := under(ctx, s, "list schedules", func() []row.Schedule {
		return s.planned.selected(f.Limit, byName, func(r row.Schedule) bool {
			return (f.Names == nil || slices.Contains(f.Names, r.Name)) && (f.Owner == "" || r.Owner == f.Owner) &&
				(f.Tag == "" || r.Tag == f.Tag) && strings.HasPrefix(r.Name, f.Prefix) && r.Name > f.AfterName
		})
	})
	for i := range found {
		if f.NoBodies {
			found[i].Body = nil
		}
	}
	return found, nil, err
}

// OpenRuns implements [store.Schedules].
func (s *Store) OpenRuns(ctx context.Context, schedules []int64, limit int) ([]row.ScheduleRun, error) {
	return under(ctx, s, "read open runs of schedules", func() (open []row.ScheduleRun) {
		for _, id := range row.Distinct(schedules) {
			for _, r := range s.planned.runs[id] {
				if r.Outcome == row.OutcomeOpen && len(open) < limit {
					open = append(open, r)
				}
			}
		}
		return open
	})
}

// Runs implements [store.Schedules].
func (s *Store) Runs(ctx context.Context, schedule int64, before row.Time, limit int) ([]row.ScheduleRun, error) {
	return under(ctx, s, "read runs of a schedule", func() (found []row.ScheduleRun) {
		for _, r := range slices.Backward(s.planned.runs[schedule]) {
			if len(found) < limit && (before.IsZero() || r.Tick < before) {
				found = append(found, r)
			}
		}
		return found
	})
}

// TrimRuns implements [store.Schedules].
func (s *Store) TrimRuns(ctx context.Context, schedule int64, before row.Time, keep, limit int) (int, error) {
	return under(ctx, s, "trim the runs of a schedule", func() (deleted int) {
		runs := s.planned.runs[schedule]
		past := slices.IndexFunc(runs, func(r row.ScheduleRun) bool { return r.Tick >= before })
		if past < 0 {
			past = len(runs)
		}
		beyond := past - max(keep, 0)
		var kept []row.ScheduleRun
		for i, r := range runs {
			if i < beyond && deleted < limit && r.Outcome != row.OutcomeOpen {
				deleted++
				continue
			}
			kept = append(kept, r)
		}
		s.planned.runs[schedule] = kept
		return deleted
	})
}
