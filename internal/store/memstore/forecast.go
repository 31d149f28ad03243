package memstore

import (
	"context"
	"math"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// CountDue implements [store.Forecaster].
func (s *Store) CountDue(ctx context.Context, g row.DueGrid, most int, _ time.Duration) ([]row.DueCount, bool, error) {
	counts, err := under(ctx, s, "count due tasks", func() (counts []row.DueCount) {
		for _, tag := range g.Tags {
			for _, c := range g.Cells() {
				before := row.Place{Due: c.From - 1, ID: math.MaxInt64}
				if n := len(s.tasks.queue(row.Pending, tag).between(before, c.To, most+1)); n > 0 {
					counts = append(counts, row.DueCount{Tag: tag, Cell: c.Cell, Rows: int64(n), More: n > most})
				}
			}
		}
		return counts
	})
	return counts, err == nil, err
}

// EstimateDue implements [store.Forecaster]. Rows in memory are counted exactly.
func (s *Store) EstimateDue(context.Context, row.DueGrid) ([]row.DueCount, bool, error) {
	return nil, false, nil
}

// Upcoming implements [store.Forecaster].
func (s *Store) Upcoming(ctx context.Context, before row.Time, limit int) ([]row.Schedule, error) {
	return under(ctx, s, "read the cursors of schedules", func() []row.Schedule {
		found := s.planned.selected(limit, byLook, func(s row.Schedule) bool {
			return s.State == row.ScheduleActive && !s.Next.IsZero() && s.Next < before
		})
		for i := range found {
			found[i] = found[i].Cursor()
		}
		return found
	})
}
