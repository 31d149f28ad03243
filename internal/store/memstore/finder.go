package memstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// Due implements [store.Finder].
func (s *Store) Due(ctx context.Context, w row.Window) ([]row.Due, error) {
	return under(ctx, s, "find due tasks", func() (due []row.Due) {
		var found []row.Place
		for _, tag := range row.Distinct(w.Tags) {
			q := s.tasks.queue(row.Pending, tag)
			if w.Lacking && !w.From.IsZero() {
				found = append(found, q.where(row.Place{}, row.MinTime, w.Limit, w.Has)...)
			}
			found = append(found, q.of(w)...)
		}
		for _, e := range firstOf(found, w.Limit) {
			r := s.tasks.rows[e.ID]
			due = append(due, r.Sighting())
		}
		return due
	})
}

// Expired implements [store.Finder].
func (s *Store) Expired(ctx context.Context, tags []string, limit int) ([]row.Row, []row.Broken, error) {
	var page page
	err := s.do(ctx, "find ended leases", func() {
		var over []row.Place
		for _, tag := range row.Distinct(tags) {
			over = append(over, s.tasks.queue(row.Executing, tag).between(row.Place{Due: 1}, s.now(), limit)...)
		}
		for _, e := range firstOf(over, limit) {
			page.add(s.tasks.rows[e.ID], false)
		}
	})
	return page.rows, page.broken, err
}

// Orphans implements [store.Finder].
func (s *Store) Orphans(ctx context.Context, tags []string, processes []int64, limit int) ([]row.State, error) {
	return under(ctx, s, "find executing tasks", func() (found []row.State) {
		for _, tag := range row.Distinct(tags) {
			for e := range s.tasks.queue(row.Executing, tag).after(row.Place{}) {
				if len(found) == limit {
					return found
				}
				r := s.tasks.rows[e.ID]
				if slices.Contains(processes, r.Executor.Process) {
					found = append(found, r.State())
				}
			}
		}
		return found
	})
}

// States implements [store.Finder].
func (s *Store) States(ctx context.Context, ids []int64) ([]row.State, error) {
	return under(ctx, s, "read the states of tasks", func() []row.State { return s.states(ids) })
}

func (s *Store) states(ids []int64) []row.State {
	var found []row.State
	for _, r := range s.tasks.of(ids) {
		found = append(found, r.State())
	}
	return found
}

// Plant stores r as it is, in place of the row with its id, as an operator may do by hand. An unknown status, headers
// that are not a JSON object, or errors that are not a JSON array make a row that cannot be decoded.
func (s *Store) Plant(r row.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks.delete(r.ID)
	if !s.tasks.put(clone(r)) {
		panic(fmt.Sprintf("memstore: planted task %d carries the key of an unfinished one", r.ID))
	}
}

// page collects what a read returns. Rows that cannot be decoded are in broken.
type page struct {
	rows   []row.Row
	broken []row.Broken
}

func (p *page) add(r row.Row, body bool) {
	if !body {
		r.Body = nil
	}
	if err := decodable(r); err != nil {
		ref := row.Ref{ID: r.ID, Version: r.Version}
		p.broken = append(p.broken, row.Broken{Ref: ref, Status: r.Status, Reason: err.Error(), Read: clone(r)})
		return
	}
	r.TTR = max(r.TTR, row.MinTTR)
	p.rows = append(p.rows, clone(r))
}

func (t *table) page(ids []int64, bodies bool) (found page) {
	for _, r := range t.of(ids) {
		found.add(r, bodies)
	}
	return found
}

func decodable(r row.Row) error {
	if r.Status > row.Cancelled {
		return fmt.Errorf("unknown status %d", r.Status)
	}
	if r.LatePolicy > delaytask.LateFail {
		return fmt.Errorf("unknown late policy %d", r.LatePolicy)
	}
	if r.Headers != nil {
		if err := json.Unmarshal(r.Headers, new(map[string]json.RawMessage)); err != nil {
			return fmt.Errorf("headers: %w", err)
		}
	}
	if r.Errors != nil {
		if err := json.Unmarshal(r.Errors, new([]json.RawMessage)); err != nil {
			return fmt.Errorf("errors: %w", err)
		}
	}
	return nil
}
