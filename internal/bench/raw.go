package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/row"
)

const (
	batchConns  = 4
	batchRows   = 500
	updateConns = 2
)

// rawInserts measures INSERTs. They are built before the clock starts: more of them than two cores can run. On a
// machine that has run them sooner, the measurement is shorter.
func rawInserts(name, about string, conns, rows int) Measurement {
	return Measurement{
		Name: name, Quick: true,
		Figures: []Figure{{name + "_per_s", about}, {name + ".p50_ms", "half of these statements took at most"}},
		Measure: Fresh(func(ctx context.Context, r *Runner, d *Database) error {
			n := rows * max(8*conns, r.Count(min(125_000, 375_000/rows)))
			// SQLite is the faster for a prepared statement.
			statements := Filling{From: time.Now().Add(FarDelay)}.inserts(newIDs(n), rows, d.Kind.Embedded())
			done, err := d.run(ctx, conns, r.Warmed, statements)
			r.Add(name+"_per_s", done.PerSecond())
			r.AddPercentiles(name, done.Calls, "p50_ms")
			return err
		}),
	}
}

var rawClaims = rawUpdates("raw.claim_batch",
	"rows claimed by guarded UPDATEs of 500 rows on 2 connections (SQLite: 1)", row.Pending,
	"status = 3, version = version + 1, attempt = attempt + 1, process = %[1]d, claim = 17, due_time = '%[2]s', "+
		"start_time = '%[2]s', update_time = '%[2]s' WHERE version = 0 AND status = 0")

var rawSettles = rawUpdates("raw.settle_batch", "rows completed by the same",
	row.Executing, "status = 1, version = version + 1, attempt = 1, crash_count = 0, error_stack = NULL, "+
		"errors = NULL, process = %[1]d, due_time = '%[2]s', start_time = '%[2]s', "+
		"update_time = '%[2]s' WHERE version = 1 AND status = 3")

// rawUpdates measures UPDATEs of rows that stand at the status. They are built before the clock starts.
func rawUpdates(name, about string, from row.Status, change string) Measurement {
	return Measurement{
		Name: name, Quick: true, Figures: []Figure{{name + "_per_s", about}},
		Measure: Fresh(func(ctx context.Context, r *Runner, d *Database) error {
			ids, err := d.Fill(ctx, r.Count(Tasks), Filling{Status: from, From: time.Now()})
			if err != nil {
				return err
			}
			table := "delay_task_message FORCE INDEX (PRIMARY)"
			if d.Kind.Embedded() {
				table = "delay_task_message NOT INDEXED"
			}
			var statements []statement
			for ids := range slices.Chunk(ids, batchRows) {
				list := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(ids), "[]")), ",")
				text := "UPDATE " + table + " SET " + change + " AND id IN (" + list + ")"
				text = fmt.Sprintf(text, process, row.At(time.Now()))
				statements = append(statements, statement{text: text, rows: len(ids)})
			}
			done, err := d.run(ctx, updateConns, untilDone, statements)
			r.Add(name+"_per_s", done.PerSecond())
			return err
		}),
	}
}

// process is what the process of a claimed row looks like.
const process = 1<<62 + 12345

// What all tasks of measurements have, raw or not.
const (
	Tag      = "bench.task"
	FarDelay = 24 * time.Hour // of tasks that are not to run

	// Body has 100 bytes.
	Body = `{"order":"7d793037-a076-4d4f-8e5b-0c4f2b1a9e11","amount":"199.90","reason":"not paid in 30 minutes"}`
)

// Filling says what rows a table gets. Each is or was due Apart later than the one before, the first at From. Rows that
// have run were executed and finished then.
type Filling struct {
	Tag    string // default: [Tag]
	Status row.Status
	From   time.Time
	Apart  time.Duration // default: a microsecond
}

// Fill inserts n rows as fast as it goes, and returns their ids in ascending order.
func (d *Database) Fill(ctx context.Context, n int, f Filling) ([]int64, error) {
	ids := newIDs(n)
	for part := range slices.Chunk(ids, 50_000) { // which are in memory at once
		if _, err := d.run(ctx, batchConns, untilDone, f.inserts(part, 1000, false)); err != nil {
			return nil, fmt.Errorf("fill the table with %d rows: %w", n, err)
		}
		f.From = f.From.Add(time.Duration(len(part)) * f.apart())
	}
	return ids, nil
}

func (f Filling) apart() time.Duration { return cmp.Or(f.Apart, time.Microsecond) }

// newIDs returns ids like delaytask's own: they ascend.
func newIDs(n int) []int64 {
	ids, source := make([]int64, n), ids.NewSource(ids.RandomNode(), time.Now)
	for i := range ids {
		ids[i] = source.Next()
	}
	return ids
}

// inserts returns INSERTs of so many rows each, with values in the text or bound to it. They have the columns that a
// save writes, and what a claim writes where rows were claimed.
func (f Filling) inserts(ids []int64, rows int, bound bool) (all []statement) {
	columns, values := "", ""
	switch f.Status {
	case row.Pending:
	case row.Executing:
		columns, values = ", status, version, attempt, process, claim", fmt.Sprintf(", 3, 1, 1, %d, 17", process)
	default:
		columns = ", status, version, attempt, process, claim, start_time"
		values = fmt.Sprintf(", %d, 2, 1, %d, 17, %%[2]v", f.Status, process)
	}
	values = "(%[1]v, '" + cmp.Or(f.Tag, Tag) + "', NULL, '" + Body +
		"', 20, 15000, 0, NULL, 0, 0, 86400000, %[2]v, %[2]v, %[2]v, %[2]v" + values + ")"
	due := f.From
	for ids := range slices.Chunk(ids, rows) {
		text := []byte("INSERT INTO delay_task_message (id, tag, task_key, message_body, max_attempts, ttr, " +
			"priority, headers, max_late_ms, late_policy, delay_time, expected_time, due_time, create_time, " +
			"update_time" + columns + ") VALUES ")
		var args []any
		for i, id := range ids {
			if i > 0 {
				text = append(text, ", "...)
			}
			if at := row.At(due).String(); bound {
				text = fmt.Appendf(text, values, "?", "?")
				args = append(args, id, at, at, at, at)
			} else {
				text = fmt.Appendf(text, values, id, "'"+at+"'")
			}
			due = due.Add(f.apart())
		}
		all = append(all, statement{string(text), args, len(ids)})
	}
	return all
}
