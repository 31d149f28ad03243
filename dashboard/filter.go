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

// filterOf reads the filter of a list from the query. clean is the query as addresses have it: without the empty
// parameters that forms send, and with a zone in each time.
func (v *view) filterOf(query url.Values) (f delaytask.Filter, clean url.Values, err error) {
	clean = url.Values{}
	for _, name := range wire.FilterNames {
		switch text := query.Get(name); {
		case len(query[name]) > 1:
			return f, nil, invalid{field: name, want: "want.once"}
		case text == "":
		case name == "due_from", name == "due_before":
			at, err := v.timeOf(name, text)
			if err == nil && at.IsZero() { // which would not filter
				err = invalid{field: name, want: "want.time"}
			}
			if err != nil {
				return f, nil, err
			}
			clean.Set(name, at.UTC().Format(time.RFC3339Nano))
		default:
			clean.Set(name, text)
		}
	}
	if f, err = wire.ParseFilter(clean); err != nil {
		wrong := invalid{field: "late_by", want: "want.duration"}
		if _, err := wire.ParseDuration(clean.Get("late_by")); err == nil {
			wrong.want = "want.positive"
		}
		return f, nil, wrong
	}
	return f, clean, nil
}

// timeOf reads a time of a field, of the reader's zone where it has none.
func (v *view) timeOf(field, text string) (time.Time, error) {
	t, err := wire.ParseLocal(text, v.zone, v.Now)
	if err != nil {
		return t, invalid{field: field, want: "want.time"}
	}
	return t, nil
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
	for _, name := range wire.FilterNames {
		if given.Has(name) != clean.Has(name) || given.Get(name) != clean.Get(name) {
			for other, values := range given {
				if slices.Contains(wire.FilterNames, other) {
					continue
				}
				clean[other] = values
			}
			return canonical(withQuery(v.lastPart(), clean.Encode()))
		}
	}
	return nil
}
