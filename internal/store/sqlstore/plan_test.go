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

const (
	requestsByTime   = "delay_task_request_created"
	workersByAddress = "delay_task_worker_address"
	sessionsByEnd    = "delay_task_session_expires"
)

// sorts names the statements that may sort what they found, because they find few rows.
var sorts = map[string]bool{
	"window of many tags": true, "expired": true, "orphans": true, "find by key": true, "list by finished key": true,
	"open runs": true,
}

// plannedServiceStatements lists the statements on tables that may be large. They name rows of the large tables below.
// Tokens and live receivers are few, and read whole.
func plannedServiceStatements(d dialect) (all plan) {
	add := all.add
	hash := func(i int) [32]byte { return sha256.Sum256([]byte(strconv.Itoa(i))) }
	many := make([]string, 300)
	for i := range many {
		many[i] = hexed(hash(19_000 + i))
	}
	w := row.Receiver{App: "a", Address: "7"}
	add("PRIMARY", "find a request", d.findRequest(hash(7)))
	add("PRIMARY", "save of a request", d.saveRequest(row.Request{Hash: hash(7), TaskID: 7, Duplicate: true}))
	add("PRIMARY", "purge of one request", d.purgeRequests(many[:1]))
	add("PRIMARY", "purge of many requests", d.purgeRequests(many))
	add(requestsByTime, "old requests", d.oldRequests(nil, 500))
	add("PRIMARY", "find a session", d.findSessions([][32]byte{hash(7)}))
	add("PRIMARY", "find sessions", d.findSessions([][32]byte{hash(7), hash(8), hash(9)}))
	add("PRIMARY", "delete of a session", d.deleteSession(hash(7)))
	add("PRIMARY", "purge of one session", d.purgeSessions(many[:1]))
	add("PRIMARY", "purge of many sessions", d.purgeSessions(many))
	add(sessionsByEnd, "old sessions", d.oldSessions(nil, 500))
	add("PRIMARY", "delete of a token", d.deleteToken("7"))
	add("PRIMARY", "end of a bootstrap token", d.revokeBootstrap("7"))
	add("PRIMARY", "end of all bootstrap tokens", d.endBootstrap())
	add(workersByAddress, "find a receiver", d.findReceiver(w))
	add("PRIMARY", "one receiver", d.receiverByID(7))
	add("PRIMARY", "replacement of a receiver", d.updateReceiver(7, w, "[]"))
	add("PRIMARY", "heartbeat", d.heartbeat(7))
	add("PRIMARY", "delete of a receiver", d.deleteReceiver(7))
	add("PRIMARY", "purge of receivers", d.purgeReceivers([]int64{7, 8}))
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
				keys := explain(t, db, p)
				// The server has looked for one key by a unique index while it planned.
				noRow := len(keys) == 0 && strings.Contains(p.query, "active_key = ")
				if !slices.Equal(keys, []string{p.key}) && !noRow {
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

func TestEveryStatementOnSchedulesEntersByItsIndex(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db := withNumbers(t, d)
		for _, size := range []int{0, 20, 20_000} {
			rows := fmt.Sprintf(" FROM numbers WHERE n < %d", size)
			fill(t, db, scheduleTable, "id, name, owner, definition, spec, tag, look_time",
				"SELECT n + 1, CONCAT('s', n), 'o', UNHEX(SHA2(n, 256)), '@daily', 't',"+
					" IF(n % 10 = 0, NULL, '2026-11-01' + INTERVAL n SECOND)"+rows)
			fill(t, db, runTable, "schedule_id, tick, cause, until_tick, outcome",
				"SELECT n % 50, '2026-11-01' + INTERVAL n SECOND, 0, '2026-11-01', IF(n % 100 = 0, 0, 1)"+rows)
			for _, p := range plannedScheduleStatements(mysqlDialect) {
				keys := explain(t, db, p)
				// The server has looked for a row by its whole key while it planned.
				noRow := len(keys) == 0 && p.key == primary
				if !slices.Equal(keys, []string{p.key}) && !noRow {
					t.Errorf("%d rows: %s enters by %q, want %s\n%.400s", size, p.name, keys, p.key, p.query)
				}
			}
		}
		conn, err := db.Connx(t.Context())
		must(t, err)
		defer conn.Close()
		before := rowsRead(t, conn)
		_, err = readTexts(t.Context(), conn, mysqlDialect.tagsAndLook())
		must(t, err)
		if n := rowsRead(t, conn) - before; n > 100 { // the counters are read as well
			t.Errorf("the first look of 20,000 schedules reads %d entries of indexes, want few", n)
		}
	})
	t.Run("sqlite", func(t *testing.T) {
		entersOnSQLite(t, plannedScheduleStatements(sqliteDialect), map[string]string{
			primary: "PRIMARY KEY", lookKey: "INDEX " + lookKey, nameKey: "INDEX " + nameKey,
			outcomeKey: "INDEX " + outcomeKey})
		db, _ := migrated(t, dbtest.New(t, dbtest.SQLite))
		steps := sqlitePlan(t, db, sqliteDialect.tagsAndLook(), nil)
		if !slices.Contains(steps, "SEARCH "+scheduleTable+" USING COVERING INDEX "+lookKey) {
			t.Errorf("the first look is found by %q", steps)
		}
	})
}

