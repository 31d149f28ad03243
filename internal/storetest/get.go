package storetest

import (
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

var getTests = []test{
	{"Rows come in the order of their ids", func(t *tester) {
		t.insertTasks(plain, 30, 10, 20)
		rows, broken, err := t.store.Get(t.Context(), nil, []int64{20, 30, 10})
		t.must(err)
		if got, want := idsOf(rows), []int64{10, 20, 30}; !slices.Equal(got, want) || len(broken) != 0 {
			t.Fatalf("got %v and broken %v, want %v", got, broken, want)
		}
	}},
	{"Rows that do not exist are left out", func(t *tester) {
		t.insertTasks(plain, 2)
		rows, _, err := t.store.Get(t.Context(), nil, []int64{1, 2, 3})
		t.must(err)
		if got := idsOf(rows); !slices.Equal(got, []int64{2}) {
			t.Fatalf("got %v, want only 2", got)
		}
	}},
	{"An id that is asked for twice is answered once", func(t *tester) {
		t.insertTasks(plain, 1)
		rows, _, err := t.store.Get(t.Context(), nil, []int64{1, 1})
		t.must(err)
		if len(rows) != 1 {
			t.Fatalf("got %d rows of one", len(rows))
		}
	}},
	{"No ids are no error", func(t *tester) { t.missing() }},
	{"Rows of every status are found, with their bodies", func(t *tester) {
		for _, status := range []row.Status{row.Pending, row.Completed, row.Failed, row.Executing, row.Cancelled} {
			r := t.insertAs(t.task(int64(status)+1), status, t.start)
			if r.Status != status || len(r.Body) == 0 {
				t.Errorf("got status %v with a body of %d bytes, want %v with the body", r.Status, len(r.Body), status)
			}
		}
	}},
}
