package storetest

import (
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var purgeTests = []test{
	{"Only rows of the status that finished before the bound are deleted", func(t *tester) {
		id := int64(0)
		for _, status := range []row.Status{row.Pending, row.Completed, row.Failed, row.Executing, row.Cancelled} {
			for _, age := range []time.Duration{time.Hour, time.Minute, time.Minute - time.Microsecond} {
				id++
				t.insertAs(t.keyed(id, []string{"a", "b"}[id%2], ""), status, t.start.Add(-age))
			}
		}
		bound := t.start.Add(-time.Minute)
		left := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
		for _, c := range []struct {
			status row.Status
			gone   int64
		}{{row.Completed, 4}, {row.Failed, 7}, {row.Cancelled, 13}} {
			t.purges(c.status, bound, 100, 1)
			left = slices.DeleteFunc(left, func(id int64) bool { return id == c.gone })
			t.lists(row.Filter{Limit: 100}, left...)
			t.purges(c.status, bound, 100, 0)
		}
	}},
	{"A task that is not final is never purged", func(t *tester) {
		t.insertAs(t.task(1), row.Pending, row.MinTime)
		t.insertAs(t.task(2), row.Executing, row.MinTime)
		for _, status := range []row.Status{row.Pending, row.Executing} {
			// Whether the question is an error is the store's own affair.
			deleted, _ := t.store.Purge(t.Context(), status, row.MaxTime, 100)
			if deleted != 0 {
				t.Errorf("deleted %d %v tasks", deleted, status)
			}
		}
		t.lists(row.Filter{Limit: 100}, 1, 2)
	}},
	{"The limit bounds what is deleted", func(t *tester) {
		for id := range int64(5) {
			t.insertAs(t.keyed(id+1, []string{"a", "b"}[id%2], ""), row.Completed, t.start.Add(-time.Hour))
		}
		t.purges(row.Completed, t.start, 2, 2)
		t.purges(row.Completed, t.start, 2, 2)
		t.purges(row.Completed, t.start, 2, 1)
		t.purges(row.Completed, t.start, 2, 0)
	}},
	{"The id of a deleted row is free", func(t *tester) {
		t.insertAs(t.keyed(1, "a", "k"), row.Completed, t.start.Add(-time.Hour))
		t.purges(row.Completed, t.start, 1, 1)
		t.missing(1)
		t.insert(t.keyed(1, "a", "k"))
	}},
}

func (t *tester) purges(status row.Status, before row.Time, limit, want int) {
	t.Helper()
	deleted, err := t.store.Purge(t.Context(), status, before, limit)
	t.must(err)
	if deleted != want {
		t.Fatalf("deleted %d %v tasks, want %d", deleted, status, want)
	}
}
