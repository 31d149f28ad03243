package core

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

const (
	defaultPage = 100
	maxPage     = 1000
	maxBodies   = 100      // so that a page without large bodies is not much slower than others
	maxBytes    = 16 << 20 // of bodies and errors in a page, as a Pop hands out
)

// queryOf checks the filter and translates it.
func queryOf(f *delaytask.Filter, defaultLimit int) (q listing.Query, err error) {
	q = listing.Query{
		Tag: f.Tag, Key: row.ScopedKey(f.App, f.Key), From: bound(f.DueFrom), To: bound(f.DueBefore),
		LateBy: f.LateBy, Error: f.Error, Group: f.Group, Bodies: f.Bodies, MaxBytes: maxBytes,
	}
	if f.Tag != "" && !delaytask.ValidTag(f.Tag) {
		return q, fmt.Errorf("%w: got %.140q", delaytask.ErrInvalidTag, f.Tag)
	}
	switch {
	case f.App != "" && f.Key == "":
		return q, fmt.Errorf("%w: the filter's App needs a Key", delaytask.ErrInvalidOption)
	case f.App != "" && !delaytask.ValidTag(f.App):
		return q, fmt.Errorf("%w: the filter's App %.140q cannot be one", delaytask.ErrInvalidOption, f.App)
	case strings.HasPrefix(f.Key, row.AppKey):
		return q, fmt.Errorf("%w: the beginning of %.140q is reserved; name the app beside the key",
			delaytask.ErrInvalidKey,
			f.Key)
	case f.Key != "" && f.Tag == "":
		return q, fmt.Errorf("%w: the filter's Key needs a Tag, which a key is unique in", delaytask.ErrInvalidOption)
	case f.Group != "" && f.Status != "" && f.Status != delaytask.Failed:
		return q, fmt.Errorf("%w: the filter's Group has failed tasks, and its Status is %.20q",
			delaytask.ErrInvalidOption,
			f.Status)
	case f.LateBy < 0:
		return q, fmt.Errorf("%w: the filter's LateBy is %v, want more than 0", delaytask.ErrInvalidOption, f.LateBy)
	case !utf8.ValidString(f.Error) || len(f.Error) > maxErrorPart:
		return q, fmt.Errorf("%w: the filter's Error is not valid UTF-8 of at most %d bytes",
			delaytask.ErrInvalidOption,
			maxErrorPart)
	}
	if f.Group != "" && f.Status == "" {
		f.Status = delaytask.Failed
	}
	if f.Status != "" {
		status, known := row.ParseStatus(f.Status)
		if !known {
			return q, fmt.Errorf(
				"%w: there is no status %.20q; want pending, executing, completed, failed or cancelled",
				delaytask.ErrInvalidOption, f.Status)
		}
		q.Status = &status
	}
	if q.Order, err = orderOf(f, q.Status); err != nil {
		return q, err
	}
	if q.After, err = placeOf(f.After, f); err != nil {
		return q, err
	}
	q.Limit, err = limitOf(f.Limit, defaultLimit)
	return q, err
}

// CheckFilter returns what List, CancelAll and RetryAll would refuse a filter for before they ask the database.
func CheckFilter(f delaytask.Filter) error {
	_, err := queryOf(&f, 0)
	return err
}

// bound returns the moment that a filter asks for, within what a database stores. The zero time means no bound; the
// Unix epoch, which is row.Time's zero, is a bound.
func bound(t time.Time) row.Time {
	switch {
	case t.IsZero():
		return 0
	case t.Before(row.MinTime.Std()):
		return row.MinTime
	case t.After(row.MaxTime.Std()):
		return row.MaxTime
	default:
		return row.At(t)
	}
}

// maxErrorPart is how long the text may be that an error is to contain.
const maxErrorPart = 1000

