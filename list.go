package delaytask

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// Filter selects tasks. Fields that are left out do not filter.
type Filter = processor.Filter

// Page is a part of a list.
type Page = processor.Page

const (
	defaultPage = 100
	maxPage     = 1000
	maxBodies   = 100      // so that a page without large bodies is not much slower than others
	maxBytes    = 16 << 20 // of bodies and errors in a page, as a Pop hands out
)

// filterOf checks the filter and translates it.
func filterOf(f *Filter, defaultLimit int) (row.Filter, error) {
	stored := row.Filter{
		Tag: f.Tag, Key: row.ScopedKey(f.App, f.Key), DueBefore: row.At(f.DueBefore), AfterID: f.After, Limit: f.Limit,
	}
	if f.Tag != "" && !processor.ValidTag(f.Tag) {
		return stored, fmt.Errorf("%w: got %.140q", ErrInvalidTag, f.Tag)
	}
	switch {
	case f.App != "" && f.Key == "":
		return stored, fmt.Errorf("%w: the filter's App needs a Key", ErrInvalidOption)
	case f.App != "" && !processor.ValidTag(f.App):
		return stored, fmt.Errorf("%w: the filter's App %.140q cannot be one", ErrInvalidOption, f.App)
	case strings.HasPrefix(f.Key, row.AppKey):
		return stored, fmt.Errorf("%w: the beginning of %.140q is reserved; name the app beside the key", ErrInvalidKey,
			f.Key)
	}
	if f.Status != "" {
		status, known := statusOf(f.Status)
		if !known {
			return stored, fmt.Errorf("%w: there is no status %.20q", ErrInvalidOption, f.Status)
		}
		stored.Status = &status
	}
	if f.After < 0 {
		return stored, fmt.Errorf("%w: the filter's After is %d, want the Next of a page", ErrInvalidOption, f.After)
	}
	limit, err := limitOf(f.Limit, defaultLimit)
	stored.Limit = limit
	return stored, err
}

// limitOf returns how much a page holds at most that is to hold so many, 0 for the default.
func limitOf(asked, byDefault int) (int, error) {
	if asked < 0 {
		return 0, fmt.Errorf("%w: the limit of a page is %d, want 1 or more, or 0 for the default", ErrInvalidOption,
			asked)
	}
	return min(cmp.Or(asked, byDefault), maxPage), nil
}

// List returns the tasks that match, page by page. A page ends at 16 MiB of bodies and errors, though it has at least
// one task. A task that is saved or changed meanwhile may be missing, but none comes twice. It returns [ErrInvalidTag],
// and [ErrInvalidOption] when another field is out of range.
func (s *Scheduler) List(ctx context.Context, f Filter) (Page, error) {
	if err := s.enter(ctx); err != nil {
		return Page{}, err
	}
	filter, err := filterOf(&f, defaultPage)
	if err != nil {
		return Page{}, err
	}
	if f.Bodies {
		filter.Limit = min(filter.Limit, maxBodies)
	}
	filter.MaxBytes = maxBytes
	rows, broken, err := s.store.List(ctx, filter, f.Bodies)
	if err != nil {
		return Page{}, fmt.Errorf("list tasks: %w", err)
	}
	more := filter.Full(rows, broken)
	if n := len(rows) - 1; n > 0 && row.Size(rows) > maxBytes { // it is the next page's first, unless it is this one's
		clear(rows[n:])
		rows = rows[:n]
	}
	page := Page{Tasks: tasksOf(rows, broken)}
	if more {
		page.Next = page.Tasks[len(page.Tasks)-1].ID
	}
	return page, nil
}

// tasksOf merges two lists that are ordered by id.
func tasksOf(rows []row.Row, broken []row.Broken) []TaskRow {
	tasks := make([]TaskRow, 0, len(rows)+len(broken))
	for len(rows)+len(broken) > 0 {
		if len(broken) == 0 || len(rows) > 0 && rows[0].ID < broken[0].ID {
			tasks, rows = append(tasks, taskOf(&rows[0])), rows[1:]
		} else {
			tasks, broken = append(tasks, brokenTask(&broken[0])), broken[1:]
		}
	}
	return tasks
}

// Get returns a task with its body. It returns [ErrNotFound] when there is none, or when it was deleted after its
// retention.
func (s *Scheduler) Get(ctx context.Context, ref Ref) (TaskRow, error) {
	if err := s.enter(ctx); err != nil {
		return TaskRow{}, err
	}
	name, err := nameOf(ref)
	if err != nil {
		return TaskRow{}, err
	}
	task, err := s.get(ctx, name)
	if err != nil {
		return TaskRow{}, fmt.Errorf("get %v: %w", ref, err)
	}
	return task, nil
}

func (s *Scheduler) get(ctx context.Context, name engine.Ref) (TaskRow, error) {
	var rows []row.Row
	var broken []row.Broken
	var err error
	if name.ID != 0 {
		rows, broken, err = s.store.Get(ctx, nil, []int64{name.ID})
	} else {
		rows, err = s.store.FindActive(ctx, nil, []row.TagKey{{Tag: name.Tag, Key: name.Key}})
	}
	if err != nil {
		return TaskRow{}, err
	}
	found := tasksOf(rows, broken)
	if len(found) == 0 {
		return TaskRow{}, ErrNotFound
	}
	return found[0], nil
}
