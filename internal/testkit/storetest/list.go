package storetest

import (
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

var listTests = []test{
	{"Pages follow each other by id, up to the largest", func(t *tester) {
		const largest = 1<<63 - 1
		t.insertTasks(plain, 5, 3, largest, 1, 7)
		t.lists(row.Filter{Limit: 2}, 1, 3)
		t.lists(row.Filter{Limit: 2, AfterID: 3}, 5, 7)
		t.lists(row.Filter{Limit: 2, AfterID: 4, Tag: "order.close"}, 5, 7)
		t.lists(row.Filter{Limit: 2, AfterID: 7}, largest)
		t.lists(row.Filter{Limit: 2, AfterID: largest})
	}},
	{"A page ends with the row that fills it", func(t *tester) {
		for id := range int64(4) {
			r := t.task(id + 1)
			r.Body = []byte(strings.Repeat("b", 10_000))
			t.insert(r)
		}
		page := func(f row.Filter, bodies bool, want ...int64) {
			rows, broken, err := t.store.List(t.Context(), f, bodies)
			t.must(err)
			if got := idsOf(rows); !slices.Equal(got, want) || f.Full(rows, broken) != (len(want) < 4) {
				t.Errorf("filter %+v, bodies %t: %v, full %t, want %v", f, bodies, got, f.Full(rows, broken), want)
			}
		}
		page(row.Filter{Limit: 10, MaxBytes: 25_000}, true, 1, 2, 3)
		page(row.Filter{Limit: 10, MaxBytes: 1, AfterID: 2}, true, 3)
		page(row.Filter{Limit: 10, MaxBytes: 25_000}, false, 1, 2, 3, 4)
	}},
	{"Bodies come only when asked for", func(t *tester) {
		t.insert(t.task(1))
		without, _, err := t.store.List(t.Context(), row.Filter{Limit: 1}, false)
		t.must(err)
		if len(without) != 1 || len(without[0].Body) != 0 {
			t.Fatalf("got %+v, want one row without its body", without)
		}
		with, _, err := t.store.List(t.Context(), row.Filter{Limit: 1}, true)
		t.must(err)
		if len(with) != 1 {
			t.Fatalf("got %d rows of one", len(with))
		}
		t.unchanged(with[0])
		without[0].Body = with[0].Body
		t.same(without[0], with[0])
	}},
}

func (t *tester) list(f row.Filter) []row.Row {
	t.Helper()
	rows, broken, err := t.store.List(t.Context(), f, false)
	t.must(err)
	if len(broken) != 0 {
		t.Fatalf("broken %v, want none", broken)
	}
	return rows
}

func (t *tester) lists(f row.Filter, want ...int64) {
	t.Helper()
	if got := idsOf(t.list(f)); !slices.Equal(got, want) {
		t.Errorf("filter %+v: got %v, want %v", f, got, want)
	}
}
