package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

var errStillOpen = errors.New("a run that has ended needs an outcome")

// Decide implements [store.Schedules]. All statements lock schedules, then runs, then tasks, each in the order of their
// ids.
func (s *Store) Decide(ctx context.Context, decisions []row.Decision) (applied bool, err error) {
	const op = "decide on schedules"
	if len(decisions) == 0 {
		return true, nil
	}
	isOpen := func(r row.ScheduleRun) bool { return r.Outcome == row.OutcomeOpen }
	for i := range decisions {
		if slices.ContainsFunc(decisions[i].Ended, isOpen) {
			return false, refusedTo(op, errStillOpen)
		}
	}
	steps := s.own.decide(decisions)
	err = s.lane(ctx, scheduling).do(ctx, op, func(ctx context.Context, conn *sql.Conn) (err error) {
		applied, err = s.own.transact(ctx, conn, op, steps)
		return err
	})
	return applied, err
}

// decide returns what applies the decisions.
func (d dialect) decide(decisions []row.Decision) (steps []step) {
	decisions = sortedByID(decisions, func(d row.Decision) int64 { return d.Schedule.ID })
	add := func(rows int, c clause) { steps = append(steps, step{c, rows}) }
	var planted, ended, undone []row.ScheduleRun
	var changes []row.Change
	var tasks []row.Row
	for i := range decisions {
		at := &decisions[i]
		switch at.Write {
		case row.WriteNew:
			add(1, d.insertSchedule(&at.Schedule))
		case row.WriteDelete:
			add(1, d.deleteSchedule(&at.Schedule))
		default:
			add(1, d.updateSchedule(at.Write, &at.Schedule))
		}
		planted = append(planted, runsOf(&at.Schedule, at.New)...)
		ended = append(ended, runsOf(&at.Schedule, at.Ended)...)
		undone = append(undone, runsOf(&at.Schedule, at.Undone)...)
		changes, tasks = append(changes, at.Changes...), append(tasks, at.Insert...)
	}
	for i := range decisions {
		if at := &decisions[i]; !at.Forget.IsZero() {
			add(anyRows, d.forgetRuns(at.Schedule.ID, at.Forget))
		}
	}
	for _, r := range undone { // first, because their ticks may be planted anew
		add(1, d.undoRun(r))
	}
	for some := range slices.Chunk(planted, maxInsert) {
		add(anyRows, d.insertRuns(some))
	}
	for _, r := range ended {
		add(1, d.endRun(r))
	}
	for i := range decisions {
		if decisions[i].Write == row.WriteDelete {
			add(anyRows, d.deleteRuns(decisions[i].Schedule.ID))
		}
	}
	if len(changes) > 0 {
		add(len(changes), d.update(changes))
	}
	for some := range slices.Chunk(tasks, maxInsert) {
		add(anyRows, d.insert(some))
	}
	return steps
}

// runsOf returns the runs of the schedule as they are stored, ordered by tick and cause.
func runsOf(s *row.Schedule, runs []row.ScheduleRun) []row.ScheduleRun {
	runs = slices.Clone(runs)
	for i := range runs {
		r := &runs[i]
		r.ScheduleID, r.Until, r.Ticks = s.ID, cmp.Or(r.Until, r.Tick), cmp.Or(r.Ticks, 1)
	}
	slices.SortStableFunc(runs, func(a, b row.ScheduleRun) int {
		return cmp.Or(cmp.Compare(a.Tick, b.Tick), cmp.Compare(a.Cause, b.Cause))
	})
	return runs
}

func (d dialect) insertSchedule(s *row.Schedule) clause {
	t := new(text)
	t.write("INSERT INTO " + scheduleTable + " (" + strings.Join(namesOf(schedules.columns), ", ") + ") VALUES (")
	values(t, d, writtenColumns, s)
	t.write(", 0, " + d.now + ", " + d.now + ")")
	return clause{t.sql.String(), t.args}
}

// updateSchedule gives every column a value: servers differ in what an assignment reads of a column that another one
// writes.
func (d dialect) updateSchedule(write row.ScheduleWrite, s *row.Schedule) clause {
	columns := progressColumns
	if write == row.WriteDefinition {
		columns = slices.Concat(definitionColumns, progressColumns)
	}
	t := new(text)
	t.write("UPDATE " + scheduleTable + " AS t" + d.byID + " SET ")
	for _, c := range columns {
		t.write(c.name + " = ")
		t.value(c.mark(&d), c.value(s))
		t.write(", ")
	}
	t.write("version = version + 1, update_time = " + d.now + " WHERE " + isAt(s))
	return clause{t.sql.String(), t.args}
}

func (d dialect) deleteSchedule(s *row.Schedule) clause {
	return d.deleteRows(scheduleTable, isAt(s))
}

func isAt(s *row.Schedule) string {
	return fmt.Sprintf("t.id = %d AND t.version = %d", s.ID, s.Version)
}

func (d dialect) insertRuns(runs []row.ScheduleRun) clause {
	t := new(text)
	insertAll(t, "INSERT", d, scheduleRuns, runs)
	return clause{t.sql.String(), t.args}
}

func (d dialect) endRun(r row.ScheduleRun) clause {
	t := new(text)
	t.write(fmt.Sprintf("UPDATE %s AS t%s SET outcome = %d, note = ", runTable, d.byID, r.Outcome))
	t.value(d.bindText, orNull(r.Note))
	t.write(", start_time = ")
	t.value("", orNull(r.Start))
	t.write(", finish_time = ")
	t.value("", orNull(r.Finish))
	t.write(fmt.Sprintf(" WHERE %s AND t.outcome = %d", isRun(r), row.OutcomeOpen))
	return clause{t.sql.String(), t.args}
}

func (d dialect) undoRun(r row.ScheduleRun) clause {
	return d.deleteRows(runTable, fmt.Sprintf("%s AND t.outcome = %d", isRun(r), row.OutcomeOpen))
}

func (d dialect) forgetRuns(schedule int64, from row.Time) clause {
	return d.deleteRows(runTable, fmt.Sprintf("t.schedule_id = %d AND t.tick >= '%s'", schedule, from))
}

func isRun(r row.ScheduleRun) string {
	return fmt.Sprintf("t.schedule_id = %d AND t.tick = '%s' AND t.cause = %d", r.ScheduleID, r.Tick, r.Cause)
}

// anyRun is an expression for what isRun returns of a row.
const anyRun = "CONCAT('t.schedule_id = ', t.schedule_id, ' AND t.tick = ''', t.tick, ''' AND t.cause = ', t.cause)"

func (d dialect) deleteRuns(schedule int64) clause {
	return d.deleteRows(runTable, fmt.Sprintf("t.schedule_id = %d", schedule))
}
