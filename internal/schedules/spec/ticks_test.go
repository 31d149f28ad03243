package spec_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

// TestTicksByHand follows ticks over years, where the oracle would walk too long. The last entry - means no more.
func TestTicksByHand(t *testing.T) {
	for _, row := range []struct{ zone, lines, after, want string }{
		{"", "0 0 29 2 *", "2092-03-01T00:00:00Z", "2096-02-29T00:00:00Z 2104-02-29T00:00:00Z 2108-02-29T00:00:00Z"},
		{"", "0 0 29 2 *", "1999-01-01T00:00:00Z", "2000-02-29T00:00:00Z 2004-02-29T00:00:00Z"},
		{"", "0 0 L 2 *", "2099-01-01T00:00:00Z", "2099-02-28T00:00:00Z 2100-02-28T00:00:00Z 2101-02-28T00:00:00Z"},
		{"", "0 0 L 2 *", "2026-03-01T00:00:00Z", "2027-02-28T00:00:00Z 2028-02-29T00:00:00Z 2029-02-28T00:00:00Z"},
		{"", "0 0 15,L * *", "2027-02-01T00:00:00Z", "2027-02-15T00:00:00Z 2027-02-28T00:00:00Z 2027-03-15T00:00:00Z " +
			"2027-03-31T00:00:00Z"},
		{"", "0 0 L * MON", "2027-02-25T00:00:00Z", "2027-02-28T00:00:00Z 2027-03-01T00:00:00Z 2027-03-08T00:00:00Z"},
		// Excludes may leave out more ticks in a row than there are in a lifetime of a process.
		{"", "@every 1m\n!0 * * * 1-11 *", "2027-01-01T00:00:00Z", "2027-12-01T00:00:00Z 2027-12-01T00:01:00Z"},
		{"", "@every 25h\n!* 1-23 * * *", "1970-01-01T00:00:00Z", "1970-01-26T00:00:00Z 1970-02-20T00:00:00Z"},
		{"Europe/Berlin", "@every 1h\n!* 0,1,3-23 * * *", "2027-03-27T12:00:00Z",
			"2027-03-29T02:00:00+02:00 2027-03-30T02:00:00+02:00"},
		{"", "@every 400000h/1h", "2016-01-01T00:00:00Z", "2061-04-06T09:00:00Z 2106-11-24T01:00:00Z"},
		{"", "0 0 29 2 *\n!* * * * 1-6\n!2032-02-29\n!2060-02-29", "2027-01-01T00:00:00Z",
			"2088-02-29T00:00:00Z 2128-02-29T00:00:00Z"},
		// Sundays that are leap days, 40 years apart around 2100.
		{"", "0 0 29 2 *\n!* * * * 1-6", "2027-01-01T00:00:00Z", "2032-02-29T00:00:00Z 2060-02-29T00:00:00Z " +
			"2088-02-29T00:00:00Z 2128-02-29T00:00:00Z"},

		// One of the days is enough where both are restricted; a star among the items restricts nothing.
		{"", "0 0 13 * FRI", "2026-12-10T00:00:00Z", "2026-12-11T00:00:00Z 2026-12-13T00:00:00Z 2026-12-18T00:00:00Z"},
		{"", "0 0 */15 * mon", "2027-02-01T00:00:00Z", "2027-02-08T00:00:00Z 2027-02-15T00:00:00Z " +
			"2027-02-16T00:00:00Z 2027-02-22T00:00:00Z"},
		{"", "0 0 30 2 MON", "2027-02-20T00:00:00Z", "2027-02-22T00:00:00Z 2028-02-07T00:00:00Z"},
		{"", "0 0 13,* * MON", "2027-02-10T00:00:00Z", "2027-02-15T00:00:00Z 2027-02-22T00:00:00Z"},
		{"", "0 0 L,* * MON", "2027-02-10T00:00:00Z", "2027-02-15T00:00:00Z 2027-02-22T00:00:00Z"},
		{"", "0 0 ? * MON", "2027-02-10T00:00:00Z", "2027-02-15T00:00:00Z 2027-02-22T00:00:00Z"},
		{"", "0 0 13 * 0-6", "2027-02-10T00:00:00Z", "2027-02-11T00:00:00Z 2027-02-12T00:00:00Z"},
		{"", "0 0 13 * */1", "2027-02-10T00:00:00Z", "2027-02-13T00:00:00Z 2027-03-13T00:00:00Z"},

		{"", "0 0 * * Fri-sun", "2027-02-10T00:00:00Z", "2027-02-12T00:00:00Z 2027-02-13T00:00:00Z " +
			"2027-02-14T00:00:00Z 2027-02-19T00:00:00Z"},
		{"", "0 0 * * 6-7", "2027-02-10T00:00:00Z", "2027-02-13T00:00:00Z 2027-02-14T00:00:00Z 2027-02-20T00:00:00Z"},
		{"", "0 0 * * 7", "2027-02-10T00:00:00Z", "2027-02-14T00:00:00Z 2027-02-21T00:00:00Z"},
		{"", "0 0 1/10 JAN-feb *", "2027-01-15T00:00:00Z", "2027-01-21T00:00:00Z 2027-01-31T00:00:00Z " +
			"2027-02-01T00:00:00Z 2027-02-11T00:00:00Z 2027-02-21T00:00:00Z 2028-01-01T00:00:00Z"},
		{"", "10-30/15,50 0 0 1 1 *", "2027-01-01T00:00:00Z", "2027-01-01T00:00:10Z 2027-01-01T00:00:25Z " +
			"2027-01-01T00:00:50Z 2028-01-01T00:00:10Z"},
		{"", "@yearly", "2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z 2029-01-01T00:00:00Z"},
		{"", "@annually", "2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"},
		{"", "@monthly", "2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z 2027-03-01T00:00:00Z"},
		{"", "@weekly", "2027-02-10T00:00:00Z", "2027-02-14T00:00:00Z 2027-02-21T00:00:00Z"},
		{"", "@midnight", "2027-02-10T00:00:00Z", "2027-02-11T00:00:00Z 2027-02-12T00:00:00Z"},
		{"", "@hourly", "2027-02-10T00:00:00Z", "2027-02-10T01:00:00Z 2027-02-10T02:00:00Z"},
		{"Asia/Tokyo", "@daily", "2027-02-10T00:00:00Z", "2027-02-11T00:00:00+09:00 2027-02-12T00:00:00+09:00"},
		{"", "CRON_TZ=Asia/Tokyo @daily", "2027-02-10T00:00:00Z", "2027-02-11T00:00:00+09:00"},
		{"Asia/Tokyo", "TZ=Asia/Tokyo 0 0 * * *", "2027-02-10T00:00:00Z", "2027-02-11T00:00:00+09:00"},

		{"Asia/Tokyo", "@every 90m", "2027-01-01T00:00:00Z", "2027-01-01T01:30:00Z 2027-01-01T03:00:00Z"},
		{"", "@every 24h/2h", "2027-01-01T02:00:00Z", "2027-01-02T02:00:00Z 2027-01-03T02:00:00Z"},
		{"", "@every 168h/3h", "1970-01-01T00:00:00Z", "1970-01-01T03:00:00Z 1970-01-08T03:00:00Z"},
		{"", "@every 1h", "1960-01-01T00:00:00Z", "1970-01-01T01:00:00Z 1970-01-01T02:00:00Z"},
		{"", "@at 2027-01-01T09:00\n@at 2027-01-01T09:00:00+09:00", "2000-01-01T00:00:00Z",
			"2027-01-01T00:00:00Z 2027-01-01T09:00:00Z -"},
		{"", "0 0 24-26 12 *\n!2027-12-24\n!* * 25 12 *", "2027-01-01T00:00:00Z",
			"2027-12-26T00:00:00Z 2028-12-24T00:00:00Z 2028-12-26T00:00:00Z"},
		{"", "* * * * * *\n!* * * * * 1-6\n!0-30 * * * * *", "2027-02-10T00:00:00Z",
			"2027-02-14T00:00:31Z 2027-02-14T00:00:32Z"},

		{"Pacific/Apia", "0 0 * * 0", "2011-12-29T12:00:00Z", "2012-01-01T00:00:00+14:00 2012-01-08T00:00:00+14:00"},
		{"Pacific/Apia", "0 0 30 12 *", "2010-06-01T00:00:00Z", "2010-12-30T00:00:00-10:00 2012-12-30T00:00:00+14:00"},
		{"Europe/Berlin", "0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00+01:00"},
		// 31 December of leap years, where ZoneBounds ends before the moment that it is asked for.
		{"Europe/Berlin", "0 12 31 12 *", "2048-01-01T00:00:00Z",
			"2048-12-31T12:00:00+01:00 2049-12-31T12:00:00+01:00"},
		{"Australia/Sydney", "0 12 31 12 *", "2048-01-01T00:00:00Z",
			"2048-12-31T12:00:00+11:00 2049-12-31T12:00:00+11:00"},
		{"America/New_York", "0 20 31 12 *", "2096-02-01T00:00:00Z",
			"2096-12-31T20:00:00-05:00 2097-12-31T20:00:00-05:00"},
		{"Europe/Berlin", "30 2 29-31 3 SUN\n!* * * * 1-6", "2027-01-01T00:00:00Z", "2027-03-07T02:30:00+01:00"},
		{"Europe/Berlin", "30 2 L 3 *", "2100-01-01T00:00:00Z", "2100-03-31T02:30:00+02:00 2101-03-31T02:30:00+02:00"},

		// Both ends of time: 1970-01-01T00:00:01Z, and the last second before 9999.
		{"", "* * * * * *", "0001-01-01T00:00:00Z", "1970-01-01T00:00:01Z 1970-01-01T00:00:02Z"},
		{"", "* * * * * *", "9998-12-31T23:59:57Z", "9998-12-31T23:59:58Z 9998-12-31T23:59:59Z -"},
		{"", "@every 1s", "9998-12-31T23:59:58Z", "9998-12-31T23:59:59Z -"},
		{"", "0 0 29 2 *", "9990-01-01T00:00:00Z", "9992-02-29T00:00:00Z 9996-02-29T00:00:00Z -"},
		{"Asia/Tokyo", "0 0 1 1 *", "9997-06-01T00:00:00Z", "9998-01-01T00:00:00+09:00 9999-01-01T00:00:00+09:00 -"},
	} {
		t.Run(row.lines+" after "+row.after, func(t *testing.T) {
			s, err := spec.Parse(delaytask.Spec{Lines: strings.Split(row.lines, "\n"), Zone: row.zone})
			mustOK(t, err)
			at := instant(t, row.after)
			var ticks []time.Time
			for want := range strings.FieldsSeq(row.want) {
				at = s.Next(at)
				if want == "-" {
					want = "0001-01-01T00:00:00Z"
				} else {
					ticks = append(ticks, at)
				}
				if !at.Equal(instant(t, want)) {
					t.Fatalf("Next gives %v, want %s", at, want)
				}
			}
			for i, want := range slices.Backward(ticks[:len(ticks)-1]) {
				if got := s.Prev(ticks[i+1]); !got.Equal(want) {
					t.Errorf("Prev of %v gives %v, want %v", ticks[i+1], got, want)
				}
			}
			// Parts of a second count.
			if got := s.Prev(ticks[0].Add(time.Nanosecond)); !got.Equal(ticks[0]) {
				t.Errorf("Prev a nanosecond after %v gives %v", ticks[0], got)
			}
			if got := s.Next(ticks[0].Add(-time.Nanosecond)); !got.Equal(ticks[0]) {
				t.Errorf("Next a nanosecond before %v gives %v", ticks[0], got)
			}
		})
	}
}

