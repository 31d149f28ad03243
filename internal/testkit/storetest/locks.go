package storetest

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// RunLocks tests a store whose database locks single rows, and which waits for a lock for at least so long. lock locks
// rows in another transaction until unlock is called. Most tests spend a whole lock wait, so open should call
// t.Parallel.
func RunLocks(t *testing.T, wait time.Duration,
	open func(t *testing.T) (store store.Store, lock func(ids ...int64) (unlock func()))) {
	run(t, lockTests, func(t *testing.T) *tester {
		store, lock := open(t)
		tt := newTester(t, store)
		tt.lock, tt.lockWait = lock, wait
		return tt
	})
}

var lockTests = []test{
	{"Locked names the rows that are locked, and no others", func(t *tester) {
		t.insertTasks(plain, 1, 2, 3, 4)
		unlock := t.lock(2, 4)
		t.locked([]int64{1, 2, 3, 4, 5}, 2, 4)
		t.locked([]int64{1, 3})
		unlock()
		t.locked([]int64{1, 2, 3, 4})
	}},
	{"Reads do not wait for a lock", func(t *tester) {
		t.insert(t.keyed(1, "a", "k"))
		r := t.insertAs(t.keyed(2, "a", ""), row.Executing, t.start.Add(-time.Hour))
		defer t.lock(1, 2)()
		t.sees(everything("a"), 1)
		t.expires(10, 2)
		t.unchanged(r)
		t.holdsIDs(1, 2)
		t.found([]row.TagKey{{Tag: "a", Key: "k"}}, 1)
	}},
	{"A claim of a locked row waits once and claims nothing", func(t *tester) {
		ids := upTo(manyRows)
		t.insertTasks(plain, ids...)
		c := row.Claim{Executor: executor}
		var before []row.Row
		for i := range ids { // as many versions as rows: a store may send a statement for each
			var newer []row.Change
			for _, id := range ids[i+1:] {
				newer = append(newer, row.Change{ID: id, Version: int64(i), To: row.Pending, Due: t.start})
			}
			t.apply(newer...)
			before = append(before, t.get(ids[i]))
			c.Rows = append(c.Rows, ref(before[i]))
		}
		claim := func() error { _, err := t.store.Claim(t.Context(), c); return err }
		t.waitsOnce(claim, before, ids...)
		t.waitsOnce(claim, before, 2)
		t.wins(c, ids...)
	}},
	{"A renewal of locked rows waits once and renews nothing", func(t *tester) {
		claimed := t.claimMany()
		var leases []row.Lease
		for _, r := range claimed {
			leases = append(leases, row.Lease{Ref: ref(r), TTR: time.Hour})
		}
		renew := func() error { _, err := t.store.Renew(t.Context(), leases); return err }
		t.waitsOnce(renew, claimed, idsOf(claimed)[1:]...)
		t.renew(leases...)
	}},
	{"A settle of locked rows waits once and settles nothing", func(t *tester) {
		claimed := t.claimMany()
		var changes []row.Change
		for _, r := range claimed {
			changes = append(changes, change(r, row.Completed))
		}
		settle := func() error { _, err := t.store.Update(t.Context(), nil, changes); return err }
		t.waitsOnce(settle, claimed, idsOf(claimed)[1:]...)
		t.apply(changes...)
	}},
	{"A purge leaves out locked rows, and deletes as many others", func(t *tester) {
		ids := upTo(manyRows)
		for _, id := range ids {
			r := t.task(id)
			r.Tag = string(rune('a' + id%2))
			t.insertAs(r, row.Completed, t.start.Add(time.Duration(id)-time.Hour))
		}
		unlock := t.lock(1, 2)
		for _, want := range []int{3, 3, 2, 0} {
			t.purges(row.Completed, t.start, 3, want)
		}
		unlock()
		t.holdsIDs(1, 2)
	}},
	{"A lock on another row delays no write", func(t *tester) {
		t.insertTasks(plain, 1, 2, 3)
		defer t.lock(2)() // after all of them: a write that had to wait for the row would be refused
		t.wins(row.Claim{Rows: []row.Ref{{ID: 1}, {ID: 3}}, Executor: executor}, 1, 3)
		t.renew(row.Lease{Ref: ref(t.get(1)), TTR: time.Hour})
		t.apply(change(t.get(1), row.Completed))
		t.insert(t.task(4))
	}},
	{"A write goes on when the lock ends in time", writeGoesOn},
}

// manyRows is the size of a batch with locked rows. Waiting for each of them would take as many lock waits.
const manyRows = 10

// claimMany claims new tasks and returns them as they are then.
func (t *tester) claimMany() (rows []row.Row) {
	t.Helper()
	ids, c := upTo(manyRows), row.Claim{Executor: executor}
	t.insertTasks(plain, ids...)
	for _, id := range ids {
		c.Rows = append(c.Rows, row.Ref{ID: id})
	}
	t.wins(c, ids...)
	for _, id := range ids {
		rows = append(rows, t.get(id))
	}
	return rows
}

// waitsOnce wants the write refused because some of the rows are locked, after one lock wait, and nothing changed. The
// machine may stall in between. A write that waits for each row takes so much longer that three tries tell.
func (t *tester) waitsOnce(write func() error, rows []row.Row, held ...int64) {
	t.Helper()
	defer t.lock(held...)()
	var took time.Duration
	for range 3 {
		begun := time.Now()
		t.refused(write(), row.ClassLocked)
		took = time.Since(begun)
		for _, r := range rows {
			t.unchanged(r)
		}
		if took < t.lockWait/2 {
			t.Fatalf("refused after %v, want a lock wait of %v", took, t.lockWait)
		}
		if took < manyRows/2*t.lockWait {
			return
		}
	}
	t.Errorf("waited %v, want one lock wait of %v", took, t.lockWait)
}

// writeGoesOn tries again when the machine has stalled, so that the lock ended too late to tell.
func writeGoesOn(t *tester) {
	t.insertTasks(plain, 1)
	for range 20 {
		unlock := t.lock(1)
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
		if lasted < t.lockWait/2 {
			t.Fatalf("refused although the lock ended after %v", lasted)
		}
	}
	t.Fatal("the machine stalled twenty times")
}
