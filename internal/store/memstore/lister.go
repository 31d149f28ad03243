package memstore

import (
	"cmp"
	"context"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

// All returns every row, in the order of the ids: for tests, whose tables are small.
func (s *Store) All() []row.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]row.Row, 0, len(s.tasks.rows))
	for e := range s.tasks.ids.after(row.Place{}) {
		all = append(all, clone(s.tasks.rows[e.ID]))
	}
	return all
}

// Places implements [store.Lister].
func (s *Store) Places(ctx context.Context, spans []row.Span, limit int) ([][]row.Place, error) {
	return under(ctx, s, "list tasks", func() [][]row.Place {
		found := make([][]row.Place, len(spans))
		for i, span := range spans {
			places := s.tasks.queue(span.Status, span.Tag).after(row.Place{})
			if span.Down {
				places = s.tasks.queue(span.Status, span.Tag).backward()
			}
			for at := range places {
				if len(found[i]) >= limit {
					break
				}
				if contains(span, at) {
					found[i] = append(found[i], at)
				}
			}
		}
		return found
	})
}

func contains(s row.Span, at row.Place) bool {
	if s.After != nil && (at.Compare(*s.After) > 0) == s.Down || s.After != nil && at == *s.After {
		return false
	}
	return within(at.Due, s.From, s.To)
}

func within(due, from, to row.Time) bool {
	return due >= from && (to.IsZero() || !due.IsZero() && due < to)
}

// FirstDue implements [store.Lister].
func (s *Store) FirstDue(ctx context.Context, span row.Span) ([]row.TagCount, error) {
	return under(ctx, s, "find the first task of each tag", func() (tags []row.TagCount) {
		for tag, q := range s.tasks.queues[span.Status] {
			places := q.after(row.Place{})
			if span.Down {
				places = q.backward()
			}
			for at := range places {
				if contains(span, at) {
					tags = append(tags, row.TagCount{Tag: tag, Status: span.Status, Oldest: at.Due})
					break
				}
			}
		}
		return tags
	})
}

// FirstIDs implements [store.Lister].
func (s *Store) FirstIDs(ctx context.Context, span row.Span, due row.Time) (map[string]int64, error) {
	return under(ctx, s, "find the first ids of each tag", func() map[string]int64 {
		ids := map[string]int64{}
		for tag, q := range s.tasks.queues[span.Status] {
			places := q.after(row.Place{})
			if span.Down {
				places = q.backward()
			}
			for at := range places {
				if at.Due == due && contains(span, at) {
					ids[tag] = at.ID
					break
				}
			}
		}
		return ids
	})
}

// Newest implements [store.Lister].
func (s *Store) Newest(ctx context.Context, below int64, limit int) ([]int64, error) {
	return under(ctx, s, "list the newest tasks", func() (ids []int64) {
		for e := range s.tasks.ids.backward() {
			if len(ids) >= limit {
				break
			}
			if e.ID < below {
				ids = append(ids, e.ID)
			}
		}
		return ids
	})
}

// Match implements [store.Lister].
func (s *Store) Match(ctx context.Context, ids []int64, m row.Match, bodies bool) ([]row.Sized, error) {
	return under(ctx, s, "filter tasks", func() (found []row.Sized) {
		for _, r := range s.tasks.of(ids) {
			if s.matches(r, m) {
				if !bodies {
					r.Body = nil
				}
				found = append(found, row.Sized{ID: r.ID, Bytes: r.Size()})
			}
		}
		return found
	})
}

func (s *Store) matches(r row.Row, m row.Match) bool {
	begun := r.Execution
	if begun.IsZero() && !r.Status.Final() {
		begun = cmp.Or(m.LateAt, s.now())
	}
	return (m.Status == nil || r.Status == *m.Status) &&
		(m.Tag == "" || r.Tag == m.Tag) &&
		(m.Key == "" || r.Key == m.Key) &&
		within(r.Due, m.From, m.To) &&
		(m.LateBy == 0 || !begun.IsZero() && begun.Sub(r.Expected) > m.LateBy) &&
		strings.Contains(r.ErrorStack, m.Error) &&
		(m.CreatedBy.IsZero() || r.Created <= m.CreatedBy)
}

// of returns the rows that exist, in the order of their ids.
func (t *table) of(ids []int64) (rows []row.Row) {
	for _, id := range row.Distinct(ids) {
		if r, ok := t.rows[id]; ok {
			rows = append(rows, r)
		}
	}
	return rows
}

// Rows implements [store.Lister].
func (s *Store) Rows(ctx context.Context, ids []int64, bodies bool) ([]row.Row, []row.Broken, error) {
	found, err := under(ctx, s, "read tasks", func() page { return s.tasks.page(ids, bodies) })
	return found.rows, found.broken, err
}

// Failures implements [store.Lister].
func (s *Store) Failures(ctx context.Context, ids []int64) ([]row.Failure, error) {
	return under(ctx, s, "read errors", func() (found []row.Failure) {
		for _, r := range s.tasks.of(ids) {
			text := r.ErrorStack[:min(row.FailureSize, len(r.ErrorStack))]
			found = append(found, row.Failure{ID: r.ID, Tag: r.Tag, At: r.Due, Error: text})
		}
		return found
	})
}

// Count implements [store.Lister].
func (s *Store) Count(ctx context.Context, pairs []row.Pair, most int) ([]int64, error) {
	return under(ctx, s, "count tasks", func() []int64 {
		counts := make([]int64, len(pairs))
		for i, p := range pairs {
			counts[i] = int64(min(s.tasks.queue(p.Status, p.Tag).len(), most))
		}
		return counts
	})
}