// orderOf returns the order of a list, and refuses one that no index has.
func orderOf(f *delaytask.Filter, status *row.Status) (listing.Order, error) {
	switch {
	case f.Key != "" && f.Order != "" && f.Order != delaytask.OrderLatest:
		return 0, fmt.Errorf("%w: a list with a Key has the order %q", delaytask.ErrInvalidOption,
			delaytask.OrderLatest)
	case f.Order == delaytask.OrderNewest, f.Order == "" && status == nil && f.Tag == "":
		return listing.NewestIDs, nil
	case f.Order == delaytask.OrderDue, f.Order == "" && status != nil && !status.Final() && f.Key == "":
	case f.Order == delaytask.OrderLatest, f.Order == "":
		return listing.ByDueDown, needsPart(f)
	default:
		return 0, fmt.Errorf("%w: there is no order %.20q; want %q, %q or %q", delaytask.ErrInvalidOption, f.Order,
			delaytask.OrderDue,
			delaytask.OrderLatest, delaytask.OrderNewest)
	}
	return listing.ByDue, needsPart(f)
}

func needsPart(f *delaytask.Filter) error {
	if f.Status == "" && f.Tag == "" {
		return fmt.Errorf("%w: the order %q needs a Status or a Tag", delaytask.ErrInvalidOption, f.Order)
	}
	return nil
}

// limitOf returns how much a page holds at most that is to hold so many, 0 for the default.
func limitOf(asked, byDefault int) (int, error) {
	if asked < 0 {
		return 0, fmt.Errorf("%w: the limit of a page is %d, want 1 or more, or 0 for the default",
			delaytask.ErrInvalidOption,
			asked)
	}
	return min(cmp.Or(asked, byDefault), maxPage), nil
}

func (c *Core) List(ctx context.Context, f delaytask.Filter) (delaytask.Page, error) {
	if err := c.enter(ctx); err != nil {
		return delaytask.Page{}, err
	}
	query, err := queryOf(&f, defaultPage)
	if err != nil {
		return delaytask.Page{}, err
	}
	if f.Bodies {
		query.Limit = min(query.Limit, maxBodies)
	}
	found, err := listing.Read(ctx, c.store, query)
	if err != nil {
		return delaytask.Page{}, fmt.Errorf("list tasks: %w", err)
	}
	page := delaytask.Page{Tasks: c.tasksOf(ctx, found.Rows, found.Broken), Stopped: found.Stopped}
	place := make(map[int64]int, len(found.IDs))
	for i, id := range found.IDs {
		place[id] = i
	}
	slices.SortFunc(page.Tasks, func(a, b delaytask.TaskRow) int { return cmp.Compare(place[a.ID], place[b.ID]) })
	if found.Next != nil {
		page.Next = cursorOf(*found.Next, &f)
	}
	return page, nil
}

// tasksOf returns the tasks of rows, and of those that cannot be decoded. An executor whose process cannot be read has
// no name.
func (c *Core) tasksOf(ctx context.Context, rows []row.Row, broken []row.Broken) []delaytask.TaskRow {
	_ = store.NameProcesses(ctx, c.store, rows)
	tasks := make([]delaytask.TaskRow, 0, len(rows)+len(broken))
	for i := range rows {
		tasks = append(tasks, taskOf(&rows[i]))
	}
	for i := range broken {
		tasks = append(tasks, brokenTask(&broken[i]))
	}
	return tasks
}

func (c *Core) Get(ctx context.Context, ref delaytask.Ref) (delaytask.TaskRow, error) {
	if err := c.enter(ctx); err != nil {
		return delaytask.TaskRow{}, err
	}
	name, err := nameOf(ref)
	if err != nil {
		return delaytask.TaskRow{}, err
	}
	task, err := c.get(ctx, name)
	if err != nil {
		return delaytask.TaskRow{}, fmt.Errorf("get %v: %w", ref, err)
	}
	return task, nil
}

func (c *Core) get(ctx context.Context, name control.Ref) (delaytask.TaskRow, error) {
	var rows []row.Row
	var broken []row.Broken
	var err error
	if name.ID != 0 {
		rows, broken, err = c.store.Get(ctx, nil, []int64{name.ID})
	} else {
		rows, err = c.store.FindActive(ctx, nil, []row.TagKey{{Tag: name.Tag, Key: name.Key}})
	}
	if err != nil {
		return delaytask.TaskRow{}, err
	}
	found := c.tasksOf(ctx, rows, broken)
	if len(found) == 0 {
		return delaytask.TaskRow{}, delaytask.ErrNotFound
	}
	return found[0], nil
}
