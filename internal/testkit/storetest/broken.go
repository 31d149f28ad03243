package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// RunBroken tests what becomes of rows that cannot be decoded. spoil makes one of a row by hand, and leaves its status,
// version and due time as they are.
func RunBroken(t *testing.T, open func(t *testing.T) (store store.Store, spoil func(id int64))) {
	run(t, brokenTests, func(t *testing.T) *tester {
		store, spoil := open(t)
		tt := newTester(t, store)
		tt.spoil = spoil
		return tt
	})
}

var brokenTests = []test{
	{"A broken row is due and claimed like any other, is set apart by every read, and fails alone", func(t *tester) {
		t.insertTasks(plain, 1, 2, 3)
		t.spoil(2)
		t.sees(everything("order.close"), 1, 2, 3)
		t.apart(row.Ref{ID: 2}, row.Pending)(t.store.Get(t.Context(), nil, []int64{1, 2, 3}))
		t.apart(row.Ref{ID: 2}, row.Pending)(t.store.List(t.Context(), row.Filter{Limit: 10}, true))
		claimed := t.claim(row.Ref{ID: 1}, row.Ref{ID: 2}, row.Ref{ID: 3})
		t.apart(row.Ref{ID: 2, Version: 1}, row.Executing)(claimed.Rows, claimed.Broken, nil)
		t.discard(claimed.Broken...)
		states, err := t.store.States(t.Context(), []int64{1, 2, 3})
		t.must(err)
		for _, s := range states {
			want := row.Executing
			if s.ID == 2 {
				want = row.Failed
			}
			if s.Status != want {
				t.Errorf("task %d is %v, want %v", s.ID, s.Status, want)
			}
		}
		t.purges(row.Failed, row.MaxTime, 10, 1)
	}},
	{"An expired row that is broken comes apart", func(t *tester) {
		for _, id := range []int64{1, 2, 3} {
			t.insertAs(t.task(id), row.Executing, t.start.Add(-time.Hour))
		}
		t.spoil(2)
		t.apart(row.Ref{ID: 2, Version: 1}, row.Executing)(t.store.Expired(t.Context(), 10))
	}},
}

// apart wants tasks 1 and 3 read and the broken one beside them, with a reason.
func (t *tester) apart(ref row.Ref, status row.Status) func([]row.Row, []row.Broken, error) {
	return func(rows []row.Row, broken []row.Broken, err error) {
		t.Helper()
		t.must(err)
		if got := slices.Sorted(slices.Values(idsOf(rows))); !slices.Equal(got, []int64{1, 3}) {
			t.Errorf("read %v, want 1 and 3", got)
		}
		if len(broken) != 1 || broken[0].Ref != ref || broken[0].Status != status || broken[0].Reason == "" {
			t.Errorf("broken %+v, want %+v as %v with a reason", broken, ref, status)
		}
	}
}
