package bench

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// filling says what rows a table gets before something is measured on it.
type filling struct {
	tag    string // default: benchTag
	status row.Status
	// due is when the i-th row is or was due. Rows that have run were executed and finished at that moment.
	due func(i int) row.Time
}

const (
	fillConns = 4
	fillRows  = 1000 // of a statement

	// rawExecutor is what the executor of a claimed row looks like.
	rawExecutor = "bench.example.com:12345:J5NCQMUZ3KQ7L4XE:17"
)

// fillColumns are those of a save and, for rows that were claimed or have finished, of that.
const fillColumns = "INSERT INTO delay_task_message (id, tag, message_body, status, version, attempt, max_attempts, " +
	"ttr, ip_address, executor, delay_time, expected_time, execution_time, finish_time, due_time, create_time, " +
	"update_time) VALUES "

// fill inserts n rows as fast as it goes, and returns their ids in ascending order.
func (d *database) fill(ctx context.Context, n int, f filling) ([]int64, error) {
	ids, source := make([]int64, n), rawIDs()
	for i := range ids {
		ids[i] = source.Next()
	}
	err := d.withRaw(ctx, min(fillConns, 1+n/fillRows), func(ctx context.Context, raw *raw) error {
		var next atomic.Int64
		_, err := hammer(ctx, len(raw.conns), forEver, func(ctx context.Context, conn int) (int, error) {
			first := int(next.Add(fillRows)) - fillRows
			if first >= n {
				return 0, nil
			}
			end := min(n, first+fillRows)
			text := []byte(fillColumns)
			for i := first; i < end; i++ {
				if i > first {
					text = append(text, ", "...)
				}
				text = f.appendRow(text, ids[i], f.due(i))
			}
			_, err := raw.conns[conn].ExecContext(ctx, string(text))
			return end - first, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("fill the table with %d rows: %w", n, err)
	}
	return ids, nil
}

// forEver is the span of what ends when there is nothing left to do.
const forEver = time.Duration(1<<63 - 1)

func (f filling) appendRow(text []byte, id int64, due row.Time) []byte {
	moment := "'" + due.String() + "'"
	version, attempt, executor, execution, finish := 0, 0, "''", "NULL", "NULL"
	switch f.status {
	case row.Executing:
		version, attempt, executor = 1, 1, "'"+rawExecutor+"'"
	case row.Completed, row.Failed, row.Cancelled:
		version, attempt, executor, execution, finish = 2, 1, "'"+rawExecutor+"'", moment, moment
	}
	text = append(text, '(')
	text = strconv.AppendInt(text, id, 10)
	return fmt.Appendf(text, ", '%s', '%s', %d, %d, %d, 20, 15000, 0, %s, 0, %s, %s, %s, %[7]s, %[7]s, %[7]s)",
		cmp.Or(f.tag, benchTag), benchBody, f.status, version, attempt, executor, moment, execution, finish)
}

// dueNow makes rows due one after the other from this moment on, a microsecond apart.
func dueNow() func(int) row.Time { return dueFrom(time.Now()) }

// dueFrom makes them due from another moment on.
func dueFrom(t time.Time) func(int) row.Time {
	first := row.At(t)
	return func(i int) row.Time { return first + row.Time(i) }
}

// dueTomorrow makes rows due a millisecond apart, from a day from now on.
func dueTomorrow() func(int) row.Time {
	tomorrow := row.At(time.Now().Add(farDelay))
	return func(i int) row.Time { return tomorrow.Add(time.Duration(i) * time.Millisecond) }
}
