package storetest

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var updateTests = []test{
	{"A change writes all that it names", changeWritesAll},
	{"A change keeps what it does not name", func(t *tester) {
		before := t.keyed(1, "a", "k")
		before.Headers, before.Priority, before.MaxLate, before.LatePolicy = []byte(`{"a":"b"}`), 9, time.Second, row.LateSkip
		before = t.take(before)
		t.apply(row.Change{ID: 1, Version: 1, From: row.Executing, To: row.Pending, Due: t.start})
		got := t.get(1)
		want := before
		want.Status, want.Version, want.Attempt, want.Executor, want.Due = row.Pending, 2, 0, "", t.start
		want.Execution, want.Updated = 0, got.Updated
		t.same(got, want)
	}},
	{"A reschedule moves the promise and its delay", func(t *tester) {
		t.insert(t.task(1))
		c := change(t.get(1), row.Pending)
		c.Expected, c.Due, c.Delay = t.start.Add(time.Hour), t.start.Add(time.Hour), 90*time.Minute
		t.apply(c)
		if got := t.get(1); got.Expected != c.Expected || got.Due != c.Due || got.Delay != c.Delay || got.Version != 1 {
			t.Fatalf("got expected %v, due %v, delay %v at version %d", got.Expected, got.Due, got.Delay, got.Version)
		}
	}},
	{"A new body changes nothing else", func(t *tester) {
		before := t.keyed(1, "a", "k")
		before.Headers, before.Priority = []byte(`{"a":"b"}`), 9
		t.insert(before)
		for _, body := range []string{"Zoë said \"no\" \\ 🚀\x00", "", strings.Repeat("🚀", 50_000), `{"n":1}`} {
			before = t.get(1)
			c := change(before, row.Pending)
			c.Body = []byte(body)
			t.apply(c)
			want := before
			want.Body, want.Version = []byte(body), before.Version+1
			got := t.get(1)
			want.Updated = got.Updated
			t.same(got, want)
		}
		stale := change(before, row.Pending)
		stale.Body = []byte("late")
		before = t.get(1)
		t.refusedChange(stale)
		t.unchanged(before)
	}},
	{"Extreme values come back as they were written", changeWritesExtremes},
	{"Every row of a batch gets what is its own", changesOfNeighbours},
	{"A change applies only at its version", func(t *tester) {
		held := t.take(t.task(1))
		for _, version := range []int64{0, 2, math.MaxInt64} {
			c := change(held, row.Completed)
			c.Version = version
			t.refusedChange(c)
		}
		t.unchanged(held)
	}},
	{"A change applies only from its status", func(t *tester) {
		for _, status := range []row.Status{row.Pending, row.Completed, row.Failed, row.Executing, row.Cancelled} {
			r := t.insertAs(t.task(int64(status)+1), status, t.start)
			for _, from := range []row.Status{row.Pending, row.Completed, row.Failed, row.Executing, row.Cancelled} {
				if from != status {
					c := change(r, row.Failed)
					c.From = from
					t.refusedChange(c)
				}
			}
			t.unchanged(r)
		}
	}},
	{"A late executor changes nothing", func(t *tester) {
		late := t.take(t.task(1))
		t.apply(change(late, row.Pending))
		t.claim(row.Ref{ID: 1, Version: 2})
		before := t.get(1)
		t.refusedChange(change(late, row.Completed))
		t.unchanged(before)
	}},
	{"A settle that is sent twice applies once", func(t *tester) {
		held := t.take(t.task(1))
		t.apply(change(held, row.Completed))
		before := t.get(1)
		t.refusedChange(change(held, row.Completed))
		t.unchanged(before)
	}},
	{"A batch counts the changes that applied", func(t *tester) {
		a, b, c := t.take(t.task(1)), t.take(t.task(2)), t.take(t.task(3))
		t.apply(change(b, row.Pending))
		before := t.get(2)
		gone := change(c, row.Completed)
		gone.ID = 4
		failed := change(a, row.Failed)
		failed.ErrorStack, failed.Attempt = "boom", 3
		if applied := t.update(change(c, row.Completed), change(b, row.Completed), failed, gone); applied != 2 {
			t.Fatalf("applied %d, want 2", applied)
		}
		t.unchanged(before)
		if got := t.get(1); got.Status != row.Failed || got.ErrorStack != "boom" || got.Attempt != 3 || got.Version != 2 {
			t.Errorf("got %s, want it failed with its error", show(got))
		}
		if got := t.get(3); got.Status != row.Completed || got.ErrorStack != "" || got.Version != 2 {
			t.Errorf("got %s, want it completed without its neighbour's error", show(got))
		}
	}},
	{"Hundreds of changes are one call", func(t *tester) {
		rows := make([]row.Row, 300)
		changes := make([]row.Change, len(rows))
		for i := range rows {
			rows[i] = t.task(int64(i + 1))
			changes[i] = change(rows[i], row.Completed)
			changes[i].Due = t.start.Add(time.Duration(i) * time.Second)
			changes[i].Attempt = i
		}
		t.insert(rows...)
		t.apply(changes...)
		for i, got := range t.list(row.Filter{Limit: 1000}) {
			if got.Attempt != i || got.Due != changes[i].Due || got.Status != row.Completed {
				t.Fatalf("task %d has the values of another: %s", got.ID, show(got))
			}
		}
	}},
	{"No changes are no error", func(t *tester) { t.apply() }},
	{"A rescue applies once the lease is over", func(t *tester) {
		held := t.insertAs(t.task(1), row.Executing, t.start.Add(-time.Second))
		c := change(held, row.Pending)
		c.LeaseOver = true
		t.apply(c)
	}},
	{"A rescue is refused while the lease lasts", func(t *tester) {
		held := t.take(t.task(1))
		c := change(held, row.Pending)
		c.LeaseOver = true
		t.refusedChange(c)
		t.unchanged(held)
	}},
	{"A rescue is refused when the lease was renewed", func(t *tester) {
		held := t.insertAs(t.task(1), row.Executing, t.start.Add(-time.Second))
		t.renew(row.Lease{Ref: ref(held), TTR: time.Hour})
		before := t.get(1)
		c := change(held, row.Pending)
		c.LeaseOver = true
		t.refusedChange(c)
		t.unchanged(before)
	}},
	{"In one batch only the rescue looks at the lease", func(t *tester) {
		settled, rescued := t.take(t.task(1)), t.take(t.task(2))
		c := change(rescued, row.Pending)
		c.LeaseOver = true
		if applied := t.update(change(settled, row.Completed), c); applied != 1 {
			t.Fatalf("applied %d, want only the settle", applied)
		}
		t.unchanged(rescued)
	}},
	{"A retry of a task whose key is taken changes nothing", retryMeetsTakenKey},
	{"Two retries with the same key are refused together", func(t *tester) {
		a := t.insertAs(t.keyed(1, "a", "k"), row.Failed, t.start)
		b := t.insertAs(t.keyed(2, "a", "k"), row.Failed, t.start)
		_, err := t.store.Update(t.Context(), nil, []row.Change{change(a, row.Pending), change(b, row.Pending)})
		t.refused(err, row.ClassDuplicate)
		t.unchanged(a)
		t.unchanged(b)
	}},
	{"A retry takes its key again", func(t *tester) {
		failed := t.insertAs(t.keyed(1, "a", "k"), row.Failed, t.start)
		t.apply(change(failed, row.Pending))
		t.taken(t.keyed(2, "a", "k"))
	}},
	{"The caller's bytes are not kept", func(t *tester) {
		t.insert(t.task(1))
		c := change(t.get(1), row.Pending)
		c.Errors, c.Body = []byte(`["a"]`), []byte("a")
		t.apply(c)
		copy(c.Errors, `["b"]`)
		c.Body[0] = 'b'
		if got := t.get(1); !bytes.Equal(got.Errors, []byte(`["a"]`)) || string(got.Body) != "a" {
			t.Fatalf("the stored row followed the caller's slices: %s, %s", got.Errors, got.Body)
		}
	}},
}

