package delaytask

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// Filter selects tasks. Fields that are left out do not filter.
type Filter struct {
	Tag       string
	Status    Status
	Key       string
	DueBefore time.Time // due earlier; for finished tasks that is when they finished
	After     int64     // only ids above: Page.Next of the page before
	Limit     int       // more than 1000 is the same as 1000; default 100
	Bodies    bool      // read the bodies too
}

const (
	defaultPage = 100
	maxPage     = 1000
)

// stored checks the filter and translates it.
func (f *Filter) stored(defaultLimit int) (row.Filter, error) {
	stored := row.Filter{Tag: f.Tag, Key: f.Key, DueBefore: row.At(f.DueBefore), AfterID: f.After, Limit: f.Limit}
	if f.Tag != "" && !processor.ValidTag(f.Tag) {
		return stored, fmt.Errorf("%w: got %.140q", ErrInvalidTag, f.Tag)
	}
	if f.Status != "" {
		status, known := f.Status.stored()
		if !known {
			return stored, fmt.Errorf("%w: there is no status %.20q", ErrInvalidOption, f.Status)
		}
		stored.Status = &status
	}
	if f.After < 0 {
		return stored, fmt.Errorf("%w: the filter's After is %d, want the Next of a page", ErrInvalidOption, f.After)
	}
	if f.Limit < 0 {
		return stored, fmt.Errorf("%w: the filter's Limit is %d, want 1 or more, or 0 for the default", ErrInvalidOption, f.Limit)
	}
	stored.Limit = min(cmp.Or(f.Limit, defaultLimit), maxPage)
	return stored, nil
}

// Page is a part of a list.
type Page struct {
	Tasks []Task // by id, which is the order of their saves
	Next  int64  // Filter.After of the next page; 0 when this is the last
}

// List returns the tasks that match, page by page. A task that is saved or changed meanwhile may be missing, but none comes
// twice. It returns [ErrInvalidTag], and [ErrInvalidOption] when another field is out of range.
func (s *Scheduler) List(ctx context.Context, f Filter) (Page, error) {
	if err := s.enter(ctx); err != nil {
		return Page{}, err
	}
	filter, err := f.stored(defaultPage)
	if err != nil {
		return Page{}, err
	}
	rows, broken, err := s.store.List(ctx, filter, f.Bodies)
	if err != nil {
		return Page{}, fmt.Errorf("list tasks: %w", err)
	}
	page := Page{Tasks: tasksOf(rows, broken)}
	if len(page.Tasks) == filter.Limit {
		page.Next = page.Tasks[len(page.Tasks)-1].ID
	}
	return page, nil
}

// tasksOf merges two lists that are ordered by id.
func tasksOf(rows []row.Row, broken []row.Broken) []Task {
	tasks := make([]Task, 0, len(rows)+len(broken))
	for len(rows)+len(broken) > 0 {
		if len(broken) == 0 || len(rows) > 0 && rows[0].ID < broken[0].ID {
			tasks, rows = append(tasks, taskOf(&rows[0])), rows[1:]
		} else {
			tasks, broken = append(tasks, brokenTask(&broken[0])), broken[1:]
		}
	}
	return tasks
}
