package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// The caller's pool has settings of its own. None of them changes what is stored, in our statements or in the caller's
// transaction.
func TestSettingsOfTheCallersPoolChangeNothing(t *testing.T) {
	settings := []string{
		"",
		"parseTime=true&loc=America%2FNew_York",
		"parseTime=true&loc=America%2FNew_York&interpolateParams=true&time_zone=%27-05:00%27",
		"clientFoundRows=true",
		"clientFoundRows=true&interpolateParams=true",
		"charset=latin1",
		"charset=latin1&interpolateParams=true",
		"sql_mode=%27ANSI_QUOTES,NO_BACKSLASH_ESCAPES%27&interpolateParams=true",
		"sql_mode=%27%27",
		"columnsWithAlias=true&collation=utf8mb4_general_ci&transaction_isolation=%27SERIALIZABLE%27",
	}
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, own := open(t, d)
		plain, _, _ := strings.Cut(d.DSN, "?")
		for _, params := range settings {
			if d.Kind == dbtest.Group { // which refuses that level
				params = strings.ReplaceAll(params, "SERIALIZABLE", "READ-COMMITTED")
			}
			if d.Kind == dbtest.MariaDB || d.Kind == dbtest.Galera {
				params = strings.ReplaceAll(params, "transaction_isolation", "tx_isolation")
			}
			t.Run(params, func(t *testing.T) {
				if _, err := mysql.ParseDSN(plain + "?" + params); err != nil {
					t.Fatal(err)
				}
				callers, err := sqlx.Open("mysql", plain+"?"+params)
				if err != nil {
					t.Fatal(err)
				}
				defer callers.Close()
				exec(t, own.DB, "DELETE FROM delay_task_message")
				s := store.New(callers, store.MySQL)
				defer s.Close(t.Context())
				roundTrip(t, s, callers)
			})
		}
	})
}

func roundTrip(t *testing.T, s *store.Store, callers *sqlx.DB) {
	reading, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if skew := time.Since(reading.Time.Std()).Abs(); skew > 10*time.Second || reading.Server == "" {
		t.Errorf("the clock reads %+v, %v from ours", reading, skew)
	}
	fallBack := row.At(time.Date(2026, 11, 1, 5, 30, 0, 123456000, time.UTC)) // an hour that New York has twice
	want := func(id int64) row.Row {
		return row.Row{ID: id, Tag: "Order.close", Key: "ключ \\' \" é", Body: []byte("{\"a\":\"ü \\\\ ' \x00 😀\"}"),
			TTR: 15 * time.Second, MaxAttempts: 3, Priority: -5, Headers: []byte(`{"trace":"é"}`),
			MaxLate: time.Minute, LatePolicy: row.LateSkip, Delay: 1500 * time.Millisecond, Expected: fallBack, Due: fallBack}
	}
	first := want(1<<62 + 1) // such a number is not exact as floating point
	if err := s.Insert(t.Context(), nil, []row.Row{first}); err != nil {
		t.Fatal(err)
	}
	second := want(1<<62 + 2)
	second.Key = "s3:é"
	tx, err := callers.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	before := second
	before.Body = []byte("before")
	if err := s.Insert(t.Context(), tx, []row.Row{before}); err != nil {
		t.Fatal(err)
	}
	found, err := s.FindActive(t.Context(), tx, []row.TagKey{{Tag: "any", Key: second.Key}})
	if err != nil || len(found) != 1 {
		t.Fatalf("found %v, %v", found, err)
	}
	n, err := s.Update(t.Context(), tx, []row.Change{
		{ID: second.ID, From: row.Pending, To: row.Completed, Due: fallBack, Finish: fallBack, Executor: "höst:1",
			ErrorStack: "é\\'", Body: second.Body},
		{ID: 77, Version: 5, From: row.Executing, To: row.Failed, Errors: []byte("[]")},
	})
	if n != 1 || err != nil {
		t.Fatalf("%d changes applied: %v", n, err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	refs := []row.Ref{{ID: first.ID}, {ID: 5, Version: 9}}
	claimed, err := s.Claim(t.Context(), row.Claim{Rows: refs, Executor: "höst:1", IP: 1<<31 + 5})
	if err != nil || len(claimed.Rows) != 1 || claimed.Rows[0].Executor != "höst:1" || claimed.Rows[0].IPAddress != 1<<31+5 {
		t.Fatalf("claimed %+v, %v", claimed, err)
	}
	leases := []row.Lease{{Ref: row.Ref{ID: first.ID, Version: 1}, TTR: time.Hour}, {Ref: row.Ref{ID: 5}, TTR: time.Second}}
	states, err := s.Renew(t.Context(), leases)
	if err != nil || len(states) != 1 || states[0].Due.Sub(reading.Time) < 59*time.Minute {
		t.Errorf("renewed %+v, %v", states, err)
	}
	rows, broken, err := s.Get(t.Context(), nil, []int64{first.ID, second.ID})
	if err != nil || len(broken) != 0 || len(rows) != 2 {
		t.Fatalf("read %v, %v, %v", rows, broken, err)
	}
	if r := rows[1]; r.Status != row.Completed || r.Executor != "höst:1" || r.ErrorStack != "é\\'" || r.Finish != fallBack {
		t.Errorf("settled as %+v", r)
	}
	for i, w := range []row.Row{first, second} {
		r := rows[i]
		if r.Tag != w.Tag || r.Key != w.Key || string(r.Body) != string(w.Body) || string(r.Headers) != string(w.Headers) ||
			r.Expected != fallBack || r.Delay != w.Delay || r.MaxLate != w.MaxLate || r.Priority != w.Priority {
			t.Errorf("stored\n%+v, want\n%+v", r, w)
		}
	}
}

func TestPlainInsertIsATaskLikeAnyOther(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		expected := row.At(time.Now().Add(time.Hour))
		exec(t, pool.DB, "INSERT INTO delay_task_message (tag, message_body, delay_time) VALUES ('a', '{}', 90000)")
		exec(t, pool.DB, "INSERT INTO delay_task_message (tag, message_body, expected_time) VALUES ('a', '', ?)",
			expected.String())
		exec(t, pool.DB, "INSERT INTO delay_task_message (tag, message_body, delay_time, due_time) VALUES ('a', '', 1, NULL)")
		rows, broken, err := s.List(t.Context(), row.Filter{Tag: "a", Limit: 10}, true)
		if err != nil || len(broken) != 0 || len(rows) != 3 {
			t.Fatalf("rows %v, broken %v, %v", rows, broken, err)
		}
		for i, r := range rows {
			if r.Status != row.Pending || r.Version != 0 || r.TTR != 15*time.Second || r.MaxAttempts != 20 || r.Created.IsZero() {
				t.Errorf("row %d is %+v", i, r)
			}
		}
		// SQLite's clock goes on within a statement.
		off := rows[0].Expected.Sub(rows[0].Created.Add(90 * time.Second)).Abs()
		if off > 5*time.Second || rows[0].Due != rows[0].Expected {
			t.Errorf("a delay of 90 s is expected at %v and due at %v, created at %v", rows[0].Expected, rows[0].Due,
				rows[0].Created)
		}
		if rows[1].Expected != expected || rows[1].Due != expected {
			t.Errorf("expected %v, due %v; want both %v", rows[1].Expected, rows[1].Due, expected)
		}
		if !rows[2].Due.IsZero() {
			t.Errorf("due %v although it was given as NULL", rows[2].Due)
		}
	})
}