func TestEveryStatementOnRollupsEntersByItsIndex(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db := withNumbers(t, d)
		for _, size := range []int{0, 20, 20_000} {
			fill(t, db, rollupTable, "span, bucket, tag, node",
				"SELECT IF(n % 10 = 0, 60, 1), '2026-11-01' + INTERVAL n DIV 200 MINUTE, CONCAT('t', n % 200), 'n'"+
					fmt.Sprintf(" FROM numbers WHERE n < %d", size))
			for _, p := range plannedRollupStatements(mysqlDialect) {
				if keys := explain(t, db, p); !slices.Equal(keys, []string{primary}) {
					t.Errorf("%d rows: %s enters by %q, want %s\n%.400s", size, p.name, keys, p.key, p.query)
				}
			}
		}
	})
	t.Run("sqlite", func(t *testing.T) {
		entersOnSQLite(t, plannedRollupStatements(sqliteDialect), map[string]string{primary: "PRIMARY KEY"})
	})
}

func TestEveryStatementOnTheAuditLogEntersByItsIndex(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db := withNumbers(t, d)
		for _, size := range []int{0, 20, 20_000} {
			fill(t, db, auditTable, "action", fmt.Sprintf("SELECT IF(n %% 1000 = 7, 'bulk.cancel', 'task.cancel')"+
				" FROM numbers WHERE n < %d", size))
			for _, p := range plannedAuditStatements(mysqlDialect) {
				if keys := explain(t, db, p); size > 0 && !slices.Equal(keys, []string{p.key}) {
					t.Errorf("%d rows: %s enters by %q, want %s\n%.400s", size, p.name, keys, p.key, p.query)
				}
			}
		}
	})
	t.Run("sqlite", func(t *testing.T) {
		entersOnSQLite(t, plannedAuditStatements(sqliteDialect), map[string]string{primary: "PRIMARY KEY",
			actionKey: "INDEX " + actionKey})
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
			fill(t, db, sessionTable, "hash, token, token_hash, expire_time",
				"SELECT "+hash+", 'a', "+hash+", UTC_TIMESTAMP(6) + INTERVAL 18000 - n MINUTE"+rows)
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
			workersByAddress: "INDEX sqlite_autoindex_", sessionsByEnd: "INDEX " + sessionsByEnd})
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

