package spec

import (
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
)

// TestLastDayOfALeapYear is in a search when the rule for the future gives the changes of a zone: from 2040 on.
func TestLastDayOfALeapYear(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Sydney"} {
		s, err := Parse(delaytask.Spec{Lines: []string{"0 12 1 1 *"}, Zone: zone})
		if err != nil {
			t.Fatal(err)
		}
		got := s.Next(time.Date(2040, 12, 31, 12, 0, 0, 0, s.zone))
		if want := time.Date(2041, 1, 1, 12, 0, 0, 0, s.zone); !got.Equal(want) {
			t.Errorf("%s: %v", zone, got)
		}
	}
	s, err := Parse(delaytask.Spec{Lines: []string{"45 2 * 10 *"}, Zone: "Europe/Oslo"})
	if err != nil {
		t.Fatal(err)
	}
	ticks, _ := s.Preview(time.Date(2056, 10, 29, 2, 0, 0, 0, time.UTC), 3) // after the change of a leap year
	for i, want := range []string{"10-30", "10-31", "10-01"} {
		if got := ticks[i]; got.Time.Format("01-02") != want || got.Note != "" || len(ticks) != 3 {
			t.Errorf("%+v", ticks)
		}
	}
}

// TestCostIsBounded has definitions whose ticks are found by steps that no clock has to time.
func TestCostIsBounded(t *testing.T) {
	after := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	rare := delaytask.Spec{Lines: []string{"0 0 29 2 *"}, Zone: "Europe/Berlin"}
	// Other excludes are in force on each day, so no day is known to be empty.
	hidden := delaytask.Spec{Lines: []string{"1 0 0 29 2 *", "5 * * * *", "!0 * * * * *"}, Zone: "Europe/Berlin"}
	for _, days := range []string{"1/2 * *", "2/4,3/4 * *", "4-7,12-15,20-23,28-31 * *", "8-15,24-31 * *", "16-31 * *",
		"* * 1/2", "* * 2,3,6", "* * 4-6", "* 1/2 *", "* 2/4,3/4 *", "* 4-7,12 *", "* 8-12 *"} {
		hidden.Lines = append(hidden.Lines, "!0 * * "+days)
	}
	for _, tt := range []struct {
		delaytask.Spec
		complete bool
		least    int
	}{{rare, true, 1000}, {hidden, false, 0}} {
		s, err := Parse(tt.Spec)
		if err != nil {
			t.Fatal(err)
		}
		ticks, complete := s.Preview(after, 1000)
		if complete != tt.complete || len(ticks) < tt.least {
			t.Errorf("%q: %d ticks, complete: %t", tt.Lines[0], len(ticks), complete)
		}
		if _, complete := s.Counts([]time.Time{after, after.AddDate(40, 0, 0)}); complete != tt.complete {
			t.Errorf("%q: counted, complete: %t", tt.Lines[0], complete)
		}
	}
	hidden.Lines = hidden.Lines[1:]
	if _, err := Parse(hidden); err == nil || !strings.Contains(err.Error(), "too hard to find") {
		t.Errorf("nothing but hidden ticks: %v", err)
	}
}
