package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/row"
)

// planned is a statement and the index by which it has to enter delay_task_message.
type planned struct {
	name  string
	query string
	args  []any
	key   string
}

const (
	dueKey    = "delay_task_message_due"
	activeKey = "delay_task_message_active_key"
)

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
	add("PRIMARY", "settle of all kinds")(d.update([]row.Change{change(7, row.Completed, ""), change(8, row.Failed, "boom"),
		{ID: 9, From: row.Executing, LeaseOver: true, Due: now, Expected: now}}))
	add("PRIMARY", "new body")(d.update([]row.Change{{ID: 7, From: row.Pending, Due: now, Body: []byte("b"), SameExecutor: true}}))
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
	add(dueKey, "backlog, next page")(d.due(row.Window{Tags: []string{"big"}, AfterID: 5, To: now.Add(time.Hour), Limit: 10}))
	add(dueKey, "expired")(d.expired(10), nil)
	add(dueKey, "strays")(d.strays("host:1:", 10))
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

func TestEveryStatementEntersByItsIndex(t *testing.T) {
	sizes := []struct {
		name string
		fill string
	}{
		{"empty", ""},
		{"small", "SELECT n, CONCAT('t', n), n % 5 FROM numbers WHERE n < 30"},
		{"large", "SELECT n, IF(n % 3 = 0, CONCAT('t', n % 300), 'big'), IF(n % 50 = 0, n DIV 50 % 5, 1) FROM numbers"},
		{"large, each status but one rare", "SELECT n, 'big', IF(n % 3000 = 0, n DIV 3000 % 5, 1) FROM numbers"},
		{"large backlog", "SELECT n, IF(n % 3 = 0, CONCAT('t', n % 300), 'big'), IF(n % 50 = 0, n DIV 50 % 5, 0) FROM numbers"},
	}
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, _ := migrated(t, d)
		mustExec(t, db, "CREATE TABLE numbers (n INT PRIMARY KEY)")
		mustExec(t, db, "INSERT INTO numbers"+
			" WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i FROM n")
		mustExec(t, db, "INSERT INTO numbers SELECT a.n * 1000 + b.n + 1 FROM numbers a, numbers b WHERE a.n BETWEEN 1 AND 29")
		for _, size := range sizes {
			t.Run(size.name, func(t *testing.T) {
				mustExec(t, db, "TRUNCATE "+table)
				if size.fill != "" {
					mustExec(t, db, "INSERT INTO "+table+" (id, tag, status, message_body, expected_time) "+
						strings.Replace(size.fill, " FROM", ", '{}', '2026-11-01' + INTERVAL n SECOND FROM", 1))
				}
				mustExec(t, db, "ANALYZE TABLE "+table)
				for _, p := range plannedStatements(mysqlDialect) {
					if keys := explain(t, db, p); !slices.Equal(keys, []string{p.key}) {
						t.Errorf("%s enters by %q, want %s\n%.400s", p.name, keys, p.key, p.query)
					}
				}
			})
		}
	})
}

func TestEveryStatementEntersByItsIndexOnSQLite(t *testing.T) {
	steps := map[string]string{"PRIMARY": "USING INTEGER PRIMARY KEY", dueKey: "INDEX " + dueKey,
		activeKey: "INDEX sqlite_autoindex_"}
	db, _ := migrated(t, dbtest.New(t, dbtest.SQLite))
	for _, p := range plannedStatements(sqliteDialect) {
		var plan []struct {
			ID, Parent, NotUsed int
			Detail              string
		}
		if err := db.Select(&plan, "EXPLAIN QUERY PLAN "+p.query, p.args...); err != nil {
			t.Fatalf("%s: %v\n%s", p.name, err, p.query)
		}
		for _, step := range plan {
			if reads := strings.Contains(step.Detail, " USING "); reads && !strings.Contains(step.Detail, steps[p.key]) &&
				!strings.HasPrefix(step.Detail, "USE TEMP") {
				t.Errorf("%s: %s, want %s", p.name, step.Detail, p.key)
			}
			if step.Detail == "SCAN t" || step.Detail == "SCAN "+table {
				t.Errorf("%s reads the whole table", p.name)
			}
			if strings.HasPrefix(step.Detail, "USE TEMP B-TREE") && !sorts[p.name] {
				t.Errorf("%s sorts: %s", p.name, step.Detail)
			}
		}
	}
}

// explain returns the indexes by which a statement enters the table, each once, or an empty string for none.
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
		if err := rows.MapScan(step); err != nil {
			t.Fatal(err)
		}
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

// sorts names the statements that may sort what they found, because that is little.
var sorts = map[string]bool{
	"window of many tags": true, "expired": true, "strays": true, "find by key": true, "list by finished key": true,
}
