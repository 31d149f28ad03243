package save

import (
	"context"
	"errors"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// SaveAll stores many tasks, as many at a time as one statement takes: each such chunk is stored as a whole or not at all. It returns
// a [processor.BatchError] for a task that cannot be stored in any case.
func (s *Saver) SaveAll(ctx context.Context, tasks []processor.Save) ([]processor.SaveResult, error) {
	drafts := make([]draft, len(tasks))
	for i, task := range tasks {
		var err error
		if drafts[i], err = s.prepare(ctx, task); err != nil {
			if errors.Is(err, processor.ErrDelayTooLong) {
				err = &processor.BatchError{Index: i, Err: err}
			}
			return nil, stillUnknown(task.ID, err)
		}
	}
	chunks := chunksOf(drafts)
	left := make([]error, len(chunks))
	for i, c := range chunks {
		if conflict := c.pair(); conflict >= 0 {
			c.refuse(conflict)
			continue
		}
		left[i] = s.add(s.bulk, c)
	}
	results := make([]processor.SaveResult, 0, len(tasks))
	for i, c := range chunks {
		if left[i] == nil {
			left[i] = c.wait(ctx)
		}
		for n := range c.drafts {
			id, err := s.result(c, &c.drafts[n], left[i])
			results = append(results, processor.SaveResult{ID: id, Err: err, Chunk: i})
		}
	}
	return results, nil
}

// chunksOf cuts rows into what one statement takes.
func chunksOf(drafts []draft) (chunks []*saving) {
	for first := 0; first < len(drafts); {
		n, bytes := 0, 0
		for first+n < len(drafts) && n < saveRows {
			bytes += drafts[first+n].size()
			if n > 0 && bytes > saveBytes {
				break
			}
			n++
		}
		c := newSaving(drafts[first : first+n])
		c.first = first
		chunks = append(chunks, c)
		first += n
	}
	return chunks
}

// freeKey lets the next row with the key have it: first is a task from before and finished by now.
func (s *saving) freeKey(first *draft) {
	var next *draft
	for i := range s.drafts {
		d := &s.drafts[i]
		if d.twin != first || d.row.ID == first.row.ID {
			continue
		}
		if d.twin = next; next == nil {
			next = d
		}
	}
}

// pair finds the rows that would meet an earlier one of the same chunk, which no statement may carry beside it. It returns the place
// of one that contradicts the other, having its id and another content, or -1.
func (s *saving) pair() (conflict int) {
	ids, keys := map[int64]*draft{}, map[row.TagKey]*draft{}
	for i := range s.drafts {
		d := &s.drafts[i]
		if !d.canMeet() {
			continue
		}
		if d.twin = ids[d.row.ID]; d.twin != nil && !d.isStoredAs(&d.twin.row) {
			d.twin, d.err = nil, processor.ErrConflict
			return i
		}
		if d.row.Key != "" && d.twin == nil {
			d.twin = keys[d.key()]
		}
		if d.twin != nil {
			continue
		}
		ids[d.row.ID] = d
		if d.row.Key != "" {
			keys[d.key()] = d
		}
	}
	return -1
}