func (t *tester) refusedChange(c row.Change) {
	t.Helper()
	if applied := t.update(c); applied != 0 {
		t.Fatalf("%+v applied", c)
	}
}

func changeWritesAll(t *tester) {
	held := t.take(t.keyed(1, "a", "k"))
	c := row.Change{
		ID: 1, Version: 1, From: row.Executing, To: row.Failed,
		Due:        t.start.Add(11 * time.Microsecond),
		Attempt:    19,
		CrashCount: 4,
		Execution:  t.start.Add(12 * time.Microsecond),
		Finish:     t.start.Add(13 * time.Microsecond),
		ErrorStack: "panic: 'quoted' \"twice\" \\ 🚀\n\tgoroutine 1 [running]:\n",
		Errors:     []byte(`[{"n":1,"error":"Zoë said \"no\" 🚀"}]`),
		Executor:   "host:2:other:9",
	}
	t.apply(c)
	got, want := t.get(1), held
	if got.Updated < held.Updated {
		t.Errorf("update_time went back from %v to %v", held.Updated, got.Updated)
	}
	want.Status, want.Version = row.Failed, 2
	want.Due, want.Attempt, want.CrashCount, want.Execution, want.Finish = c.Due, c.Attempt, c.CrashCount, c.Execution, c.Finish
	want.ErrorStack, want.Errors, want.Executor = c.ErrorStack, c.Errors, c.Executor
	want.Updated = got.Updated
	t.same(got, want)

	t.apply(row.Change{ID: 1, Version: 2, From: row.Failed, To: row.Pending, Due: t.start, Executor: c.Executor})
	got = t.get(1)
	if !got.Execution.IsZero() || !got.Finish.IsZero() || got.ErrorStack != "" || got.Errors != nil {
		t.Errorf("got %s, want the times, the error and the errors cleared", show(got))
	}
	if got.Attempt != 0 || got.CrashCount != 0 || got.Version != 3 || got.Expected != held.Expected {
		t.Errorf("got %s, want both counters 0 and the promise kept", show(got))
	}
}

