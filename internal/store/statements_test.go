package store

import (
	"context"
	"database/sql"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/row"
)

const statementsFile = "testdata/statements.sql"

// The list is what test/sqlcheck holds against other servers that speak like MySQL. Whatever the store sends has to be in it:
// DELAYTASK_UPDATE=1 writes it anew.
func TestStatementsThatTheStoreSendsAreListed(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		if d.Members != nil {
			t.Skip("it sends what each of its members is sent")
		}
		target, err := ParseDSN(d.DSN)
		if err != nil {
			t.Fatal(err)
		}
		connector, err := mysql.NewConnector(target.cfg)
		if err != nil {
			t.Fatal(err)
		}
		plain, _ := migrated(t, d)
		recorder := dbtest.Record(connector)
		db := sqlx.NewDb(sql.OpenDB(recorder), "mysql")
		t.Cleanup(func() { _ = db.Close() })
		s := New(db, MySQL)
		callEverything(t, s, plain)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(recorder.Statements(), ";\n") + ";\n"
		if os.Getenv("DELAYTASK_UPDATE") == "1" {
			if err := os.WriteFile(statementsFile, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(statementsFile)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("the store sends other statements than %s lists: see the difference after DELAYTASK_UPDATE=1", statementsFile)
		}
	})
}

// callEverything calls every method of a store, most of them in more than one form. What is bound may be anything; what is part
// of the text must be the same each time.
func callEverything(t *testing.T, s *Store, plain *sqlx.DB) {
	t.Helper()
	ctx := t.Context()
	now := row.At(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	task := func(id int64) row.Row {
		return row.Row{ID: id, Tag: "a", Body: []byte("{}"), TTR: time.Minute, Expected: now, Due: now}
	}
	full := task(4)
	full.Key, full.Headers, full.MaxLate, full.LatePolicy, full.MaxAttempts = "k", []byte(`{"a":"b"}`), time.Hour, row.LateFail, 3
	status := row.Completed
	change := func(id int64, from, to row.Status) row.Change {
		return row.Change{ID: id, From: from, To: to, Due: now, Executor: "e"}
	}
	refs := []row.Ref{{ID: 1}, {ID: 2}, {ID: 3, Version: 7}}
	rescued := change(2, row.Executing, row.Pending)
	rescued.LeaseOver, rescued.ErrorStack, rescued.Errors, rescued.Expected = true, "é", []byte("[]"), now
	edited := change(4, row.Pending, row.Pending)
	edited.Body, edited.SameExecutor = []byte("b"), true
	many := make([]string, maxBranches+1)
	for i := range many {
		many[i] = strings.Repeat("t", i+1)
	}
	request := row.Request{Hash: [32]byte{1}, Content: [32]byte{2}, TaskID: 1}
	worker := row.Worker{App: "a", Address: "http://a", Tags: []string{"t"}, TTL: time.Minute}
	node := row.Node{Number: 1, Token: "t", Tags: []string{"t"}}
	access := row.AccessToken{Name: "n", Hash: [32]byte{3}, Tags: []string{"*"}, Verbs: []string{"save"}}
	old := func(table, column string) {
		mustExec(t, plain, "UPDATE "+table+" SET "+column+" = '2020-01-01'")
	}

	calls := []struct {
		method string
		call   func() error
	}{
		{"Check", func() error { _, err := s.Check(ctx, 1<<20); return err }},
		{"CheckService", func() error { return s.CheckService(ctx) }},
		{"InTransaction", func() error { _, err := s.InTransaction(ctx, s.db); return err }},
		{"Now", func() error { _, err := s.Now(ctx); return err }},
		{"Insert", func() error { return s.Insert(ctx, nil, []row.Row{task(1), task(2), task(3)}) }},
		{"Insert", func() error { return s.Insert(ctx, nil, []row.Row{full}) }},
		{"Get", func() error { _, _, err := s.Get(ctx, nil, []int64{1, 2}); return err }},
		{"FindActive", func() error { _, err := s.FindActive(ctx, nil, []row.TagKey{{Tag: "a", Key: "k"}}); return err }},
		{"States", func() error { _, err := s.States(ctx, []int64{1, 2}); return err }},
		{"Due", func() error {
			_, err := s.Due(ctx, row.Window{Tags: []string{"a", "b"}, To: now, Limit: 5})
			return err
		}},
		{"Due", func() error {
			_, err := s.Due(ctx, row.Window{Tags: many, From: now, AfterID: 1, To: now.Add(1), Limit: 5})
			return err
		}},
		{"Adopt", func() error { return s.Adopt(ctx, refs) }},
		{"Locked", func() error { _, err := s.Locked(ctx, []int64{1, 2}); return err }},
		{"Locked", func() error { // as on a server that skips no locked rows
			return s.probe.do(ctx, "probe", func(ctx context.Context, conn *sql.Conn) error {
				_, err := refused(ctx, conn, []int64{1, 2})
				return err
			})
		}},
		{"Claim", func() error { _, err := s.Claim(ctx, row.Claim{Rows: refs, Executor: "e"}); return err }},
		{"Claim", func() error { _, err := s.Claim(ctx, row.Claim{Rows: refs[:1], Executor: "f"}); return err }},
		{"Expired", func() error { _, _, err := s.Expired(ctx, 5); return err }},
		{"Strays", func() error { _, err := s.Strays(ctx, "e:", 5); return err }},
		{"Renew", func() error {
			_, err := s.Renew(ctx, []row.Lease{{Ref: refs[0], TTR: time.Minute}, {Ref: refs[1], TTR: time.Hour, Least: true,
				Executor: "pop:e", Execution: now}})
			return err
		}},
		{"Update", func() error {
			_, err := s.Update(ctx, nil, []row.Change{change(1, row.Executing, row.Completed), rescued, edited})
			return err
		}},
		{"Update", func() error {
			_, err := s.Update(ctx, nil, []row.Change{change(3, row.Pending, row.Completed)})
			return err
		}},
		{"Discard", func() error {
			return s.Discard(ctx, []row.Broken{{Ref: refs[0], Reason: "a"}, {Ref: refs[1], Reason: "b"}})
		}},
		{"List", func() error { _, _, err := s.List(ctx, row.Filter{Limit: 5}, true); return err }},
		{"List", func() error {
			_, _, err := s.List(ctx, row.Filter{Tag: "a", Key: "k", Status: &status, DueBefore: now, AfterID: 1, Limit: 5}, false)
			return err
		}},
		{"Counts", func() error { _, err := s.Counts(ctx); return err }},
		{"Lateness", func() error { _, err := s.Lateness(ctx, []string{"a"}, 0, 5); return err }},
		{"Lateness", func() error { _, err := s.Lateness(ctx, []string{"a"}, now, 5); return err }},
		{"Purge", func() error {
			mustExec(t, plain, "UPDATE "+table+" SET status = 1, due_time = '2020-01-01' WHERE id = 3")
			_, err := s.Purge(ctx, row.Completed, now, 5)
			return err
		}},
		{"Renumber", func() error {
			mustExec(t, plain, "INSERT INTO "+table+" (id, tag) VALUES (18446744073709551614, 'a')")
			_, _, err := s.Renumber(ctx, 1<<62, func() int64 { return 77 }, 5)
			return err
		}},
		{"SetTag", func() error { return s.SetTag(ctx, row.TagState{Tag: "a", Paused: true}) }},
		{"Tags", func() error { _, err := s.Tags(ctx); return err }},
		{"Join", func() error { _, err := s.Join(ctx, node, time.Second); return err }},
		{"Beat", func() error { _, err := s.Beat(ctx, node); return err }},
		{"Nodes", func() error { _, _, err := s.Nodes(ctx); return err }},
		{"Leave", func() error { return s.Leave(ctx, []string{"t"}) }},
		{"ReserveRequest", func() error { _, _, err := s.ReserveRequest(ctx, request); return err }},
		{"ReserveRequest", func() error { _, _, err := s.ReserveRequest(ctx, request); return err }}, // is met
		{"SaveRequest", func() error { return s.SaveRequest(ctx, request.Hash, 1, false) }},
		{"PurgeRequests", func() error {
			old(requestTable, "create_time")
			_, err := s.PurgeRequests(ctx, 5)
			return err
		}},
		{"CreateToken", func() error { return s.CreateToken(ctx, access) }},
		{"AccessTokens", func() error { _, _, err := s.AccessTokens(ctx); return err }},
		{"DeleteToken", func() error { return s.DeleteToken(ctx, "n") }},
		{"SaveWorker", func() error { _, err := s.SaveWorker(ctx, worker); return err }},
		{"SaveWorker", func() error { _, err := s.SaveWorker(ctx, worker); return err }}, // is replaced
		{"WorkerAt", func() error { _, _, err := s.WorkerAt(ctx, worker.App, worker.Address); return err }},
		{"Heartbeat", func() error { _, err := s.Heartbeat(ctx, 1); return err }},
		{"Worker", func() error { _, _, err := s.Worker(ctx, 1); return err }},
		{"Workers", func() error { _, _, err := s.Workers(ctx); return err }},
		{"CountWorkers", func() error { _, err := s.CountWorkers(ctx); return err }},
		{"PurgeWorkers", func() error {
			old(workerTable, "expire_time")
			_, err := s.PurgeWorkers(ctx)
			return err
		}},
		{"DeleteWorker", func() error { _, err := s.DeleteWorker(ctx, 1); return err }},
	}
	called := map[string]bool{"Close": true}
	for _, c := range calls {
		if err := c.call(); err != nil {
			t.Fatalf("%s: %v", c.method, err)
		}
		called[c.method] = true
	}
	for method := range reflect.TypeFor[*Store]().Methods() {
		if !called[method.Name] {
			t.Errorf("%s is not called, so its statements are in no list", method.Name)
		}
	}
}
