package storetest

import (
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var renewTests = []test{
	{"A renewal moves the lease to now and TTR", func(t *tester) {
		before := t.take(t.task(1))
		early := t.now()
		states := t.renew(row.Lease{Ref: ref(before), TTR: time.Hour})
		late := t.now()
		if len(states) != 1 {
			t.Fatalf("got %d states of one row", len(states))
		}
		if due := states[0].Due; due < early.Add(time.Hour) || due > late.Add(time.Hour) {
			t.Errorf("lease until %v, want an hour after %v", due, early)
		}
		got := t.get(1)
		t.holds(states[0], got)
		before.Due, before.Updated = got.Due, got.Updated
		t.same(got, before)
	}},
	{"A renewal may shorten a lease", func(t *tester) {
		before := t.take(t.task(1))
		if states := t.renew(row.Lease{Ref: ref(before), TTR: time.Second}); states[0].Due >= before.Due {
			t.Fatalf("lease until %v, want it before %v", states[0].Due, before.Due)
		}
	}},
	{"A renewal keeps a lease that ends later where that is asked for", func(t *tester) {
		long, short, cut := t.take(t.task(1)), t.take(t.task(2)), t.take(t.task(3))
		t.renew(row.Lease{Ref: ref(long), TTR: time.Hour}, row.Lease{Ref: ref(cut), TTR: time.Hour})
		later := t.get(1).Due
		for range 2 {
			t.renew(
				row.Lease{Ref: ref(long), TTR: time.Minute, Least: true}, row.Lease{Ref: ref(short), TTR: time.Minute, Least: true},
				row.Lease{Ref: ref(cut), TTR: time.Minute})
			if due := t.get(1).Due; due != later {
				t.Errorf("lease until %v, want it to stay until %v", due, later)
			}
			for _, id := range []int64{2, 3} {
				if left := t.get(id).Due.Sub(t.now()); left > time.Minute || left < 50*time.Second {
					t.Errorf("the lease of %d ends in %v, want a minute", id, left)
				}
			}
		}
		t.renew(row.Lease{Ref: ref(long), TTR: time.Minute, Least: true}, row.Lease{Ref: ref(short), TTR: time.Minute, Least: true})
		if due := t.get(1).Due; due != later {
			t.Errorf("lease until %v, want it to stay until %v", due, later)
		}
	}},
	{"A renewal twice in a moment answers like the first", func(t *tester) {
		held := t.take(t.task(1))
		for range 20 {
			states := t.renew(row.Lease{Ref: ref(held), TTR: time.Minute})
			if len(states) != 1 || states[0].Version != held.Version || states[0].Status != row.Executing {
				t.Fatalf("got %+v, want the row as it is held", states)
			}
		}
	}},
	{"Each lease has its own TTR", func(t *tester) {
		a, b := t.take(t.task(1)), t.take(t.task(2))
		t.renew(row.Lease{Ref: ref(a), TTR: time.Hour}, row.Lease{Ref: ref(b), TTR: 90 * time.Minute})
		if apart := t.get(2).Due.Sub(t.get(1).Due); apart != 30*time.Minute {
			t.Fatalf("the leases end %v apart, want 30m", apart)
		}
	}},
	{"A lease that is over is renewed while nobody has taken the row", func(t *tester) {
		held := t.insertAs(t.task(1), row.Executing, t.start.Add(-time.Second))
		t.renew(row.Lease{Ref: ref(held), TTR: time.Hour})
		if due := t.get(1).Due; due < t.now() {
			t.Fatalf("lease until %v, want it renewed", due)
		}
	}},
	{"A row that is no longer held is not renewed, and its state is told", func(t *tester) {
		released := t.take(t.task(1))
		t.apply(change(released, row.Pending))
		completed := t.take(t.task(2))
		t.apply(change(completed, row.Completed))
		stolen := t.take(t.task(3))
		t.apply(change(stolen, row.Pending))
		t.claim(row.Ref{ID: 3, Version: 2})
		kept := t.take(t.task(4))
		before := []row.Row{t.get(1), t.get(2), t.get(3)}

		states := make(map[int64]row.State)
		for _, s := range t.renew(
			row.Lease{Ref: ref(stolen), TTR: time.Hour}, row.Lease{Ref: row.Ref{ID: 5, Version: 1}, TTR: time.Hour},
			row.Lease{Ref: ref(kept), TTR: time.Hour}, row.Lease{Ref: ref(released), TTR: time.Hour},
			row.Lease{Ref: ref(completed), TTR: time.Hour}) {
			states[s.ID] = s
		}
		if len(states) != 4 {
			t.Fatalf("got %d states, want those of the four rows that exist", len(states))
		}
		for _, r := range before {
			t.unchanged(r)
			t.holds(states[r.ID], r)
		}
		if states[4].Due < t.start.Add(time.Hour) {
			t.Errorf("lease until %v, want the row that is held renewed", states[4].Due)
		}
	}},
	{"A renewal may name another executor and the start, and keeps both where it does not", func(t *tester) {
		handed, kept := t.take(t.task(1)), t.take(t.task(2))
		started := t.start.Add(123 * time.Microsecond)
		lease := row.Lease{Ref: ref(handed), TTR: time.Hour, Executor: row.PopMark + executor, Execution: started}
		for range 2 {
			states := t.renew(lease, row.Lease{Ref: ref(kept), TTR: time.Hour})
			for i, before := range []row.Row{handed, kept} {
				got := t.get(before.ID)
				t.holds(states[i], got)
				before.Due, before.Updated = got.Due, got.Updated
				if before.ID == handed.ID {
					before.Executor, before.Execution = lease.Executor, started
				}
				t.same(got, before)
			}
		}
		t.renew(row.Lease{Ref: ref(handed), TTR: time.Minute})
		if got := t.get(1); got.Executor != lease.Executor || got.Execution != started {
			t.Fatalf("a plain renewal has changed the executor to %q and the start to %v", got.Executor, got.Execution)
		}
	}},
	{"A row that is no longer held keeps its executor and its start", func(t *tester) {
		stolen := t.take(t.task(1))
		t.apply(change(stolen, row.Pending))
		t.claim(row.Ref{ID: 1, Version: 2})
		before := t.get(1)
		t.renew(row.Lease{Ref: ref(stolen), TTR: time.Hour, Executor: row.PopMark + executor, Execution: t.start})
		t.unchanged(before)
	}},
	{"A pending row at the version is not renewed", func(t *tester) {
		t.insert(t.task(1))
		before := t.get(1)
		t.renew(row.Lease{Ref: ref(before), TTR: time.Hour})
		t.unchanged(before)
	}},
	{"No leases are no error", func(t *tester) {
		if states := t.renew(); len(states) != 0 {
			t.Fatalf("got %v, want nothing", states)
		}
	}},
}

func (t *tester) renew(leases ...row.Lease) []row.State {
	t.Helper()
	states, err := t.store.Renew(t.Context(), leases)
	t.must(err)
	return states
}

// holds fails the test when the state is not that of the row.
func (t *tester) holds(got row.State, r row.Row) {
	t.Helper()
	want := row.State{ID: r.ID, Tag: r.Tag, Version: r.Version, Status: r.Status, Due: r.Due, Executor: r.Executor}
	if got != want {
		t.Errorf("state %+v, want %+v", got, want)
	}
}
