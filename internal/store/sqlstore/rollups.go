package sqlstore

import (
	"context"
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
// key is looked up whatever the table holds, while MySQL scans an empty table for a range. Of a bucket with a locked
// row it deletes the others by their keys.
func (s *Store) TrimRollups(ctx context.Context, span row.RollupSpan, before row.Time, limit int) (
	deleted int, err error) {
	const op = "delete old rollups"
	if limit <= 0 {
		return 0, nil
	}
	at := place{rollupTable, fmt.Sprint(span)}
	held, all := heldAt[row.Time](&s.held, at)
	if all {
		return 0, nil
	}
	var buckets []row.Time
	err = read(ctx, s.db, s.dialect.oldRollups(span, before, held, limit), rollups, func(f *found[row.Rollup]) {
		buckets = append(buckets, f.row.Begin)
	})
	if err != nil {
		return 0, classify(op, err)
	}
	buckets = slices.Compact(buckets)
	for _, bucket := range buckets[:min(len(buckets), trimBuckets)] {
		n, err := s.lanes[chores].execute(ctx, op, s.own.deleteRollups(span, bucket))
		if isLocked(err) {
			n, err = s.trimAround(ctx, op, span, bucket)
			s.held.add(at, bucket)
		}
		if deleted += n; err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// trimAround deletes the rows of a bucket that are not locked. Joined with their keys, each is looked up by its own: a
// range of the bucket would meet the locked ones.
func (s *Store) trimAround(ctx context.Context, op string, span row.RollupSpan, bucket row.Time) (
	deleted int, err error) {
	const (
		most = 500
		key  = "CONCAT(HEX(t.tag), ' ', HEX(t.node))"
		text = "_utf8mb4 X'%s' COLLATE " + exact
	)
	in := fmt.Sprintf("t.span = %d AND t.bucket = '%s'", span, bucket)
	keyed := func(keys []string) string {
		each := make([]string, len(keys))
		for i, key := range keys {
			tag, node, _ := strings.Cut(key, " ")
			each[i] = fmt.Sprintf("SELECT "+text+" AS tag, "+text+" AS node", tag, node)
		}
		return "(" + strings.Join(each, " UNION ALL ") + ") v STRAIGHT_JOIN " + rollupTable + " t" + s.own.byID +
			" ON " + in + " AND t.tag = v.tag AND t.node = v.node"
	}
	p := purging[string]{
		op: op, lane: chores,
		old: oldOf(s, place{rollupTable, in}, func(held []string) clause {
			where := in
			if len(held) > 0 {
				where += without(key, quoted(held))
			}
			return s.own.namesIn(rollupTable, key, where, fmt.Sprintf(" LIMIT %d", most))
		}),
		names: func(keys []string, lock string) clause {
			return clause{sql: "SELECT " + key + " AS held_key FROM " + keyed(keys) + lock}
		},
		delete: func(keys []string) clause { return clause{sql: "DELETE t FROM " + keyed(keys)} },
	}
	for {
		n, err := purgeAround(ctx, s, p)
		if deleted += n; err != nil || n == 0 {
			return deleted, err
		}
	}
}

func (d dialect) oldRollups(span row.RollupSpan, before row.Time, held []row.Time, limit int) clause {
	var list text
	for i, bucket := range held {
		if i > 0 {
			list.write(", ")
		}
		list.moment(bucket)
	}
	return clause{"SELECT " + d.time("bucket") + " FROM " + rollupTable + " AS t" + d.byID +
		fmt.Sprintf(" WHERE t.span = %d AND t.bucket < ?", span) + without("t.bucket", list.sql.String()) +
		fmt.Sprintf(" ORDER BY t.span, t.bucket LIMIT %d", limit), []any{before}}
}

func (d dialect) deleteRollups(span row.RollupSpan, bucket row.Time) clause {
	return d.deleteRows(rollupTable, fmt.Sprintf("t.span = %d AND t.bucket = ?", span), bucket)
}
