package storetest

import (
	"reflect"
	"slices"
	"strings"
	"time"

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
			if cluster, err := t.store.Cluster(t.Context(), time.Hour); err != nil || cluster.Look != want {
				t.Errorf("the smallest look is %v, %v, want %v", cluster.Look, err, want)
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
