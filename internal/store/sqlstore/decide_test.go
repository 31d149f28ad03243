package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

var at = row.At(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))

func plainSchedule(id int64) row.Schedule {
	return row.Schedule{ID: id, Name: fmt.Sprint("s", id), Spec: "@daily", Tag: "a"}
}

// prepare stores what decisionsOfAllKinds are about, and nothing else.
func prepare(t *testing.T, s *Store, plain *sqlx.DB) {
	t.Helper()
	for _, table := range []string{table, scheduleTable, runTable} {
		mustExec(t, plain, "DELETE FROM "+table)
	}
	must(t, s.Insert(t.Context(), nil, []row.Row{{ID: 1, Tag: "a", Key: "k", Expected: at, Due: at}}))
	var stored []row.Decision
	for id := range int64(3) {
		stored = append(stored, row.Decision{Write: row.WriteNew, Schedule: plainSchedule(id + 1),
			New: []row.ScheduleRun{{Tick: at, TaskID: 1}}})
	}
	decides(t, s, stored)
}

// decisionsOfAllKinds make Decide send each kind of statement.
func decisionsOfAllKinds() []row.Decision {
	run := row.Row{ID: 2, Tag: "a", Key: "k", Expected: at, Due: at, TickOf: &row.TickOf{Schedule: "s1", Tick: at + 1}}
	return []row.Decision{
		{Schedule: plainSchedule(1), New: []row.ScheduleRun{{Tick: at + 1, TaskID: 2}}, Insert: []row.Row{run},
			Ended:   []row.ScheduleRun{{Tick: at, Outcome: row.OutcomeCancelled}},
			Changes: []row.Change{{ID: 1, To: row.Cancelled, Due: at}}},
		{Write: row.WriteDefinition, Schedule: plainSchedule(2)},
		{Write: row.WriteDelete, Schedule: plainSchedule(3)},
		{Write: row.WriteNew, Schedule: plainSchedule(4)},
	}
}

// decides wants the decisions applied. A lock that a cut connection has left is waited for.
func decides(t *testing.T, s *Store, decisions []row.Decision) {
	t.Helper()
	for {
		applied, err := s.Decide(t.Context(), decisions)
		if row.ClassOf(err) == row.ClassLocked && err != nil {
			continue
		}
		if !applied || err != nil {
			t.Fatalf("applied %t, %v", applied, err)
		}
		return
	}
}

// dump returns all rows of the three tables.
func dump(t *testing.T, db *sqlx.DB) (all []string) {
	t.Helper()
	for _, table := range []string{table, scheduleTable, runTable} {
		rows, err := readTexts(t.Context(), db, "SELECT * FROM "+table)
		must(t, err)
		for _, r := range rows {
			all = append(all, fmt.Sprint(table, r))
		}
	}
	slices.Sort(all)
	return all
}

// What fails, or is given up, leaves no transaction behind on a connection that is used again.
func TestDecisionThatFailsLeavesNothing(t *testing.T) {
	slow := map[Kind]string{
		MySQL: "DO SLEEP(60)", SQLite: "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)" +
			" SELECT COUNT(*) FROM n",
	}
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		plain, kind := migrated(t, d)
		s := New(plain, kind)
		defer func() { _ = s.Close(context.Background()) }()
		prepare(t, s, plain)
		before := dump(t, plain)
		steps := s.own.decide(decisionsOfAllKinds())
		f := func(ctx context.Context, last string, want row.Class, steps ...step) {
			t.Helper()
			err := s.lanes[scheduling].do(t.Context(), "test", func(_ context.Context, conn *sql.Conn) error {
				applied, err := s.own.transact(ctx, conn, "test", append(steps, step{clause{sql: last}, anyRows}))
				if applied {
					t.Errorf("%s: it applied", last)
				}
				return err
			})
			if row.ClassOf(err) != want || err == nil {
				t.Errorf("%v is of class %s, want %s", err, row.ClassOf(err), want)
			}
			if after := dump(t, plain); !slices.Equal(after, before) {
				t.Errorf("left\n%s\nof\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
			}
		}
		for n := range steps {
			f(t.Context(), "no SQL", row.ClassOperator, slices.Clone(steps[:n])...)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		f(ctx, slow[kind], row.ClassNotApplied, slices.Clone(steps)...)
		decides(t, s, decisionsOfAllKinds())
	})
}

