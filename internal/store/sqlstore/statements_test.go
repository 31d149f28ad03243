package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/golden"
	"github.com/delaytask/delaytask/report"
)

const statementsFile = "testdata/statements.sql"

// test/system/sqlcheck checks the list against other servers that are compatible with MySQL. Every statement of the
// store has to be in it. DELAYTASK_UPDATE=1 writes it anew.
func TestStatementsThatTheStoreSendsAreListed(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		if d.Members != nil {
			t.Skip("it sends what each of its members is sent")
		}
		target, err := ParseDSN(d.DSN)
		must(t, err)
		connector, err := mysql.NewConnector(target.cfg)
		must(t, err)
		plain, _ := migrated(t, d)
		recorder := dbtest.Record(connector)
		db := sqlx.NewDb(sql.OpenDB(recorder), "mysql")
		t.Cleanup(func() { _ = db.Close() })
		s := New(db, MySQL)
		watch := s.connections.unanswered // on a slow machine it would ask, in words with ids, about a write
		watch.ask = func(context.Context, func(context.Context, *sql.Conn) error) error { return nil }
		watch.probe = func(context.Context, time.Time) error { return nil }
		callEverything(t, s, plain)
		must(t, s.Close(t.Context()))
		golden.Check(t, statementsFile, strings.Join(recorder.Statements(), ";\n")+";\n")
	})
}

