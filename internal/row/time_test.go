package row

import (
	"testing"
	"time"
)

func FuzzScanTime(f *testing.F) {
	for _, seed := range []string{
		"2026-05-04 12:00:00.000001", "2026-05-04 12:00:00", "1970-01-01 00:00:00", "0000-00-00 00:00:00",
		"9999-12-31 23:59:59.999999", "2026-05-04T12:00:00Z", "2026-02-30 00:00:00", "12:00", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var read Time
		if read.Scan([]byte(text)) != nil {
			if read != 0 {
				t.Fatalf("%q was refused and left %d behind", text, read)
			}
			return
		}
		sameAgain(t, read)
	})
}

func FuzzTimeValue(f *testing.F) {
	for _, seed := range []Time{MinTime, MaxTime, At(time.Date(2026, 5, 4, 12, 0, 0, 1, time.UTC))} {
		f.Add(int64(seed))
	}
	f.Fuzz(func(t *testing.T, micros int64) {
		if moment := Time(micros); moment >= MinTime && moment <= MaxTime {
			sameAgain(t, moment)
		}
	})
}

// parseStored agrees with the standard library, or leaves the text to parse.
func FuzzStoredTimeIsReadAsTheStandardLibraryReadsIt(f *testing.F) {
	for _, seed := range []string{
		"2026-05-04 12:00:00.000001", "2024-02-29 23:59:59.999999", "2026-02-28 00:00:00.000000",
		"2026-13-01 00:00:00.000000", "2026-01-01 24:00:00.000000", "0000-00-00 00:00:00.000000",
		"2026-01-01 00:00:00.00000x", "2026-01-01 00:60:00.000000", "2026-11-30 00:00:00.000000",
		"2026-11-31 00:00:00.000000", "2026-12-31 00:00:00.000000", "2025-02-29 00:00:00.000000",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quick, ok := parseStored([]byte(text))
		if !ok {
			return
		}
		std, err := time.ParseInLocation(timeLayout, text, time.UTC)
		if err != nil || quick != Time(std.UnixMicro()) {
			t.Fatalf("%q is %d, the standard library says %v, %v", text, quick, std, err)
		}
	})
}

// sameAgain stores a moment and reads it back.
func sameAgain(t *testing.T, moment Time) {
	t.Helper()
	stored, err := moment.Value()
	if err != nil {
		t.Fatal(err)
	}
	var again Time
	if err := again.Scan(stored); err != nil || again != moment {
		t.Fatalf("%d is stored as %v and comes back as %d, %v", moment, stored, again, err)
	}
}
