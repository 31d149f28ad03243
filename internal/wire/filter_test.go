package wire

import (
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
)

// TestEveryFieldOfAFilterIsToldInEveryForm fails for a new field that a form lacks.
func TestEveryFieldOfAFilterIsToldInEveryForm(t *testing.T) {
	t.Parallel()
	reading := []string{"Limit", "Bodies"}                // do not select
	listed := append(reading, "Status", "Order", "After") // a bulk change has none, or tells it elsewhere
	for i, field := range reflect.VisibleFields(reflect.TypeFor[delaytask.Filter]()) {
		if slices.Contains(reading, field.Name) {
			continue
		}
		var f delaytask.Filter
		switch to := reflect.ValueOf(&f).Elem().Field(i); to.Interface().(type) {
		case time.Time:
			to.Set(reflect.ValueOf(time.Date(2027, 1, 31, 8, 30, 0, 5_000_000, time.UTC)))
		case time.Duration:
			to.SetInt(int64(36 * time.Hour))
		default:
			to.SetString("a b&")
		}
		if got, err := ParseFilter(FilterValues(&f)); got != f || err != nil {
			t.Errorf("%s: the query %v gave %+v, %v", field.Name, FilterValues(&f), got, err)
		}
		for name := range FilterValues(&f) {
			if !slices.Contains(FilterNames, name) {
				t.Errorf("%s is no name of a parameter", name)
			}
		}
		if slices.Contains(listed, field.Name) {
			continue
		}
		text, err := json.Marshal(FromFilter(&f))
		if err != nil {
			t.Fatal(err)
		}
		var b BulkFilter
		if err := json.Unmarshal(text, &b); err != nil {
			t.Fatal(err)
		}
		if got, err := b.To(); got != f || err != nil {
			t.Errorf("%s: %s gave %+v, %v", field.Name, text, got, err)
		}
		if FilterText(&f, time.Time{}) == "" {
			t.Errorf("%s is missing in the text", field.Name)
		}
	}
}

func TestTextsOfFilters(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 1, 31, 9, 30, 0, 5000, time.FixedZone("", 3600))
	for want, got := range map[string]string{
		`tag=a as_of=2027-01-31T08:30:00.000005Z`: FilterText(&delaytask.Filter{Tag: "a", Status: "failed"}, at),
		`app=s key="k k" due_from=2027-01-31T08:30:00.000005Z late_by=1s group=g error="boom \n"`: FilterText(
			&delaytask.Filter{App: "s", Key: "k k", DueFrom: at, LateBy: time.Second, Group: "g", Error: "boom \n"},
			time.Time{}),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestFiltersThatWouldNotFilterAreRefused(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]error{
		"late_by=0": delaytask.ErrInvalidOption, "late_by=soon": delaytask.ErrInvalidOption,
		"due_from=soon": delaytask.ErrInvalidTime, "due_before=0001-01-01T00:00:00Z": delaytask.ErrInvalidTime,
		"tag=&late_by=&due_from=&other=1": nil,
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if f, err := ParseFilter(q); !errors.Is(err, want) || err == nil && f != (delaytask.Filter{}) {
			t.Errorf("%s gave %+v, %v, want %v", query, f, err, want)
		}
	}
}
