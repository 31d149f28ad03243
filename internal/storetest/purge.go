package storetest

import (
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var purgeTests = []test{
	{"Only rows of the status that finished before the bound are deleted", func(t *tester) {
		id := int64(0)
		for _, status := range statuses {
			for _, age := range []time.Duration{time.Hour, time.Minute, time.Minute - time.Microsecond} {
				id++
				t.insertAs(t.keyed(id, []string{"a", "b"}[id%2], ""), status, t.start.Add(-age))
			}
		}
		bound, left := t.start.Add(-time.Minute), upTo(id)
		for _, c := range []struct {
			status row.Status
			gone   int64
		}{{row.Completed, 4}, {row.Failed, 7}, {row.Cancelled, 13}} {
			t.purges(c.status, bound, 100, 1)
			left = slices.DeleteFunc(left, func(id int64) bool { return id == c.gone })
			t.lists(row.Filter{Limit: 100}, left...)
			t.purges(c.status, bound, 100, 0)
		}
		for _, status := range []row.Status{row.Pending, row.Executing} {
			// Whether the question is an error is the store's own affair.
			if deleted, _ := t.store.Purge(t.Context(), status, row.MaxTime, 100); deleted != 0 {
				t.Errorf("deleted %d %v tasks", deleted, status)
			}
		}
		t.lists(row.Filter{Limit: 100}, left...)
	}},
	{"The limit bounds what is deleted, and ids and keys of deleted rows are free", func(t *tester) {
		rows := make([]row.Row, 5)
		for i, id := range upTo(5) {
			rows[i] = t.keyed(id, []string{"a", "b"}[i%2], "k"+string(rune('0'+i)))
			t.insertAs(rows[i], row.Completed, t.start.Add(-time.Hour))
		}
		for _, want := range []int{2, 2, 1, 0} {
			t.purges(row.Completed, t.start, 2, want)
		}
		t.insert(rows...)
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
