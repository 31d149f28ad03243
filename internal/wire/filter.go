package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
)

// BulkFilter selects tasks, as the parameters of a list do.
type BulkFilter struct {
	Tag       NonEmpty  `json:"tag,omitempty" doc:"Only tasks of this tag; without it, change on all tags is needed"`
	Key       NonEmpty  `json:"key,omitempty" doc:"With tag: only tasks with this key"`
	App       NonEmpty  `json:"app,omitempty" doc:"With key: its application; without it, tasks of no application"`
	DueFrom   *Moment   `json:"due_from,omitempty" doc:"Due then or later; of failed tasks that is when they failed"`
	DueBefore *Moment   `json:"due_before,omitempty" doc:"Due earlier; likewise"`
	LateBy    *Duration `json:"late_by,omitempty" doc:"Began later than this, or has not begun and is that late now"`
	Error     NonEmpty  `json:"error,omitempty" doc:"The last error contains it, byte by byte"`
	Group     NonEmpty  `json:"group,omitempty" doc:"With retry: only tasks of this group, see /v1/failures"`
}

// NonEmpty is a text that selects. It is never empty: a variable of a program that was not set must not widen what is
// changed.
type NonEmpty string

var errEmpty = errors.New("want a text that is not empty, or leave it out")

// UnmarshalJSON reads a text. It returns an error for an empty one, for null, and for anything else.
func (n *NonEmpty) UnmarshalJSON(data []byte) error {
	var text *string
	if err := json.Unmarshal(data, &text); err != nil || text == nil || *text == "" {
		return errEmpty
	}
	*n = NonEmpty(*text)
	return nil
}

// To returns the filter. It returns [delaytask.ErrInvalidTime] or [delaytask.ErrInvalidOption] for a member that would
// not filter.
func (b *BulkFilter) To() (f delaytask.Filter, err error) {
	f = delaytask.Filter{
		Tag: string(b.Tag), Key: string(b.Key), App: string(b.App), Error: string(b.Error), Group: string(b.Group),
	}
	if b.DueFrom != nil {
		f.DueFrom, err = given("due_from", *b.DueFrom)
	}
	if b.DueBefore != nil && err == nil {
		f.DueBefore, err = given("due_before", *b.DueBefore)
	}
	if b.LateBy != nil && err == nil {
		f.LateBy, err = lateBy(*b.LateBy)
	}
	return f, err
}

// BulkSelection is the filter of a run.
type BulkSelection struct {
	Tag       string   `json:"tag,omitempty"`
	Key       string   `json:"key,omitempty"`
	App       string   `json:"app,omitempty"`
	DueFrom   Time     `json:"due_from,omitzero"`
	DueBefore Time     `json:"due_before,omitzero"`
	LateBy    Duration `json:"late_by,omitzero"`
	Error     string   `json:"error,omitempty"`
	Group     string   `json:"group,omitempty"`
}

// FromFilter returns the filter of a bulk change as answers have it.
func FromFilter(f *delaytask.Filter) BulkSelection {
	return BulkSelection{
		Tag: f.Tag, Key: f.Key, App: f.App, DueFrom: Time(f.DueFrom), DueBefore: Time(f.DueBefore),
		LateBy: Duration(f.LateBy), Error: f.Error, Group: f.Group,
	}
}

// FilterNames are the parameters of a query that select tasks, in the order in which people read them.
var FilterNames = []string{"status", "tag", "app", "key", "due_from", "due_before", "late_by", "group", "error",
	"order", "cursor"}

// FilterValues returns the filter as a query, without its Limit and Bodies.
func FilterValues(f *delaytask.Filter) url.Values {
	q := url.Values{
		"status": {string(f.Status)}, "tag": {f.Tag}, "app": {f.App}, "key": {f.Key},
		"due_from": {momentText(f.DueFrom)}, "due_before": {momentText(f.DueBefore)}, "late_by": {""},
		"group": {f.Group}, "error": {f.Error}, "order": {string(f.Order)}, "cursor": {f.After},
	}
	if f.LateBy > 0 {
		q.Set("late_by", FormatDuration(f.LateBy))
	}
	maps.DeleteFunc(q, func(_ string, values []string) bool { return values[0] == "" })
	return q
}

// ParseFilter reads what [FilterValues] writes. An empty parameter counts as left out. It returns
// [delaytask.ErrInvalidTime] or [delaytask.ErrInvalidOption] for a parameter that would not filter.
func ParseFilter(q url.Values) (f delaytask.Filter, err error) {
	f = delaytask.Filter{
		Status: delaytask.Status(q.Get("status")), Tag: q.Get("tag"), App: q.Get("app"), Key: q.Get("key"),
		Group: q.Get("group"), Error: q.Get("error"), Order: delaytask.Order(q.Get("order")), After: q.Get("cursor"),
	}
	if f.DueFrom, err = ParseTime("due_from", q.Get("due_from")); err != nil {
		return f, err
	}
	if f.DueBefore, err = ParseTime("due_before", q.Get("due_before")); err != nil || q.Get("late_by") == "" {
		return f, err
	}
	var late Duration
	if err := late.UnmarshalText([]byte(q.Get("late_by"))); err != nil {
		return f, fmt.Errorf("%w: late_by: %w", delaytask.ErrInvalidOption, err)
	}
	f.LateBy, err = lateBy(late)
	return f, err
}

// FilterText returns the filter of a bulk change as a line, with the moment that bounds what is changed. The action of
// the change says the status.
func FilterText(f *delaytask.Filter, asOf time.Time) string {
	q := FilterValues(f)
	q.Set("as_of", momentText(asOf))
	var parts []string
	for _, name := range []string{"tag", "app", "key", "due_from", "due_before", "late_by", "group", "as_of", "error"} {
		switch text := q.Get(name); {
		case text == "":
		case name == "key", name == "error": // which may have spaces
			parts = append(parts, name+"="+strconv.Quote(text))
		default:
			parts = append(parts, name+"="+text)
		}
	}
	return strings.Join(parts, " ")
}

// momentText writes a moment with all its digits, "" for none.
func momentText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// ParseTime reads a parameter as [Moment] does. An empty one is the zero time. It returns [delaytask.ErrInvalidTime],
// also for a text that stands for the zero time.
func ParseTime(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	var m Moment
	if err := m.UnmarshalText([]byte(text)); err != nil {
		return time.Time{}, fmt.Errorf("%w: %s: %w", delaytask.ErrInvalidTime, name, err)
	}
	return given(name, m)
}

func given(name string, m Moment) (time.Time, error) {
	if m.Std().IsZero() { // which would mean none
		return time.Time{}, fmt.Errorf("%w: %s is the year 1", delaytask.ErrInvalidTime, name)
	}
	return m.Std(), nil
}

func lateBy(d Duration) (time.Duration, error) {
	if d == 0 {
		return 0, fmt.Errorf("%w: late_by: want more than 0", delaytask.ErrInvalidOption)
	}
	return d.Std(), nil
}
