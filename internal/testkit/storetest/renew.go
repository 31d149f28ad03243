package storetest

import (
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

var renewTests = []test{
	{"A renewal moves each lease to now and its own TTR, also one that ends later or is over", func(t *tester) {
		over := t.insertAs(t.task(3), row.Executing, t.start.Add(-time.Second))
		before := []row.Row{t.take(t.task(1)), t.take(t.task(2)), over}
		ttrs := []time.Duration{time.Hour, time.Second, 90 * time.Minute}
		var leases []row.Lease
		for i, r := range before {
			leases = append(leases, row.Lease{Ref: ref(r), TTR: ttrs[i]})
		}
		for range 5 { // more than once in a moment
			early := t.now()
			states := t.renew(leases...)
			late := t.now()
			if len(states) != len(leases) {
				t.Fatalf("got %d states of %d rows", len(states), len(leases))
			}
			for i, want := range before {
				t.within("the lease's end", states[i].Due, early.Add(ttrs[i]), late.Add(ttrs[i]))
				got := t.get(want.ID)
				t.holds(states[i], got)
				want.Due, want.Updated = got.Due, got.Updated
				t.same(got, want)
			}
		}
	}},
	{"A renewal keeps a lease that ends later where that is asked for", func(t *tester) {
		long, short, cut := t.take(t.task(1)), t.take(t.task(2)), t.take(t.task(3))
		t.renew(row.Lease{Ref: ref(long), TTR: time.Hour}, row.Lease{Ref: ref(cut), TTR: time.Hour})
		later := t.get(1).Due
		both := []row.Lease{
			{Ref: ref(long), TTR: time.Minute, Least: true}, {Ref: ref(short), TTR: time.Minute, Least: true},
		}
		for _, leases := range [][]row.Lease{both, append(both, row.Lease{Ref: ref(cut), TTR: time.Minute})} {
			t.renew(leases...)
			if due := t.get(1).Due; due != later {
				t.Errorf("lease until %v, want it to stay until %v", due, later)
			}
			for _, l := range leases[1:] {
				if left := t.get(l.ID).Due.Sub(t.now()); left > time.Minute || left < 50*time.Second {
					t.Errorf("the lease of %d ends in %v, want a minute", l.ID, left)
				}
			}
		}
	}},
	{"A row of another owner is not renewed, and its state is returned", func(t *tester) {
		released, completed, stolen, kept := t.take(t.task(1)), t.take(t.task(2)), t.take(t.task(3)), t.take(t.task(4))
		t.apply(change(released, row.Pending), change(completed, row.Completed), change(stolen, row.Pending))
		t.claim(row.Ref{ID: 3, Version: 2})
		pending := t.inserted(t.task(5))
		before := []row.Row{t.get(1), t.get(2), t.get(3), pending}
		var leases []row.Lease
		for _, r := range []row.Row{stolen, {ID: 6, Version: 1}, kept, released, completed, pending} {
			leases = append(leases,
				row.Lease{Ref: ref(r), TTR: time.Hour, Executor: executor.ForPop(), Execution: t.start})
		}
		states := make(map[int64]row.State)
		for _, s := range t.renew(leases...) {
			states[s.ID] = s
		}
		if len(states) != 5 {
			t.Fatalf("got %d states, want the five rows that exist", len(states))
		}
		for _, r := range before {
			t.unchanged(r)
			t.holds(states[r.ID], r)
		}
		if states[4].Due < t.start.Add(time.Hour) {
			t.Errorf("lease until %v, want the row that is owned renewed", states[4].Due)
		}
	}},
	{"A renewal may name another executor and the start, and keeps both where it does not", renewNamesTheExecutor},
}

func renewNamesTheExecutor(t *tester) {
	handed, kept := t.take(t.task(1)), t.take(t.task(2))
	started := t.start.Add(123 * time.Microsecond)
	lease := row.Lease{Ref: ref(handed), TTR: time.Hour, Executor: executor.ForPop(), Execution: started,
		Late: delaytask.LateReceiver}
	for range 2 {
		states := t.renew(lease, row.Lease{Ref: ref(kept), TTR: time.Hour})
		for i, before := range []row.Row{handed, kept} {
			got := t.get(before.ID)
			t.holds(states[i], got)
			before.Due, before.Updated = got.Due, got.Updated
			if before.ID == handed.ID {
				before.Executor, before.Execution, before.Late = lease.Executor, started, lease.Late
			}
			t.same(got, before)
		}
	}
	t.renew(row.Lease{Ref: ref(handed), TTR: time.Minute})
	if got := t.get(1); got.Executor != lease.Executor || got.Execution != started || got.Late != lease.Late {
		t.Fatalf("a plain renewal has changed the executor to %v, the start to %v or why it was late to %v",
			got.Executor, got.Execution, got.Late)
	}
}

func (t *tester) renew(leases ...row.Lease) []row.State {
	t.Helper()
	states, err := t.store.Renew(t.Context(), leases)
	t.must(err)
	return states
}

// holds fails the test when the state differs from the row.
func (t *tester) holds(got row.State, r row.Row) {
	t.Helper()
	want := row.State{ID: r.ID, Tag: r.Tag, Version: r.Version, Status: r.Status, Due: r.Due, Executor: r.Executor}
	if got != want {
		t.Errorf("state %+v, want %+v", got, want)
	}
}
