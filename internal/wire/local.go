package wire

import (
	"fmt"
	"sort"
	"time"
)

// LocalExamples are times as [ParseLocal] reads them, for texts that tell people.
const LocalExamples = "2027-01-31, '2027-01-31 08:30', 08:30 (today) or 2027-01-31T08:30:00Z"

// ParseLocal reads a moment as people write it: as [Moment] does, or in the zone a date, a date with a time of day, or
// a time of day alone, which is of the day of now. A time of day behind a date may have a zone of its own.
//
// A local time that a clock change leaves out is the end of the gap, and one that comes twice is the first. Ticks of
// schedules follow the same rule by default. ParseLocal returns an error for any other text.
func ParseLocal(text string, zone *time.Location, now time.Time) (time.Time, error) {
	var m Moment
	if m.UnmarshalText([]byte(text)) == nil {
		return m.Std(), nil
	}
	full := text
	for _, layout := range []string{"15:04:05", "15:04"} {
		if _, err := time.Parse(layout, text); err == nil {
			full = now.In(zone).Format(time.DateOnly) + " " + text
		}
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05",
		"2006-01-02T15:04", time.DateOnly} {
		wall, err := time.Parse(layout, full)
		at := instant(wall, zone)
		if err != nil && layout != time.DateOnly {
			at, err = time.Parse(layout+"Z07:00", full)
		}
		if err == nil && Written(at) {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("want a time such as %s, or the seconds (10 digits), milliseconds (13) or "+
		"microseconds (16) since 1970; got %.40q", LocalExamples, text)
}

// instant returns when clocks of the zone show what wall shows in UTC.
func instant(wall time.Time, zone *time.Location) time.Time {
	offset := func(t time.Time) time.Duration {
		_, seconds := t.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	// No clock is a day away from UTC, so a change of the offset lies between the two.
	before, after := offset(wall.Add(-day)), offset(wall.Add(day))
	for _, ahead := range []time.Duration{before, after} {
		if t := wall.Add(-ahead); offset(t) == ahead {
			return t
		}
	}
	gap := wall.Add(-after).Truncate(time.Second) // begins later, at most as long as it is
	return gap.Add(time.Second * time.Duration(sort.Search(int((after-before)/time.Second), func(i int) bool {
		return offset(gap.Add(time.Duration(i)*time.Second)) == after
	})))
}
