package memstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var (
	errNameTaken  = errors.New("another schedule has the name")
	errTickTaken  = errors.New("the history has the tick already")
	errStillOpen  = errors.New("a run that has ended needs an outcome")
	errNotMatched = errors.New("a guard does not match") // which Decide answers with false
)

// Decide implements [store.Schedules]. What it has changed before a guard does not match is undone under the same lock.
func (s *Store) Decide(ctx context.Context, decisions []row.Decision) (applied bool, err error) {
	const op = "decide on schedules"
	var changes []row.Change
	var tasks []row.Row
	decisions = slices.SortedStableFunc(slices.Values(decisions), func(a, b row.Decision) int {
		return cmp.Compare(a.Schedule.ID, b.Schedule.ID)
	})
	for _, d := range decisions {
		for _, r := range d.Ended {
			if r.Outcome == row.OutcomeOpen {
				return false, refusedTo(op, errStillOpen)
			}
		}
		changes, tasks = append(changes, d.Changes...), append(tasks, d.Insert...)
	}
	into := make([]landing, len(tasks))
	for i, r := range tasks {
		into[i] = landing{r.ID, r.Tag, row.Pending}
	}
	if err := s.enterRows(ctx, op, row.IDsOf(changes, changeID), into...); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	t := &transaction{s: s, op: op, now: s.now()}
	switch err := t.apply(decisions, changes, tasks); {
	case errors.Is(err, errNotMatched):
		t.rollBack()
		return false, nil
	case err != nil:
		t.rollBack()
		return false, err
	}
	for _, d := range decisions {
		s.told(d, t.now)
	}
	s.notify(t.changed...)
	return true, nil
}

// transaction changes a store, and notes how to undo each change.
type transaction struct {
	s       *Store
	op      string
	now     row.Time
	undo    []func()
	changed []int64 // tasks
}

func (t *transaction) rollBack() {
	for _, undo := range slices.Backward(t.undo) {
		undo()
	}
}

// apply goes in the order of the statements of the SQL store, so that it meets the same guard first.
func (t *transaction) apply(decisions []row.Decision, changes []row.Change, tasks []row.Row) error {
	for _, step := range []func(row.Decision) error{t.write, t.forget, t.undoRuns, t.plant, t.end, t.deleteRuns} {
		for _, d := range decisions {
			if err := step(d); err != nil {
				return err
			}
		}
	}
	for _, c := range changes {
		old, ok, err := t.s.change(t.op, c)
		if err != nil {
			return err
		}
		if !ok {
			return errNotMatched
		}
		t.undo, t.changed = append(t.undo, func() { t.s.tasks.put(old) }), append(t.changed, c.ID)
	}
	for _, r := range tasks {
		if err := t.s.insert(r, t.now); err != nil {
			return duplicate(t.op, err)
		}
		t.undo, t.changed = append(t.undo, func() { t.s.tasks.delete(r.ID) }), append(t.changed, r.ID)
	}
	return nil
}

// write changes the row of a schedule.
func (t *transaction) write(d row.Decision) error {
	write, to := d.Write, d.Schedule
	rows, names := t.s.planned.rows, t.s.planned.names
	before, there := rows[to.ID]
	if write == row.WriteNew {
		if _, taken := names[to.Name]; there || taken {
			return duplicate(t.op, errNameTaken)
		}
		to = stored(to)
		to.Version, to.Created, to.Updated = 0, t.now, t.now
		rows[to.ID], names[to.Name] = to, to.ID
		t.undo = append(t.undo, func() {
			delete(rows, to.ID)
			delete(names, to.Name)
		})
		return nil
	}
	if !there || before.Version != to.Version {
		return errNotMatched
	}
	t.undo = append(t.undo, func() { rows[before.ID], names[before.Name] = before, before.ID })
	switch write {
	case row.WriteDelete:
		delete(rows, before.ID)
		delete(names, before.Name)
		return nil
	case row.WriteProgress:
		progress := to
		to = before
		to.SetProgress(&progress)
	}
	to = stored(to)
	to.Name, to.Version, to.Created, to.Updated = before.Name, before.Version+1, before.Created, t.now
	rows[to.ID] = to
	return nil
}

// stored returns the schedule as a database keeps it: with bytes of its own, and spans in whole milliseconds.
func stored(s row.Schedule) row.Schedule {
	s = cloneSchedule(s)
	s.TTR = s.TTR.Truncate(time.Millisecond)
	s.StartWithin = s.StartWithin.Truncate(time.Millisecond)
	s.Jitter = s.Jitter.Truncate(time.Millisecond)
	return s
}

// plant inserts runs.
func (t *transaction) plant(d row.Decision) error {
	schedule := d.Schedule.ID
	for _, r := range d.New {
		r.ScheduleID, r.Until, r.Ticks = schedule, cmp.Or(r.Until, r.Tick), cmp.Or(r.Ticks, 1)
		of := t.s.planned.runs[schedule]
		at, taken := findRun(of, r)
		if taken {
			return duplicate(t.op, errTickTaken)
		}
		t.setRuns(schedule, slices.Insert(slices.Clone(of), at, r))
	}
	return nil
}

// end gives open runs their outcome.
func (t *transaction) end(d row.Decision) error {
	return t.eachOpen(d, d.Ended, func(of []row.ScheduleRun, at int, r row.ScheduleRun) []row.ScheduleRun {
		of[at].Outcome, of[at].Note, of[at].Start, of[at].Finish = r.Outcome, r.Note, r.Start, r.Finish
		return of
	})
}

// undoRuns deletes open runs.
func (t *transaction) undoRuns(d row.Decision) error {
	return t.eachOpen(d, d.Undone, func(of []row.ScheduleRun, at int, _ row.ScheduleRun) []row.ScheduleRun {
		return slices.Delete(of, at, at+1)
	})
}

// eachOpen changes the runs of the schedule for each of some open ones.
func (t *transaction) eachOpen(d row.Decision, runs []row.ScheduleRun,
	change func(of []row.ScheduleRun, at int, r row.ScheduleRun) []row.ScheduleRun) error {
	for _, r := range runs {
		of := slices.Clone(t.s.planned.runs[d.Schedule.ID])
		at, there := findRun(of, r)
		if !there || of[at].Outcome != row.OutcomeOpen {
			return errNotMatched
		}
		t.setRuns(d.Schedule.ID, change(of, at, r))
	}
	return nil
}

// forget deletes the runs from a tick on.
func (t *transaction) forget(d row.Decision) error {
	if !d.Forget.IsZero() {
		kept := slices.Clone(t.s.planned.runs[d.Schedule.ID])
		t.setRuns(d.Schedule.ID, slices.DeleteFunc(kept, func(r row.ScheduleRun) bool { return r.Tick >= d.Forget }))
	}
	return nil
}

// deleteRuns deletes the runs of a schedule that is deleted.
func (t *transaction) deleteRuns(d row.Decision) error {
	if d.Write == row.WriteDelete {
		t.setRuns(d.Schedule.ID, nil)
	}
	return nil
}

// setRuns replaces the runs of a schedule. It does not change the old slice.
func (t *transaction) setRuns(schedule int64, runs []row.ScheduleRun) {
	before := t.s.planned.runs[schedule]
	t.undo = append(t.undo, func() { t.s.planned.runs[schedule] = before })
	t.s.planned.runs[schedule] = runs
}