// callEverything calls every method of a store, most of them in several forms. What is part of a statement's text must
// be the same each time.
func callEverything(t *testing.T, s *Store, plain *sqlx.DB) {
	t.Helper()
	ctx := t.Context()
	now := row.At(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	task := func(id int64) row.Row {
		return row.Row{ID: id, Tag: "a", Body: []byte("{}"), TTR: time.Minute, Expected: now, Due: now}
	}
	full := task(4)
	full.Key, full.Headers, full.MaxAttempts = "k", []byte(`{"a":"b"}`), 3
	full.MaxLate, full.LatePolicy = time.Hour, delaytask.LateFail
	status := row.Completed
	spans := []row.Span{{Tag: "a"}, {Tag: "b", Padded: true, From: now, To: now.Add(1), Down: true},
		{Tag: "c", After: &row.Place{Due: now, ID: 1}}, {Tag: "d", After: &row.Place{Due: now, ID: 1}, Down: true},
		{Tag: "e", After: &row.Place{ID: 1}}}
	match := row.Match{Status: &status, Tag: "a", Key: "k", From: now, To: now, LateBy: time.Second, Error: "e",
		CreatedBy: now}
	change := func(id int64, from, to row.Status) row.Change {
		return row.Change{ID: id, From: from, To: to, Due: now, Executor: row.Executor{Process: 9, Claim: 1}}
	}
	refs := []row.Ref{{ID: 1}, {ID: 2}, {ID: 3, Version: 7}}
	rescued := change(2, row.Executing, row.Pending)
	rescued.Late = delaytask.LateSlot
	rescued.LeaseOver, rescued.ErrorStack, rescued.Errors, rescued.Expected = true, "é", []byte("[]"), now
	edited := change(4, row.Pending, row.Pending)
	edited.Body, edited.SameExecutor = []byte("b"), true
	grid := row.DueGrid{Tags: []string{"a", "b"}, Now: now, Start: now, Step: time.Hour, Steps: 1}
	many := make([]string, maxBranches+1)
	for i := range many {
		many[i] = strings.Repeat("t", i+1)
	}
	request := row.Request{Hash: [32]byte{1}, Content: [32]byte{2}, TaskID: 1}
	receiver := row.Receiver{App: "a", Address: "http://a", Tags: []string{"t"}, TTL: time.Minute}
	node := row.Node{Number: 1, Token: "t", Tags: []string{"t"}}
	schedule := func(id int64) row.Schedule {
		return row.Schedule{ID: id, Name: fmt.Sprint(id), Spec: "@daily", Tag: "a"}
	}
	ofTick := task(5)
	ofTick.TickOf = &row.TickOf{Schedule: "2", Tick: now, RetryBefore: now}
	decisions := []row.Decision{
		{Write: row.WriteNew, Schedule: schedule(1)},
		{Write: row.WriteProgress, Schedule: schedule(2), Insert: []row.Row{ofTick},
			New: []row.ScheduleRun{{Tick: now, TaskID: 5, Note: "é"}, {Tick: now.Add(time.Second)}},
			Ended: []row.ScheduleRun{
				{Tick: now.Add(-time.Hour), Outcome: row.OutcomeFailed, Note: "boom", Start: now}}},
		{Write: row.WriteDefinition, Schedule: schedule(3), Changes: []row.Change{
			{ID: 6, From: row.Pending, To: row.Cancelled, Due: now}}},
		{Write: row.WriteDelete, Schedule: schedule(5)},
	}
	must(t, s.Insert(ctx, nil, []row.Row{task(6)}))
	mustExec(t, plain, "INSERT INTO "+scheduleTable+" (id, name, definition, spec, tag) VALUES"+
		" (2, '2', '', '', 'a'), (3, '3', '', '', 'a'), (5, '5', '', '', 'a')")
	mustExec(t, plain, "INSERT INTO "+runTable+" (schedule_id, tick, cause, until_tick, outcome) VALUES"+
		" (2, '2026-10-31 23:00:00', 0, '2026-10-31 23:00:00', 0),"+
		" (4, '2026-10-31', 0, '2026-10-31', 1), (4, '2026-11-01', 0, '2026-11-01', 1)")
	access := row.AccessToken{Name: "n", Hash: [32]byte{3}, Tags: []string{"*"}, Verbs: []string{"save"}}
	session := row.Session{Hash: [32]byte{4}, Token: "n", TokenHash: access.Hash}
	old := func(table, column string) context.Context {
		mustExec(t, plain, "UPDATE "+table+" SET "+column+" = '2020-01-01'")
		return ctx
	}

	calls := []struct {
		method string
		call   func() error
	}{
		{"Check", func() error { return one(s.Check(ctx, 1<<20)) }},
		{"CheckReads", func() error { return s.CheckReads(ctx) }},
		{"CheckService", func() error { return s.CheckService(ctx) }},
		{"CheckServiceReads", func() error { return s.CheckServiceReads(ctx) }},
		{"InTransaction", func() error { return one(s.InTransaction(ctx, s.db)) }},
		{"Now", func() error { return one(s.Now(ctx)) }},
		{"Insert", func() error { return s.Insert(ctx, nil, []row.Row{task(1), task(2), task(3)}) }},
		{"Insert", func() error { return s.Insert(ctx, nil, []row.Row{full}) }},
		{"Get", func() error { return two(s.Get(ctx, nil, []int64{1, 2})) }},
		{"FindActive", func() error { return one(s.FindActive(ctx, nil, []row.TagKey{{Tag: "a", Key: "k"}})) }},
		{"LockActive", func() error { return two(s.LockActive(ctx, s.db, row.TagKey{Tag: "a", Key: "k"})) }},
		{"States", func() error { return one(s.States(ctx, []int64{1, 2})) }},
		{"Due", func() error { return one(s.Due(ctx, row.Window{Tags: []string{"a", "b"}, To: now, Limit: 5})) }},
		{"Due", func() error {
			return one(s.Due(ctx, row.Window{Tags: many, From: now, AfterID: 1, To: now.Add(1), Limit: 5}))
		}},
		{"Adopt", func() error { return s.Adopt(ctx, refs) }},
		{"Locked", func() error { return one(s.Locked(ctx, []int64{1, 2})) }},
		{"Locked", func() error { // as on a server that skips no locked rows
			return s.lanes[lockChecks].do(ctx, "test", func(ctx context.Context, conn *sql.Conn) error {
				return one(lockedByHalving(ctx, conn, []int64{1, 2}, mysqlDialect.selectByID))
			})
		}},
		{"Claim", func() error {
			return one(s.Claim(ctx, row.Claim{Rows: refs, Executor: row.Executor{Process: 9, Claim: 1}}))
		}},
		{"Claim", func() error {
			return one(s.Claim(ctx, row.Claim{Rows: refs[:1], Executor: row.Executor{Process: 9, Claim: 2}}))
		}},
		{"Expired", func() error { return two(s.Expired(ctx, []string{"a", "b"}, 5)) }},
		{"Orphans", func() error { return one(s.Orphans(ctx, []string{"a", "b"}, []int64{9, -9}, 5)) }},
		{"Renew", func() error {
			return one(s.Renew(ctx, []row.Lease{{Ref: refs[0], TTR: time.Minute},
				{Ref: refs[1], TTR: time.Hour, Least: true, Executor: row.Executor{Process: 9, Claim: -1},
					Execution: now, Late: delaytask.LateReceiver}}))
		}},
		{"Update", func() error {
			return one(s.Update(ctx, nil, []row.Change{change(1, row.Executing, row.Completed), rescued, edited}))
		}},
		{"Update", func() error {
			c := change(3, row.Pending, row.Completed)
			c.LeaseBy = now
			return one(s.Update(ctx, nil, []row.Change{c}))
		}},
		{"Discard", func() error {
			return one(s.Discard(ctx, []row.Broken{{Ref: refs[0], Reason: "a"}, {Ref: refs[1], Reason: "b"}}))
		}},
		{"Places", func() error { return one(s.Places(ctx, spans, 5)) }},
		{"FirstDue", func() error {
			for _, span := range spans {
				if err := one(s.FirstDue(ctx, span)); err != nil {
					return err
				}
			}
			return nil
		}},
		{"FirstIDs", func() error {
			for _, span := range spans {
				for _, due := range []row.Time{0, now} {
					if err := one(s.FirstIDs(ctx, span, due)); err != nil {
						return err
					}
				}
			}
			return nil
		}},
		{"Newest", func() error { return one(s.Newest(ctx, 9, 5)) }},
		{"Match", func() error { return one(s.Match(ctx, []int64{1, 2}, row.Match{}, false)) }},
		{"Match", func() error { return one(s.Match(ctx, []int64{1, 2}, match, true)) }},
		{"Rows", func() error { return two(s.Rows(ctx, []int64{1, 2}, false)) }},
		{"Oldest", func() error { return one(s.Oldest(ctx, row.Pending)) }},
		{"Failures", func() error { return one(s.Failures(ctx, []int64{1, 2})) }},
		{"Count", func() error { return one(s.Count(ctx, []row.Pair{{Tag: "a"}, {Tag: "b"}}, 5)) }},
		{"Lateness", func() error { return one(s.Lateness(ctx, []string{"a"}, 0, 5)) }},
		{"Lateness", func() error { return one(s.Lateness(ctx, []string{"a"}, now, 5)) }},
		{"CountDue", func() error { return two(s.CountDue(ctx, grid, 5, time.Second)) }},
		{"EstimateDue", func() error { return two(s.EstimateDue(ctx, grid)) }},
		{"Upcoming", func() error { return one(s.Upcoming(ctx, now, 5)) }},
		{"Purge", func() error {
			mustExec(t, plain, "UPDATE "+table+" SET status = 1, due_time = '2020-01-01' WHERE id = 3")
			return two(s.Purge(ctx, row.Completed, []string{"a"}, now, 5))
		}},
		{"Renumber", func() error {
			mustExec(t, plain, "INSERT INTO "+table+" (id, tag) VALUES (18446744073709551614, 'a')")
			return two(s.Renumber(ctx, 1<<62, func() int64 { return 77 }, 5))
		}},
		{"SetTag", func() error { return s.SetTag(ctx, row.TagState{Tag: "a", Paused: true}) }},
		{"Tags", func() error { return two(s.Tags(ctx)) }},
		{"Cluster", func() error { return one(s.Cluster(ctx, 2*time.Second)) }},
		{"Decide", func() error { return one(s.Decide(ctx, decisions)) }},
		{"LookAt", func() error { return two(s.LookAt(ctx, now, 0, 0, 5)) }},
		{"LookAt", func() error { return two(s.LookAt(ctx, now, now, 1, 5)) }},
		{"Schedules", func() error { return two(s.Schedules(ctx, row.ScheduleFilter{Limit: 5})) }},
		{"Schedules", func() error {
			return two(s.Schedules(ctx, row.ScheduleFilter{
				Names: []string{"a", "b"}, Prefix: "a", Owner: "o", Tag: "t", AfterName: "A", Limit: 5,
				NoBodies: true}))
		}},
		{"OpenRuns", func() error { return one(s.OpenRuns(ctx, []int64{1, 2}, 5)) }},
		{"Runs", func() error { return one(s.Runs(ctx, 1, 0, 5)) }},
		{"Runs", func() error { return one(s.Runs(ctx, 1, now, 5)) }},
		{"TrimRuns", func() error { return one(s.TrimRuns(ctx, 4, row.MaxTime, 0, 5)) }},
		{"PutRollups", func() error {
			return s.PutRollups(ctx, []row.Rollup{{Span: row.SpanMinute, Begin: row.SpanMinute.Begin(now), Tag: "a",
				Node: "n", Completed: 1, Late: row.Histogram{{Class: 7, N: 1}}}, {Begin: now, Node: "n",
				Mark: row.Mark{Kind: report.MarkJoined, Name: "é"}}})
		}},
		{"Rollups", func() error {
			return one(s.Rollups(ctx, row.SpanMinute, []string{"a"}, now, now.Add(time.Minute)))
		}},
		{"Rollups", func() error { return one(s.Rollups(ctx, row.SpanMark, nil, now, now.Add(time.Minute))) }},
		{"TrimRollups", func() error { return one(s.TrimRollups(ctx, row.SpanMinute, now.Add(time.Hour), 5)) }},
		{"BeginAudit", func() error {
			return one(s.BeginAudit(ctx, row.AuditEntry{Who: "é", Via: "api", Action: "tag.pause", Tag: "a"}))
		}},
		{"EndAudit", func() error {
			return s.EndAudit(ctx, 1, row.AuditEnd{Outcome: report.AuditFailed, Tasks: 7, Error: "é"})
		}},
		{"AuditEntries", func() error { return one(s.AuditEntries(ctx, "", 9, 5)) }},
		{"AuditEntries", func() error { return one(s.AuditEntries(ctx, "bulk.cancel", 9, 5)) }},
		{"ReportAudit", func() error { return one(s.ReportAudit(ctx, 1, 7, "é")) }},
		{"StopAudit", func() error { return s.StopAudit(ctx, 1) }},
		{"PurgeAudit", func() error { return one(s.PurgeAudit(old(auditTable, "create_time"), now, 5)) }},
		{"Join", func() error { return one(s.Join(ctx, node, time.Second)) }},
		{"Beat", func() error { return one(s.Beat(ctx, node)) }},
		{"Nodes", func() error { return two(s.Nodes(ctx)) }},
		{"Leave", func() error { return s.Leave(ctx, []string{"t"}) }},
		{"Introduce", func() error { return s.Introduce(ctx, row.Process{ID: 9, Name: "n", PID: 1}) }},
		{"Processes", func() error { return one(s.Processes(ctx, []int64{9, -9})) }},
		{"PurgeProcesses", func() error { return one(s.PurgeProcesses(ctx, now, 5)) }},
		{"ReserveRequest", func() error { return two(s.ReserveRequest(ctx, request)) }},
		{"ReserveRequest", func() error { return two(s.ReserveRequest(ctx, request)) }}, // finds the first
		{"SaveRequest", func() error { return s.SaveRequest(ctx, request) }},
		{"PurgeRequests", func() error { return one(s.PurgeRequests(old(requestTable, "create_time"), 5)) }},
		{"CreateSession", func() error { return s.CreateSession(ctx, session, time.Hour) }},
		{"Sessions", func() error { return two(s.Sessions(ctx, [][32]byte{session.Hash, {9}})) }},
		{"DeleteSession", func() error { return s.DeleteSession(ctx, [32]byte{9}) }},
		{"PurgeSessions", func() error { return one(s.PurgeSessions(old(sessionTable, "expire_time"), 5)) }},
		{"CreateToken", func() error { return one(s.CreateToken(ctx, access)) }},
		{"EndBootstrap", func() error { return s.EndBootstrap(ctx) }},
		{"AccessTokens", func() error { return two(s.AccessTokens(ctx)) }},
		{"DeleteToken", func() error { return s.DeleteToken(ctx, "n") }},
		{"SaveReceiver", func() error { return one(s.SaveReceiver(ctx, receiver)) }},
		{"SaveReceiver", func() error { return one(s.SaveReceiver(ctx, receiver)) }}, // is replaced
		{"ReceiverAt", func() error { return two(s.ReceiverAt(ctx, receiver.App, receiver.Address)) }},
		{"Heartbeat", func() error { return one(s.Heartbeat(ctx, 1)) }},
		{"Receiver", func() error { return two(s.Receiver(ctx, 1)) }},
		{"Receivers", func() error { return two(s.Receivers(ctx)) }},
		{"CountReceivers", func() error { return one(s.CountReceivers(ctx)) }},
		{"PurgeReceivers", func() error { return one(s.PurgeReceivers(old(workerTable, "expire_time"))) }},
		{"DeleteReceiver", func() error { return one(s.DeleteReceiver(ctx, 1)) }},
	}
	// Some send nothing, and the version of a file is of SQLite.
	called := map[string]bool{"Close": true, "RoomToRun": true, "HasFileVersion": true, "FileVersion": true}
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
