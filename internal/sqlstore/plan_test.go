package sqlstore

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// planned is a statement, and the index by which it must enter its table.
type planned struct {
	name  string
	query string
	args  []any
	key   string
}

const (
	dueKey           = "delay_task_message_due"
	activeKey        = "delay_task_message_active_key"
	requestsByTime   = "delay_task_request_created"
	workersByAddress = "delay_task_worker_address"
)

// sorts names the statements that may sort what they found, because they find few rows.
var sorts = map[string]bool{
	"window of many tags": true, "expired": true, "orphans": true, "find by key": true, "list by finished key": true,
}

func plannedStatements(d dialect) []planned {
	now := row.At(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	one := []row.Ref{{ID: 7}}
	mixed := []row.Ref{{ID: 7}, {ID: 8, Version: 3}, {ID: 9}}
	failed := row.Failed
	change := func(id int64, to row.Status, text string) row.Change {
		return row.Change{ID: id, Version: 1, From: row.Executing, To: to, Due: now.Add(time.Duration(id)),
			ErrorStack: text, Executor: "e"}
	}
	many := make([]string, 300)
	for i := range many {
		many[i] = fmt.Sprint("t", i)
	}
	crowd := make([]row.Ref, 300) // so many that a server would rather read all rows of a rare status
	for i := range crowd {
		crowd[i].ID = int64(i) + 1
	}
	completions := make([]row.Change, 200)
	for i := range completions {
		completions[i] = change(int64(i)+1, row.Completed, "")
		completions[i].Execution = now.Add(time.Duration(i) * time.Millisecond)
	}
	var all []planned
	add := func(key, name string) func(query string, args []any) {
		return func(query string, args []any) { all = append(all, planned{name, query, args, key}) }
	}
	add("PRIMARY", "claim of one")(d.claim(row.Claim{Rows: one, Executor: "e"}))
	add("PRIMARY", "claim of many")(d.claim(row.Claim{Rows: crowd, Executor: "e"}))
	add("PRIMARY", "claim of several versions")(d.claim(row.Claim{Rows: mixed, Executor: "e"}))
	add("PRIMARY", "winners of a claim")(d.winners(row.Claim{Rows: crowd, Executor: "e"}))
	add("PRIMARY", "renewal")(d.renew([]row.Lease{{Ref: one[0], TTR: time.Second}, {Ref: mixed[1], TTR: time.Minute}}))
	add("PRIMARY", "hand-over")(d.renew([]row.Lease{{Ref: one[0], TTR: time.Second, Executor: "pop:e", Execution: now},
		{Ref: mixed[1], TTR: time.Minute}}))
	add("PRIMARY", "settle of one")(d.update([]row.Change{change(7, row.Completed, "")}))
	add("PRIMARY", "settle of completions")(d.update(completions))
	add("PRIMARY", "settle of all kinds")(d.update([]row.Change{
		change(7, row.Completed, ""), change(8, row.Failed, "boom"),
		{ID: 9, From: row.Executing, LeaseOver: true, Due: now, Expected: now}}))
	add("PRIMARY", "new body")(d.update([]row.Change{
		{ID: 7, From: row.Pending, Due: now, Body: []byte("b"), SameExecutor: true}}))
	add("PRIMARY", "adoption")(d.adopt(mixed))
	add("PRIMARY", "discard")(d.discard([]row.Broken{{Ref: one[0], Reason: "a"}, {Ref: mixed[1], Reason: "b"}}))
	add("PRIMARY", "misnumbered")(d.misnumbered(1<<62, 10), nil)
	add("PRIMARY", "renumber")(d.renumber("9223372036854775808", 7), nil)
	add("PRIMARY", "purge")(d.purge(row.Completed, now, []int64{7, 8}))

	add(dueKey, "window")(d.due(row.Window{Tags: []string{"a"}, From: now, To: now.Add(time.Hour), Limit: 10}))
	add(dueKey, "next page")(d.due(row.Window{Tags: []string{"a", "b"}, From: now, AfterID: 5, To: now.Add(time.Hour),
		Limit: 10}))
	add(dueKey, "window of many tags")(d.due(row.Window{Tags: many, From: now, To: now.Add(time.Second), Limit: 10}))
	add(dueKey, "backlog")(d.due(row.Window{Tags: []string{"big", "b"}, To: now.Add(time.Hour), Limit: 10}))
	add(dueKey, "backlog, next page")(d.due(row.Window{
		Tags: []string{"big"}, AfterID: 5, To: now.Add(time.Hour), Limit: 10}))
	add(dueKey, "expired")(d.expired(10), nil)
	add(dueKey, "orphans")(d.orphans("host:1:", 10))
	add(dueKey, "oldest per tag")(d.oldest, []any{int64(row.Completed)})
	add(dueKey, "purgeable")(d.purgeable(row.Completed, "big", now, 10))
	add(dueKey, "counts")(d.counts(table+".tag"), nil)
	add(dueKey, "lateness")(d.lateness([]string{"a", "big"}, 0, 10))
	add(dueKey, "lateness of a window")(d.lateness([]string{"big"}, now, 10_000))
	add(dueKey, "lateness of a short window")(d.lateness([]string{"big"}, now.Add(8*time.Hour), 10_000))
	add(activeKey, "find by key")(d.findActive([]row.TagKey{{Tag: "a", Key: "k"}, {Tag: "b", Key: "k"}}))
	add(dueKey, "list by finished key")(d.list(row.Filter{Tag: "a", Key: "k", Status: &failed, Limit: 5}, false))
	return all
}

// plannedServiceStatements lists the statements on tables that may be large. They name rows of the large tables below.
// Tokens and live receivers are few, and read whole.
func plannedServiceStatements(d dialect) []planned {
	var all []planned
	add := func(key, name string) func(query string, args []any) {
		return func(query string, args []any) { all = append(all, planned{name, query, args, key}) }
	}
	hash := func(i int) [32]byte { return sha256.Sum256([]byte(strconv.Itoa(i))) }
	many := make([]string, 300)
	for i := range many {
		many[i] = hexed(hash(19_000 + i))
	}
	w := row.Receiver{App: "a", Address: "7"}
	add("PRIMARY", "find a request")(d.findRequest(hash(7)))
	add("PRIMARY", "save of a request")(d.saveRequest(hash(7), 7, true))
	add("PRIMARY", "purge of one request")(d.purgeRequests(many[:1]))
	add("PRIMARY", "purge of many requests")(d.purgeRequests(many))
	add(requestsByTime, "old requests")(d.oldRequests(500))
	add("PRIMARY", "delete of a token")(d.deleteToken("7"))
	add(workersByAddress, "find a receiver")(d.findReceiver(w))
	add("PRIMARY", "one receiver")(d.receiverByID(7))
	add("PRIMARY", "replacement of a receiver")(d.updateReceiver(7, w, "[]"))
	add("PRIMARY", "heartbeat")(d.heartbeat(7))
	add("PRIMARY", "delete of a receiver")(d.deleteReceiver(7))
	add("PRIMARY", "purge of receivers")(d.purgeReceivers([]int64{7, 8}))
	return all
}

func TestEveryStatementEntersByItsIndex(t *testing.T) {
	sizes := map[string]string{
		"empty": "SELECT n, 't', 0 FROM numbers WHERE n < 0",
		"small": "SELECT n, CONCAT('t', n), n % 5 FROM numbers WHERE n < 30",
		"large": "SELECT n, IF(n % 3 = 0, CONCAT('t', n % 300), 'big'), " +
			"IF(n % 50 = 0, n DIV 50 % 5, 1) FROM numbers",
		"large, each status but one rare": "SELECT n, 'big', IF(n % 3000 = 0, n DIV 3000 % 5, 1) FROM numbers",
		"large backlog": "SELECT n, IF(n % 3 = 0, CONCAT('t', n % 300), 'big'), " +
			"IF(n % 50 = 0, n DIV 50 % 5, 0) FROM numbers",
	}
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db := withNumbers(t, d)
		for size, from := range sizes {
			fill(t, db, table, "id, tag, status, message_body, expected_time",
				strings.Replace(from, " FROM", ", '{}', '2026-11-01' + INTERVAL n SECOND FROM", 1))
			for _, p := range plannedStatements(mysqlDialect) {
				if keys := explain(t, db, p); !slices.Equal(keys, []string{p.key}) {
					t.Errorf("%s: %s enters by %q, want %s\n%.400s", size, p.name, keys, p.key, p.query)
				}
			}
		}
	})
	t.Run("sqlite", func(t *testing.T) {
		entersOnSQLite(t, plannedStatements(sqliteDialect), map[string]string{
			"PRIMARY": "USING INTEGER PRIMARY KEY", dueKey: "INDEX " + dueKey, activeKey: "INDEX sqlite_autoindex_"})
	})
}

