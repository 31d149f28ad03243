package storetest

import (
	"fmt"
	"reflect"

	"github.com/delaytask/delaytask/internal/row"
)

// eachGuardRefusesAll breaks one guard at a time in the last of three decisions that would all apply.
func eachGuardRefusesAll(t *tester) {
	t.decides(t.planting(1, 1, 11), t.planting(2, 1, 12), newSchedule(3, "other"))
	t.insert(t.task(50))
	ended := t.tick(1)
	ended.Outcome = row.OutcomeCompleted
	decisions := func() []row.Decision {
		var all []row.Decision
		for _, id := range []int64{1, 2} {
			d := t.planting(id, 2, 20+id)
			d.Write = row.WriteProgress
			d.Ended, d.Changes = []row.ScheduleRun{ended}, []row.Change{change(t.get(10+id), row.Completed)}
			all = append(all, d)
		}
		return append(all, newSchedule(9, "new", t.tick(1)), row.Decision{Write: row.WriteDelete,
			Schedule: plainSchedule(3, "")})
	}
	before := t.everything()
	for what, f := range map[string]struct {
		spoil func(d []row.Decision)
		want  row.Class // of the error; unknown: no error
	}{
		"version": {spoil: func(d []row.Decision) { d[1].Schedule.Version = 1 }},
		"version of a definition": {spoil: func(d []row.Decision) {
			d[1].Write, d[1].Schedule.Version = row.WriteDefinition, 1
		}},
		"version of a delete":       {spoil: func(d []row.Decision) { d[3].Schedule.Version = 1 }},
		"a schedule that is gone":   {spoil: func(d []row.Decision) { d[1].Schedule.ID = 77 }},
		"an ended run of no tick":   {spoil: func(d []row.Decision) { d[1].Ended[0].Tick++ }},
		"an ended run of a cause":   {spoil: func(d []row.Decision) { d[1].Ended[0].Cause = row.CauseLate }},
		"a run that is ended twice": {spoil: func(d []row.Decision) { d[1].Ended = append(d[1].Ended, ended) }},
		"a change of a version":     {spoil: func(d []row.Decision) { d[1].Changes[0].Version = 1 }},
		"a change of a status":      {spoil: func(d []row.Decision) { d[1].Changes[0].From = row.Executing }},
		"a name that is taken":      {func(d []row.Decision) { d[2].Schedule.Name = "s1" }, row.ClassDuplicate},
		"an id that is taken":       {func(d []row.Decision) { d[2].Schedule.ID = 2 }, row.ClassDuplicate},
		"a tick that is taken":      {func(d []row.Decision) { d[1].New[0].Tick = t.tick(1).Tick }, row.ClassDuplicate},
		"a tick that comes twice": {
			func(d []row.Decision) { d[1].New = append(d[1].New, d[1].New[0]) }, row.ClassDuplicate},
		"a task's id that is taken": {func(d []row.Decision) { d[1].Insert[0].ID = 50 }, row.ClassDuplicate},
		"a key that is taken":       {func(d []row.Decision) { d[1].Changes = nil }, row.ClassDuplicate},
	} {
		d := decisions()
		f.spoil(d)
		applied, err := t.store.Decide(t.Context(), d)
		if applied || (err != nil) != (f.want != row.ClassUnknown) || err != nil && row.ClassOf(err) != f.want {
			t.Errorf("%s: applied %t, %v, want class %v", what, applied, err, f.want)
		}
		if after := t.everything(); !reflect.DeepEqual(after, before) {
			t.Fatalf("%s: the refused decisions have changed\n%s\nto\n%s", what, before, after)
		}
	}
	t.decides(decisions()...)
}

// everything returns all that is stored of schedules, runs and tasks.
func (t *tester) everything() (all []string) {
	t.Helper()
	for _, s := range t.schedules(row.ScheduleFilter{}) {
		all = append(all, fmt.Sprintf("%+v", s))
		runs, err := t.store.Runs(t.Context(), s.ID, 0, 1000)
		t.must(err)
		all = append(all, fmt.Sprintf("%+v", runs))
	}
	for _, r := range t.all() {
		of := r.TickOf
		r.TickOf = nil
		all = append(all, show(r), fmt.Sprintf("%+v", of))
	}
	return all
}
