package storetest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var claimTests = []test{
	{"A claim takes the row and says so in it", claimTakesTheRow},
	{"A claim wins the pending rows of one version, and no others", func(t *tester) {
		c := row.Claim{Executor: row.Executor{Process: 8, Claim: 1}}
		var before []row.Row
		for _, r := range t.oneOfEach(t.start) { // all of them at version 1
			c.Rows = append(c.Rows, ref(r))
			before = append(before, r)
		}
		newer := t.insertAs(t.task(7), row.Pending, t.start)
		t.apply(change(newer, row.Pending))
		before = append(before, t.inserted(t.task(8)), t.get(7))
		c.Rows = append(c.Rows, row.Ref{ID: 7, Version: 1}, row.Ref{ID: 8, Version: 1}, row.Ref{ID: 9, Version: 1})
		t.wins(c, 1)
		for _, r := range before[1:] {
			t.unchanged(r)
		}
	}},
	{"A claim that is sent twice answers like the first", func(t *tester) {
		t.insertTasks(plain, 1, 2)
		c := row.Claim{Rows: []row.Ref{{ID: 1}, {ID: 2}}, Executor: executor}
		t.wins(c, 1, 2)
		before := t.get(1)
		t.wins(c, 1, 2)
		t.unchanged(before)
	}},
	{"A claim reads bodies up to its bound, and the first in any case", func(t *tester) {
		for id := range int64(3) {
			r := t.task(id + 1)
			r.Body = make([]byte, 100)
			t.insert(r)
		}
		c := row.Claim{Rows: []row.Ref{{ID: 1}, {ID: 2}, {ID: 3}}, Executor: executor}
		for bytes, want := range map[int][]int64{1: {1}, 200: {1, 2}, 300: {1, 2, 3}, 0: {1, 2, 3}} {
			c.Bytes = bytes
			claimed, err := t.store.Claim(t.Context(), c)
			t.must(err)
			all := append(idsOf(claimed.Rows), idsOf(claimed.Unread)...)
			if got := idsOf(claimed.Rows); !slices.Equal(got, want) || !slices.Equal(all, []int64{1, 2, 3}) {
				t.Errorf("of %d bytes %v were read, all are %v", bytes, got, all)
			}
			for _, r := range claimed.Unread {
				if r.Status != row.Executing || r.Version != 1 || r.Body != nil {
					t.Errorf("not read, and %s", show(r))
				}
			}
		}
	}},
	{"A lease lasts the row's TTR from its due time on, at the earliest from now", func(t *tester) {
		due, early, undated, begun := t.task(1), t.task(2), t.task(3), t.task(4)
		early.Due, undated.Due, begun.Execution = t.start.Add(time.Hour+7*time.Microsecond), 0, t.start.Add(-time.Hour)
		early.TTR, undated.TTR = 1500*time.Millisecond, 24*time.Hour
		t.insert(due, early, undated, begun)
		c := change(t.get(4), row.Pending)
		c.Execution = begun.Execution
		t.apply(c)
		before := t.now()
		claimed := t.claim(ref(due), ref(early), ref(undated), row.Ref{ID: 4, Version: 1}).Rows
		after := t.now()
		for _, r := range claimed {
			begin := r.Due.Add(-r.TTR)
			if r.ID == early.ID {
				t.within("the lease of the early row", begin, early.Due, early.Due)
			} else {
				t.within("a lease", begin, before, after)
			}
			if first := r.ID != begun.ID; r.FirstStart() != first || !first && r.Execution != begun.Execution {
				t.Errorf("task %d is claimed until %v with the start %v", r.ID, r.Due, r.Execution)
			}
			if stored := t.get(r.ID); stored.Execution != r.Execution || stored.Due != r.Due {
				t.Errorf("task %d: read back %s, stored %s", r.ID, show(r), show(stored))
			}
		}
		if len(claimed) != 4 {
			t.Errorf("claimed %d rows of 4", len(claimed))
		}
	}},
	{"A lease lasts a second at least", func(t *tester) {
		var refs []row.Ref
		for i, ttr := range []time.Duration{0, time.Millisecond, row.MinTTR - time.Millisecond, row.MinTTR} {
			r := t.task(int64(i + 1))
			r.TTR = ttr
			refs = append(refs, ref(r))
			if got := t.inserted(r).TTR; got != row.MinTTR {
				t.Errorf("a TTR of %v is read as %v, want %v", ttr, got, row.MinTTR)
			}
		}
		before := t.now()
		claimed := t.claim(refs...)
		if len(claimed.Rows) != len(refs) {
			t.Fatalf("claimed %d rows of %d", len(claimed.Rows), len(refs))
		}
		for _, r := range claimed.Rows {
			if r.TTR != row.MinTTR || r.Due < before.Add(row.MinTTR) {
				t.Errorf("claimed with the TTR %v until %v, want %v after %v", r.TTR, r.Due, row.MinTTR, before)
			}
		}
		before = t.now()
		own, short := row.Lease{Ref: ref(claimed.Rows[0])}, row.Lease{Ref: ref(claimed.Rows[1]), TTR: time.Millisecond}
		for _, s := range t.renew(own, short) {
			if s.Due < before.Add(row.MinTTR) {
				t.Errorf("renewed until %v, want %v after %v", s.Due, row.MinTTR, before)
			}
		}
	}},
}

