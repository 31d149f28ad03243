package storetest

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

var updateTests = []test{
	{"A change writes all that it names, and keeps the rest", changeWritesAll},
	{"A new body changes nothing else", func(t *tester) {
		t.insert(t.rich(1))
		for _, body := range []string{"Zoë said \"no\" \\ 🚀\x00", "", strings.Repeat("🚀", 50_000), `{"n":1}`} {
			c := change(t.get(1), row.Pending)
			c.Body = []byte(body)
			want := changedBy(t.get(1), c)
			t.apply(c)
			t.written(want)
		}
	}},
	{"Extreme values come back as they were written", changeWritesExtremes},
	{"Every row of a batch gets its own values", changesOfNeighbours},
	{"A change applies only at its version and from its status", func(t *tester) {
		for _, r := range t.oneOfEach(t.start) {
			for _, version := range []int64{0, 2, math.MaxInt64} {
				c := change(r, row.Completed)
				c.Version = version
				t.refusedChange(c)
			}
			for _, from := range statuses {
				if c := change(r, row.Failed); from != r.Status {
					c.From = from
					t.refusedChange(c)
				}
			}
			t.unchanged(r)
		}
	}},
	{"A rescue applies only once the lease is over, other changes of the batch before too", func(t *tester) {
		past := t.start.Add(-time.Second)
		over, renewed := t.insertAs(t.task(1), row.Executing, past), t.insertAs(t.task(2), row.Executing, past)
		t.renew(row.Lease{Ref: ref(renewed), TTR: time.Hour})
		lasts, settled := t.take(t.task(3)), t.take(t.task(4))
		ends, moved := t.take(t.task(5)), t.take(t.task(6))
		renewed = t.get(2)
		changes := []row.Change{change(over, row.Pending), change(renewed, row.Pending), change(lasts, row.Pending)}
		for i := range changes {
			changes[i].LeaseOver = true
		}
		for _, r := range []row.Row{ends, moved} {
			changes = append(changes, change(r, row.Cancelled))
			changes[len(changes)-1].LeaseBy = r.Due
		}
		t.renew(row.Lease{Ref: ref(moved), TTR: 2 * time.Hour})
		if applied := t.update(append(changes, change(settled, row.Completed))...); applied != 3 {
			t.Fatalf("applied %d, want the rescue of the first, the cancel of the fifth and the settle", applied)
		}
		t.unchanged(renewed)
		t.unchanged(lasts)
		if got := []row.Status{t.get(1).Status, t.get(4).Status}; got[0] != row.Pending || got[1] != row.Completed {
			t.Errorf("the rescued task and the settled one are %v", got)
		}
	}},
	{"A retry of a task whose key is taken changes nothing", retryMeetsTakenKey},
	{"The caller's bytes are not kept", func(t *tester) {
		r := t.task(1)
		r.Body = []byte("a")
		t.insert(r)
		r.Body[0] = 'b'
		copy(t.get(1).Body, "b")
		if got := t.get(1).Body; string(got) != "a" {
			t.Fatalf("the stored body shares bytes with a caller or a reader: %s", got)
		}
		c := change(t.get(1), row.Pending)
		c.Errors, c.Body = []byte(`["a"]`), []byte("a")
		t.apply(c)
		copy(c.Errors, `["b"]`)
		c.Body[0] = 'b'
		if got := t.get(1); !bytes.Equal(got.Errors, []byte(`["a"]`)) || string(got.Body) != "a" {
			t.Fatalf("the stored row shares bytes with the caller: %s, %s", got.Errors, got.Body)
		}
	}},
}

func (t *tester) refusedChange(c row.Change) {
	t.Helper()
	if applied := t.update(c); applied != 0 {
		t.Fatalf("%+v applied", c)
	}
}

// rich is a task with something in every column that a change does not write.
func (t *tester) rich(id int64) row.Row {
	r := t.keyed(id, "a", "k")
	r.Headers, r.Priority, r.MaxLate, r.LatePolicy = []byte(`{"a":"b"}`), 9, time.Second, delaytask.LateSkip
	return r
}

