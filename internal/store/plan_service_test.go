package store

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/row"
)

const (
	requestsByTime   = "delay_task_request_created"
	workersByAddress = "delay_task_worker_address"
)

// plannedServiceStatements are those that find rows in a table that may be large, and name rows of the large tables below.
// Tokens and live workers are few, and read whole.
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
	w := row.Worker{App: "a", Address: "7"}
	add("PRIMARY", "find a request")(d.findRequest(hash(7)))
	add("PRIMARY", "save of a request")(d.saveRequest(hash(7), 7, true))
	add("PRIMARY", "purge of one request")(d.purgeRequests(many[:1]))
	add("PRIMARY", "purge of many requests")(d.purgeRequests(many))
	add(requestsByTime, "old requests")(d.oldRequests(500))
	add("PRIMARY", "delete of a token")(d.deleteToken("7"))
	add(workersByAddress, "find a worker")(d.findWorker(w))
	add("PRIMARY", "one worker")(d.workerByID(7))
	add("PRIMARY", "replacement of a worker")(d.updateWorker(7, w, "[]"))
	add("PRIMARY", "heartbeat")(d.heartbeat(7))
	add("PRIMARY", "delete of a worker")(d.deleteWorker(7))
	add("PRIMARY", "purge of workers")(d.purgeWorkers([]int64{7, 8}))
	return all
}

// A read of an empty or small table may go through it; a write locks what it goes through. Where a row is looked for by a
// unique key and is not there, a server finds that out while it plans, and there is no step that enters a table.
func TestEveryServiceStatementEntersByItsIndex(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, _ := migrated(t, d)
		for _, size := range []int{0, 20, 20_000} {
			t.Run(fmt.Sprint(size, " rows"), func(t *testing.T) {
				n := fmt.Sprintf(" WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99),"+
					" many(i) AS (SELECT a.i * 10000 + b.i * 100 + c.i FROM n a, n b, n c WHERE a.i < 2)"+
					" SELECT %%s FROM many WHERE i < %d", size)
				fill := func(table, columns, values string) {
					mustExec(t, db, "TRUNCATE "+table)
					mustExec(t, db, "INSERT INTO "+table+" ("+columns+")"+fmt.Sprintf(n, values))
					mustExec(t, db, "ANALYZE TABLE "+table)
				}
				hash := "UNHEX(SHA2(i, 256))"
				fill(requestTable, "hash, content, task_id, create_time",
					hash+", "+hash+", i, UTC_TIMESTAMP(6) - INTERVAL i * 5 SECOND") // a tenth of the large table is old
				fill(tokenTable, "name, hash, tags, verbs", "i, "+hash+", '[]', '[]'")
				fill(workerTable, "id, app, address, address_hash, tags, ttl, expire_time",
					"i + 1, 'a', i, "+hash+", '[]', 30000, UTC_TIMESTAMP(6) - INTERVAL i % 2 DAY")
				for _, p := range plannedServiceStatements(mysqlDialect.onOwnSession()) {
					keys := explain(t, db, p)
					through := strings.HasPrefix(p.query, "SELECT") && slices.Equal(keys, []string{""})
					small := size < 1000 && (through || len(keys) == 0)
					if !slices.Equal(keys, []string{p.key}) && !small {
						t.Errorf("%s enters by %q, want %s\n%.400s", p.name, keys, p.key, p.query)
					}
				}
			})
		}
	})
}

func TestEveryServiceStatementEntersByItsIndexOnSQLite(t *testing.T) {
	steps := map[string]string{"PRIMARY": "PRIMARY KEY", requestsByTime: "INDEX " + requestsByTime,
		workersByAddress: "INDEX sqlite_autoindex_"}
	db, _ := migrated(t, dbtest.New(t, dbtest.SQLite))
	for _, p := range plannedServiceStatements(sqliteDialect.onOwnSession()) {
		var plan []struct {
			ID, Parent, NotUsed int
			Detail              string
		}
		if err := db.Select(&plan, "EXPLAIN QUERY PLAN "+p.query, p.args...); err != nil {
			t.Fatalf("%s: %v\n%s", p.name, err, p.query)
		}
		entered := false
		for _, step := range plan {
			entered = entered || strings.HasPrefix(step.Detail, "SEARCH t") && strings.Contains(step.Detail, steps[p.key])
			if strings.Contains(step.Detail, "SCAN t") || strings.HasPrefix(step.Detail, "USE TEMP") {
				t.Errorf("%s: %s", p.name, step.Detail)
			}
		}
		if !entered {
			t.Errorf("%s enters by %+v, want %s", p.name, plan, p.key)
		}
	}
}
