package bench

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/sqlstore"
)

const (
	singleConns = 64
	batchConns  = 4
	batchRows   = 500

	// More inserts are prepared for a second than two cores can run. On a machine that runs them sooner, the
	// measurement is shorter.
	stockedInserts = 50_000
	stockedRows    = 150_000
	leastStock     = 8 // INSERTs for each connection, however short the measurement
)

var rawInsertSingle = measurement{
	name: "raw.insert_single", quick: true,
	figures: []figure{{"raw.insert_single_per_s",
		"rows by single-row autocommit INSERTs on 64 connections (SQLite: 1)"}},
	takes: func(w workload) time.Duration { return w.warm + w.span + onFreshTakes },
	measure: func(ctx context.Context, r *run) error {
		return r.rawInserts(ctx, "raw.insert_single_per_s", singleConns, 1)
	},
}

var rawInsertBatch = measurement{
	name: "raw.insert_batch", quick: true,
	figures: []figure{{"raw.insert_batch_per_s", "rows by 500-row INSERTs on 4 connections (SQLite: 1)"}},
	takes:   func(w workload) time.Duration { return 2*w.warm + w.span + onFreshTakes },
	measure: func(ctx context.Context, r *run) error {
		return r.rawInserts(ctx, "raw.insert_batch_per_s", batchConns, batchRows)
	},
}

// onFreshTakes is about how long creating and dropping a database takes.
const onFreshTakes = 300 * time.Millisecond

// rawInserts measures INSERTs of so many rows, which are built before the clock starts.
func (r *run) rawInserts(ctx context.Context, key string, conns, rows int) error {
	return r.onFresh(ctx, func(ctx context.Context, d *database) error {
		return d.withRaw(ctx, conns, func(ctx context.Context, raw *raw) error {
			span := r.workload.warm + r.workload.span
			inserts := max(leastStock*conns, int(span.Seconds()*min(stockedInserts, stockedRows/float64(rows))))
			stock, err := raw.stock(ctx, inserts, rows)
			if err != nil {
				return err
			}
			done, err := r.warmed(ctx, len(raw.conns), stock.insert)
			if err == nil {
				r.figures.add(key, done.perSecond())
			}
			return err
		})
	})
}

// stock is prepared INSERTs: whole statements, or the values of a prepared statement, which is faster on SQLite.
type stock struct {
	raw      *raw
	rows     int // of each
	texts    []string
	prepared *sql.Stmt // ends with its connection
	values   [][]any
	next     atomic.Int64
}

// stock builds INSERTs of tasks that are not due soon, each at a moment of its own.
func (r *raw) stock(ctx context.Context, inserts, rows int) (*stock, error) {
	s := &stock{raw: r, rows: rows}
	ids, due := rawIDs(), row.At(time.Now().Add(farDelay))
	if r.kind == sqlstore.SQLite {
		var err error
		if s.prepared, err = r.conns[0].PrepareContext(ctx, insertHead+repeated(rows, insertBinds)); err != nil {
			return nil, fmt.Errorf("prepare an INSERT: %w", err)
		}
		for range inserts {
			values := make([]any, 0, strings.Count(insertBinds, "?")*rows)
			for range rows {
				due++
				moment := due.String()
				values = append(values, ids.Next(), benchBody, moment, moment, moment, moment)
			}
			s.values = append(s.values, values)
		}
		return s, nil
	}
	var text []byte
	for range inserts {
		text = append(text[:0], insertHead...)
		for i := range rows {
			if i > 0 {
				text = append(text, ", "...)
			}
			due++
			text = appendInsert(text, ids.Next(), due)
		}
		s.texts = append(s.texts, string(text))
	}
	return s, nil
}

// insert runs the next INSERT and returns how many rows it stored, 0 when none is left.
func (s *stock) insert(ctx context.Context, conn int) (n int, err error) {
	i := int(s.next.Add(1)) - 1
	switch {
	case i < len(s.texts):
		_, err = s.raw.conns[conn].ExecContext(ctx, s.texts[i])
	case i < len(s.values):
		_, err = s.prepared.ExecContext(ctx, s.values[i]...)
	default:
		return 0, nil
	}
	return s.rows, err
}

const (
	// insertHead names the columns that a save of delaytask writes.
	insertHead = "INSERT INTO delay_task_message (id, tag, task_key, message_body, max_attempts, ttr, priority, " +
		"headers, max_late_ms, late_policy, delay_time, expected_time, due_time, create_time, update_time) VALUES "

	insertTag      = ", '" + benchTag + "', NULL, "
	insertSettings = ", 20, 15000, 0, NULL, 0, 0, 86400000, "
	insertBinds    = "(?" + insertTag + "?" + insertSettings + "?, ?, ?, ?)"
)

func appendInsert(text []byte, id int64, due row.Time) []byte {
	moment := due.String()
	text = append(text, '(')
	text = strconv.AppendInt(text, id, 10)
	text = append(text, insertTag+"'"+benchBody+"'"+insertSettings...)
	return append(text, "'"+moment+"', '"+moment+"', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))"...)
}

func repeated(n int, what string) string {
	return strings.TrimSuffix(strings.Repeat(what+", ", n), ", ")
}
