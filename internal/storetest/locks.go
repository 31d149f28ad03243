package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/row"
)

// RunLocks tests a store whose database locks single rows. lock holds the rows in another transaction until unlock is called.
// Most tests wait for a lock in vain, so open should call t.Parallel.
func RunLocks(t *testing.T, open func(t *testing.T) (store engine.Store, lock func(ids ...int64) (unlock func()))) {
	for _, test := range lockTests {
		t.Run(test.name, func(t *testing.T) {
			store, lock := open(t)
			test.run(newTester(t, store), lock)
		})
	}
}

var lockTests = []struct {
	name string
	run  func(t *tester, lock func(ids ...int64) func())
}{
	{"Locked names the rows that are held, and no others", func(t *tester, lock func(...int64) func()) {
		t.insertTasks(plain, 1, 2, 3, 4)
		unlock := lock(2, 4)
		t.locked([]int64{1, 2, 3, 4, 5}, 2, 4)
		t.locked([]int64{1, 3})
		unlock()
		t.locked([]int64{1, 2, 3, 4})
	}},
	{"Reads do not wait for a lock", func(t *tester, lock func(...int64) func()) {
		t.insert(t.keyed(1, "a", "k"))
		r := t.insertAs(t.keyed(2, "a", ""), row.Executing, t.start.Add(-time.Hour))
		unlock := lock(1, 2)
		defer unlock()
		t.sees(everything("a"), 1)
		t.expires(10, 2)
		t.unchanged(r)
		t.lists(row.Filter{Limit: 10}, 1, 2)
		if found := t.findActive(row.TagKey{Tag: "a", Key: "k"}); len(found) != 1 {
			t.Errorf("found %v by key, want task 1", found)
		}
	}},
	{"A claim that meets a lock waits once and claims nothing", func(t *tester, lock func(...int64) func()) {
		ids := t.manyTasks()
		before := make([]row.Row, len(ids))
		c := row.Claim{Executor: executor}
		for i := range ids { // as many versions as rows: a store may send a statement for each
			for _, id := range ids[i+1:] {
				t.apply(change(t.get(id), row.Pending))
			}
			before[i] = t.get(ids[i])
			c.Rows = append(c.Rows, ref(before[i]))
		}
		for _, held := range [][]int64{ids, ids[1:2]} {
			unlock := lock(held...)
			t.waitsOnce(func() error { _, err := t.store.Claim(t.Context(), c); return err })
			for _, r := range before {
				t.unchanged(r)
			}
			unlock()
		}
		t.wins(c, ids...)
	}},
	{"A renewal that meets locks waits once and renews nothing", func(t *tester, lock func(...int64) func()) {
		ids := t.manyTasks()
		claimed := t.claimAll(ids)
		leases := make([]row.Lease, len(ids))
		for i, r := range claimed {
			leases[i] = row.Lease{Ref: ref(r), TTR: time.Hour}
		}
		unlock := lock(ids[1:]...)
		t.waitsOnce(func() error { _, err := t.store.Renew(t.Context(), leases); return err })
		for _, r := range claimed {
			t.unchanged(r)
		}
		unlock()
		t.renew(leases...)
	}},
	{"A settle that meets locks waits once and settles nothing", func(t *tester, lock func(...int64) func()) {
		ids := t.manyTasks()
		claimed := t.claimAll(ids)
		changes := make([]row.Change, len(ids))
		for i, r := range claimed {
			changes[i] = change(r, row.Completed)
		}
		unlock := lock(ids[1:]...)
		t.waitsOnce(func() error { _, err := t.store.Update(t.Context(), nil, changes); return err })
		for _, r := range claimed {
			t.unchanged(r)
		}
		unlock()
		t.apply(changes...)
	}},
	{"A lock elsewhere delays nobody", func(t *tester, lock func(...int64) func()) {
		t.insertTasks(plain, 1, 2, 3)
		unlock := lock(2)
		defer unlock() // after all of them: a write that had to wait for the row would be refused
		t.wins(row.Claim{Rows: []row.Ref{{ID: 1}, {ID: 3}}, Executor: executor}, 1, 3)
		t.renew(row.Lease{Ref: ref(t.get(1)), TTR: time.Hour})
		t.apply(change(t.get(1), row.Completed))
		t.insert(t.task(4))
	}},
	{"A write goes on when the lock ends in time", writeGoesOn},
}

func (t *tester) locked(ids []int64, want ...int64) {
	t.Helper()
	got, err := t.store.Locked(t.Context(), ids)
	t.must(err)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("of %v locked %v, want %v", ids, got, want)
	}
}

// manyRows is how many rows a batch has that meets locks: were each waited for, that alone would take as many seconds.
const manyRows = 10

func (t *tester) manyTasks() []int64 {
	t.Helper()
	ids := make([]int64, manyRows)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	t.insertTasks(plain, ids...)
	return ids
}

// claimAll claims new tasks and returns them as they are then.
func (t *tester) claimAll(ids []int64) []row.Row {
	t.Helper()
	c := row.Claim{Executor: executor}
	for _, id := range ids {
		c.Rows = append(c.Rows, row.Ref{ID: id})
	}
	t.wins(c, ids...)
	rows := make([]row.Row, len(ids))
	for i, id := range ids {
		rows[i] = t.get(id)
	}
	return rows
}

// waitsOnce wants the write refused because of a lock, after one lock wait of a second. MySQL looks only once a second whose
// wait is over, and a machine may stall in between; what waits for each row takes so much longer that three tries tell.
func (t *tester) waitsOnce(write func() error) {
	t.Helper()
	var took time.Duration
	for range 3 {
		begun := time.Now()
		t.refused(write(), row.ClassLocked)
		if took = time.Since(begun); took < 500*time.Millisecond {
			t.Fatalf("refused after %v, want a lock wait of a second", took)
		}
		if took < manyRows/2*time.Second {
			return
		}
	}
	t.Errorf("waited %v, want one lock wait of a second", took)
}

// writeGoesOn tries again where the machine stalled so that the lock ended too late to tell.
func writeGoesOn(t *tester, lock func(ids ...int64) func()) {
	t.insertTasks(plain, 1)
	for range 20 {
		unlock := lock(1)
		begun := time.Now()
		ended := make(chan time.Duration, 1)
		time.AfterFunc(100*time.Millisecond, func() {
			unlock()
			ended <- time.Since(begun)
		})
		claimed, err := t.store.Claim(t.Context(), row.Claim{Rows: []row.Ref{{ID: 1}}, Executor: executor})
		lasted := <-ended
		if err == nil {
			if len(claimed.Rows) != 1 {
				t.Fatalf("claimed %d rows of one", len(claimed.Rows))
			}
			return
		}
		t.refused(err, row.ClassLocked)
		if lasted < 500*time.Millisecond {
			t.Fatalf("refused although the lock ended after %v", lasted)
		}
	}
	t.Fatal("the machine stalled twenty times")
}
