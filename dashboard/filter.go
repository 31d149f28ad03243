package dashboard

import (
	"net/url"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

// canonical is the address that a page has in truth. The reader is sent there.
type canonical string

func (canonical) Error() string { return "this page has another address" }

// filterNames are the parameters of a list, as the service has them.
var filterNames = []string{"tag", "status", "key", "app", "due_from", "due_before", "late_by", "error", "group",
	"order", "cursor"}

// filterOf reads the filter of a list from the query. clean is the query as addresses have it: without the empty
// parameters that forms send, and with a zone in each time.
func (v *view) filterOf(query url.Values) (f delaytask.Filter, clean url.Values, err error) {
	clean = url.Values{}
	for _, name := range filterNames {
		values := query[name]
		if len(values) > 1 {
			return f, nil, invalid{field: name, want: "want.once"}
		}
		if len(values) == 1 && values[0] != "" {
			clean.Set(name, values[0])
		}
	}
	f = delaytask.Filter{
		Tag: clean.Get("tag"), Status: delaytask.Status(clean.Get("status")), Key: clean.Get("key"),
		App: clean.Get("app"), Error: clean.Get("error"), Group: clean.Get("group"),
		Order: delaytask.Order(clean.Get("order")), After: clean.Get("cursor"),
	}
	for name, to := range map[string]*time.Time{"due_from": &f.DueFrom, "due_before": &f.DueBefore} {
		text := clean.Get(name)
		if text == "" {
			continue
		}
		if *to, err = v.timeOf(name, text); err == nil && to.IsZero() { // which would not filter
			err = invalid{field: name, want: "want.time"}
		}
		if err != nil {
			return f, nil, err
		}
		clean.Set(name, to.UTC().Format(time.RFC3339Nano))
	}
	if text := clean.Get("late_by"); text != "" {
		if f.LateBy, err = wire.ParseDuration(text); err != nil {
			return f, nil, invalid{field: "late_by", want: "want.duration"}
		}
		if f.LateBy == 0 {
			return f, nil, invalid{field: "late_by", want: "want.positive"}
		}
	}
	return f, clean, nil
}

// filterQuery writes the filter as the query of its list.
func filterQuery(f *delaytask.Filter) string {
	text := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	return query("tag", f.Tag, "status", string(f.Status), "key", f.Key, "app", f.App, "due_from", text(f.DueFrom),
		"due_before", text(f.DueBefore), "late_by", lateBy(f), "error", f.Error, "group", f.Group)
}

// lateBy writes LateBy of a filter, "" for none.
func lateBy(f *delaytask.Filter) string {
	if f.LateBy <= 0 {
		return ""
	}
	return wire.FormatDuration(f.LateBy)
}

// timeOf reads a time of a field: with its zone, or one of the reader's zone as a browser's field for times has it.
func (v *view) timeOf(field, text string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil && wire.Written(t) {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05.999", "2006-01-02T15:04", "2006-01-02 15:04:05.999",
		"2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, v.zone); err == nil && wire.Written(t) {
			return t, nil
		}
	}
	return time.Time{}, invalid{field: field, want: "want.time"}
}

// Field formats a time for a field of a form.
func (v *view) Field(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(v.zone).Format("2006-01-02T15:04:05")
}

// canonically returns the clean address when the query is another one.
func (v *view) canonically(clean url.Values) error {
	given := v.r.URL.Query()
	for _, name := range filterNames {
		if given.Has(name) != clean.Has(name) || given.Get(name) != clean.Get(name) {
			for other, values := range given {
				if slices.Contains(filterNames, other) {
					continue
				}
				clean[other] = values
			}
			return canonical(withQuery(v.lastPart(), clean.Encode()))
		}
	}
	return nil
}
