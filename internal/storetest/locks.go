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
		t.insertTasks(plain, 1, 2, 3)
		for range 2 {
			t.apply(change(t.get(3), row.Pending)) // three versions, so that the batch takes more than one statement
		}
		t.apply(change(t.get(2), row.Pending))
		before := []row.Row{t.get(1), t.get(2), t.get(3)}
		c := row.Claim{Rows: []row.Ref{ref(before[0]), ref(before[1]), ref(before[2])}, Executor: executor}
		unlock := lock(1, 2, 3)
		t.waitsOnce(func() error { _, err := t.store.Claim(t.Context(), c); return err })
		for _, r := range before {
			t.unchanged(r)
		}
		unlock()
		unlock = lock(2)
		t.waitsOnce(func() error { _, err := t.store.Claim(t.Context(), c); return err })
		for _, r := range before {
			t.unchanged(r)
		}
		unlock()
		t.wins(c, 1, 2, 3)
	}},
	{"A renewal that meets a lock renews nothing", func(t *tester, lock func(...int64) func()) {
		free, held := t.take(t.task(1)), t.take(t.task(2))
		unlock := lock(2)
		t.waitsOnce(func() error {
			_, err := t.store.Renew(t.Context(), []row.Lease{{Ref: ref(free), TTR: time.Hour}, {Ref: ref(held), TTR: time.Hour}})
			return err
		})
		t.unchanged(free)
		unlock()
		t.renew(row.Lease{Ref: ref(free), TTR: time.Hour})
	}},
	{"A settle that meets a lock settles nothing", func(t *tester, lock func(...int64) func()) {
		free, held := t.take(t.task(1)), t.take(t.task(2))
		changes := []row.Change{change(free, row.Completed), change(held, row.Completed)}
		unlock := lock(2)
		t.waitsOnce(func() error { _, err := t.store.Update(t.Context(), nil, changes); return err })
		t.unchanged(free)
		t.unchanged(held)
		unlock()
		t.apply(changes...)
	}},
	{"A lock elsewhere delays nobody", func(t *tester, lock func(...int64) func()) {
		t.insertTasks(plain, 1, 2, 3)
		unlock := lock(2)
		defer unlock()
		begun := time.Now()
		t.wins(row.Claim{Rows: []row.Ref{{ID: 1}, {ID: 3}}, Executor: executor}, 1, 3)
		t.renew(row.Lease{Ref: ref(t.get(1)), TTR: time.Hour})
		t.apply(change(t.get(1), row.Completed))
		t.insert(t.task(4))
		if took := time.Since(begun); took > 900*time.Millisecond {
			t.Errorf("the writes beside a locked row took %v", took)
		}
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

// waitsOnce wants the write refused because of a lock, after one lock wait of a second: less than two, also on a busy machine.
func (t *tester) waitsOnce(write func() error) {
	t.Helper()
	begun := time.Now()
	t.refused(write(), row.ClassLocked)
	if took := time.Since(begun); took < 500*time.Millisecond || took > 1900*time.Millisecond {
		t.Errorf("waited %v, want one lock wait of a second", took)
	}
}

// writeGoesOn tries again where the machine stalled so that the lock ended too late to tell.
func writeGoesOn(t *tester, lock func(ids ...int64) func()) {
	t.insertTasks(plain, 1)
	for range 5 {
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
	t.Fatal("the machine stalled five times")
}
