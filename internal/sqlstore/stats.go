package sqlstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

// Counts implements [store.Keeper]. Where the index takes tags for one that differ in spaces at their ends only,
// they are counted once more, without its order.
func (s *Store) Counts(ctx context.Context) ([]row.TagCount, error) {
	counts, alike, err := s.count(ctx, table+".tag")
	if alike && err == nil {
		counts, _, err = s.count(ctx, fmt.Sprintf(s.dialect.readText, table+".tag"))
	}
	return counts, classify("count tasks", err)
}

func (s *Store) count(ctx context.Context, by string) (counts []row.TagCount, alike bool, err error) {
	err = scan(ctx, s.db, s.dialect.counts(by), nil, func(r *struct {
		record
		N     int64 `db:"n"`
		Alike bool  `db:"alike"` // rows of several tags
	}) error {
		state := r.state()
		counts = append(counts, row.TagCount{Tag: string(r.Tag), Status: state.Status, Count: r.N, Oldest: state.Due})
		alike = alike || r.Alike
		return nil
	})
	return counts, alike, err
}

func (d dialect) counts(by string) string {
	return "SELECT status, " + d.text("tag") + ", COUNT(*) AS n, MIN(LENGTH(tag)) < MAX(LENGTH(tag)) AS alike," +
		" CAST(MIN(due_time) AS CHAR) AS due_time FROM " + table + d.byDue + " GROUP BY status, " + by
}

// Lateness implements [store.Keeper].
func (s *Store) Lateness(ctx context.Context, tags []string, since row.Time, perTag int) ([]row.Lateness, error) {
	var found []row.Lateness
	if perTag <= 0 {
		return nil, nil
	}
	for group := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(tags))), maxBranches) {
		query, args := s.dialect.lateness(group, since, perTag)
		err := scan(ctx, s.db, query, args, func(r *record) error {
			var d decoder
			started, expected := d.time("execution_time", r.Execution), d.time("expected_time", r.Expected)
			if !started.IsZero() && !expected.IsZero() {
				found = append(found, row.Lateness{Tag: string(r.Tag), Late: started.Sub(expected)})
			}
			return nil
		})
		if err != nil {
			return nil, classify("read lateness", err)
		}
	}
	return found, nil
}

// lateness reads the newest rows of each tag by the index, whose last column is the finish time when a row is final.
func (d dialect) lateness(tags []string, since row.Time, perTag int) (string, []any) {
	branches := make([]clause, len(tags))
	for i, tag := range tags {
		limits := []clause{{"tag = ?" + d.exactTag, []any{tag}}}
		if !since.IsZero() {
			limits = append(limits, clause{"due_time >= ?", []any{since}})
		}
		where := joined(limits, " AND ")
		branches[i] = clause{"SELECT " + d.text("tag") + ", " + d.time("execution_time") + ", " + d.time("expected_time") +
			" FROM " + table + d.byDue + fmt.Sprintf(" WHERE status = %d AND ", row.Completed) + where.sql +
			" AND execution_time IS NOT NULL ORDER BY due_time DESC, id DESC LIMIT " + fmt.Sprint(perTag), where.args}
	}
	all := unionAll(branches)
	return all.sql, all.args
}
