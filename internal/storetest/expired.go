package storetest

import (
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var expiredTests = []test{
	{"Leases that are over are found over all tags, the oldest first", func(t *tester) {
		for i, tag := range []string{"a", "b", "a", "c"} {
			r := t.keyed(int64(i+1), tag, "")
			t.insertAs(r, row.Executing, t.start.Add(-time.Duration(i+1)*time.Second))
		}
		t.insertAs(t.task(5), row.Executing, t.start.Add(time.Hour))
		t.expires(10, 4, 3, 2, 1)
		t.expires(2, 4, 3)
	}},
	{"Only executing rows have a lease", func(t *tester) {
		for _, status := range []row.Status{row.Pending, row.Completed, row.Failed, row.Executing, row.Cancelled} {
			t.insertAs(t.task(int64(status)+1), status, t.start.Add(-time.Hour))
		}
		t.expires(10, int64(row.Executing)+1)
	}},
	{"An expired row comes with all but its body", func(t *tester) {
		r := t.insertAs(t.keyed(1, "a", "k"), row.Executing, t.start.Add(-time.Hour))
		rows, _, err := t.store.Expired(t.Context(), 1)
		t.must(err)
		if len(rows) != 1 || len(rows[0].Body) != 0 {
			t.Fatalf("got %+v, want one row without its body", rows)
		}
		r.Body = nil
		t.same(rows[0], r)
	}},
	{"A lease ends by the store's clock", func(t *tester) {
		held := t.insertAs(t.task(1), row.Executing, t.start.Add(50*time.Millisecond))
		found, _, err := t.store.Expired(t.Context(), 10)
		t.must(err)
		if asked := t.now(); len(found) != 0 && asked <= held.Due {
			t.Fatalf("the lease until %v was called over before %v", held.Due, asked)
		}
		t.waitUntilAfter(held.Due)
		t.expires(10, 1)
		t.renew(row.Lease{Ref: ref(held), TTR: time.Hour})
		t.expires(10)
	}},
}

func (t *tester) expires(limit int, want ...int64) {
	t.Helper()
	rows, broken, err := t.store.Expired(t.Context(), limit)
	t.must(err)
	if got := idsOf(rows); !slices.Equal(got, want) || len(broken) != 0 {
		t.Errorf("expired %v and broken %v, want %v", got, broken, want)
	}
}
