package save

import (
	"context"
	"errors"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/row"
)

// SaveAll stores many tasks, as many at a time as one statement takes: each such chunk is stored as a whole or not at
// all. The results stand in the order of the tasks. With an error there are no results, and nothing is stored; it is a
// [delaytask.BatchError] when it is about one task.
func (s *Saver) SaveAll(ctx context.Context, tasks []delaytask.Save) ([]delaytask.SaveResult, error) {
	rows := make([]newRow, len(tasks))
	for i, task := range tasks {
		var err error
		if rows[i], err = s.prepare(ctx, task); err != nil {
			if errors.Is(err, delaytask.ErrDelayTooLong) {
				err = &delaytask.BatchError{Index: i, Err: err}
			}
			return nil, KeepUnknown(task.ID, err)
		}
	}
	var chunks []*request
	first := 0
	for _, page := range batch.Pages(rows, MaxRows, MaxBytes, (*newRow).size) {
		c := newRequest(page)
		c.first, first = first, first+len(page)
		chunks = append(chunks, c)
	}
	left := make([]error, len(chunks))
	for i, c := range chunks {
		if conflict := c.findDuplicates(); conflict >= 0 {
			c.refuse(conflict)
			continue
		}
		left[i] = s.add(s.bulk, c)
	}
	results := make([]delaytask.SaveResult, 0, len(tasks))
	for i, c := range chunks {
		if left[i] == nil {
			left[i] = c.wait(ctx)
		}
		for n := range c.rows {
			id, err := s.result(c, &c.rows[n], left[i])
			results = append(results, delaytask.SaveResult{ID: id, Err: err, Chunk: i})
		}
	}
	return results, nil
}

// findDuplicates pairs each row with an earlier one of the chunk that has its key or its id: one statement cannot carry
// both. It returns the place of a row that has the id of another one and a different content, or -1.
func (r *request) findDuplicates() (conflict int) {
	ids, keys := map[int64]*newRow{}, map[row.TagKey]*newRow{}
	for i := range r.rows {
		n := &r.rows[i]
		if !n.canCollide() {
			continue
		}
		if n.duplicateOf = ids[n.row.ID]; n.duplicateOf != nil && !n.isStoredAs(&n.duplicateOf.row) {
			n.duplicateOf, n.err = nil, delaytask.ErrConflict
			return i
		}
		if n.row.Key != "" && n.duplicateOf == nil {
			n.duplicateOf = keys[n.key()]
		}
		if n.duplicateOf != nil {
			continue
		}
		ids[n.row.ID] = n
		if n.row.Key != "" {
			keys[n.key()] = n
		}
	}
	return -1
}

// freeKey lets the next row with the key have it: first is a task that was saved before and has finished.
func (r *request) freeKey(first *newRow) {
	var next *newRow
	for i := range r.rows {
		n := &r.rows[i]
		if n.duplicateOf != first || n.row.ID == first.row.ID {
			continue
		}
		if n.duplicateOf = next; next == nil {
			next = n
		}
	}
}
