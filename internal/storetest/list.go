package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var listTests = []test{
	{"Filters select rows, alone and together", filtersSelect},
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

func filtersSelect(t *tester) {
	t.insert(t.keyed(1, "a", "k"), t.keyed(2, "A", "k"), t.keyed(3, "b", "K"), t.keyed(4, "a", "k "), t.keyed(5, "a", "%"))
	t.apply(change(t.get(1), row.Failed))
	t.claim(row.Ref{ID: 4})
	none := t.keyed(6, "c", "")
	none.Due = 0
	later := t.keyed(7, "a", "k")
	later.Due = t.start.Add(time.Hour)
	t.insert(none, later)
	status := func(s row.Status) *row.Status { return &s }
	for _, c := range []struct {
		filter row.Filter
		want   []int64
	}{
		{row.Filter{}, []int64{1, 2, 3, 4, 5, 6, 7}},
		{row.Filter{Tag: "a"}, []int64{1, 4, 5, 7}},
		{row.Filter{Tag: "A"}, []int64{2}},
		{row.Filter{Tag: "none"}, nil},
		{row.Filter{Key: "k"}, []int64{1, 2, 7}},
		{row.Filter{Key: "%"}, []int64{5}},
		{row.Filter{Status: status(row.Pending)}, []int64{2, 3, 5, 6, 7}},
		{row.Filter{Status: status(row.Failed)}, []int64{1}},
		{row.Filter{Status: status(row.Executing)}, []int64{4}},
		{row.Filter{Status: status(row.Cancelled)}, nil},
		{row.Filter{DueBefore: t.start}, []int64{1, 2, 3, 5}},
		{row.Filter{DueBefore: t.task(1).Due}, nil},
		{row.Filter{DueBefore: t.task(1).Due + 1}, []int64{1, 2, 3, 5}},
		{row.Filter{DueBefore: row.MaxTime}, []int64{1, 2, 3, 4, 5, 7}},
		{row.Filter{Tag: "a", Key: "k", Status: status(row.Pending)}, []int64{7}},
		{row.Filter{Tag: "a", Key: "k", Status: status(row.Pending), DueBefore: t.start}, nil},
		{row.Filter{Tag: "a", AfterID: 4}, []int64{5, 7}},
	} {
		c.filter.Limit = 1000
		t.lists(c.filter, c.want...)
	}
}
