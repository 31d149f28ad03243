package storetest

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// test is one sentence of the contract.
type test struct {
	name string
	run  func(t *tester)
}

func run(t *testing.T, tests []test, open func(t *testing.T) *tester) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(open(t)) })
	}
}

// Tx is a transaction that the test ends; *sql.Tx and *sqlx.Tx fit.
type Tx interface {
	store.Tx
	Commit() error
	Rollback() error
}

// tester is a test with its store. Its methods end the test when the store fails.
type tester struct {
	*testing.T
	store store.Store
	start row.Time // the store's clock when the test began

	begin func() Tx      // opens a transaction, of RunTx
	spoil func(id int64) // of RunBroken

	lock     func(ids ...int64) (unlock func()) // of RunLocks
	lockWait time.Duration                      // the shortest
}

func newTester(t *testing.T, store store.Store) *tester {
	tt := &tester{T: t, store: store}
	tt.start = tt.now()
	return tt
}

func (t *tester) now() row.Time {
	t.Helper()
	reading, err := t.store.Now(t.Context())
	t.must(err)
	return reading.Time
}

// waitUntilAfter returns when the store's clock has passed the moment. It polls instead of sleeping, because the
// store's clock need not be the machine's.
func (t *tester) waitUntilAfter(moment row.Time) {
	t.Helper()
	for giveUp := time.Now().Add(time.Minute); t.now() <= moment; {
		if time.Now().After(giveUp) {
			t.Fatalf("the store's clock has not passed %v within a minute", moment)
		}
	}
}

func (t *tester) within(what string, at, early, late row.Time) {
	t.Helper()
	if at < early || at > late {
		t.Errorf("%s is %v, want it within [%v, %v]", what, at, early, late)
	}
}

func (t *tester) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("the store failed: %v (class %v)", err, row.ClassOf(err))
	}
}

// refused ends the test unless err is of the class.
func (t *tester) refused(err error, want row.Class) {
	t.Helper()
	if err == nil {
		t.Fatalf("the store accepted it, want class %v", want)
	}
	if got := row.ClassOf(err); got != want {
		t.Fatalf("class %v, want %v: %v", got, want, err)
	}
}

var statuses = []row.Status{row.Pending, row.Completed, row.Failed, row.Executing, row.Cancelled}

// task returns a new row that has been due for a second. Its lease lasts a minute.
func (t *tester) task(id int64) row.Row {
	return row.Row{
		ID: id, Tag: "order.close", Body: []byte(`{"order":1}`), MaxAttempts: 20, TTR: time.Minute,
		Delay: 30 * time.Minute, Expected: t.start.Add(-time.Second), Due: t.start.Add(-time.Second),
	}
}

func (t *tester) keyed(id int64, tag, key string) row.Row {
	r := t.task(id)
	r.Tag, r.Key = tag, key
	return r
}

func (t *tester) insert(rows ...row.Row) {
	t.Helper()
	t.must(t.store.Insert(t.Context(), nil, rows))
}

// inserted inserts the task and returns it as it is stored.
func (t *tester) inserted(r row.Row) row.Row {
	t.Helper()
	t.insert(r)
	return t.get(r.ID)
}

// insertTasks inserts tasks that change may adapt, one for each id.
func (t *tester) insertTasks(change func(*row.Row), ids ...int64) {
	t.Helper()
	rows := make([]row.Row, len(ids))
	for i, id := range ids {
		rows[i] = t.task(id)
		change(&rows[i])
	}
	t.insert(rows...)
}

func plain(*row.Row) {}

func withoutDue(r *row.Row) { r.Due = 0 }

// oneOfEach inserts a task of each status, due at the given time. Its id is one more than its status.
func (t *tester) oneOfEach(due row.Time) []row.Row {
	t.Helper()
	rows := make([]row.Row, len(statuses))
	for i, status := range statuses {
		rows[i] = t.insertAs(t.task(int64(status)+1), status, due)
	}
	return rows
}

// upTo returns the ids 1 to n.
func upTo(n int64) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(i) + 1
	}
	return ids
}

