package memstore

import (
	"context"
	"errors"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

var errNotFinal = errors.New("only tasks of a final status can be purged")

// Purge implements [store.Keeper].
func (s *Store) Purge(ctx context.Context, status row.Status, tags []string, before row.Time, limit int) (
	deleted int, left []string, err error) {
	const op = "purge tasks"
	if !status.Final() {
		return 0, nil, refusedTo(op, errNotFinal)
	}
	err = s.do(ctx, op, func() {
		for i, tag := range tags {
			old := s.tasks.queue(status, tag).between(row.Place{Due: 1}, before, limit-deleted+len(s.locked))
			old = slices.DeleteFunc(old, func(e row.Place) bool { return s.isLocked(e.ID) })
			old = old[:min(len(old), limit-deleted)]
			for _, e := range old {
				s.tasks.delete(e.ID)
			}
			if deleted += len(old); deleted == limit {
				left = tags[i:]
				return
			}
		}
	})
	return deleted, left, err
}

// Renumber implements [store.Keeper]. Every row in memory has an id of a process.
func (s *Store) Renumber(context.Context, int64, func() int64, int) (int, string, error) {
	return 0, "", nil
}

// Oldest implements [store.Keeper].
func (s *Store) Oldest(ctx context.Context, status row.Status) ([]row.TagCount, error) {
	return under(ctx, s, "read the oldest task of each tag", func() (oldest []row.TagCount) {
		for tag, q := range s.tasks.queues[status] {
			if q.len() == 0 {
				continue
			}
			of := row.TagCount{Tag: tag, Status: status}
			for _, e := range q.between(row.Place{Due: 1}, row.MaxTime+1, 1) {
				of.Oldest = e.Due
			}
			oldest = append(oldest, of)
		}
		return oldest
	})
}

// Lateness implements [store.Keeper].
func (s *Store) Lateness(ctx context.Context, tags []string, since row.Time, perTag int) ([]row.Lateness, error) {
	return under(ctx, s, "read lateness", func() (found []row.Lateness) {
		for _, tag := range tags {
			n := 0
			for e := range s.tasks.queue(row.Completed, tag).backward() {
				if n == perTag || e.Due < since {
					break
				}
				if r := s.tasks.rows[e.ID]; !r.Execution.IsZero() && !r.Expected.IsZero() {
					found = append(found, row.Lateness{Tag: tag, Late: r.Execution.Sub(r.Expected)})
					n++
				}
			}
		}
		return found
	})
}
