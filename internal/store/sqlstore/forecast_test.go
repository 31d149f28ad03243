package sqlstore

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// InnoDB counts a small range. It doubles what it tells of a large one, up to half of the table.
func TestEstimatesOfLargeRangesAreNotDoubled(t *testing.T) {
	start := row.At(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	const hour = 3600 // rows
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db := withNumbers(t, d)
		fill(t, db, table, "tag, message_body, expected_time, due_time",
			"SELECT 'a', '', '2026-11-01', '2026-11-01' + INTERVAL n SECOND FROM numbers")
		for _, other := range []string{"b", "c", "d"} { // MariaDB 11 tells the whole table for a range of half of it
			mustExec(t, db, "INSERT INTO delay_task_message (tag, message_body, expected_time, due_time)"+
				" SELECT '"+other+"', '', '2026-11-01', '2026-11-01' + INTERVAL n SECOND FROM numbers")
		}
		mustExec(t, db, "ANALYZE TABLE delay_task_message")
		s := New(db, MySQL)
		for _, hours := range []int{1, 2, 4} {
			g := row.DueGrid{Tags: []string{"a"}, Now: start, Start: start, Step: time.Duration(hours) * time.Hour,
				Steps: 1}
			counts, known, err := s.EstimateDue(t.Context(), g)
			must(t, err)
			if n := hours * hour; len(counts) != 1 || !known || counts[0].Rows < int64(n*3/4) ||
				counts[0].Rows > int64(n*4/3) {
				t.Errorf("%d rows: got %+v, %v", n, counts, known)
			}
		}
	})
}

func TestACountEndsAtItsLimit(t *testing.T) {
	start := row.At(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	g := row.DueGrid{Tags: []string{"a"}, Now: start, Start: start, Step: time.Minute, Steps: 600}
	check := func(t *testing.T, s *Store, limit time.Duration) {
		t.Helper()
		for n := 0; ; n++ { // a server may be so quick, or notice the limit late
			counts, complete, err := s.CountDue(t.Context(), g, 1e6, limit)
			must(t, err)
			if !complete && len(counts) == 0 {
				break
			}
			if !complete || n == 1000 {
				t.Fatalf("after %v: %d counts, %v", limit, len(counts), complete)
			}
		}
		_, complete, err := s.CountDue(t.Context(), g, 1e6, time.Minute)
		if must(t, err); !complete {
			t.Error("it is not complete after a minute")
		}
	}
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db := withNumbers(t, d)
		fill(t, db, table, "tag, message_body, expected_time, due_time",
			"SELECT 'a', '', '2026-11-01', '2026-11-01' + INTERVAL n SECOND FROM numbers")
		check(t, New(db, MySQL), time.Millisecond)
	})
	t.Run("sqlite", func(t *testing.T) {
		db, _ := migrated(t, dbtest.New(t, dbtest.SQLite))
		mustExec(t, db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)"+
			" INSERT INTO "+table+" (tag, message_body, expected_time, due_time) SELECT 'a', '', due, due FROM ("+
			"SELECT strftime('%Y-%m-%d %H:%M:%f000', '2026-11-01', (i % 36000) || ' seconds') AS due FROM n)")
		check(t, New(db, SQLite), time.Millisecond)
	})
}