// get returns the row, which has to exist and to be readable.
func (t *tester) get(id int64) row.Row {
	t.Helper()
	rows, broken, err := t.store.Get(t.Context(), nil, []int64{id})
	t.must(err)
	if len(rows) != 1 || len(broken) != 0 {
		t.Fatalf("task %d: got %d rows and broken %v, want one row", id, len(rows), broken)
	}
	return rows[0]
}

func (t *tester) missing(ids ...int64) {
	t.Helper()
	rows, broken, err := t.store.Get(t.Context(), nil, ids)
	t.must(err)
	if len(rows) != 0 || len(broken) != 0 {
		t.Fatalf("found %d rows and %d broken ones of %v, want none", len(rows), len(broken), ids)
	}
}

// all returns every row, at most 10,000, in the order of the ids.
func (t *tester) all() []row.Row {
	t.Helper()
	ids, err := t.store.Newest(t.Context(), math.MaxInt64, 10_000)
	t.must(err)
	rows, broken, err := t.store.Rows(t.Context(), ids, true)
	t.must(err)
	if len(broken) != 0 {
		t.Fatalf("broken %v, want none", broken)
	}
	return rows
}

// holdsIDs wants these rows stored, and no others.
func (t *tester) holdsIDs(want ...int64) {
	t.Helper()
	if got := idsOf(t.all()); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

var executor = row.Executor{Process: 0x0123456789abcdef, Claim: 1}

func (t *tester) claim(refs ...row.Ref) row.Claimed {
	t.Helper()
	claimed, err := t.store.Claim(t.Context(), row.Claim{Rows: refs, Executor: executor, IP: 0x0a000001})
	t.must(err)
	return claimed
}

// take inserts the task and claims it.
func (t *tester) take(r row.Row) row.Row {
	t.Helper()
	t.insert(r)
	if claimed := t.claim(ref(r)); len(claimed.Rows) != 1 {
		t.Fatalf("claimed %d rows of one that is pending", len(claimed.Rows))
	}
	return t.get(r.ID)
}

func (t *tester) update(changes ...row.Change) int {
	t.Helper()
	applied, err := t.store.Update(t.Context(), nil, changes)
	t.must(err)
	return applied
}

// apply is update for changes that must all apply.
func (t *tester) apply(changes ...row.Change) {
	t.Helper()
	if applied := t.update(changes...); applied != len(changes) {
		t.Fatalf("applied %d of %d changes", applied, len(changes))
	}
}

// insertAs inserts the task and brings it to the status, due at the given time.
func (t *tester) insertAs(r row.Row, status row.Status, due row.Time) row.Row {
	t.Helper()
	t.insert(r)
	c := change(r, status)
	c.Due = due
	t.apply(c)
	return t.get(r.ID)
}

// unchanged fails the test when the row is not as it was.
func (t *tester) unchanged(before row.Row) {
	t.Helper()
	t.same(t.get(before.ID), before)
}

// same compares all columns; an empty body equals none.
func (t *tester) same(got, want row.Row) {
	t.Helper()
	if !bytes.Equal(got.Body, want.Body) {
		t.Fatalf("task %d: body of %d bytes differs from the one of %d bytes", got.ID, len(got.Body), len(want.Body))
	}
	got.Body, want.Body = nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("task %d:\n got %s\nwant %s", got.ID, show(got), show(want))
	}
}

// written compares the stored row with want, except for the times of the writes.
func (t *tester) written(want row.Row) {
	t.Helper()
	got := t.get(want.ID)
	want.Created, want.Updated = got.Created, got.Updated
	t.same(got, want)
}

func show(r row.Row) string {
	return fmt.Sprintf("%+v headers=%s errors=%s", r, r.Headers, r.Errors)
}

func ref(r row.Row) row.Ref { return row.Ref{ID: r.ID, Version: r.Version} }

// change returns a transition of the row that keeps what it can keep.
func change(r row.Row, to row.Status) row.Change {
	return row.Change{
		ID: r.ID, Version: r.Version, From: r.Status, To: to,
		Due: r.Due, Attempt: r.Attempt, CrashCount: r.CrashCount, Execution: r.Execution,
		ErrorStack: r.ErrorStack, Errors: r.Errors, Delay: r.Delay, Executor: r.Executor, SameExecutor: true,
	}
}

func idsOf(rows []row.Row) []int64 {
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return ids
}
