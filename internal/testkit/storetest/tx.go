package storetest

import (
	"testing"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// RunTx tests a store inside of a caller's transaction. begin opens one on a connection that is not the store's.
func RunTx(t *testing.T, open func(t *testing.T) (store store.Store, begin func() Tx)) {
	runTx(t, txTests, open)
}

// RunColumns tests only that what is written comes back. It is for pools whose settings may change values, like a
// character set or a time zone. begin opens a transaction on such a pool.
func RunColumns(t *testing.T, open func(t *testing.T) (store store.Store, begin func() Tx)) {
	runTx(t, []test{
		{"Insert", everyColumnComesBack},
		{"Claim", claimTakesTheRow},
		{"Renew", renewNamesTheExecutor},
		{"Update", changeWritesAll},
		{"Read in a transaction", readInTransaction},
		{"Update in a transaction", changeInTransaction},
	}, open)
}

func runTx(t *testing.T, tests []test, open func(t *testing.T) (store.Store, func() Tx)) {
	run(t, tests, func(t *testing.T) *tester {
		store, begin := open(t)
		tt := newTester(t, store)
		tt.begin = begin
		return tt
	})
}

var txTests = []test{
	{"A task is there once its transaction has committed", func(t *tester) {
		tx := t.begin()
		t.must(t.store.Insert(t.Context(), tx, []row.Row{t.task(1), t.task(2)}))
		t.missing(1, 2)
		t.must(tx.Commit())
		t.holdsIDs(1, 2)
	}},
	{"A task is never there when its transaction rolls back", func(t *tester) {
		tx := t.begin()
		t.must(t.store.Insert(t.Context(), tx, []row.Row{t.keyed(1, "a", "k")}))
		t.must(tx.Rollback())
		t.missing(1)
		t.insert(t.keyed(1, "a", "k"))
	}},
	{"A transaction reads its own rows", readInTransaction},
	{"A change, also of the body, applies once its transaction has committed", changeInTransaction},
	{"A change leaves nothing when its transaction rolls back", func(t *tester) {
		held := t.take(t.keyed(1, "a", "k"))
		tx := t.begin()
		t.updatesIn(tx, 1, change(held, row.Completed))
		t.must(tx.Rollback())
		t.unchanged(held)
		t.taken(t.keyed(2, "a", "k"))
		t.apply(change(held, row.Completed))
	}},
	{"A fenced change is refused in a transaction too", func(t *tester) {
		late := t.take(t.task(1))
		t.apply(change(late, row.Pending))
		before := t.get(1)
		tx := t.begin()
		t.updatesIn(tx, 0, change(late, row.Completed))
		t.must(tx.Commit())
		t.unchanged(before)
	}},
	{"A refused task leaves the caller's other work alone", func(t *tester) {
		t.insert(t.keyed(1, "a", "k"))
		tx := t.begin()
		t.must(t.store.Insert(t.Context(), tx, []row.Row{t.task(2)}))
		t.refused(t.store.Insert(t.Context(), tx, []row.Row{t.task(3), t.keyed(4, "a", "k")}), row.ClassDuplicate)
		t.must(tx.Commit())
		t.holdsIDs(1, 2)
	}},
	{"A task whose key an Insert has met is locked as it is", func(t *tester) {
		t.insert(t.keyed(1, "a", "k"), t.keyed(2, "b", "k"))
		moved := t.get(1)
		t.apply(change(moved, row.Pending))
		tx := t.begin()
		t.refused(t.store.Insert(t.Context(), tx, []row.Row{t.keyed(3, "a", "k")}), row.ClassDuplicate)
		rows, broken, err := t.store.LockActive(t.Context(), tx, row.TagKey{Tag: "a", Key: "k"})
		t.must(err)
		if len(rows) != 1 || len(broken) > 0 {
			t.Fatalf("found %+v and %+v", rows, broken)
		}
		t.unchanged(rows[0])
		none, _, err := t.store.LockActive(t.Context(), tx, row.TagKey{Tag: "a", Key: "l"})
		t.must(err)
		if len(none) > 0 {
			t.Errorf("another key finds %+v", none)
		}
		c := change(rows[0], row.Pending)
		c.Body = []byte("new")
		t.updatesIn(tx, 1, c)
		t.must(tx.Commit())
		t.written(changedBy(rows[0], c))
	}},
	{"A retry whose key is taken is refused in a transaction too", func(t *tester) {
		failed := t.insertAs(t.keyed(1, "a", "k"), row.Failed, t.start)
		t.insert(t.keyed(2, "a", "k"))
		tx := t.begin()
		_, err := t.store.Update(t.Context(), tx, []row.Change{change(failed, row.Pending)})
		t.refused(err, row.ClassDuplicate)
		t.must(tx.Rollback())
		t.unchanged(failed)
	}},
}

func readInTransaction(t *tester) {
	tx := t.begin()
	t.must(t.store.Insert(t.Context(), tx, []row.Row{t.keyed(1, "a", "s3:é")}))
	rows, _, err := t.store.Get(t.Context(), tx, []int64{1})
	t.must(err)
	active, err := t.store.FindActive(t.Context(), tx, []row.TagKey{{Tag: "b", Key: "s3:é"}})
	t.must(err)
	if len(rows) != 1 || len(active) != 1 {
		t.Fatalf("found %d rows by id and %d by key, want one each", len(rows), len(active))
	}
	t.must(tx.Commit())
	t.unchanged(rows[0])
}

func changeInTransaction(t *tester) {
	held := t.take(t.task(1))
	c := change(held, row.Completed)
	c.Body, c.ErrorStack = []byte("Zoë 🚀"), "é\\'"
	tx := t.begin()
	t.updatesIn(tx, 1, c)
	t.unchanged(held)
	t.must(tx.Commit())
	t.written(changedBy(held, c))
}

func (t *tester) updatesIn(tx Tx, want int, c row.Change) {
	t.Helper()
	applied, err := t.store.Update(t.Context(), tx, []row.Change{c})
	t.must(err)
	if applied != want {
		t.Fatalf("applied %d, want %d", applied, want)
	}
}
