package memstore

import (
	"context"
	"errors"

	"github.com/delaytask/delaytask/internal/row"
)

var errNotFinal = errors.New("only tasks of a final status can be purged")

// Purge implements [store.Keeper].
func (s *Store) Purge(ctx context.Context, status row.Status, before row.Time, limit int) (int, error) {
	const op = "purge tasks"
	if !status.Final() {
		return 0, refusedTo(op, errNotFinal)
	}
	if err := s.enter(ctx, op); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	old := s.tasks.dueBefore(status, before, limit)
	for _, e := range old {
		s.tasks.delete(e.id)
	}
	return len(old), nil
}

// Renumber implements [store.Keeper]. Every row in memory has an id of a process.
func (s *Store) Renumber(context.Context, int64, func() int64, int) (int, string, error) {
	return 0, "", nil
}

// List implements [store.Keeper].
func (s *Store) List(ctx context.Context, f row.Filter, bodies bool) ([]row.Row, []row.Broken, error) {
	if err := s.enter(ctx, "list tasks"); err != nil {
		return nil, nil, err
	}
	defer s.mu.Unlock()
	var found page
	add := found.addWithoutBody
	if bodies {
		add = found.add
	}
	for e := range s.tasks.ids.after(entry{id: f.AfterID}) {
		if f.Full(found.rows, found.broken) {
			break
		}
		if r := s.tasks.rows[e.id]; matches(r, f) {
			add(r)
		}
	}
	return found.rows, found.broken, nil
}

func matches(r row.Row, f row.Filter) bool {
	return (f.Tag == "" || r.Tag == f.Tag) &&
		(f.Status == nil || r.Status == *f.Status) &&
		(f.Key == "" || r.Key == f.Key) &&
		(f.DueBefore.IsZero() || !r.Due.IsZero() && r.Due < f.DueBefore)
}

// Counts implements [store.Keeper].
func (s *Store) Counts(ctx context.Context) ([]row.TagCount, error) {
	if err := s.enter(ctx, "count tasks"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var counts []row.TagCount
	for status, tags := range s.tasks.queues {
		for tag, q := range tags {
			n := q.len()
			if n == 0 {
				continue
			}
			count := row.TagCount{Tag: tag, Status: status, Count: int64(n)}
			for _, e := range q.between(entry{due: 1}, row.MaxTime+1, 1) {
				count.Oldest = e.due
			}
			counts = append(counts, count)
		}
	}
	return counts, nil
}

// Oldest implements [store.Keeper].
func (s *Store) Oldest(ctx context.Context, status row.Status) ([]row.TagCount, error) {
	all, err := s.Counts(ctx)
	var oldest []row.TagCount
	for _, c := range all {
		if c.Status == status {
			oldest = append(oldest, row.TagCount{Tag: c.Tag, Status: status, Oldest: c.Oldest})
		}
	}
	return oldest, err
}

// Lateness implements [store.Keeper].
func (s *Store) Lateness(ctx context.Context, tags []string, since row.Time, perTag int) ([]row.Lateness, error) {
	if err := s.enter(ctx, "read lateness"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var found []row.Lateness
	for _, tag := range tags {
		n := 0
		for e := range s.tasks.queue(row.Completed, tag).backward() {
			if n == perTag || e.due < since {
				break
			}
			if r := s.tasks.rows[e.id]; !r.Execution.IsZero() && !r.Expected.IsZero() {
				found = append(found, row.Lateness{Tag: tag, Late: r.Execution.Sub(r.Expected)})
				n++
			}
		}
	}
	return found, nil
}
