package memstore

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// CountDue implements [store.Forecaster].
func (s *Store) CountDue(ctx context.Context, g row.DueGrid, most int, _ time.Duration) ([]row.DueCount, bool, error) {
	if err := s.enter(ctx, "count due tasks"); err != nil {
		return nil, false, err
	}
	defer s.mu.Unlock()
	var counts []row.DueCount
	for _, tag := range g.Tags {
		for _, c := range g.Cells() {
			n := len(s.tasks.queue(row.Pending, tag).between(entry{due: c.From - 1, id: math.MaxInt64}, c.To, most+1))
			if n > 0 {
				counts = append(counts, row.DueCount{Tag: tag, Cell: c.Cell, Rows: int64(n), More: n > most})
			}
		}
	}
	return counts, true, nil
}

// EstimateDue implements [store.Forecaster]. Rows in memory are counted exactly.
func (s *Store) EstimateDue(context.Context, row.DueGrid) ([]row.DueCount, bool, error) {
	return nil, false, nil
}

// Upcoming implements [store.Forecaster].
func (s *Store) Upcoming(ctx context.Context, before row.Time, limit int) ([]row.Schedule, error) {
	if err := s.enter(ctx, "read the cursors of schedules"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	found := s.planned.selected(limit, func(s row.Schedule) bool {
		return s.State == row.ScheduleActive && !s.Next.IsZero() && s.Next < before
	}, func(a, b row.Schedule) int { return cmp.Or(cmp.Compare(a.Look, b.Look), cmp.Compare(a.ID, b.ID)) })
	for i := range found {
		found[i] = found[i].Cursor()
	}
	return found, nil
}