// A read may scan an empty or small table, but a write locks what it scans. When a unique key finds no row, a server
// knows it while planning, and the plan enters no table.
func TestEveryServiceStatementEntersByItsIndex(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db := withNumbers(t, d)
		for _, size := range []int{0, 20, 20_000} {
			const hash = "UNHEX(SHA2(n, 256))"
			rows := fmt.Sprintf(" FROM numbers WHERE n < %d", size)
			fill(t, db, requestTable, "hash, content, task_id, create_time", // a tenth of the large table is old
				"SELECT "+hash+", "+hash+", n, UTC_TIMESTAMP(6) - INTERVAL n * 5 SECOND"+rows)
			fill(t, db, tokenTable, "name, hash, tags, verbs", "SELECT n, "+hash+", '[]', '[]'"+rows)
			fill(t, db, workerTable, "id, app, address, address_hash, tags, ttl, expire_time",
				"SELECT n + 1, 'a', n, "+hash+", '[]', 30000, UTC_TIMESTAMP(6) - INTERVAL n % 2 DAY"+rows)
			for _, p := range plannedServiceStatements(mysqlDialect.onOwnSession()) {
				keys := explain(t, db, p)
				through := strings.HasPrefix(p.query, "SELECT") && slices.Equal(keys, []string{""})
				small := size < 1000 && (through || len(keys) == 0)
				if !slices.Equal(keys, []string{p.key}) && !small {
					t.Errorf("%d rows: %s enters by %q, want %s\n%.400s", size, p.name, keys, p.key, p.query)
				}
			}
		}
	})
	t.Run("sqlite", func(t *testing.T) {
		entersOnSQLite(t, plannedServiceStatements(sqliteDialect.onOwnSession()), map[string]string{
			"PRIMARY": "PRIMARY KEY", requestsByTime: "INDEX " + requestsByTime,
			workersByAddress: "INDEX sqlite_autoindex_"})
	})
}

