package main

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask/internal/row"
)

// shape is what a table holds before the operations are timed, besides a few overdue rows and ended leases.
type shape struct {
	name string
	tags int // served here
	// fill gives the rows from its share of the rows asked for: what n, counted from 0, becomes. Empty for none.
	share        float64
	tag, status  string
	ageInSeconds string // of the expected time; negative for the future
}

var shapes = []shape{
	{name: "empty", tags: 5},
	{name: "finished history", tags: 5, share: 1,
		tag: "CONCAT('tag-', n % 5)", status: "1", ageInSeconds: "3600 + 2 * n"},
	{name: "overdue rows of a tag that nobody serves", tags: 5, share: 1,
		tag: "'nobody'", status: "0", ageInSeconds: "3600 + n / 100"},
	{name: "300 tags, 9 of 10 rows finished, 1 due tomorrow", tags: 300, share: 0.3,
		tag: "CONCAT('tag-', n % 300)", status: "IF(n DIV 300 % 10 = 9, 0, 1)",
		ageInSeconds: "IF(n DIV 300 % 10 = 9, -86400 - n, 3600 + n)"},
}

// What every table holds beside its shape.
const (
	overdueRows  = 100
	endedLeases  = 20
	rowsPerChunk = 50_000 // small enough for one statement within the timeouts of the store's connections
)

func (s shape) served() []string {
	tags := make([]string, s.tags)
	for i := range tags {
		tags[i] = fmt.Sprint("tag-", i)
	}
	return tags
}

// fill stores the rows of the shape as of now.
func (s shape) fill(ctx context.Context, b *bench, c candidate, rows int, now row.Time) error {
	total := int(s.share * float64(rows))
	for first := 0; first < total; first += rowsPerChunk {
		if err := fill(ctx, b, c, s.tag, s.status, s.ageInSeconds, first, min(total, first+rowsPerChunk), now); err != nil {
			return err
		}
	}
	if err := fill(ctx, b, c, "CONCAT('tag-', n % 5)", "0", "3600", 1_000_000, 1_000_000+overdueRows, now); err != nil {
		return err
	}
	if err := fill(ctx, b, c, "CONCAT('tag-', n % 5)", "3", "60", 2_000_000, 2_000_000+endedLeases, now); err != nil {
		return err
	}
	_, err := b.db.ExecContext(ctx, "ANALYZE TABLE delay_task_message")
	return err
}

const digits = "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4" +
	" UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"

// fill stores one row for each n in [first, end), at most 100,000; its id is n+1.
func fill(ctx context.Context, b *bench, c candidate, tag, status, age string, first, end int, now row.Time) error {
	due := "expected"
	if c.nullWhenFinal {
		due = "IF(status = 1, NULL, expected)"
	}
	numbers := fmt.Sprintf("SELECT %d + a.d + 10*b.d + 100*c.d + 1000*d.d + 10000*e.d AS n FROM"+
		" %[2]s a, %[2]s b, %[2]s c, %[2]s d, %[2]s e", first, digits)
	tasks := fmt.Sprintf("SELECT n, %s AS tag, %s AS status, CAST(? AS DATETIME(6)) - INTERVAL (%s) SECOND AS expected"+
		" FROM (%s) numbers WHERE n < %d", tag, status, age, numbers, end)
	statement := "INSERT INTO delay_task_message" +
		" (id, tag, message_body, status, version, executor, expected_time, execution_time, finish_time, due_time)" +
		" SELECT n + 1, tag, ?, status, IF(status = 1, 2, 0), IF(status = 0, '', 'host:1:token:1'), expected," +
		" IF(status = 1, expected, NULL), IF(status = 1, expected, NULL), " + due + " FROM (" + tasks + ") tasks ORDER BY n"
	_, err := b.db.ExecContext(ctx, statement, body, now)
	return err
}

const body = `{"order":"7d793037-a076-4d4f-8e5b-0c4f2b1a9e11","reason":"not paid in time","amount":"19.90","currency":"EUR"}`
