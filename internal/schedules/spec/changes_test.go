package spec_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

// TestClockChangesByHand has ticks that were found by hand. The oracle is asked as well, so that it is tested too.
func TestClockChangesByHand(t *testing.T) {
	const sentinel = "\n@at 1999-01-01T00:00:00Z" // keeps a definition whose only other tick is skipped
	for _, row := range []struct {
		zone, from string
		hours      int
		lines      string
		want       string // of all rules, or of once, skip, both and literal
	}{
		{"Europe/Berlin", "2027-03-28T00:00", 24, "30 2 * * *", "03:00+02:00||03:00+02:00|"},
		{"Europe/Berlin", "2027-03-28T00:00", 24, "*/20 2 * * *", "03:00+02:00||03:00+02:00|"},
		{"Europe/Berlin", "2027-03-28T00:00", 2, "15 * * * *", "01:15+01:00 03:15+02:00"},
		{"Europe/Berlin", "2027-10-31T00:00", 12, "30 2 * * *",
			"02:30+02:00|02:30+02:00|02:30+02:00 02:30+01:00|02:30+02:00 02:30+01:00"},
		{"Europe/Berlin", "2027-10-31T00:00", 3, "15 * * * *", "02:15+02:00 02:15+01:00 03:15+01:00"},
		{"America/New_York", "2027-03-14T05:00", 6, "30 2 * * *", "03:00-04:00||03:00-04:00|"},
		{"America/New_York", "2027-11-07T04:00", 6, "30 1 * * *",
			"01:30-04:00|01:30-04:00|01:30-04:00 01:30-05:00|01:30-04:00 01:30-05:00"},
		{"Australia/Lord_Howe", "2026-10-03T14:00", 6, "15 2 * * *", "02:30+11:00||02:30+11:00|"},
		{"Australia/Lord_Howe", "2026-10-03T14:00", 6, "45 1 * * *", "01:45+10:30"},
		{"Australia/Lord_Howe", "2027-04-03T14:00", 6, "45 1 * * *",
			"01:45+11:00|01:45+11:00|01:45+11:00 01:45+10:30|01:45+11:00 01:45+10:30"},

		// The first and the last second that do not exist, that come twice, and those beside them.
		{"Europe/Berlin", "2027-03-28T00:00", 24, "0 0 2 * * *", "03:00+02:00||03:00+02:00|"},
		{"Europe/Berlin", "2027-03-28T00:00", 24, "59 59 2 * * *", "03:00+02:00||03:00+02:00|"},
		{"Europe/Berlin", "2027-03-28T00:00", 12, "59 59 1 * * *", "01:59+01:00"},
		{"Europe/Berlin", "2027-03-28T00:00", 24, "0 3 * * *", "03:00+02:00"},
		{"Europe/Berlin", "2027-10-31T00:00", 24, "0 0 3 * * *", "03:00+01:00"},
		{"Europe/Berlin", "2027-10-31T00:00", 24, "59 59 2 * * *",
			"02:59+02:00|02:59+02:00|02:59+02:00 02:59+01:00|02:59+02:00 02:59+01:00"},
		{"Europe/Berlin", "2027-10-30T22:00", 24, "0 2 * * *",
			"02:00+02:00|02:00+02:00|02:00+02:00 02:00+01:00|02:00+02:00 02:00+01:00"},
		// Hours are unrestricted as a star, a step of one, a list with a star, and a full range; not with 23 of them.
		{"Europe/Berlin", "2027-10-31T00:00", 3, "15 0-23 * * *", "02:15+02:00 02:15+01:00 03:15+01:00"},
		{"Europe/Berlin", "2027-10-31T00:00", 3, "15 5,*/1 * * *", "02:15+02:00 02:15+01:00 03:15+01:00"},
		{"Europe/Berlin", "2027-10-31T00:00", 3, "15 0-22 * * *", "02:15+02:00 03:15+01:00|02:15+02:00 03:15+01:00|" +
			"02:15+02:00 02:15+01:00 03:15+01:00|02:15+02:00 02:15+01:00 03:15+01:00"},
		{"Europe/Berlin", "2027-10-31T00:00", 2, "@every 30m", "02:00+02:00 02:30+02:00 02:00+01:00 02:30+01:00"},

		// A day that does not exist is more than three hours: each rule is literal.
		{"Pacific/Apia", "2011-12-29T10:00", 36, "0 9 * * *", "09:00-10:00 09:00+14:00"},
		{"Pacific/Apia", "2011-12-28T10:00", 72, "0 9 30 12 *", ""},
		{"Pacific/Apia", "2011-12-28T10:00", 72, "0 0 * * FRI", ""},
		{"Pacific/Apia", "2011-12-29T00:00", 72, "0 0 * * 0", "00:00+14:00"},
		{"Pacific/Apia", "2011-12-29T10:00", 30, "@every 12h", "02:00-10:00 14:00-10:00 02:00+14:00"},
		{"Pacific/Kwajalein", "1993-08-20T12:00", 48, "0 9 * * *", "09:00-12:00 09:00+12:00"},
		// Three hours are not more than three hours.
		{"Antarctica/Casey", "2020-10-03T10:00", 12, "30 1 * * *", "03:01+11:00||03:01+11:00|"},

		{"Africa/Cairo", "2024-04-25T21:00", 6, "0 0 * * *", "01:00+03:00||01:00+03:00|"},
		{"Africa/Cairo", "2024-04-25T21:00", 6, "30 0 26 4 FRI", "01:00+03:00||01:00+03:00|"},
		{"Africa/Cairo", "2024-10-31T20:00", 6, "0 0 * * *", "00:00+02:00"},
		{"Africa/Cairo", "2024-10-31T20:00", 6, "30 23 31 10 *",
			"23:30+03:00|23:30+03:00|23:30+03:00 23:30+02:00|23:30+03:00 23:30+02:00"},
		{"Africa/Casablanca", "2024-03-10T00:00", 6, "30 2 * * *",
			"02:30+01:00|02:30+01:00|02:30+01:00 02:30+00:00|02:30+01:00 02:30+00:00"},
		{"Africa/Casablanca", "2024-04-14T00:00", 6, "30 2 * * *", "03:00+01:00||03:00+01:00|"},
		{"America/St_Johns", "2010-03-14T03:00", 6, "0 0 * * *", "00:00-03:30"},
		{"America/St_Johns", "2010-03-14T03:00", 6, "1 0 * * *", "01:01-02:30||01:01-02:30|"},
		{"America/St_Johns", "2010-11-07T01:00", 6, "0 0 * * *",
			"00:00-02:30|00:00-02:30|00:00-02:30 00:00-03:30|00:00-02:30 00:00-03:30"},
		{"America/St_Johns", "2010-11-07T01:00", 6, "1 0,23 * * *", "23:01-02:30 00:01-03:30|23:01-02:30 00:01-03:30|" +
			"23:01-02:30 23:01-03:30 00:01-03:30|23:01-02:30 23:01-03:30 00:01-03:30"},
		{"Asia/Beirut", "2022-03-26T20:00", 6, "0 0 * * SUN", "01:00+03:00||01:00+03:00|"},
		{"America/Havana", "2022-03-13T03:00", 6, "0 0 * * *", "01:00-04:00||01:00-04:00|"},
		{"America/Havana", "2022-11-06T03:00", 6, "0 0 * * *",
			"00:00-04:00|00:00-04:00|00:00-04:00 00:00-05:00|00:00-04:00 00:00-05:00"},
		{"Africa/Monrovia", "1972-01-06T00:00", 36, "0 0 * * *", "00:00-00:44 00:44+00:00|00:00-00:44|" +
			"00:00-00:44 00:44+00:00|00:00-00:44"},

		// The gap belongs to the day before its end.
		{"America/Nuuk", "2024-03-30T22:00", 6, "30 23 * * SAT", "00:00-01:00||00:00-01:00|"},
		{"America/Nuuk", "2024-03-30T22:00", 6, "30 23 30 3 *\n!2024-03-30", ""},
		{"America/Nuuk", "2024-03-30T22:00", 6, "30 23 30 3 *\n!2024-03-31", ""},
		{"America/Nuuk", "2024-03-30T22:00", 6, "30 23 30 3 *\n0 0 31 3 *\n!2024-03-30", "00:00-01:00"},

		{"Europe/Berlin", "2027-03-28T00:00", 24, "30 2 * * *\n0 3 * * *", "03:00+02:00"},
		{"Europe/Berlin", "2027-03-28T00:00", 24, "30 2 * * *\n0 3 * * *\n!30 2 28 3 *", "03:00+02:00"},
		{"Europe/Berlin", "2027-03-28T00:00", 24, "30 2 * * *\n!30 2 28 3 *", ""},
		{"Europe/Berlin", "2027-03-28T00:00", 24, "30 2 * * *\n!0 3 * * *", ""},
		{"Europe/Berlin", "2027-03-28T00:00", 24, "30 2 * * *\n!1-59 3 * * *", "03:00+02:00||03:00+02:00|"},
		{"Europe/Berlin", "2027-03-28T00:00", 24, "30,40 2 * * *\n!30 2 * * *", "03:00+02:00||03:00+02:00|"},
		{"Europe/Berlin", "2027-10-31T00:00", 2, "@every 30m\n!30 2 * * *", "02:00+02:00 02:00+01:00"},

		{"Europe/Berlin", "2027-03-28T00:00", 24, "@at 2027-03-28T02:30" + sentinel, "03:00+02:00||03:00+02:00|"},
		{"Europe/Berlin", "2027-03-28T00:00", 24, "@at 2027-03-28T02:30:00+01:00", "03:30+02:00"},
		{"Europe/Berlin", "2027-10-31T00:00", 24, "@at 2027-10-31T02:30:00",
			"02:30+02:00|02:30+02:00|02:30+02:00 02:30+01:00|02:30+02:00 02:30+01:00"},
		{"Europe/Berlin", "2027-10-31T00:00", 24, "@at 2027-10-31T01:30:00Z", "02:30+01:00"},
		{"Pacific/Apia", "2011-12-29T00:00", 72, "@at 2011-12-30T12:00" + sentinel, ""},
	} {
		zone := zoneOf(t, row.zone)
		from, err := time.Parse("2006-01-02T15:04", row.from)
		mustOK(t, err)
		w := newWalk(zone, from.Unix(), from.Unix()+int64(row.hours)*60*60)
		wants := strings.Split(row.want, "|")
		for i, rule := range rules {
			want := strings.Fields(wants[min(i, len(wants)-1)])
			t.Run(row.zone+" "+row.from+" "+row.lines+" "+string(rule), func(t *testing.T) {
				d := delaytask.Spec{Lines: strings.Split(row.lines, "\n"), Zone: row.zone, DST: rule}
				clock := func(ticks []int64) (list []string) {
					for _, at := range ticks {
						list = append(list, time.Unix(at, 0).In(zone).Format("15:04-07:00"))
					}
					return list
				}
				if got := clock(newOracle(t, d).ticks(w)); !slices.Equal(got, want) {
					t.Errorf("the oracle says %q, want %q", got, want)
				}
				s, err := spec.Parse(d)
				mustOK(t, err)
				if got := clock(forwards(t, s, w)); !slices.Equal(got, want) {
					t.Errorf("Next gives %q, want %q", got, want)
				}
				if got := clock(backwards(t, s, w)); !slices.Equal(got, want) {
					t.Errorf("Prev gives %q, want %q", got, want)
				}
			})
		}
	}
}
