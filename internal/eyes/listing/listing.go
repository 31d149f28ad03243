package listing

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// Store is what lists are read from.
type Store interface {
	store.Lister
	FindActive(ctx context.Context, tx store.Tx, keys []row.TagKey) ([]row.Row, error)
	Oldest(ctx context.Context, status row.Status) ([]row.TagCount, error)
}

// Order says how a list is sorted.
type Order int

// The orders that an index has.
const (
	ByDue     Order = iota // by (due, id), the first first
	ByDueDown              // the last first
	NewestIDs              // by id, the largest first
)

// Query says which tasks a list has. Zero fields do not filter. By due time it needs a status or a tag.
type Query struct {
	Order  Order
	Status *row.Status
	Tag    string
	// Padded means the Tag as [Tags] has it: the list also has tags that differ from it only in spaces at their ends,
	// and an empty one is a tag.
	Padded bool
	// Key finds the unfinished task by its unique key, and ended ones among the newest of the tag. It needs a Tag and
	// ByDueDown.
	Key       string
	From, To  row.Time // due within [From, To)
	LateBy    time.Duration
	LateAt    row.Time // of tasks that have not begun; zero: now
	Error     string
	Group     string // an id of [Group]
	CreatedBy row.Time

	After    *row.Place // Next of the page before
	Limit    int
	Bodies   bool
	MaxBytes int // of the tasks of a page, except for the first; 0: no bound
}

// Page is a part of a list.
type Page struct {
	Rows    []row.Row
	Broken  []row.Broken // rows that cannot be decoded
	IDs     []int64      // the order of both
	Next    *row.Place   // After of the next page; nil when this is the last
	Stopped bool         // it has looked at rows for long enough, so there may be more although it is not full
}

// MostLooked is how many rows a page looks at, and LookTime for about how long. Rows that are not in the server's
// memory take most of that time: 10,000 of them several seconds, where a disk is slow.
const (
	MostLooked = 10_000
	LookTime   = 100 * time.Millisecond
)

// mostMatched bounds one read: the longest page and one more row, which tells whether a page follows.
const mostMatched = 1001

// Statuses are all of them.
var Statuses = []row.Status{row.Pending, row.Executing, row.Completed, row.Failed, row.Cancelled}

// Read reads a page.
func Read(ctx context.Context, s Store, q Query) (Page, error) {
	w, err := q.walk(ctx, s)
	if err != nil {
		return Page{}, err
	}
	found, err := q.find(ctx, w)
	if err != nil {
		return Page{}, err
	}
	page := Page{IDs: found.ids, Next: found.next, Stopped: found.stopped}
	page.Rows, page.Broken, err = s.Rows(ctx, found.ids, q.Bodies)
	kept := page.Rows[:0]
	for _, r := range page.Rows { // those that have left the list since they were matched
		if q.holds(&r) {
			kept = append(kept, r)
		}
	}
	page.Rows = kept
	return page, err
}

// holds reports whether the row has a place in the list.
func (q *Query) holds(r *row.Row) bool {
	return (q.Status == nil || r.Status == *q.Status) && (q.exactTag() == "" || r.Tag == q.Tag) &&
		(q.From.IsZero() || r.Due >= q.From) && (q.To.IsZero() || !r.Due.IsZero() && r.Due < q.To)
}

// found is what a page has.
type found struct {
	ids     []int64
	next    *row.Place
	stopped bool
}

// find looks for one match more than the page takes, so that Next is set only where there is one.
func (q *Query) find(ctx context.Context, w *walk) (f found, err error) {
	var last row.Place
	bytes, pace := 0, pace{size: q.Limit + 1, left: MostLooked, most: LookTime}
	for {
		n := pace.next()
		if n == 0 {
			return found{f.ids, &last, true}, nil
		}
		places, err := w.next(ctx, n)
		if err != nil {
			return found{}, err
		}
		size, err := q.match(ctx, w.store, places)
		if err != nil {
			return found{}, err
		}
		for _, at := range places {
			b, matches := size[at.ID]
			if matches && (len(f.ids) == q.Limit || len(f.ids) > 0 && q.MaxBytes > 0 && bytes+b > q.MaxBytes) {
				return found{f.ids, &last, false}, nil
			}
			if matches {
				f.ids, bytes = append(f.ids, at.ID), bytes+b
			}
			last = at
		}
		if len(places) < n {
			return f, nil
		}
	}
}

// match returns the sizes of the rows at the places that match.
func (q *Query) match(ctx context.Context, s store.Lister, places []row.Place) (map[int64]int, error) {
	ids := make([]int64, len(places))
	for i, at := range places {
		ids[i] = at.ID
	}
	sized, err := s.Match(ctx, ids, row.Match{
		Status: q.Status, Tag: q.exactTag(), Key: q.Key, From: q.From, To: q.To, LateBy: q.LateBy,
		LateAt: q.LateAt, Error: q.Error, CreatedBy: q.CreatedBy,
	}, q.Bodies)
	size := make(map[int64]int, len(sized))
	for _, r := range sized {
		size[r.ID] = r.Bytes
	}
	if q.Group == "" || err != nil {
		return size, err
	}
	return size, q.leaveGroup(ctx, s, size)
}

// leaveGroup deletes what does not belong to the group.
func (q *Query) leaveGroup(ctx context.Context, s store.Lister, size map[int64]int) error {
	failures, err := s.Failures(ctx, slices.Collect(maps.Keys(size)))
	for _, f := range failures {
		if GroupID(f) != q.Group {
			delete(size, f.ID)
		}
	}
	return err
}

// walk returns the places that the list is among.
func (q *Query) walk(ctx context.Context, s Store) (*walk, error) {
	w := &walk{store: s, down: q.Order == ByDueDown}
	if q.Order == NewestIDs {
		w.newest, w.below = true, math.MaxInt64
		if q.After != nil {
			w.below = q.After.ID
		}
		return w, nil
	}
	of := Statuses
	if q.Status != nil {
		of = []row.Status{*q.Status}
	}
	if q.Key != "" && q.After == nil {
		if err := w.findActive(ctx, s, q); err != nil {
			return nil, err
		}
	}
	for _, status := range of {
		if q.Key != "" && !status.Final() {
			continue // found by its key
		}
		span := row.Span{
			Status: status, Tag: q.Tag, Padded: q.exactTag() == "", From: q.From, To: q.To, Down: w.down,
			After: q.After,
		}
		if q.Tag != "" || q.Padded {
			w.spans = append(w.spans, &track{span: span})
		} else if err := w.findTags(ctx, span); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// findActive puts the unfinished task with the key in front. Its place there is before all others.
func (w *walk) findActive(ctx context.Context, s Store, q *Query) error {
	active, err := s.FindActive(ctx, nil, []row.TagKey{{Tag: q.Tag, Key: q.Key}})
	for _, r := range active {
		w.ahead = append(w.ahead, row.Place{Due: row.MaxTime, ID: r.ID})
	}
	return err
}

// exactTag returns the tag that all tasks of the list have, "" for none.
func (q *Query) exactTag() string {
	if q.Padded {
		return ""
	}
	return q.Tag
}

// Tags returns the tags that have rows of the status.
func Tags(ctx context.Context, s Store, status row.Status) ([]string, error) {
	oldest, err := s.Oldest(ctx, status)
	tags := make([]string, len(oldest))
	for i, of := range oldest {
		tags[i] = of.Tag
	}
	return tags, err
}