// wins claims and compares what was won.
func (t *tester) wins(c row.Claim, want ...int64) {
	t.Helper()
	claimed, err := t.store.Claim(t.Context(), c)
	t.must(err)
	got := slices.Sorted(slices.Values(idsOf(claimed.Rows)))
	if !slices.Equal(got, want) || len(claimed.Broken) != 0 {
		t.Fatalf("won %v and broken %v, want %v", got, claimed.Broken, want)
	}
}

func claimTakesTheRow(t *tester) {
	want := t.inserted(t.task(1))
	c := change(want, row.Pending)
	c.Attempt = 41
	t.apply(c)
	of := row.Executor{Process: math.MinInt64, Claim: math.MaxInt64}
	before := t.now()
	claimed, err := t.store.Claim(t.Context(),
		row.Claim{Rows: []row.Ref{{ID: 1, Version: 1}}, Executor: of, IP: 0xc0a80001})
	t.must(err)
	after := t.now()
	if len(claimed.Rows) != 1 {
		t.Fatalf("claimed %d rows of one", len(claimed.Rows))
	}
	got := claimed.Rows[0]
	t.within("the lease's end", got.Due, before.Add(want.TTR), after.Add(want.TTR))
	t.within("the clock", claimed.Reading.Time, before, after)
	if claimed.Reading.Server == "" {
		t.Error("the reading names no server")
	}
	want.Status, want.Version, want.Attempt = row.Executing, 2, 42
	want.Executor, want.IPAddress = of, 0xc0a80001
	want.Due, want.Execution = got.Due, got.Due.Add(-want.TTR)
	t.written(want)
	want.Delay, want.Created, want.Updated = 0, 0, 0
	t.same(got, want)
}

var bulkTests = []test{
	{"Hundreds of rows go each way by one call", func(t *tester) {
		rows, changes, tags := make([]row.Row, 400), make([]row.Change, 400), make([]string, 400)
		c := row.Claim{Executor: executor}
		var leases []row.Lease
		for i, id := range upTo(int64(len(rows))) {
			tags[i] = fmt.Sprintf("tag.%d", i)
			rows[i] = t.dueAt(id, time.Duration(i))
			rows[i].Tag = tags[i]
			c.Rows = append(c.Rows, ref(rows[i]))
			leases = append(leases, row.Lease{Ref: row.Ref{ID: id, Version: 1}, TTR: time.Hour})
			changes[i] = row.Change{ID: id, Version: 1, From: row.Executing, To: row.Completed, Attempt: i,
				Due: t.start.Add(time.Duration(i) * time.Second)}
		}
		ids := idsOf(rows)
		t.insert(rows...)
		t.sees(everything(tags...), ids...)
		t.wins(c, ids...)
		if states := t.renew(leases...); len(states) != len(ids) {
			t.Errorf("renewed %d rows of %d", len(states), len(ids))
		}
		t.apply(changes...)
		for i, got := range t.all() {
			if got.ID != ids[i] || got.Attempt != i || got.Due != changes[i].Due || got.Status != row.Completed {
				t.Fatalf("task %d has the values of another: %s", got.ID, show(got))
			}
		}
		t.purges(row.Completed, row.MaxTime, 1000, len(ids))
	}},
}