// withNumbers connects to a migrated database that has a table of numbers.
func withNumbers(t *testing.T, d dbtest.Database) *sqlx.DB {
	t.Helper()
	db, _ := migrated(t, d)
	mustExec(t, db, "CREATE TABLE numbers (n INT PRIMARY KEY)")
	mustExec(t, db, "INSERT INTO numbers"+
		" WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i FROM n")
	mustExec(t, db, "INSERT INTO numbers SELECT a.n * 1000 + b.n FROM numbers a, numbers b WHERE a.n BETWEEN 1 AND 29")
	return db
}

func fill(t *testing.T, db *sqlx.DB, table, columns, from string) {
	t.Helper()
	mustExec(t, db, "TRUNCATE "+table)
	mustExec(t, db, "INSERT INTO "+table+" ("+columns+") "+from)
	mustExec(t, db, "ANALYZE TABLE "+table)
}

func entersOnSQLite(t *testing.T, statements []planned, steps map[string]string) {
	t.Helper()
	db, _ := migrated(t, dbtest.New(t, dbtest.SQLite))
	for _, p := range statements {
		entered := false
		for _, step := range sqlitePlan(t, db, p.query, p.args) {
			byKey, sort := strings.Contains(step, steps[p.key]), strings.HasPrefix(step, "USE TEMP")
			entered = entered || byKey
			if strings.Contains(step, " USING ") && !byKey && !sort {
				t.Errorf("%s: %s, want %s", p.name, step, p.key)
			}
			if strings.HasPrefix(step+" ", "SCAN t ") || strings.HasPrefix(step, "SCAN delay_task") && !byKey {
				t.Errorf("%s reads the whole table: %s", p.name, step)
			}
			if sort && !sorts[p.name] {
				t.Errorf("%s sorts: %s", p.name, step)
			}
		}
		if !entered {
			t.Errorf("%s does not enter by %s", p.name, p.key)
		}
	}
}

