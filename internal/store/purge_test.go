package store

import (
	"context"
	"testing"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/row"
)

// Between the read of a purge and its DELETE an operator may retry the task, or the retried task may fail anew.
func TestPurgeDeletesNoTaskThatHasChangedMeanwhile(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		db, kind := connect(t, d)
		createTables(t, db, kind)
		s := New(db, kind)
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		due := row.MinTime + 1
		if err := s.Insert(t.Context(), nil, []row.Row{{ID: 1 << 40, Tag: "a", Expected: due, Due: due}}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			status row.Status
			before row.Time
			want   int
		}{{row.Failed, due + 1, 0}, {row.Pending, due, 0}, {row.Pending, due + 1, 1}} {
			query, args := s.own.purge(c.status, c.before, []int64{1 << 40})
			if n, err := execute(t.Context(), db, query, args); n != c.want || err != nil {
				t.Errorf("a purge of %v tasks before %v deletes %d, %v; want %d", c.status, c.before, n, err, c.want)
			}
		}
	})
}