// explain returns the indexes that a statement enters the table by, each once. An empty string means no index.
func explain(t *testing.T, db *sqlx.DB, p planned) []string {
	t.Helper()
	keys, sorted, err := mysqlExplain(t.Context(), db.DB, p)
	if err != nil {
		t.Fatalf("%s: %v\n%s", p.name, err, p.query)
	}
	if sorted && !sorts[p.name] {
		t.Errorf("%s sorts", p.name)
	}
	return keys
}

// rowsRead returns how many entries of indexes the connection has read so far.
func rowsRead(t *testing.T, conn *sqlx.Conn) (rows int) {
	t.Helper()
	var counters []struct {
		Name  string `db:"Variable_name"`
		Value int    `db:"Value"`
	}
	must(t, conn.SelectContext(t.Context(), &counters, "SHOW SESSION STATUS WHERE Variable_name IN "+
		"('Handler_read_first', 'Handler_read_key', 'Handler_read_last', 'Handler_read_next', 'Handler_read_prev')"))
	for _, c := range counters {
		rows += c.Value
	}
	return rows
}

// Every process asks for them every few seconds, also when a tag has a long backlog, and others have many tags.
func TestAReadTakesAStepForEachTagThatItIsAbout(t *testing.T) {
	const tags = 50
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db := withNumbers(t, d)
		fill(t, db, table, "tag, message_body, expected_time, due_time", fmt.Sprintf(
			"SELECT CONCAT('t', n %% %d), '', '2026-11-01', '2026-11-01' + INTERVAL n SECOND FROM numbers", tags))
		conn, err := db.Connx(t.Context())
		must(t, err)
		defer conn.Close()
		for _, of := range []struct {
			query      clause
			want, most int
		}{
			{clause{mysqlDialect.oldest, []any{int64(row.Pending)}}, tags, 10 * tags},
			{mysqlDialect.expired([]string{"t7"}, 10), 0, 10},
			{mysqlDialect.orphans([]string{"t7", "t8"}, []int64{1}, 10), 0, 10},
		} {
			before, count := rowsRead(t, conn), 0
			must(t, read(t.Context(), conn, of.query, tasks, func(*found[row.Row]) { count++ }))
			if n := rowsRead(t, conn) - before; count != of.want || n > of.most {
				t.Errorf("%s\nfound %d rows in 29,000 of %d tags and read %d, want %d and at most %d",
					of.query.sql, count, tags, n, of.want, of.most)
			}
		}
	})
}

// The index alone would read all that a tag ever completed. The window has to bound what is read.
func TestLatenessOfAWindowReadsNothingBeforeIt(t *testing.T) {
	const completed, within = 1000, 10
	since := row.At(time.Date(2026, 11, 1, 0, 0, completed-within+1, 0, time.UTC))
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db := withNumbers(t, d)
		fill(t, db, table, "tag, message_body, status, expected_time, start_time, due_time", fmt.Sprintf(
			"SELECT 'a', '', %d, '2026-11-01', '2026-11-01', '2026-11-01' + INTERVAL n SECOND FROM numbers"+
				" WHERE n <= %d", row.Completed, completed))
		conn, err := db.Connx(t.Context())
		must(t, err)
		defer conn.Close()
		before, count := rowsRead(t, conn), 0
		query := mysqlDialect.lateness([]string{"a"}, since, 10_000)
		must(t, read(t.Context(), conn, query, tasks, func(*found[row.Row]) { count++ }))
		if n := rowsRead(t, conn) - before; count != within || n > 2*within {
			t.Errorf("found %d rows and read %d, want %d and hardly more", count, n, within)
		}
	})
	t.Run("sqlite", func(t *testing.T) {
		db, _ := migrated(t, dbtest.New(t, dbtest.SQLite))
		query := sqliteDialect.lateness([]string{"a"}, row.MaxTime, 10_000)
		steps := sqlitePlan(t, db, query.sql, query.args)
		if len(steps) != 1 || !strings.Contains(steps[0], "(tag=? AND status=? AND due_time>?)") {
			t.Errorf("the plan is %q", steps)
		}
	})
}
