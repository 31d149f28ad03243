package storetest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// plainSchedule is a schedule with the values of an empty one.
func plainSchedule(id int64, name string) row.Schedule {
	return row.Schedule{ID: id, Name: name, Spec: "@daily", Tag: "a",
		Overlap: delaytask.OverlapSkip, Missed: delaytask.MissedOnce}
}

// tick returns an open run of the n-th tick.
func (t *tester) tick(n int64) row.ScheduleRun {
	at := t.start.Add(time.Duration(n) * time.Hour)
	return row.ScheduleRun{Tick: at, Until: at, Ticks: 1}
}

func newSchedule(id int64, name string, runs ...row.ScheduleRun) row.Decision {
	return row.Decision{Write: row.WriteNew, Schedule: plainSchedule(id, name), New: runs}
}

func (t *tester) lookingAt(id int64, look row.Time) row.Decision {
	d := newSchedule(id, fmt.Sprint("s", id))
	d.Schedule.Look = look
	return d
}

// planting is a decision that plants the n-th tick as a task which carries the key of the schedule.
func (t *tester) planting(id, n, task int64) row.Decision {
	d := newSchedule(id, fmt.Sprint("s", id), t.tick(n))
	d.Schedule.RunID, d.New[0].TaskID = task, task
	r := t.keyed(task, "a", fmt.Sprint("schedule:s", id))
	r.TickOf = &row.TickOf{Schedule: d.Schedule.Name, Tick: d.New[0].Tick}
	d.Insert = []row.Row{r}
	return d
}

// decides wants all decisions applied.
func (t *tester) decides(decisions ...row.Decision) {
	t.Helper()
	applied, err := t.store.Decide(t.Context(), decisions)
	t.must(err)
	if !applied {
		t.Fatalf("%d decisions did not apply", len(decisions))
	}
}

func (t *tester) schedules(f row.ScheduleFilter) []row.Schedule {
	t.Helper()
	f.Limit = cmp.Or(f.Limit, 1000)
	found, broken, err := t.store.Schedules(t.Context(), f)
	t.must(err)
	if len(broken) != 0 {
		t.Fatalf("broken %+v, want none", broken)
	}
	return found
}

func (t *tester) names(f row.ScheduleFilter, want ...string) {
	t.Helper()
	var got []string
	for _, s := range t.schedules(f) {
		got = append(got, s.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("filter %+v: got %q, want %q", f, got, want)
	}
}

// hasSchedule wants that schedule stored, except for the times of the writes.
func (t *tester) hasSchedule(want row.Schedule) {
	t.Helper()
	found := t.schedules(row.ScheduleFilter{Names: []string{want.Name}})
	if len(found) != 1 {
		t.Fatalf("found %d schedules by the name %q", len(found), want.Name)
	}
	got := found[0]
	t.within("create_time", got.Created, t.start, got.Updated)
	t.within("update_time", got.Updated, got.Created, t.now())
	want.Created, want.Updated = got.Created, got.Updated
	if !bytes.Equal(got.Body, want.Body) || !sameJSON(got.Headers, want.Headers) {
		t.Fatalf("body %q and headers %s, want %q and %s", got.Body, got.Headers, want.Body, want.Headers)
	}
	got.Body, want.Body, got.Headers, want.Headers = nil, nil, nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("schedule\n got %+v\nwant %+v", got, want)
	}
}

// sameJSON compares what is written: a database may write JSON with other spaces than it was given.
func sameJSON(a, b []byte) bool {
	var x, y any
	_, _ = json.Unmarshal(a, &x), json.Unmarshal(b, &y)
	return reflect.DeepEqual(x, y) && (a == nil) == (b == nil)
}

// hasRuns wants these runs of the schedule alone, the newest first.
func (t *tester) hasRuns(schedule int64, want ...row.ScheduleRun) {
	t.Helper()
	got, err := t.store.Runs(t.Context(), schedule, 0, 1000)
	t.must(err)
	for i := range want {
		want[i].ScheduleID = schedule
	}
	if !slices.Equal(got, want) {
		t.Fatalf("runs of schedule %d\n got %+v\nwant %+v", schedule, got, want)
	}
}
