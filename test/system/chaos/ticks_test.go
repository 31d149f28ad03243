package main

import (
	"database/sql"
	"os"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/scheduler"
)

func TestMain(m *testing.M) { os.Exit(dbtest.WithServers(m).Run()) }

func TestEachLawOfSchedulesIsBrokenByItsRows(t *testing.T) {
	d := dbtest.New(t, dbtest.MariaDB)
	s, err := scheduler.Open(t.Context(), d.DSN, scheduler.Config{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.SaveSchedule(t.Context(), "skip/once/60", delaytask.Every(time.Hour), "t", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", d.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const run = "INSERT INTO delay_task_schedule_run (schedule_id, tick, cause, until_tick, task_id) SELECT id, "
	const task = "INSERT INTO delay_task_message (id, tag, message_body, schedule, expected_time, start_time," +
		" create_time) VALUES "
	broken := [][]string{
		{run + "'2027-01-01', 0, '2027-01-01', NULL FROM delay_task_schedule",
			run + "'2027-01-01 00:02:00', 0, '2027-01-01 00:02:00', NULL FROM delay_task_schedule"},
		{task + "(1, 't', '', 's', '2027-01-01 00:00:01', '2027-01-01', '2027-01-01')"},
		{task + "(2, 't', '', 'two', '2027-01-01', '1970-01-01', '2027-01-01')",
			task + "(3, 't', '', 'two', '2027-01-01', '1970-01-01', '2027-01-02')"},
		{run + "'2027-01-01 00:03:00', 0, '2027-01-01 00:03:00', 99 FROM delay_task_schedule"},
		{task + "(4, 't', '', 'lost', '2027-01-01', '1970-01-01', '2027-01-01')"},
		{"UPDATE delay_task_schedule SET next_time = '2020-01-01'"},
	}
	if len(broken) != len(laws) {
		t.Fatalf("%d cases for %d laws", len(broken), len(laws))
	}
	found := func(query string) (n int) {
		t.Helper()
		if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i, law := range laws {
		if n := found(law.query); n != 0 {
			t.Errorf("%s: %d before", law.broken, n)
		}
		for _, statement := range broken[i] {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if n := found(law.query); n == 0 {
			t.Errorf("%s: not noticed", law.broken)
		}
		for _, statement := range []string{"DELETE FROM delay_task_schedule_run", "DELETE FROM delay_task_message"} {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
}
