package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

const rollupTable = "delay_task_rollup"

var rollupColumns = []string{
	"span", "bucket", "tag", "node", "completed", "retried", "failed", "lost", "late", "late_max", "mark",
}

// PutRollups implements [store.Rollups].
func (s *Store) PutRollups(ctx context.Context, rows []row.Rollup) error {
	if len(rows) == 0 {
		return nil
	}
	query, args := s.own.putRollups(rows)
	_, err := s.keep.execute(ctx, "write rollups", query, args)
	return err
}

// putRollups replaces whole rows, so it is the same whether a row is there or not.
func (d dialect) putRollups(rows []row.Rollup) (string, []any) {
	var t text
	t.grow(len(rows)*140, len(rows)*4)
	t.write("REPLACE INTO " + rollupTable + " (" + strings.Join(rollupColumns, ", ") + ") VALUES ")
	for i := range rows {
		r := &rows[i]
		if i > 0 {
			t.write(", ")
		}
		t.write("(")
		for n, value := range []any{
			int64(r.Span), r.Begin, r.Tag, r.Node, r.Completed, r.Retried, r.Failed, r.Lost, r.Late.Column(),
			r.Max.Microseconds(), r.Mark.String(),
		} {
			if n > 0 {
				t.write(", ")
			}
			t.value(d.bindText, value)
		}
		t.write(")")
	}
	return t.sql.String(), t.args
}

// rollupRecord is a row of delay_task_rollup.
type rollupRecord struct {
	Bucket    sql.RawBytes `db:"bucket"`
	Tag       sql.RawBytes `db:"tag"`
	Node      sql.RawBytes `db:"node"`
	Completed sql.RawBytes `db:"completed"`
	Retried   sql.RawBytes `db:"retried"`
	Failed    sql.RawBytes `db:"failed"`
	Lost      sql.RawBytes `db:"lost"`
	Late      sql.RawBytes `db:"late"`
	LateMax   sql.RawBytes `db:"late_max"`
	Mark      sql.RawBytes `db:"mark"`
}

// rollup decodes what can be read and leaves the rest zero.
func (r *rollupRecord) rollup(span row.RollupSpan) row.Rollup {
	var d decoder
	count := func(raw []byte) int64 { return d.int("count", raw, 0, math.MaxInt64) }
	const most = int64(math.MaxInt64 / time.Microsecond)
	return row.Rollup{
		Span: span, Begin: d.time("bucket", r.Bucket), Tag: string(r.Tag), Node: string(r.Node),
		Completed: count(r.Completed), Retried: count(r.Retried), Failed: count(r.Failed), Lost: count(r.Lost),
		Late: row.ReadHistogram(r.Late), Max: time.Duration(d.int("late_max", r.LateMax, 0, most)) * time.Microsecond,
		Mark: row.ReadMark(r.Mark),
	}
}

// Rollups implements [store.Rollups].
func (s *Store) Rollups(ctx context.Context, span row.RollupSpan, tags []string, from, to row.Time) (
	found []row.Rollup, err error) {
	const op = "read rollups"
	if from >= to || tags != nil && len(tags) == 0 {
		return nil, nil
	}
	query, args := s.dialect.rollups(span, tags, from, to)
	err = scan(ctx, s.db, query, args, func(r *rollupRecord) error {
		if len(found) == mostRollups {
			return fmt.Errorf("there are more than %d rows: %w", mostRollups, context.DeadlineExceeded)
		}
		found = append(found, r.rollup(span))
		return nil
	})
	return found, classify(op, err)
}

// mostRollups bounds what one read holds in memory. More would also take longer than a page waits.
const mostRollups = 200_000

// mostPlaces bounds the places of the index that a read enters at, one for each bucket and tag.
const mostPlaces = 2000

// rollups names the buckets and tags where these are few. Otherwise it reads all tags, and leaves out the others.
func (d dialect) rollups(span row.RollupSpan, tags []string, from, to row.Time) (string, []any) {
	where, args := []string{fmt.Sprint("t.span = ", int(span))}, []any{}
	buckets := 0
	if span != row.SpanMark {
		from = span.Begin(from + row.Time(span.Length().Microseconds()) - 1)
		buckets = int((to.Sub(from) + span.Length() - 1) / span.Length())
	}
	if tags != nil && buckets > 0 && buckets*len(tags) <= mostPlaces {
		var list text
		for at := from; at < to; at = at.Add(span.Length()) {
			if at > from {
				list.write(", ")
			}
			list.moment(at)
		}
		where = append(where, "t.bucket IN ("+list.sql.String()+")")
	} else {
		where, args = append(where, "t.bucket >= ? AND t.bucket < ?"), append(args, from, to)
	}
	if tags != nil {
		tags = slices.Compact(slices.Sorted(slices.Values(tags)))
		where, args = append(where, "t.tag IN ("+marks(len(tags), d.bindName)+")"), append(args, anys(tags)...)
	}
	columns := []string{d.time("bucket"), d.text("tag"), d.text("node"), "completed", "retried", "failed", "lost",
		d.text("late"), "late_max", d.text("mark")}
	return "SELECT " + strings.Join(columns, ", ") + " FROM " + rollupTable + " AS t" + d.byID + " WHERE " +
		strings.Join(where, " AND ") + " ORDER BY t.span, t.bucket, t.tag, t.node" +
		fmt.Sprintf(" LIMIT %d", mostRollups+1), args
}

// trimBuckets bounds the statements of a trim. A process that writes one bucket a minute can be behind for long.
const trimBuckets = 60

// TrimRollups implements [store.Rollups]. It deletes a whole bucket with each statement: an equal prefix of the primary
// key is looked up whatever the table holds, while MySQL scans an empty table for a range.
func (s *Store) TrimRollups(ctx context.Context, span row.RollupSpan, before row.Time, limit int) (
	deleted int, err error) {
	if limit <= 0 {
		return 0, nil
	}
	err = s.keep.do(ctx, "delete old rollups", func(ctx context.Context, conn *sql.Conn) error {
		var buckets []row.Time
		query, args := s.own.oldRollups(span, before, limit)
		err := scan(ctx, conn, query, args, func(r *rollupRecord) error {
			buckets = append(buckets, new(decoder).time("bucket", r.Bucket))
			return nil
		})
		buckets = slices.Compact(buckets)
		for _, bucket := range buckets[:min(len(buckets), trimBuckets)] {
			if err != nil {
				break
			}
			var n int
			query, args = s.own.deleteRollups(span, bucket)
			n, err = execute(ctx, conn, query, args)
			deleted += n
		}
		return err
	})
	return deleted, err
}

func (d dialect) oldRollups(span row.RollupSpan, before row.Time, limit int) (string, []any) {
	return "SELECT " + d.time("bucket") + " FROM " + rollupTable + " AS t" + d.byID +
		fmt.Sprintf(" WHERE t.span = %d AND t.bucket < ?", span) +
		fmt.Sprintf(" ORDER BY t.span, t.bucket LIMIT %d", limit), []any{before}
}

func (d dialect) deleteRollups(span row.RollupSpan, bucket row.Time) (string, []any) {
	where := fmt.Sprintf(" WHERE t.span = %d AND t.bucket = ?", span)
	return fmt.Sprintf(d.deleteFrom, rollupTable) + where, []any{bucket}
}
