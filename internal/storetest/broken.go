package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/row"
)

// RunBroken tests what becomes of rows that cannot be decoded. spoil makes one of a row by hand, and leaves its status, version
// and due time as they are.
func RunBroken(t *testing.T, open func(t *testing.T) (store engine.Store, spoil func(id int64))) {
	for _, test := range brokenTests {
		t.Run(test.name, func(t *testing.T) {
			store, spoil := open(t)
			test.run(newTester(t, store), spoil)
		})
	}
}

var brokenTests = []struct {
	name string
	run  func(t *tester, spoil func(id int64))
}{
	{"Get and List set a broken row apart", func(t *tester, spoil func(int64)) {
		t.insertTasks(plain, 1, 2, 3)
		spoil(2)
		rows, broken, err := t.store.Get(t.Context(), nil, []int64{1, 2, 3})
		t.must(err)
		t.apart(rows, broken, row.Ref{ID: 2}, row.Pending)
		rows, broken, err = t.store.List(t.Context(), row.Filter{Limit: 10}, true)
		t.must(err)
		t.apart(rows, broken, row.Ref{ID: 2}, row.Pending)
	}},
	{"A broken row is due like any other", func(t *tester, spoil func(int64)) {
		t.insertTasks(plain, 1, 2, 3)
		spoil(2)
		t.sees(everything("order.close"), 1, 2, 3)
	}},
	{"A claim wins a broken row apart from its neighbours", func(t *tester, spoil func(int64)) {
		t.insertTasks(plain, 1, 2, 3)
		spoil(2)
		claimed := t.claim(row.Ref{ID: 1}, row.Ref{ID: 2}, row.Ref{ID: 3})
		t.apart(claimed.Rows, claimed.Broken, row.Ref{ID: 2, Version: 1}, row.Executing)
	}},
	{"An expired row that is broken comes apart", func(t *tester, spoil func(int64)) {
		for _, id := range []int64{1, 2, 3} {
			t.insertAs(t.task(id), row.Executing, t.start.Add(-time.Hour))
		}
		spoil(2)
		rows, broken, err := t.store.Expired(t.Context(), 10)
		t.must(err)
		t.apart(rows, broken, row.Ref{ID: 2, Version: 1}, row.Executing)
	}},
	{"A broken row that is discarded has failed, alone", func(t *tester, spoil func(int64)) {
		t.insertTasks(plain, 1, 2, 3)
		spoil(2)
		claimed := t.claim(row.Ref{ID: 1}, row.Ref{ID: 2}, row.Ref{ID: 3})
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
}

// apart wants tasks 1 and 3 read and the broken one beside them, with a reason.
func (t *tester) apart(rows []row.Row, broken []row.Broken, ref row.Ref, status row.Status) {
	t.Helper()
	if got := slices.Sorted(slices.Values(idsOf(rows))); !slices.Equal(got, []int64{1, 3}) {
		t.Errorf("read %v, want 1 and 3", got)
	}
	if len(broken) != 1 || broken[0].Ref != ref || broken[0].Status != status || broken[0].Reason == "" {
		t.Errorf("broken %+v, want %+v as %v with a reason", broken, ref, status)
	}
}