// Processes that decide the same ticks, in batches that overlap, wait for each other and plant each tick once.
func TestProcessesThatDecideTheSameTicksPlantEachOnce(t *testing.T) {
	const processes, ticks = 8, 20
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		plain, kind := migrated(t, d)
		var all []*Store
		for range processes {
			db, _ := connect(t, d)
			all = append(all, New(db, kind))
		}
		var first []row.Decision
		for id := range int64(4) {
			first = append(first, row.Decision{Write: row.WriteNew, Schedule: plainSchedule(id + 1)})
		}
		decides(t, all[0], first)
		done := make(chan error, processes)
		for p, s := range all {
			go func() { done <- decideAll(t.Context(), s, p, ticks) }()
		}
		for range all {
			must(t, <-done)
		}
		for _, s := range all {
			must(t, s.Close(t.Context()))
		}
		var tasks, runs, distinct int
		must(t, plain.GetContext(t.Context(), &tasks, "SELECT COUNT(*) FROM "+table))
		must(t, plain.GetContext(t.Context(), &runs, "SELECT COUNT(*) FROM "+runTable))
		must(t, plain.GetContext(t.Context(), &distinct, "SELECT COUNT(DISTINCT task_key) FROM "+table))
		if want := 4 * ticks; tasks != want || runs != want || distinct != want {
			t.Errorf("%d tasks with %d keys and %d runs of %d ticks", tasks, distinct, runs, want)
		}
	})
}

// decideAll decides all ticks of four schedules, a random two of them at a time.
func decideAll(ctx context.Context, s *Store, process, ticks int) error {
	for n := 0; ; n++ {
		found, _, err := s.Schedules(ctx, row.ScheduleFilter{Limit: 10})
		if err != nil {
			return err
		}
		var decisions []row.Decision
		for i, sch := range found {
			if int(sch.Runs) == ticks || (i+n+process)%2 == 0 {
				continue
			}
			tick := at + row.Time(sch.Runs)
			sch.Runs++
			task := row.Row{ID: int64(process+1)<<32 + int64(n)<<8 + sch.ID, Tag: "a", Key: fmt.Sprint(sch.ID, tick),
				Expected: at, Due: at}
			decisions = append(decisions, row.Decision{Schedule: sch, Insert: []row.Row{task},
				New: []row.ScheduleRun{{Tick: tick, TaskID: task.ID}}})
		}
		slices.Reverse(decisions)
		_, err = s.Decide(ctx, decisions)
		if c := row.ClassOf(err); err != nil && c != row.ClassNotApplied && c != row.ClassLocked {
			return err
		}
		if !slices.ContainsFunc(found, func(sch row.Schedule) bool { return int(sch.Runs) < ticks }) {
			return nil
		}
	}
}

// A schedule that was written by hand is set apart with the reason, and hides no other.
func TestScheduleThatCannotBeDecodedHidesNoOther(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		db, kind := migrated(t, d)
		s := New(db, kind)
		defer func() { _ = s.Close(context.Background()) }()
		garbage := map[string]string{
			"overlap": "9", "missed": "9", "state": "9", "retry_past_next": "2", "version": "4611686018427387904",
		}
		if kind == SQLite {
			for _, column := range []string{"next_time", "look_time", "headers", "ttr", "definition", "create_time"} {
				garbage[column] = "'garbage'"
			}
		}
		decisions := []row.Decision{{Write: row.WriteNew, Schedule: plainSchedule(100)}}
		id, columns := int64(0), map[int64]string{}
		for column := range garbage {
			id++
			columns[id] = column
			sch := plainSchedule(id)
			sch.Look = at.Add(time.Duration(id))
			decisions = append(decisions, row.Decision{Write: row.WriteNew, Schedule: sch})
		}
		decisions[0].Schedule.Look = at
		decides(t, s, decisions)
		for id, column := range columns {
			const spoil = "UPDATE %s SET %s = %s WHERE id = %d"
			mustExec(t, db, fmt.Sprintf(spoil, scheduleTable, column, garbage[column], id))
		}
		found, broken, err := s.Schedules(t.Context(), row.ScheduleFilter{Limit: 100})
		if err != nil || len(found) != 1 || found[0].ID != 100 || len(broken) != len(garbage) {
			t.Errorf("found %+v and broken %+v, %v", found, broken, err)
		}
		for _, b := range broken {
			if column := columns[b.ID]; !strings.Contains(b.Reason, fmt.Sprintf("%q", fmt.Sprint("s", b.ID))) ||
				!strings.Contains(b.Reason, column) {
				t.Errorf("column %s: %s", column, b.Reason)
			}
		}
		found, broken, err = s.LookAt(t.Context(), at.Add(time.Minute), 0, 0, 1)
		if err != nil || len(found) != 1 || found[0].ID != 100 || len(broken) != 0 {
			t.Errorf("the first page has %+v and broken %+v, %v", found, broken, err)
		}
		_, broken, err = s.LookAt(t.Context(), at.Add(time.Minute), at, 100, 2)
		if err != nil || len(broken) != 2 || broken[1].Read.Due.IsZero() {
			t.Errorf("the next page has the broken ones %+v, %v", broken, err)
		}
		if kind == SQLite {
			mustExec(t, db, "UPDATE "+scheduleTable+" SET look_time = '' WHERE id = 100")
			if _, look, err := s.Tags(t.Context()); look != row.MinTime || err != nil {
				t.Errorf("the smallest look, which is garbage, is %v, %v", look, err)
			}
		}
	})
}