func changeWritesExtremes(t *tester) {
	t.insert(t.task(1))
	c := change(t.get(1), row.Completed)
	c.Due, c.Execution, c.Finish = row.MaxTime, row.MinTime, row.MaxTime
	c.Expected, c.Delay = row.MaxTime, time.Duration(math.MaxInt64).Truncate(time.Millisecond)
	c.Attempt, c.CrashCount = math.MaxInt32, math.MaxInt16
	c.ErrorStack = strings.Repeat("🚀", 2048)
	c.Errors = []byte(`["` + strings.Repeat("é", 10_000) + `"]`)
	t.apply(c)
	got, want := t.get(1), t.task(1)
	want.Status, want.Version = row.Completed, 1
	want.Due, want.Execution, want.Finish, want.Expected, want.Delay = c.Due, c.Execution, c.Finish, c.Expected, c.Delay
	want.Attempt, want.CrashCount, want.ErrorStack, want.Errors = c.Attempt, c.CrashCount, c.ErrorStack, c.Errors
	want.Created, want.Updated = got.Created, got.Updated
	t.same(got, want)
}

// changesOfNeighbours has ids that floating point cannot tell apart, and differs in every column.
func changesOfNeighbours(t *tester) {
	const first = math.MaxInt64 - 20
	ids := make([]int64, 20)
	for i := range ids {
		ids[i] = first + int64(i)
	}
	t.insertTasks(func(*row.Row) {}, ids...)
	var changes []row.Change
	for i, id := range ids {
		c := row.Change{
			ID: id, From: row.Pending, To: []row.Status{row.Completed, row.Failed, row.Pending}[i%3], Attempt: i, CrashCount: 20 - i,
			Due: t.start.Add(time.Duration(i) * time.Hour), Executor: strings.Repeat("e", i),
		}
		if i%2 == 0 {
			c.Execution, c.ErrorStack, c.Errors = c.Due+1, "error '"+strings.Repeat("\\", i), []byte(`["`+strings.Repeat("é", i)+`"]`)
		}
		if i%5 == 0 {
			c.Finish, c.Expected, c.Delay = c.Due+2, c.Due+3, time.Duration(i)*time.Minute
		}
		if i%4 == 0 {
			c.Body = []byte(strings.Repeat("ü", i))
		}
		changes = append(changes, c)
	}
	slices.Reverse(changes)
	t.apply(changes...)
	for _, c := range changes {
		got := t.get(c.ID)
		want := t.task(c.ID)
		want.Status, want.Version, want.Attempt, want.CrashCount, want.Due, want.Executor = c.To, 1, c.Attempt, c.CrashCount, c.Due, c.Executor
		want.Execution, want.ErrorStack, want.Errors, want.Finish = c.Execution, c.ErrorStack, c.Errors, c.Finish
		if !c.Expected.IsZero() {
			want.Expected, want.Delay = c.Expected, c.Delay
		}
		if c.Body != nil {
			want.Body = c.Body
		}
		want.Created, want.Updated = got.Created, got.Updated
		t.same(got, want)
	}
}

func retryMeetsTakenKey(t *tester) {
	failed := t.insertAs(t.keyed(1, "a", "k"), row.Failed, t.start)
	t.insert(t.keyed(2, "a", "k"))
	holder := t.get(2)
	neighbour := t.take(t.task(3))
	_, err := t.store.Update(t.Context(), nil, []row.Change{change(neighbour, row.Completed), change(failed, row.Pending)})
	t.refused(err, row.ClassDuplicate)
	t.unchanged(failed)
	t.unchanged(holder)
	t.unchanged(neighbour)

	t.apply(change(holder, row.Cancelled))
	t.apply(change(failed, row.Pending))
	if found := t.findActive(row.TagKey{Tag: "a", Key: "k"}); len(found) != 1 || found[0] != 1 {
		t.Fatalf("the key is carried by %v, want the retried task", found)
	}
}
