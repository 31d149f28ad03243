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

var rollups = newTable(rollupTable,
	integer("span", 0, math.MaxInt16, func(r *row.Rollup) *row.RollupSpan { return &r.Span }),
	moment("bucket", func(r *row.Rollup) *row.Time { return &r.Begin }),
	chars("tag", func(r *row.Rollup) *string { return &r.Tag }),
	chars("node", func(r *row.Rollup) *string { return &r.Node }),
	integer("completed", 0, math.MaxInt64, func(r *row.Rollup) *int64 { return &r.Completed }),
	integer("retried", 0, math.MaxInt64, func(r *row.Rollup) *int64 { return &r.Retried }),
	integer("failed", 0, math.MaxInt64, func(r *row.Rollup) *int64 { return &r.Failed }),
	integer("lost", 0, math.MaxInt64, func(r *row.Rollup) *int64 { return &r.Lost }),
	column[row.Rollup]{
		name: "late", form: aText, value: func(r *row.Rollup) any { return r.Late.Column() },
		decode: func(_ *decoder, r *row.Rollup, raw []byte) { r.Late = row.ReadHistogram(raw) },
	},
	column[row.Rollup]{
		name: "late_max", form: aNumber, value: func(r *row.Rollup) any { return r.Max.Microseconds() },
		decode: func(d *decoder, r *row.Rollup, raw []byte) {
			const most = int64(math.MaxInt64 / time.Microsecond)
			r.Max = time.Duration(d.int("late_max", raw, 0, most)) * time.Microsecond
		},
	},
	column[row.Rollup]{
		name: "mark", form: aText, value: func(r *row.Rollup) any { return r.Mark.String() },
		decode: func(_ *decoder, r *row.Rollup, raw []byte) { r.Mark = row.ReadMark(raw) },
	},
)

// PutRollups implements [store.Rollups].
func (s *Store) PutRollups(ctx context.Context, rows []row.Rollup) error {
	if len(rows) == 0 {
		return nil
	}
	return s.lanes[chores].write(ctx, "write rollups", s.own.putRollups(rows))
}

// putRollups replaces whole rows, so it is the same whether a row is there or not.
func (d dialect) putRollups(rows []row.Rollup) clause {
	var t text
	t.grow(len(rows)*140, len(rows)*4)
	insertAll(&t, "REPLACE", d, rollups, rows)
	return clause{t.sql.String(), t.args}
}

// Rollups implements [store.Rollups].
func (s *Store) Rollups(ctx context.Context, span row.RollupSpan, tags []string, from, to row.Time) (
	rows []row.Rollup, err error) {
	if from >= to || tags != nil && len(tags) == 0 {
		return nil, nil
	}
	err = read(ctx, s.db, s.dialect.rollups(span, tags, from, to), rollups, func(f *found[row.Rollup]) {
		f.row.Span = span
		rows = append(rows, f.row) // what cannot be read is zero
	})
	if err == nil && len(rows) > mostRollups {
		err = fmt.Errorf("there are more than %d rows: %w", mostRollups, context.DeadlineExceeded)
	}
	return rows, classify("read rollups", err)
}

// mostRollups bounds what one read holds in memory. More would also take longer than a page waits.
const mostRollups = 200_000

// mostPlaces bounds the places of the index that a read enters at, one for each bucket and tag.
const mostPlaces = 2000

// rollups names the buckets and tags where these are few. Otherwise it reads all tags, and leaves out the others.
func (d dialect) rollups(span row.RollupSpan, tags []string, from, to row.Time) clause {
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
		tags = row.Distinct(tags)
		where, args = append(where, "t.tag IN ("+marks(len(tags), d.bindName)+")"), append(args, anys(tags)...)
	}
	return clause{"SELECT " + selectList(d, "", rollups.columns[1:]) + " FROM " + rollupTable + " AS t" + d.byID +
		" WHERE " + strings.Join(where, " AND ") + " ORDER BY t.span, t.bucket, t.tag, t.node" +
		fmt.Sprintf(" LIMIT %d", mostRollups+1), args}
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
	err = s.lanes[chores].do(ctx, "delete old rollups", func(ctx context.Context, conn *sql.Conn) error {
		var buckets []row.Time
		err := read(ctx, conn, s.own.oldRollups(span, before, limit), rollups, func(f *found[row.Rollup]) {
			buckets = append(buckets, f.row.Begin)
		})
		buckets = slices.Compact(buckets)
		for _, bucket := range buckets[:min(len(buckets), trimBuckets)] {
			if err != nil {
				break
			}
			var n int
			n, err = execute(ctx, conn, s.own.deleteRollups(span, bucket))
			deleted += n
		}
		return err
	})
	return deleted, err
}

func (d dialect) oldRollups(span row.RollupSpan, before row.Time, limit int) clause {
	return clause{"SELECT " + d.time("bucket") + " FROM " + rollupTable + " AS t" + d.byID +
		fmt.Sprintf(" WHERE t.span = %d AND t.bucket < ?", span) +
		fmt.Sprintf(" ORDER BY t.span, t.bucket LIMIT %d", limit), []any{before}}
}

func (d dialect) deleteRollups(span row.RollupSpan, bucket row.Time) clause {
	return d.deleteRows(rollupTable, fmt.Sprintf("t.span = %d AND t.bucket = ?", span), bucket)
}
