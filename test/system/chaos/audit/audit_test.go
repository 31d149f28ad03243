package audit

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/scheduler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.WithServers(m)) }

func audited(t *testing.T, d dbtest.Database) *sql.DB {
	t.Helper()
	s, err := scheduler.Open(t.Context(), d.DSN, scheduler.Config{Migrate: true})
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
	t.Cleanup(func() { _ = db.Close() })
	if err := Install(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestDatabaseWritesDownEveryTransition(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db := audited(t, d)
		db.SetMaxOpenConns(1) // a session for all
		for _, statement := range []string{
			"SET time_zone = '+05:00'",
			"INSERT INTO delay_task_message (id, tag, task_key, message_body, delay_time)" +
				" VALUES (7, 't', 'k', 'b', 0), (8, 't', NULL, 'c', 0)",
			"UPDATE delay_task_message SET status = 3, version = version + 1, attempt = 1, process = 9, claim = 1" +
				" WHERE id = 7",
			"UPDATE delay_task_message SET due_time = due_time + INTERVAL 1 SECOND WHERE id = 7",
			"UPDATE delay_task_message SET update_time = UTC_TIMESTAMP(6) WHERE id = 7", // no transition
			"DELETE FROM delay_task_message WHERE id = 8",
			"UPDATE delay_task_message SET status = 1, version = version + 1 WHERE id = 7",
			"DELETE FROM delay_task_message WHERE id = 7", // which a purge does
		} {
			execute(t, db, statement)
		}
		events, err := Writes(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range events {
			got = append(got, strings.TrimSpace(strings.Join([]string{string(e.Kind), e.Body, e.Key, e.Status}, " ")))
			if e.At.Sub(e.Expected).Abs().Minutes() > 5 {
				t.Errorf("%+v is not in UTC", e)
			}
		}
		want := "write b k pending, write c  pending, write   executing, lease   executing, " +
			"write   cancelled, write   completed"
		if strings.Join(got, ", ") != want {
			t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
		}
		if rows, err := Rows(t.Context(), db); err != nil || len(rows) != 0 {
			t.Errorf("%d rows, %v", len(rows), err)
		}
		if events[0].Kind != journal.Write || events[0].ID != 7 || events[3].Version != 1 {
			t.Errorf("got %+v", events)
		}
	})
}

func TestMembersHaveToShowTheSame(t *testing.T) {
	var members []*sql.DB
	for range 2 {
		db := audited(t, dbtest.New(t, dbtest.MariaDB))
		if err := Await(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		members = append(members, db)
	}
	if err := Agree(t.Context(), members); err != nil {
		t.Errorf("of empty tables: %v", err)
	}
	const insert = "INSERT INTO delay_task_message (id, tag, message_body, delay_time) VALUES (7, 't', 'b', 0)"
	execute(t, members[1], insert)
	if err := agreeSoon(t, members); err == nil {
		t.Error("a task that only one member has is not noticed")
	}
	execute(t, members[0], insert)
	if err := Agree(t.Context(), members); err != nil {
		t.Errorf("of the same task: %v", err)
	}
	execute(t, members[0], "UPDATE delay_task_message SET claim = 99") // which the audit does not see
	if err := agreeSoon(t, members); err == nil {
		t.Error("a task that differs is not noticed")
	}
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func agreeSoon(t *testing.T, members []*sql.DB) error {
	ctx, cancel := context.WithTimeout(t.Context(), 2*look)
	defer cancel()
	return Agree(ctx, members)
}
