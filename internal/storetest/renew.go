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
	want := row.State{ID: r.ID, Version: r.Version, Status: r.Status, Due: r.Due, Executor: r.Executor}
	if got != want {
		t.Errorf("state %+v, want %+v", got, want)
	}
}