func changeWritesAll(t *tester) {
	held := t.take(t.rich(1))
	c := row.Change{
		ID: 1, Version: 1, From: row.Executing, To: row.Failed,
		Due:        t.start.Add(11 * time.Microsecond),
		Attempt:    19,
		CrashCount: 4,
		Execution:  t.start.Add(12 * time.Microsecond),
		Late:       delaytask.LateSlot,
		ErrorStack: "panic: 'quoted' \"twice\" \\ 🚀\n\tgoroutine 1 [running]:\n",
		Errors:     []byte(`[{"n":1,"error":"Zoë said \"no\" 🚀"}]`),
		Executor:   row.Executor{Process: -2, Claim: -9},
	}
	t.apply(c)
	failed := changedBy(held, c)
	t.written(failed)
	if updated := t.get(1).Updated; updated < held.Updated {
		t.Errorf("update_time went back from %v to %v", held.Updated, updated)
	}
	c = row.Change{ID: 1, Version: 2, From: row.Failed, To: row.Pending, Due: t.start}
	t.apply(c)
	t.written(changedBy(failed, c))
}

func changeWritesExtremes(t *tester) {
	t.insert(t.task(1))
	c := change(t.get(1), row.Completed)
	c.Due, c.Execution = row.MaxTime, row.MinTime
	c.Expected, c.Delay = row.MaxTime, time.Duration(math.MaxInt64).Truncate(time.Millisecond)
	c.Attempt, c.CrashCount = math.MaxInt32, math.MaxInt16
	c.ErrorStack = strings.Repeat("🚀", 2048)
	c.Errors = []byte(`["` + strings.Repeat("é", 10_000) + `"]`)
	t.apply(c)
	t.written(changedBy(t.task(1), c))
}

// changesOfNeighbours has ids that floating point cannot tell apart, and differs in every column.
func changesOfNeighbours(t *tester) {
	const first = math.MaxInt64 - 20
	var changes []row.Change
	for i := range 20 {
		c := row.Change{
			ID: first + int64(i), From: row.Pending, To: []row.Status{row.Completed, row.Failed, row.Pending}[i%3],
			Attempt: i, CrashCount: 20 - i, Due: t.start.Add(time.Duration(i) * time.Hour),
			Executor: row.Executor{Process: math.MaxInt64 - int64(i), Claim: int64(i)},
		}
		if i%2 == 0 {
			c.Execution, c.ErrorStack = c.Due+1, "error '"+strings.Repeat("\\", i)
			c.Errors = []byte(`["` + strings.Repeat("é", i) + `"]`)
		}
		if i%5 == 0 {
			c.Expected, c.Delay = c.Due+3, time.Duration(i)*time.Minute
		}
		if i%4 == 0 {
			c.Body = []byte(strings.Repeat("ü", i))
		}
		changes = append(changes, c)
		t.insert(t.task(c.ID))
	}
	slices.Reverse(changes)
	t.apply(changes...)
	for _, c := range changes {
		t.written(changedBy(t.task(c.ID), c))
	}
}

func retryMeetsTakenKey(t *tester) {
	first := t.insertAs(t.keyed(1, "a", "k"), row.Failed, t.start)
	second := t.insertAs(t.keyed(2, "a", "k"), row.Failed, t.start)
	_, err := t.store.Update(t.Context(), nil, []row.Change{change(first, row.Pending), change(second, row.Pending)})
	t.refused(err, row.ClassDuplicate)
	t.unchanged(first)
	t.unchanged(second)

	holder, neighbour := t.inserted(t.keyed(3, "a", "k")), t.take(t.task(4))
	both := []row.Change{change(neighbour, row.Completed), change(first, row.Pending)}
	_, err = t.store.Update(t.Context(), nil, both)
	t.refused(err, row.ClassDuplicate)
	for _, r := range []row.Row{first, holder, neighbour} {
		t.unchanged(r)
	}

	t.apply(change(holder, row.Cancelled))
	t.apply(change(first, row.Pending))
	t.found([]row.TagKey{{Tag: "a", Key: "k"}}, 1)
	t.taken(t.keyed(5, "a", "k"))
}
