package storetest

import (
	"math"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var getTests = []test{
	{"Rows of every status come whole, once each, in the order of their ids", func(t *tester) {
		t.insertTasks(plain, 30, 10, 20)
		stored := t.oneOfEach(t.start)
		rows, broken, err := t.store.Get(t.Context(), nil, []int64{20, 30, 5, 7, 4, 3, 2, 1, 10, 20})
		t.must(err)
		if got, want := idsOf(rows), []int64{1, 2, 3, 4, 5, 10, 20, 30}; !slices.Equal(got, want) || len(broken) != 0 {
			t.Fatalf("got %v and broken %v, want %v", got, broken, want)
		}
		for i, want := range stored {
			want.Status, want.Body = statuses[i], t.task(0).Body
			t.same(rows[i], want)
		}
	}},
}

var expiredTests = []test{
	{"Executing rows of any tag whose lease is over are found, the oldest first", func(t *tester) {
		t.oneOfEach(t.start.Add(-time.Hour)) // number 4 is executing
		for i, tag := range []string{"a", "b", "a", "c"} {
			t.insertAs(t.keyed(int64(i+11), tag, ""), row.Executing, t.start.Add(-time.Duration(i+1)*time.Second))
		}
		t.insertAs(t.task(15), row.Executing, t.start.Add(time.Hour))
		t.expires(10, 4, 14, 13, 12, 11)
		t.expires(2, 4, 14)
	}},
	{"An expired row comes with all but its body", func(t *tester) {
		r := t.insertAs(t.keyed(1, "a", "k"), row.Executing, t.start.Add(-time.Hour))
		rows, _, err := t.store.Expired(t.Context(), []string{"a"}, 1)
		t.must(err)
		if len(rows) != 1 || len(rows[0].Body) != 0 {
			t.Fatalf("got %+v, want one row without its body", rows)
		}
		r.Body = nil
		t.same(rows[0], r)
	}},
	{"A lease ends by the store's clock", func(t *tester) {
		held := t.insertAs(t.task(1), row.Executing, t.start.Add(50*time.Millisecond))
		found, _, err := t.store.Expired(t.Context(), []string{held.Tag}, 10)
		t.must(err)
		if asked := t.now(); len(found) != 0 && asked <= held.Due {
			t.Fatalf("the lease until %v was called over before %v", held.Due, asked)
		}
		t.waitUntilAfter(held.Due)
		t.expires(10, 1)
		t.renew(row.Lease{Ref: ref(held), TTR: time.Hour})
		t.expires(10)
	}},
}

func (t *tester) expires(limit int, want ...int64) {
	t.Helper()
	rows, broken, err := t.store.Expired(t.Context(), tagsWith(t, t.store, row.Executing), limit)
	t.must(err)
	if got := idsOf(rows); !slices.Equal(got, want) || len(broken) != 0 {
		t.Errorf("expired %v and broken %v, want %v", got, broken, want)
	}
}

var statesTests = []test{
	{"States are as in the rows, and missing rows are left out", func(t *tester) {
		t.insert(t.task(1))
		t.take(t.task(2))
		t.insertAs(t.task(3), row.Cancelled, t.start)
		states, err := t.store.States(t.Context(), []int64{3, 9, 1, 2})
		t.must(err)
		if len(states) != 3 {
			t.Fatalf("got %d states, want three rows", len(states))
		}
		for _, s := range states {
			t.holds(s, t.get(s.ID))
		}
	}},
	{"Orphans are executing rows, found by their process", func(t *tester) {
		for i, of := range []row.Executor{
			{Process: 1, Claim: 1}, {Process: 2, Claim: 1}, {Process: 1, Claim: -2}, {Process: -1, Claim: 1},
			{Process: math.MinInt64, Claim: 7}, {Process: 1, Claim: 3},
		} {
			r := t.task(int64(i + 1))
			t.insert(r)
			t.wins(row.Claim{Rows: []row.Ref{ref(r)}, Executor: of}, r.ID)
		}
		t.apply(change(t.get(6), row.Completed))
		for process, want := range map[int64][]int64{1: {1, 3}, 2: {2}, -1: {4}, math.MinInt64: {5}, 0: nil, 3: nil} {
			var got []int64
			for _, s := range t.orphans(10, process) {
				got = append(got, s.ID)
				t.holds(s, t.get(s.ID))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("process %d: got %v, want %v", process, got, want)
			}
		}
		if got := t.orphans(1, 1, 2); len(got) != 1 {
			t.Errorf("got %d orphans, want the limit of 1", len(got))
		}
		if got := t.orphans(10, 2, -1, 9); len(got) != 2 || len(t.orphans(10)) != 0 {
			t.Errorf("two processes: got %v, want the rows 2 and 4, and none without a process", got)
		}
	}},
	{"A process keeps the name of its introduction for as long as it is seen", func(t *tester) {
		host := row.Process{ID: math.MinInt64, Name: "höst:with:colons", PID: 17}
		t.must(t.store.Introduce(t.Context(), host))
		t.must(t.store.Introduce(t.Context(), row.Process{ID: host.ID, Name: "other", PID: 18})) // keeps its name
		another := row.Process{ID: 9, Name: "another"}
		t.must(t.store.Introduce(t.Context(), another))
		known := func(want ...row.Process) {
			t.Helper()
			got, err := t.store.Processes(t.Context(), []int64{9, host.ID, 7})
			if t.must(err); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		}
		known(host, another)
		early := t.now()
		t.must(t.store.Introduce(t.Context(), host))
		purge := func(before row.Time, limit, want int) {
			t.Helper()
			n, err := t.store.PurgeProcesses(t.Context(), before, limit)
			if t.must(err); n != want {
				t.Errorf("%d processes were purged, want %d", n, want)
			}
		}
		purge(t.start, 10, 0)
		purge(early, 0, 0)
		purge(early, 10, 1)
		known(host)
		purge(row.MaxTime, 10, 1)
		known()
	}},
	{"Rows that no transaction changes are not locked", func(t *tester) {
		before := []row.Row{t.inserted(t.task(1)), t.take(t.task(2))}
		t.locked([]int64{1, 2, 3})
		for _, r := range before {
			t.unchanged(r)
		}
		t.wins(row.Claim{Rows: []row.Ref{{ID: 1}}, Executor: executor}, 1) // the question left no lock
	}},
}

func (t *tester) orphans(limit int, processes ...int64) []row.State {
	t.Helper()
	states, err := t.store.Orphans(t.Context(), tagsWith(t, t.store, row.Executing), processes, limit)
	t.must(err)
	return states
}

func (t *tester) locked(ids []int64, want ...int64) {
	t.Helper()
	got, err := t.store.Locked(t.Context(), ids)
	t.must(err)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("of %v locked %v, want %v", ids, got, want)
	}
}
