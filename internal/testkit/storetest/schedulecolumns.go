package storetest

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// fullSchedule has a value of its own in every column.
func (t *tester) fullSchedule(id int64, name string) row.Schedule {
	s := row.Schedule{
		ID: id, Name: name, Owner: "ö\\'ner 🚀", Parent: "pärent", Revision: t.start + 1, Defined: 14,
		Hash:    [32]byte{0, 1, 0xff, '\'', 31: 0x80},
		Grammar: 2, Spec: "30 2 * * *\n!2027-12-24", Tag: "report.build", Body: []byte("Zoë \x00 🚀"),
		Headers: []byte(`{"user": "Zoë 🚀"}`), MaxAttempts: 3, TTR: 1500 * time.Millisecond, Priority: -100,
		Overlap: delaytask.OverlapAllow, Missed: delaytask.MissedAll, MaxOpen: 4, StartWithin: 5 * time.Millisecond,
		Jitter: 6 * time.Second, PauseAfter: 7, MaxRuns: 8, KeepRuns: 9, RetryPastNext: true,
		State: row.ScheduleRetiredPaused, Reason: "because é", Since: t.start + 6, By: "é \\' 🚀",
		ZoneData: "2026b", Next: t.start + 2, Look: t.start + 3,
		Last: t.start + 4, RunID: 10, Runs: 11, MissedTicks: 12, Failures: 13, Success: t.start + 5,
	}
	for i, v := 0, reflect.ValueOf(s); i < v.NumField(); i++ {
		field := v.Type().Field(i).Name
		if v.Field(i).IsZero() && !slices.Contains([]string{"Version", "Created", "Updated"}, field) {
			t.Fatalf("this test gives %s no value", field)
		}
	}
	return s
}

func everyScheduleColumnComesBack(t *tester) {
	const rest = 900 * time.Microsecond // spans are kept in whole milliseconds
	full := t.fullSchedule(1<<62+1, "é \\' 🚀")
	longer := full
	longer.TTR, longer.StartWithin, longer.Jitter = full.TTR+rest, full.StartWithin+rest, full.Jitter+rest
	longest := time.Duration(math.MaxInt64).Truncate(time.Millisecond)
	largest := row.Schedule{
		Overlap: delaytask.OverlapSkip, Missed: delaytask.MissedOnce,
		ID: math.MaxInt64, Name: strings.Repeat("🚀", 128), Owner: strings.Repeat("o", 128),
		Parent: strings.Repeat("p", 128), Revision: row.MaxTime,
		Since: row.MaxTime, By: strings.Repeat("b", 255),
		Grammar: math.MaxInt32, Spec: strings.Repeat("s", 60_000), Tag: strings.Repeat("t", 128),
		Body: bytes.Repeat([]byte("0123456789abcdef"), 1<<16), MaxAttempts: math.MaxInt32, TTR: 24 * time.Hour,
		Priority: 100, MaxOpen: math.MaxInt32, StartWithin: longest, Jitter: longest, PauseAfter: math.MaxInt32,
		MaxRuns: math.MaxInt32, KeepRuns: math.MaxInt32, Reason: strings.Repeat("r", 100_000),
		ZoneData: strings.Repeat("z", 64), Next: row.MaxTime, Look: row.MaxTime, Last: row.MaxTime,
		RunID: math.MaxInt64, Runs: math.MaxInt64, MissedTicks: math.MaxInt64,
		Failures: math.MaxInt32, Success: row.MaxTime,
	}
	empty := plainSchedule(2, "empty")
	for _, s := range []row.Schedule{longer, largest, empty} {
		t.decides(row.Decision{Write: row.WriteNew, Schedule: s})
	}
	for _, s := range []row.Schedule{full, largest, empty} {
		t.hasSchedule(s)
	}
	empty.Name, longer.ID, longer.Name = "ignored", empty.ID, "ignored"
	t.decides(row.Decision{Write: row.WriteDefinition, Schedule: longer})
	full.ID, full.Name, full.Version = empty.ID, "empty", 1
	t.hasSchedule(full)
	empty.Version = 1
	t.decides(row.Decision{Write: row.WriteDefinition, Schedule: empty})
	empty.Name, empty.Version = "empty", 2
	t.hasSchedule(empty)

	runs := []row.ScheduleRun{
		{Tick: row.MaxTime, Cause: row.CauseBackfill, Until: row.MaxTime, Ticks: math.MaxInt64,
			Outcome: row.OutcomeUnknown, TaskID: math.MaxInt64, Note: strings.Repeat("é", 100_000), Start: row.MaxTime,
			Finish: row.MaxTime},
		{Tick: row.MinTime},
	}
	t.decides(row.Decision{Schedule: empty, New: runs})
	runs[1].Until, runs[1].Ticks = row.MinTime, 1
	t.hasRuns(empty.ID, runs...)
}

func withProgress(s, of row.Schedule) row.Schedule {
	s.SetProgress(&of)
	return s
}
