package storetest

import (
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

var statesTests = []test{
	{"States tell who holds the rows, missing ones are left out", func(t *tester) {
		t.insert(t.task(1))
		t.take(t.task(2))
		t.insertAs(t.task(3), row.Cancelled, t.start)
		states, err := t.store.States(t.Context(), []int64{3, 9, 1, 2})
		t.must(err)
		if len(states) != 3 {
			t.Fatalf("got %d states, want those of three rows", len(states))
		}
		for _, s := range states {
			t.holds(s, t.get(s.ID))
		}
	}},
	{"The state of no rows is nothing", func(t *tester) {
		states, err := t.store.States(t.Context(), nil)
		t.must(err)
		if len(states) != 0 {
			t.Fatalf("got %v", states)
		}
	}},
	{"Strays are found by the beginning of their executor, taken literally", func(t *tester) {
		for i, name := range []string{"host:1:ab_c:1", "host:1:abXc:1", "host:1:ab%c:2", "HOST:1:ab_c:1", `host:1:ab\c:1`,
			"x:host:1"} {
			r := t.task(int64(i + 1))
			t.insert(r)
			t.wins(row.Claim{Rows: []row.Ref{ref(r)}, Executor: name}, r.ID)
		}
		for prefix, want := range map[string][]int64{
			"host:1:ab_c:1":    {1},
			"host:1:ab_":       {1},
			"host:1:ab%":       {3},
			`host:1:ab\`:       {5},
			"host:1:":          {1, 2, 3, 5},
			"%":                nil,
			"_":                nil,
			"HOST":             {4},
			"host:1:ab_c:1 ":   nil,
			"host:1:ab_c:1:99": nil,
		} {
			var got []int64
			for _, s := range t.strays(prefix, 10) {
				got = append(got, s.ID)
				t.holds(s, t.get(s.ID))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("prefix %q: got %v, want %v", prefix, got, want)
			}
		}
	}},
	{"Only executing rows can be strays", func(t *tester) {
		t.insert(t.task(1))
		held := t.take(t.task(2))
		done := t.take(t.task(3))
		t.apply(change(done, row.Completed))
		if got := t.strays(executor, 10); len(got) != 1 || got[0].ID != held.ID {
			t.Fatalf("got %+v, want only task 2", got)
		}
	}},
	{"The limit bounds the strays", func(t *tester) {
		t.insertTasks(plain, 1, 2, 3)
		t.claim(row.Ref{ID: 1}, row.Ref{ID: 2}, row.Ref{ID: 3})
		if got := t.strays(executor, 2); len(got) != 2 {
			t.Fatalf("got %d strays, want 2", len(got))
		}
	}},
	{"Rows that nobody touches are not locked", func(t *tester) {
		t.insertTasks(plain, 1, 2)
		t.claim(row.Ref{ID: 2})
		before := []row.Row{t.get(1), t.get(2)}
		for range 2 {
			locked, err := t.store.Locked(t.Context(), []int64{1, 2, 3})
			t.must(err)
			if len(locked) != 0 {
				t.Fatalf("locked %v, want none", locked)
			}
		}
		for _, r := range before {
			t.unchanged(r)
		}
		t.claim(row.Ref{ID: 1})
		if got := t.get(1); got.Status != row.Executing {
			t.Fatalf("the question left task 1 %v, want it claimable", got.Status)
		}
	}},
}

func (t *tester) strays(prefix string, limit int) []row.State {
	t.Helper()
	states, err := t.store.Strays(t.Context(), prefix, limit)
	t.must(err)
	return states
}
