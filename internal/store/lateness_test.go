package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/row"
)

// By the index alone a server would still read all that a tag ever completed: the window has to bound what it reads.
func TestLatenessOfAWindowReadsNothingBeforeIt(t *testing.T) {
	const completed, within = 1000, 10
	since := row.At(time.Date(2026, 11, 1, 0, 0, completed-within+1, 0, time.UTC))
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, _ := migrated(t, d)
		mustExec(t, db, fmt.Sprintf("INSERT INTO %s (tag, message_body, status, expected_time, execution_time, due_time)"+
			" WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"+
			" SELECT 'a', '', %d, '2026-11-01', '2026-11-01', '2026-11-01' + INTERVAL i SECOND FROM n", table, completed, row.Completed))
		mustExec(t, db, "ANALYZE TABLE "+table)
		conn, err := db.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		read := func() (rows int) {
			var counters []struct {
				Name  string `db:"Variable_name"`
				Value int    `db:"Value"`
			}
			if err := conn.SelectContext(t.Context(), &counters, "SHOW SESSION STATUS LIKE 'Handler_read%'"); err != nil {
				t.Fatal(err)
			}
			for _, c := range counters {
				if c.Name == "Handler_read_next" || c.Name == "Handler_read_prev" {
					rows += c.Value
				}
			}
			return rows
		}
		before, found := read(), 0
		query, args := mysqlDialect.lateness([]string{"a"}, since, 10_000)
		if err := scan(t.Context(), conn, query, args, func(*record) error { found++; return nil }); err != nil {
			t.Fatal(err)
		}
		if n := read() - before; found != within || n > 2*within {
			t.Errorf("found %d rows and read %d, want %d and hardly more", found, n, within)
		}
	})
}

func TestLatenessOfAWindowReadsNothingBeforeItOnSQLite(t *testing.T) {
	db, _ := migrated(t, dbtest.New(t, dbtest.SQLite))
	query, args := sqliteDialect.lateness([]string{"a"}, row.MaxTime, 10_000)
	var plan []struct {
		ID, Parent, NotUsed int
		Detail              string
	}
	if err := db.Select(&plan, "EXPLAIN QUERY PLAN "+query, args...); err != nil {
		t.Fatal(err)
	}
	if len(plan) != 1 || !strings.Contains(plan[0].Detail, "(status=? AND tag=? AND due_time>?)") {
		t.Errorf("the plan is %+v", plan)
	}
}
