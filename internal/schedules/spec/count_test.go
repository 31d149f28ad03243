//go:build !race

package spec_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

// TestCountsAreWhatNextFinds compares the counts of any spec, between any moments, with the ticks that Next walks to.
func TestCountsAreWhatNextFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, middle := drawDefinition(t)
		if rapid.Bool().Draw(t, "dense") {
			dense := []string{"* * * * * *", "*/2 0-30 1-4 * * *", "@every 1s", "@every 7s/3s"}
			d.Lines = append(d.Lines, rapid.SampledFrom(dense).Draw(t, "line"))
		}
		s, err := spec.Parse(d)
		if err != nil {
			t.Skip("never matches")
		}
		bounds := rapid.SliceOfN(rapid.Int64Range(0, 20*3600*1000), 2, 4).Draw(t, "moments")
		slices.Sort(bounds)
		moments, want := make([]time.Time, len(bounds)), make([]int, len(bounds)-1)
		for i, ms := range bounds {
			moments[i] = time.Unix(middle-10*3600, 0).Add(time.Duration(ms) * time.Millisecond)
		}
		for i := range want {
			for tick := s.Next(moments[i].Add(-1)); !tick.IsZero() && tick.Before(moments[i+1]); tick = s.Next(tick) {
				want[i]++
			}
		}
		if got, complete := s.Counts(moments); !slices.Equal(got, want) || !complete {
			t.Errorf("%q in %s (%v): between %v there are %v (%v), want %v", d.Lines, d.Zone, d.DST, moments, got,
				complete, want)
		}
	})
}

func TestADenseMonthIsCountedByTheMinute(t *testing.T) {
	s, err := spec.Parse(delaytask.Spec{Lines: []string{"* * 9-17 * * MON-FRI", "0 0 3 * * *"}, Zone: "Europe/Berlin"})
	mustOK(t, err)
	month := []time.Time{time.Date(2027, 2, 28, 23, 0, 0, 0, time.UTC), time.Date(2027, 3, 31, 22, 0, 0, 0, time.UTC)}
	const workdays = 23
	if got, complete := s.Counts(month); got[0] != workdays*9*3600+31 || !complete {
		t.Errorf("got %v, %v", got, complete)
	}
}
