package storetest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

var scheduleTests = []test{
	{"Every column of a schedule comes back as it was written", everyScheduleColumnComesBack},
	{"Progress leaves the definition alone, and a definition the name", func(t *tester) {
		t.decides(newSchedule(1, "a"))
		full := t.fullSchedule(1, "b")
		full.Version = 0
		t.decides(row.Decision{Write: row.WriteProgress, Schedule: full})
		want := withProgress(plainSchedule(1, "a"), full)
		want.Version = 1
		t.hasSchedule(want)
		full.Version = 1
		t.decides(row.Decision{Write: row.WriteDefinition, Schedule: full})
		full.Name, full.Version = "a", 2
		t.hasSchedule(full)
	}},
	{"A schedule is deleted with its runs, and leaves the runs of others", func(t *tester) {
		t.decides(newSchedule(1, "a", t.tick(1), t.tick(2)), newSchedule(2, "b", t.tick(1)))
		ended := t.tick(1)
		ended.Outcome = row.OutcomeCancelled
		t.decides(row.Decision{
			Write: row.WriteDelete, Schedule: plainSchedule(1, "a"), Ended: []row.ScheduleRun{ended},
		})
		t.names(row.ScheduleFilter{}, "b")
		t.hasRuns(1)
		t.hasRuns(2, t.tick(1))
		t.decides(newSchedule(1, "a", t.tick(1))) // its name, id and tick are free
	}},
	{"A decision forgets runs from a tick on, and plants one of them anew", func(t *tester) {
		t.decides(newSchedule(1, "a", t.tick(1), t.tick(2), t.tick(3)), newSchedule(2, "b", t.tick(2)))
		t.decides(row.Decision{
			Schedule: plainSchedule(1, "a"), Forget: t.tick(2).Tick, New: []row.ScheduleRun{t.tick(2)},
		})
		t.hasRuns(1, t.tick(2), t.tick(1))
		t.hasRuns(2, t.tick(2))
	}},
	{"Each guard alone refuses all decisions", eachGuardRefusesAll},
	{"A run that ends without an outcome is refused", func(t *tester) {
		t.decides(newSchedule(1, "a", t.tick(1)))
		_, err := t.store.Decide(t.Context(), []row.Decision{
			{Schedule: plainSchedule(1, "a"), Ended: []row.ScheduleRun{t.tick(1)}}})
		t.refused(err, row.ClassCaller)
		t.hasSchedule(plainSchedule(1, "a"))
	}},
	{"A task of a run keeps its tick in each way that it is read", func(t *tester) {
		for i, of := range []*row.TickOf{
			{Schedule: "é 🚀 \\'", Tick: t.start, Cause: row.CauseBackfill, RetryBefore: row.MaxTime,
				Previous: row.MinTime, Following: row.MaxTime, Success: t.start + 1, Missed: 1 << 40,
				Zone: "America/Argentina/ComodRivadavia"},
			{Schedule: strings.Repeat("n", 128), Tick: row.MinTime},
		} {
			r := t.task(int64(2*i + 1))
			r.TickOf = of
			ordinary := t.task(r.ID + 1)
			t.insert(r, ordinary) // in one statement
			t.written(r)
			t.written(ordinary)
			claimed := t.claim(ref(r)).Rows
			if len(claimed) != 1 || !reflect.DeepEqual(claimed[0].TickOf, of) {
				t.Fatalf("claimed %+v, want the run of %+v", claimed, of)
			}
			held := t.get(r.ID)
			t.apply(change(held, row.Completed))
			listed, _, err := t.store.Rows(t.Context(), []int64{r.ID}, false)
			t.must(err)
			if !reflect.DeepEqual(t.get(r.ID).TickOf, of) || !reflect.DeepEqual(listed[0].TickOf, of) {
				t.Fatalf("completed, the run of %+v is %s and %s", of, show(t.get(r.ID)), show(listed[0]))
			}
		}
	}},
	{"One decision cancels the open run, ends it, and plants the next with its key", func(t *tester) {
		t.decides(t.planting(1, 1, 11))
		t.take(t.task(99)) // not concerned
		held := t.get(11)
		ended := t.tick(1)
		ended.Outcome, ended.Note = row.OutcomeCancelled, "replaced"
		ended.Start, ended.Finish = t.start, t.start+7
		next := t.planting(1, 2, 12)
		next.Write = row.WriteProgress
		next.Ended, next.Changes = []row.ScheduleRun{ended}, []row.Change{change(held, row.Cancelled)}
		t.decides(next)
		ended.TaskID = 11
		t.hasRuns(1, next.New[0], ended)
		if first, second := t.get(11), t.get(12); first.Status != row.Cancelled || second.Status != row.Pending {
			t.Errorf("the first run is %v, the second %v", first.Status, second.Status)
		}
	}},
	{"A run that is undone leaves its tick and its key free, and one that has ended refuses that", func(t *tester) {
		t.decides(t.planting(1, 1, 11))
		again := t.planting(1, 1, 12)
		again.Write, again.Undone = row.WriteProgress, []row.ScheduleRun{t.tick(1)}
		again.Changes = []row.Change{change(t.get(11), row.Cancelled)}
		t.decides(again)
		t.hasRuns(1, again.New...)
		ended := t.tick(1)
		ended.Outcome = row.OutcomeFailed
		at := plainSchedule(1, "a")
		at.Version = 1
		t.decides(row.Decision{Schedule: at, Ended: []row.ScheduleRun{ended}})
		at.Version = 2
		undo := row.Decision{Schedule: at, Undone: []row.ScheduleRun{t.tick(1)}}
		applied, err := t.store.Decide(t.Context(), []row.Decision{undo})
		t.must(err)
		if applied {
			t.Error("a run that has ended was undone")
		}
	}},
	{"A hundred schedules are decided at once", func(t *tester) {
		var first, second []row.Decision
		for i := range int64(100) {
			first = append(first, t.planting(i+1, 1, 1000+i))
			ended := t.tick(1)
			ended.Outcome = row.OutcomeCompleted
			d := row.Decision{Schedule: plainSchedule(i+1, ""), Ended: []row.ScheduleRun{ended},
				Changes: []row.Change{change(first[i].Insert[0], row.Completed)}, Insert: []row.Row{t.task(2000 + i)}}
			d.Schedule.Runs = i
			second = append(second, d)
		}
		slices.Reverse(first)
		t.decides(first...)
		t.decides(second...)
		stored := t.schedules(row.ScheduleFilter{})
		for _, s := range stored {
			if s.Version != 1 || s.Runs != s.ID-1 {
				t.Errorf("schedule %d is at version %d with %d runs", s.ID, s.Version, s.Runs)
			}
		}
		done, status := t.all(), map[row.Status]int{}
		for _, r := range done {
			status[r.Status]++
		}
		open, err := t.store.OpenRuns(t.Context(), upTo(100), 1000)
		t.must(err)
		if len(stored) != 100 || status[row.Completed] != 100 || status[row.Pending] != 100 || len(open) != 0 {
			t.Errorf("%d schedules, tasks %v, %d open runs", len(stored), status, len(open))
		}
	}},
	{"Of forty deciders of a tick one plants it", fortyDecidersOfOneTick},
	{"Nothing is to be decided, so it is", func(t *tester) { t.decides() }},
	{"Schedules come by look and id, page by page", looksComeInOrder},
	{"Schedules come by name, byte by byte, filtered", namesComeInOrder},
	{"Runs come the newest first, open ones by schedule", runsComeInOrder},
	{"A trim deletes old runs that are not open, the oldest first", trimDeletesTheOldest},
	{"The smallest look comes with the tags", func(t *tester) {
		looks := func(want row.Time) {
			t.Helper()
			if _, look, err := t.store.Tags(t.Context()); err != nil || look != want {
				t.Errorf("the smallest look is %v, %v, want %v", look, err, want)
			}
		}
		looks(0)
		t.must(t.store.SetTag(t.Context(), row.TagState{Tag: "a", Paused: true}))
		t.decides(newSchedule(1, "a"))
		looks(0)
		t.decides(t.lookingAt(2, row.MaxTime), t.lookingAt(3, t.start+1), t.lookingAt(4, t.start+2))
		looks(t.start + 1)
		t.tagStates(row.TagState{Tag: "a", Paused: true})
	}},
}

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

func fortyDecidersOfOneTick(t *tester) {
	t.decides(newSchedule(1, "s1"))
	winner := t.oneWins(40, func(i int) (bool, error) {
		d := t.planting(1, 1, int64(100+i))
		d.Write = row.WriteProgress
		return t.store.Decide(t.Context(), []row.Decision{d})
	})
	want := t.tick(1)
	want.TaskID = int64(100 + winner)
	t.hasRuns(1, want)
	t.holdsIDs(want.TaskID)
	if s := t.schedules(row.ScheduleFilter{})[0]; s.Version != 1 || s.RunID != want.TaskID {
		t.Errorf("the schedule is at version %d with run %d, want 1 and %d", s.Version, s.RunID, want.TaskID)
	}
}
