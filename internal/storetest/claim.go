package storetest

import (
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var claimTests = []test{
	{"A claim takes the row and says so in it", claimTakesTheRow},
	{"A claim loses to a newer version", func(t *tester) {
		t.insert(t.task(1))
		stale := t.get(1)
		t.apply(change(stale, row.Pending))
		before := t.get(1)
		t.wins(row.Claim{Rows: []row.Ref{ref(stale)}, Executor: executor})
		t.unchanged(before)
	}},
	{"A claim of a version that is still to come wins nothing", func(t *tester) {
		t.insert(t.task(1))
		before := t.get(1)
		t.wins(row.Claim{Rows: []row.Ref{{ID: 1, Version: 1}}, Executor: executor})
		t.unchanged(before)
	}},
	{"Only pending rows are claimed", func(t *tester) {
		for _, status := range []row.Status{row.Completed, row.Failed, row.Executing, row.Cancelled} {
			before := t.insertAs(t.task(int64(status)+1), status, t.start)
			t.wins(row.Claim{Rows: []row.Ref{ref(before)}, Executor: "other"})
			t.unchanged(before)
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
	{"Rows that are not won are left out", func(t *tester) {
		t.insertTasks(plain, 1, 2, 3)
		t.claim(row.Ref{ID: 2})
		before := t.get(2)
		t.wins(row.Claim{Rows: []row.Ref{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4}}, Executor: "second"}, 1, 3)
		t.unchanged(before)
	}},
	{"A row at another version than its neighbours is claimed with them", func(t *tester) {
		t.insertTasks(plain, 1, 2, 3, 4)
		for range 2 {
			t.apply(change(t.get(2), row.Pending))
		}
		t.apply(change(t.get(4), row.Pending))
		c := row.Claim{Rows: []row.Ref{{ID: 4, Version: 2}, {ID: 2, Version: 2}, {ID: 3}, {ID: 1, Version: 1}},
			Executor: executor}
		t.wins(c, 2, 3)
	}},
	{"A row that is due later keeps its lease from then", func(t *tester) {
		r := t.task(1)
		r.Due = t.start.Add(time.Hour + 7*time.Microsecond)
		got := t.take(r)
		if want := r.Due.Add(r.TTR); got.Due != want {
			t.Fatalf("lease until %v, want due time and TTR: %v", got.Due, want)
		}
	}},
	{"A row without a due time has its lease from now", func(t *tester) {
		r := t.task(1)
		r.Due = 0
		before := t.now()
		got := t.take(r)
		if after := t.now(); got.Due < before.Add(r.TTR) || got.Due > after.Add(r.TTR) {
			t.Fatalf("lease until %v, want a minute after the claim at %v", got.Due, before)
		}
	}},
	{"A claim writes the begin of its lease as the start of a row that had none", func(t *tester) {
		due, early, undated, begun := t.task(1), t.task(2), t.task(3), t.task(4)
		early.Due, undated.Due, begun.Execution = t.start.Add(time.Hour), 0, t.start.Add(-time.Hour)
		t.insert(due, early, undated, begun)
		c := change(t.get(4), row.Pending)
		c.Execution = begun.Execution
		t.apply(c)
		for _, r := range t.claim(ref(due), ref(early), ref(undated), row.Ref{ID: 4, Version: 1}).Rows {
			if first := r.ID != begun.ID; r.FirstStart() != first || !first && r.Execution != begun.Execution {
				t.Errorf("task %d is claimed until %v with the start %v", r.ID, r.Due, r.Execution)
			}
			if stored := t.get(r.ID); stored.Execution != r.Execution {
				t.Errorf("task %d: stored start %v, read back %v", r.ID, stored.Execution, r.Execution)
			}
		}
	}},
	{"Each row's lease follows its own TTR", func(t *tester) {
		short, long := t.task(1), t.task(2)
		short.TTR, long.TTR = 1500*time.Millisecond, 24*time.Hour
		t.insert(short, long)
		t.claim(ref(short), ref(long))
		if apart := t.get(2).Due.Sub(t.get(1).Due); apart != long.TTR-short.TTR {
			t.Fatalf("the leases end %v apart, want %v", apart, long.TTR-short.TTR)
		}
	}},
	{"A lease lasts a second at least", func(t *tester) {
		var refs []row.Ref
		for i, ttr := range []time.Duration{0, time.Millisecond, row.MinTTR - time.Millisecond, row.MinTTR} {
			r := t.task(int64(i + 1))
			r.TTR = ttr
			t.insert(r)
			refs = append(refs, ref(r))
			if got := t.get(r.ID).TTR; got != row.MinTTR {
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
	{"The attempts go on counting", func(t *tester) {
		r := t.take(t.task(1))
		c := change(r, row.Pending)
		c.Attempt = 41
		t.apply(c)
		claimed := t.claim(row.Ref{ID: 1, Version: 2})
		if len(claimed.Rows) != 1 || claimed.Rows[0].Attempt != 42 {
			t.Fatalf("got %+v, want attempt 42", claimed.Rows)
		}
	}},
	{"An executor finds what it claimed", func(t *tester) {
		t.insertTasks(plain, 1, 2)
		t.claim(row.Ref{ID: 2})
		strays := t.strays(executor, 10)
		if len(strays) != 1 || strays[0].ID != 2 || strays[0].Version != 1 {
			t.Fatalf("got %+v, want task 2 at version 1", strays)
		}
	}},
	{"No rows are no error", func(t *tester) { t.wins(row.Claim{Executor: executor}) }},
	{"Hundreds of rows are claimed by one call", func(t *tester) {
		ids := make([]int64, 400)
		refs := make([]row.Ref, len(ids))
		for i := range ids {
			ids[i] = int64(i + 1)
			refs[i].ID = ids[i]
		}
		t.insertTasks(plain, ids...)
		t.wins(row.Claim{Rows: refs, Executor: executor}, ids...)
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
	t.insert(t.task(1))
	want := t.get(1)
	before := t.now()
	claimed, err := t.store.Claim(t.Context(), row.Claim{Rows: []row.Ref{{ID: 1}}, Executor: "host:7:abc:12", IP: 0xc0a80001})
	t.must(err)
	after := t.now()
	if len(claimed.Rows) != 1 {
		t.Fatalf("claimed %d rows of one", len(claimed.Rows))
	}
	got := claimed.Rows[0]
	if got.Due < before.Add(want.TTR) || got.Due > after.Add(want.TTR) {
		t.Errorf("lease until %v, want a TTR after the claim at %v", got.Due, before)
	}
	if claimed.Reading.Time < before || claimed.Reading.Time > after || claimed.Reading.Server == "" {
		t.Errorf("reading %+v, want one within [%v, %v] that names its server", claimed.Reading, before, after)
	}
	want.Status, want.Version, want.Attempt = row.Executing, 1, 1
	want.Executor, want.IPAddress = "host:7:abc:12", 0xc0a80001
	want.Due, want.Execution = got.Due, got.Due.Add(-want.TTR)
	stored := t.get(1)
	want.Updated = stored.Updated
	t.same(stored, want)
	want.Delay, want.Created, want.Updated = 0, 0, 0
	t.same(got, want)
}
