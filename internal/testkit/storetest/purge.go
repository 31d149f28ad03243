package storetest

import (
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var purgeTests = []test{
	{"Only final rows of the status that finished before the bound are deleted", func(t *tester) {
		bound := t.start.Add(-time.Hour)
		var left []int64
		for i, status := range statuses {
			old := t.insertAs(t.task(int64(2*i+1)), status, bound-1)
			left = append(left, t.insertAs(t.task(int64(2*i+2)), status, bound).ID)
			if !status.Final() {
				left = append(left, old.ID)
			}
		}
		for _, status := range statuses {
			deleted, err := t.store.Purge(t.Context(), status, bound, 100)
			if status.Final() { // whether else the question is an error is the store's own affair
				t.must(err)
			}
			if (deleted == 1) != status.Final() {
				t.Errorf("deleted %d %v tasks", deleted, status)
			}
		}
		slices.Sort(left)
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