func TestPrevEndsAtTheFirstTick(t *testing.T) {
	for lines, first := range map[string]string{
		"* * * * * *":          "1970-01-01T00:00:01Z",
		"@every 24h":           "1970-01-02T00:00:00Z",
		"0 0 29 2 *":           "1972-02-29T00:00:00Z",
		"@at 2027-01-01T00:00": "2027-01-01T00:00:00Z",
	} {
		s, err := spec.Parse(delaytask.Spec{Lines: []string{lines}})
		mustOK(t, err)
		if got := s.Next(time.Time{}); !got.Equal(instant(t, first)) {
			t.Errorf("%s: the first tick is %v, want %s", lines, got, first)
		}
		if got := s.Prev(instant(t, first)); !got.IsZero() {
			t.Errorf("%s: %v is before the first tick", lines, got)
		}
	}
}

func TestStartAndEndAreInclusive(t *testing.T) {
	first, last := instant(t, "2027-01-02T00:00:00Z"), instant(t, "2027-01-04T00:00:00Z")
	d := delaytask.Spec{Lines: []string{"0 0 * * *"}, Start: first, End: last}
	for _, row := range []struct {
		later time.Duration // of both bounds
		want  string
	}{
		{0, "2027-01-02 2027-01-03 2027-01-04"},
		{time.Nanosecond, "2027-01-03 2027-01-04"},
		{-time.Nanosecond, "2027-01-02 2027-01-03"},
		{-time.Second, "2027-01-02 2027-01-03"},
	} {
		d.Start, d.End = first.Add(row.later), last.Add(row.later)
		s, err := spec.Parse(d)
		mustOK(t, err)
		var next, previous []string
		for at := s.Next(time.Time{}); !at.IsZero(); at = s.Next(at) {
			next = append(next, at.UTC().Format(time.DateOnly))
		}
		for at := s.Prev(instant(t, "9999-12-31T00:00:00Z")); !at.IsZero(); at = s.Prev(at) {
			previous = append([]string{at.UTC().Format(time.DateOnly)}, previous...)
		}
		if want := strings.Fields(row.want); !slices.Equal(next, want) || !slices.Equal(previous, want) {
			t.Errorf("bounds %v later: Next gives %q, Prev %q, want %q", row.later, next, previous, want)
		}
	}
}

func instant(t rapid.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	mustOK(t, err)
	return at
}
