package memstore

import (
	"context"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

// Due implements [store.Finder].
func (s *Store) Due(ctx context.Context, w row.Window) ([]row.Due, error) {
	if err := s.enter(ctx, "find due tasks"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var found []entry
	for _, tag := range slices.Compact(slices.Sorted(slices.Values(w.Tags))) {
		q := s.tasks.queue(row.Pending, tag)
		found = append(found, q.between(entry{w.From, w.AfterID}, w.To, w.Limit)...)
	}
	found = firstOf(found, w.Limit)
	due := make([]row.Due, len(found))
	for i, e := range found {
		r := s.tasks.rows[e.id]
		due[i] = row.Due{ID: r.ID, Version: r.Version, Tag: r.Tag, Due: r.Due, Priority: r.Priority, CrashCount: r.CrashCount}
	}
	return due, nil
}

// Expired implements [store.Finder].
func (s *Store) Expired(ctx context.Context, limit int) ([]row.Row, []row.Broken, error) {
	if err := s.enter(ctx, "find ended leases"); err != nil {
		return nil, nil, err
	}
	defer s.mu.Unlock()
	var page page
	for _, e := range s.tasks.dueBefore(row.Executing, s.now(), limit) {
		page.addWithoutBody(s.tasks.rows[e.id])
	}
	return page.rows, page.broken, nil
}

// Strays implements [store.Finder].
func (s *Store) Strays(ctx context.Context, executorPrefix string, limit int) ([]row.State, error) {
	if err := s.enter(ctx, "find executing tasks"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var found []row.State
	for _, q := range s.tasks.queues[row.Executing] {
		for e := range q.after(entry{}) {
			if len(found) == limit {
				return found, nil
			}
			if r := s.tasks.rows[e.id]; strings.HasPrefix(r.Executor, executorPrefix) {
				found = append(found, state(r))
			}
		}
	}
	return found, nil
}

// States implements [store.Finder].
func (s *Store) States(ctx context.Context, ids []int64) ([]row.State, error) {
	if err := s.enter(ctx, "read who holds tasks"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.states(ids), nil
}

func (s *Store) states(ids []int64) []row.State {
	var found []row.State
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		if r, ok := s.tasks.rows[id]; ok {
			found = append(found, state(r))
		}
	}
	return found
}

func state(r row.Row) row.State {
	return row.State{ID: r.ID, Tag: r.Tag, Version: r.Version, Status: r.Status, Due: r.Due, Executor: r.Executor}
}