func sqlitePlan(t *testing.T, db *sqlx.DB, query string, args []any) (steps []string) {
	t.Helper()
	var plan []struct {
		ID, Parent, NotUsed int
		Detail              string
	}
	if err := db.Select(&plan, "EXPLAIN QUERY PLAN "+query, args...); err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	for _, step := range plan {
		steps = append(steps, step.Detail)
	}
	return steps
}

// explain returns the indexes by which a statement enters the table, each once. An empty string stands for none.
func explain(t *testing.T, db *sqlx.DB, p planned) []string {
	t.Helper()
	rows, err := db.Queryx("EXPLAIN FORMAT=TRADITIONAL "+p.query, p.args...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", p.name, err, p.query)
	}
	defer rows.Close()
	var keys []string
	for rows.Next() {
		step := make(map[string]any)
		must(t, rows.MapScan(step))
		if name := fmt.Sprintf("%s", step["table"]); name != table && name != "t" {
			continue
		}
		key, _ := step["key"].([]byte)
		keys = append(keys, string(key))
		if extra := fmt.Sprintf("%s", step["Extra"]); strings.Contains(extra, "filesort") && !sorts[p.name] {
			t.Errorf("%s sorts: %s", p.name, extra)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// The index alone would read all that a tag ever completed. The window has to bound what is read.
func TestLatenessOfAWindowReadsNothingBeforeIt(t *testing.T) {
	const completed, within = 1000, 10
	since := row.At(time.Date(2026, 11, 1, 0, 0, completed-within+1, 0, time.UTC))
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db := withNumbers(t, d)
		fill(t, db, table, "tag, message_body, status, expected_time, execution_time, due_time", fmt.Sprintf(
			"SELECT 'a', '', %d, '2026-11-01', '2026-11-01', '2026-11-01' + INTERVAL n SECOND FROM numbers"+
				" WHERE n <= %d", row.Completed, completed))
		conn, err := db.Connx(t.Context())
		must(t, err)
		defer conn.Close()
		read := func() (rows int) {
			var counters []struct {
				Name  string `db:"Variable_name"`
				Value int    `db:"Value"`
			}
			must(t, conn.SelectContext(t.Context(), &counters,
				"SHOW SESSION STATUS WHERE Variable_name IN ('Handler_read_next', 'Handler_read_prev')"))
			for _, c := range counters {
				rows += c.Value
			}
			return rows
		}
		before, found := read(), 0
		query, args := mysqlDialect.lateness([]string{"a"}, since, 10_000)
		must(t, scan(t.Context(), conn, query, args, func(*record) error { found++; return nil }))
		if n := read() - before; found != within || n > 2*within {
			t.Errorf("found %d rows and read %d, want %d and hardly more", found, n, within)
		}
	})
	t.Run("sqlite", func(t *testing.T) {
		db, _ := migrated(t, dbtest.New(t, dbtest.SQLite))
		query, args := sqliteDialect.lateness([]string{"a"}, row.MaxTime, 10_000)
		steps := sqlitePlan(t, db, query, args)
		if len(steps) != 1 || !strings.Contains(steps[0], "(status=? AND tag=? AND due_time>?)") {
			t.Errorf("the plan is %q", steps)
		}
	})
}
