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
func (p *schedules) selected(
	limit int, wanted func(row.Schedule) bool, order func(a, b row.Schedule) int,
) (found []row.Schedule) {
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

// findRun returns where the run is or belongs.
func findRun(runs []row.ScheduleRun, r row.ScheduleRun) (at int, there bool) {
	return slices.BinarySearchFunc(runs, r, func(a, b row.ScheduleRun) int {
		return cmp.Or(cmp.Compare(a.Tick, b.Tick), cmp.Compare(a.Cause, b.Cause))
	})
}

// LookAt implements [store.Schedules].
func (s *Store) LookAt(ctx context.Context, until, from row.Time, afterID int64, limit int) (
	[]row.Schedule, []row.Broken, error) {
	if err := s.enter(ctx, "look at schedules"); err != nil {
		return nil, nil, err
	}
	defer s.mu.Unlock()
	wanted := func(r row.Schedule) bool {
		return !r.Look.IsZero() && r.Look <= until && (r.Look > from || r.Look == from && r.ID > afterID)
	}
	return s.planned.selected(limit, wanted, func(a, b row.Schedule) int {
		return cmp.Or(cmp.Compare(a.Look, b.Look), cmp.Compare(a.ID, b.ID))
	}), nil, nil
}

// Schedules implements [store.Schedules].
func (s *Store) Schedules(ctx context.Context, f row.ScheduleFilter) ([]row.Schedule, []row.Broken, error) {
	if err := s.enter(ctx, "list schedules"); err != nil {
		return nil, nil, err
	}
	defer s.mu.Unlock()
	wanted := func(r row.Schedule) bool {
		return (f.Names == nil || slices.Contains(f.Names, r.Name)) && (f.Owner == "" || r.Owner == f.Owner) &&
			(f.Tag == "" || r.Tag == f.Tag) && strings.HasPrefix(r.Name, f.Prefix) && r.Name > f.AfterName
	}
	found := s.planned.selected(f.Limit, wanted, func(a, b row.Schedule) int {
		return strings.Compare(a.Name, b.Name)
	})
	for i := range found {
		if f.NoBodies {
			found[i].Body = nil
		}
	}
	return found, nil, nil
}

// OpenRuns implements [store.Schedules].
func (s *Store) OpenRuns(ctx context.Context, schedules []int64, limit int) (open []row.ScheduleRun, err error) {
	if err := s.enter(ctx, "read open runs of schedules"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, id := range row.Distinct(schedules) {
		for _, r := range s.planned.runs[id] {
			if r.Outcome == row.OutcomeOpen && len(open) < limit {
				open = append(open, r)
			}
		}
	}
	return open, nil
}

// Runs implements [store.Schedules].
func (s *Store) Runs(ctx context.Context, schedule int64, before row.Time, limit int) ([]row.ScheduleRun, error) {
	if err := s.enter(ctx, "read runs of a schedule"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var found []row.ScheduleRun
	for _, r := range slices.Backward(s.planned.runs[schedule]) {
		if len(found) < limit && (before.IsZero() || r.Tick < before) {
			found = append(found, r)
		}
	}
	return found, nil
}

// TrimRuns implements [store.Schedules].
func (s *Store) TrimRuns(ctx context.Context, schedule int64, keep, limit int) (deleted int, err error) {
	if err := s.enter(ctx, "trim the runs of a schedule"); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	runs := s.planned.runs[schedule]
	beyond := len(runs) - max(keep, 0)
	var kept []row.ScheduleRun
	for i, r := range runs {
		if i < beyond && deleted < limit && r.Outcome != row.OutcomeOpen {
			deleted++
			continue
		}
		kept = append(kept, r)
	}
	s.planned.runs[schedule] = kept
	return deleted, nil
}
