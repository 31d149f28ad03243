package wire

import (
	"testing"
	"time"
)

func TestLocalTimesAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	apia, err2 := time.LoadLocation("Pacific/Apia")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	shanghai := time.FixedZone("CST", 8*60*60)
	now := time.Date(2026, 11, 28, 17, 30, 0, 0, time.UTC) // the 29th in Shanghai
	f := func(text string, zone *time.Location, want string) {
		t.Helper()
		got, err := ParseLocal(text, zone, now)
		if err != nil || got.Location() != time.UTC || got.Format(time.RFC3339Nano) != want {
			t.Errorf("%q is %v, %v, want %s", text, got, err, want)
		}
	}
	f("2026-11-28", shanghai, "2026-11-27T16:00:00Z")
	f("2026-11-28 14:00", shanghai, "2026-11-28T06:00:00Z")
	f("2026-11-28T14:00:05.25", shanghai, "2026-11-28T06:00:05.25Z")
	f("14:00", shanghai, "2026-11-29T06:00:00Z")
	f("14:00:30", berlin, "2026-11-28T13:00:30Z")
	f("2026-11-28T14:00:00+02:00", shanghai, "2026-11-28T12:00:00Z")
	f("2026-11-28 14:00Z", shanghai, "2026-11-28T14:00:00Z")
	f("1801384200", shanghai, "2027-01-31T08:30:00Z")
	// Clock changes: a gap of an hour, the hour that comes twice, and times beside them.
	f("2027-03-28 01:59:59", berlin, "2027-03-28T00:59:59Z")
	f("2027-03-28 02:30", berlin, "2027-03-28T01:00:00Z")
	f("2027-03-28 03:00", berlin, "2027-03-28T01:00:00Z")
	f("2027-10-31 02:30", berlin, "2027-10-31T00:30:00Z")
	f("2027-10-31 03:00", berlin, "2027-10-31T02:00:00Z")
	f("2011-12-30 12:00", apia, "2011-12-30T10:00:00Z") // a day that Samoa has left out
}

func TestTextsThatAreNoTimesAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "tomorrow", "1h", "2026-11-31", "2026-11-28 ", "2026-11-28T", "2026-11-28 25:00", "14", "14:00Z", "24:00",
		"28.11.2026", "9999-12-31 23:00-02:00", "2026-11-28 14:00 CET",
	} {
		if got, err := ParseLocal(text, time.UTC, time.Unix(0, 0)); err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
	}
}
