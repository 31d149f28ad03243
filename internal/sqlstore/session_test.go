package sqlstore_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// No setting of a caller's pool changes what is stored, outside or inside of the caller's transaction.
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
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
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
				callers := poolOf(t, plain+"?"+params)
				exec(t, own.DB, "DELETE FROM delay_task_message")
				s := sqlstore.New(callers, sqlstore.MySQL)
				defer s.Close(t.Context())
				roundTrip(t, s, callers)
			})
		}
	})
}

func roundTrip(t *testing.T, s *sqlstore.Store, callers *sqlx.DB) {
	reading, err := s.Now(t.Context())
	must(t, err)
	if skew := time.Since(reading.Time.Std()).Abs(); skew > 10*time.Second || reading.Server == "" {
		t.Errorf("the clock reads %+v, %v from ours", reading, skew)
	}
	fallBack := row.At(time.Date(2026, 11, 1, 5, 30, 0, 123456000, time.UTC)) // an hour that New York has twice
	first := row.Row{ID: 1<<62 + 1,                                           // is not exact as floating point
		Tag: "Order.close", Key: "ключ \\' \" é", Body: []byte("{\"a\":\"ü \\\\ ' \x00 😀\"}"),
		TTR: 15 * time.Second, MaxAttempts: 3, Priority: -5, Headers: []byte(`{"trace":"é"}`),
		MaxLate: time.Minute, LatePolicy: row.LateSkip, Delay: 1500 * time.Millisecond,
		Expected: fallBack, Due: fallBack}
	insert(t, s, first)
	second := first
	second.ID, second.Key, second.Body = first.ID+1, "s3:é", []byte("before")
	tx := begin(t, callers)
	defer tx.Rollback()
	must(t, s.Insert(t.Context(), tx, []row.Row{second}))
	found, err := s.FindActive(t.Context(), tx, []row.TagKey{{Tag: "any", Key: second.Key}})
	if err != nil || len(found) != 1 {
		t.Fatalf("found %v, %v", found, err)
	}
	n, err := s.Update(t.Context(), tx, []row.Change{
		{ID: second.ID, From: row.Pending, To: row.Completed, Due: fallBack, Finish: fallBack, Executor: "höst:1",
			ErrorStack: "é\\'", Body: first.Body},
		{ID: 77, Version: 5, From: row.Executing, To: row.Failed, Errors: []byte("[]")},
	})
	if n != 1 || err != nil {
		t.Fatalf("%d changes applied: %v", n, err)
	}
	must(t, tx.Commit())
	claim := row.Claim{Rows: []row.Ref{{ID: first.ID}, {ID: 5, Version: 9}}, Executor: "höst:1", IP: 1<<31 + 5}
	claimed, err := s.Claim(t.Context(), claim)
	if err != nil || len(claimed.Rows) != 1 {
		t.Fatalf("claimed %+v, %v", claimed, err)
	}
	states, err := s.Renew(t.Context(), []row.Lease{
		{Ref: row.Ref{ID: first.ID, Version: 1}, TTR: time.Hour}, {Ref: row.Ref{ID: 5}, TTR: time.Second},
	})
	if err != nil || len(states) != 1 || states[0].Due.Sub(reading.Time) < 59*time.Minute {
		t.Errorf("renewed %+v, %v", states, err)
	}
	rows, broken, err := s.Get(t.Context(), nil, []int64{first.ID, second.ID})
	if err != nil || len(broken) != 0 || len(rows) != 2 {
		t.Fatalf("read %v, %v, %v", rows, broken, err)
	}
	want := []row.Row{first, second}
	want[0].Status, want[0].Version, want[0].Attempt = row.Executing, 1, 1
	want[0].Executor, want[0].IPAddress = claim.Executor, claim.IP
	want[0].Execution, want[0].Due = claimed.Rows[0].Execution, states[0].Due
	want[1].Status, want[1].Version, want[1].Executor, want[1].ErrorStack = row.Completed, 1, "höst:1", "é\\'"
	want[1].Finish, want[1].Body = fallBack, first.Body
	for i, got := range rows {
		want[i].Created, want[i].Updated = got.Created, got.Updated
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("stored\n%+v, want\n%+v", got, want[i])
		}
	}
}

func TestPlainInsertIsATaskLikeAnyOther(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		s, pool := openNew(t, d)
		expected := row.At(time.Now().Add(time.Hour))
		const insert = "INSERT INTO delay_task_message (tag, message_body, "
		exec(t, pool.DB, insert+"delay_time) VALUES ('a', '{}', 90000)")
		exec(t, pool.DB, insert+"expected_time) VALUES ('a', '', ?)", expected.String())
		exec(t, pool.DB, insert+"delay_time, due_time) VALUES ('a', '', 1, NULL)")
		rows, broken, err := s.List(t.Context(), row.Filter{Tag: "a", Limit: 10}, true)
		if err != nil || len(broken) != 0 || len(rows) != 3 {
			t.Fatalf("rows %v, broken %v, %v", rows, broken, err)
		}
		for i, r := range rows {
			fresh := r.Status == row.Pending && r.Version == 0 && !r.Created.IsZero()
			if !fresh || r.TTR != 15*time.Second || r.MaxAttempts != 20 {
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
