package storetest

import (
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

func looksComeInOrder(t *tester) {
	t.decides(newSchedule(1, "never"), t.lookingAt(2, t.start+5), t.lookingAt(3, t.start), t.lookingAt(4, t.start+5),
		t.lookingAt(5, t.start+6), t.lookingAt(6, t.start+5))
	f := func(until, from row.Time, after int64, limit int, want ...int64) {
		t.Helper()
		found, broken, err := t.store.LookAt(t.Context(), until, from, after, limit)
		t.must(err)
		var got []int64
		for _, s := range found {
			got = append(got, s.ID)
		}
		if !slices.Equal(got, want) || len(broken) != 0 {
			t.Errorf("until %v, after (%v, %d), at most %d: %v and broken %v, want %v", until, from, after, limit, got,
				broken, want)
		}
	}
	f(row.MaxTime, 0, 0, 10, 3, 2, 4, 6, 5)
	f(t.start+5, 0, 0, 10, 3, 2, 4, 6)
	f(t.start+4, 0, 0, 10, 3)
	f(t.start-1, 0, 0, 10)
	f(row.MaxTime, 0, 0, 2, 3, 2)
	f(row.MaxTime, t.start+5, 2, 2, 4, 6)
	f(row.MaxTime, t.start+5, 6, 2, 5)
	f(t.start+5, t.start+5, 6, 2)
	f(row.MaxTime, 0, 0, 0)
}

func namesComeInOrder(t *tester) {
	names := []string{
		"A", "Z", "a", "a.1", "a/b", "a/b/c", "aa", "a\u00e9", "b", "z", "\u00e9", "\u00e9a", "\ud7ffx", "🚀",
	}
	for i, name := range names {
		d := newSchedule(int64(len(names)-i), name)
		d.Schedule.Body = []byte(name)
		if i%2 == 0 {
			d.Schedule.Owner = "o"
		}
		if i%5 == 0 {
			d.Schedule.Tag = "t/5"
		}
		t.decides(d)
	}
	t.names(row.ScheduleFilter{}, names...)
	t.names(row.ScheduleFilter{Limit: 2}, "A", "Z")
	t.names(row.ScheduleFilter{AfterName: "a/b", Limit: 2}, "a/b/c", "aa")
	t.names(row.ScheduleFilter{AfterName: "a0"}, names[6:]...)
	t.names(row.ScheduleFilter{Prefix: "a"}, names[2:8]...)
	t.names(row.ScheduleFilter{Prefix: "a/", AfterName: "a/b"}, "a/b/c")
	t.names(row.ScheduleFilter{Prefix: "\u00e9"}, "\u00e9", "\u00e9a")
	t.names(row.ScheduleFilter{Prefix: "\ud7ff"}, "\ud7ffx")
	t.names(row.ScheduleFilter{Prefix: "\U0010ffff"})
	t.names(row.ScheduleFilter{Prefix: "a%"})
	t.names(row.ScheduleFilter{Names: []string{"z", "A", "none", "a ", "\u00e9", "z"}}, "A", "z", "\u00e9")
	t.names(row.ScheduleFilter{Names: []string{}})
	t.names(row.ScheduleFilter{Names: []string{"a", "a.1"}, Owner: "o"}, "a")
	t.names(row.ScheduleFilter{Owner: "o ", Limit: 10})
	t.names(row.ScheduleFilter{Owner: "o", AfterName: "a/b", Limit: 2}, "aa", "b")
	t.names(row.ScheduleFilter{Tag: "t/5"}, "A", "a/b/c", "\u00e9")
	t.names(row.ScheduleFilter{Tag: "t/5", Owner: "o", Limit: 10}, "A", "\u00e9")
	t.names(row.ScheduleFilter{Tag: "t/5 ", Limit: 10})
	with := t.schedules(row.ScheduleFilter{Limit: 1})[0]
	without := t.schedules(row.ScheduleFilter{Limit: 1, NoBodies: true})[0]
	if with.Body == nil || without.Body != nil || without.Spec != with.Spec {
		t.Errorf("with its body %+v, without %+v", with, without)
	}
}

func runsComeInOrder(t *tester) {
	first, late, skipped := t.tick(1), t.tick(2), t.tick(2)
	late.Cause, late.TaskID = row.CauseLate, 7
	skipped.Outcome, skipped.Note = row.OutcomeSkipped, "run 7 is open"
	t.decides(newSchedule(2, "b", skipped, first, late, t.tick(3)), newSchedule(1, "a", t.tick(5), t.tick(4)),
		newSchedule(3, "c", skipped))
	t.hasRuns(2, t.tick(3), late, skipped, first)
	f := func(got []row.ScheduleRun, err error) func(want ...row.ScheduleRun) {
		return func(want ...row.ScheduleRun) {
			t.Helper()
			t.must(err)
			for i := range got {
				got[i].ScheduleID = 0
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
	}
	f(t.store.Runs(t.Context(), 2, 0, 2))(t.tick(3), late)
	f(t.store.Runs(t.Context(), 2, t.tick(3).Tick, 2))(late, skipped)
	f(t.store.Runs(t.Context(), 2, first.Tick, 2))()
	f(t.store.Runs(t.Context(), 9, 0, 2))()
	f(t.store.OpenRuns(t.Context(), []int64{3, 2, 9, 1, 2}, 10))(t.tick(4), t.tick(5), first, late, t.tick(3))
	f(t.store.OpenRuns(t.Context(), []int64{2, 1}, 3))(t.tick(4), t.tick(5), first)
	f(t.store.OpenRuns(t.Context(), []int64{3}, 3))()
	f(t.store.OpenRuns(t.Context(), nil, 3))()
}

func trimDeletesTheOldest(t *tester) {
	var runs, other []row.ScheduleRun // the newest first
	for n := range int64(10) {
		r := t.tick(n)
		r.Outcome = row.OutcomeCompleted
		other = slices.Insert(other, 0, r)
		if n == 2 {
			r.Outcome = row.OutcomeOpen
		}
		runs = slices.Insert(runs, 0, r)
	}
	triggered := runs[4]
	triggered.Cause = row.CauseManual
	runs = slices.Insert(runs, 4, triggered)
	t.decides(newSchedule(1, "a", runs...), newSchedule(2, "b", other...))
	before := row.MaxTime
	f := func(keep, limit, want int, left ...row.ScheduleRun) {
		t.Helper()
		if deleted, err := t.store.TrimRuns(t.Context(), 1, before, keep, limit); err != nil || deleted != want {
			t.Errorf("deleted %d, %v, want %d", deleted, err, want)
		}
		t.hasRuns(1, left...)
	}
	open := runs[8]
	f(20, 10, 0, runs...)
	f(11, 10, 0, runs...)
	f(5, 0, 0, runs...)
	f(8, 1, 1, runs[:10]...)
	f(8, 10, 1, runs[:9]...)
	before = runs[2].Tick
	f(6, 10, 0, runs[:9]...)
	before = row.MaxTime
	f(5, 10, 3, append(slices.Clone(runs[:5]), open)...)
	before = runs[2].Tick
	f(0, 10, 2, append(slices.Clone(runs[:3]), open)...)
	before = row.MaxTime
	f(0, 10, 3, open)
	f(0, 10, 0, open)
	t.hasRuns(2, other...)
}
