package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

func compareRollups(a, b row.Rollup) int {
	return cmp.Or(cmp.Compare(a.Span, b.Span), cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.Tag, b.Tag),
		cmp.Compare(a.Node, b.Node))
}

// PutRollups implements [store.Rollups].
func (s *Store) PutRollups(ctx context.Context, rows []row.Rollup) error {
	return s.do(ctx, "write rollups", func() {
		for _, r := range rows {
			at, there := slices.BinarySearchFunc(s.rollups, r, compareRollups)
			if !there {
				s.rollups = slices.Insert(s.rollups, at, r)
			}
			r.Late = slices.Clone(r.Late)
			s.rollups[at] = r
		}
	})
}

// Rollups implements [store.Rollups].
func (s *Store) Rollups(ctx context.Context, span row.RollupSpan, tags []string, from, to row.Time) (
	[]row.Rollup, error) {
	return under(ctx, s, "read rollups", func() (found []row.Rollup) {
		for _, r := range s.rollups {
			if r.Span == span && r.Begin >= from && r.Begin < to && (tags == nil || slices.Contains(tags, r.Tag)) {
				r.Late = slices.Clone(r.Late)
				found = append(found, r)
			}
		}
		return found
	})
}

// TrimRollups implements [store.Rollups].
func (s *Store) TrimRollups(ctx context.Context, span row.RollupSpan, before row.Time, limit int) (int, error) {
	return under(ctx, s, "delete old rollups", func() (deleted int) {
		s.rollups = slices.DeleteFunc(s.rollups, func(r row.Rollup) bool {
			old := r.Span == span && r.Begin < before && deleted < limit
			if old {
				deleted++
			}
			return old
		})
		return deleted
	})
}
