package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

const benchExecutor = "host.example.com:12345:J5NCQMUZ3KQ7L4XE:17"

var benchBody = []byte(strings.Repeat("x", 100))

// AtBatches runs f for batches of several sizes.
func AtBatches(b *testing.B, f func(b *testing.B, n int)) {
	for _, n := range []int{1, 64, 500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { f(b, n) })
	}
}

// atBoth builds statements for both kinds of database.
func atBoth(b *testing.B, f func(b *testing.B, d dialect, n int)) {
	for _, kind := range []Kind{MySQL, SQLite} {
		b.Run(kind.String(), func(b *testing.B) {
			AtBatches(b, func(b *testing.B, n int) { f(b, dialectOf(kind), n) })
		})
	}
}

// BenchRows, as ClaimOf and CompletionsOf, is for the benchmarks on SQLite too, which are outside of this package. The rows are due a microsecond apart.
func BenchRows(first int64, n int) []row.Row {
	now := row.At(time.Now())
	rows := make([]row.Row, n)
	for i := range rows {
		due := now + row.Time(i)
		rows[i] = row.Row{ID: first + int64(i), Tag: "bench", Body: benchBody, MaxAttempts: 20, TTR: 15 * time.Second,
			Expected: due, Due: due}
	}
	return rows
}

func ClaimOf(rows []row.Row) row.Claim {
	c := row.Claim{Executor: benchExecutor}
	for _, r := range rows {
		c.Rows = append(c.Rows, row.Ref{ID: r.ID})
	}
	return c
}

// CompletionsOf are the results of a first attempt, each with times of its own.
func CompletionsOf(rows []row.Row) []row.Change {
	changes := make([]row.Change, len(rows))
	for i, r := range rows {
		finish := r.Due.Add(time.Millisecond)
		changes[i] = row.Change{ID: r.ID, Version: 1, From: row.Executing, To: row.Completed, Due: finish, Attempt: 1,
			Execution: r.Due, Finish: finish, Executor: benchExecutor}
	}
	return changes
}

func BenchmarkBuildInsert(b *testing.B) {
	atBoth(b, func(b *testing.B, d dialect, n int) {
		rows := BenchRows(1, n)
		b.ReportAllocs()
		for b.Loop() {
			d.insert(rows)
		}
	})
}

func BenchmarkBuildClaim(b *testing.B) {
	atBoth(b, func(b *testing.B, d dialect, n int) {
		c := ClaimOf(BenchRows(1, n))
		b.ReportAllocs()
		for b.Loop() {
			d.claim(c)
		}
	})
}

func BenchmarkBuildSettle(b *testing.B) {
	atBoth(b, func(b *testing.B, d dialect, n int) {
		changes := CompletionsOf(BenchRows(1, n))
		b.ReportAllocs()
		for b.Loop() {
			d.update(changes)
		}
	})
}
