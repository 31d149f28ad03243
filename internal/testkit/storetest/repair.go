package storetest

import (
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

var adoptTests = []test{
	{"Rows that lack a due time are due when they were expected, and no others change", func(t *tester) {
		t.insertTasks(withoutDue, 1, 2, 3, 4)
		t.insert(t.dueAt(5, 7))
		t.apply(change(t.get(3), row.Pending)) // is at the next version
		t.claim(row.Ref{ID: 4})
		var before []row.Row
		for id := range int64(5) {
			before = append(before, t.get(id+1))
		}
		t.adopt(row.Ref{ID: 1}, row.Ref{ID: 3}, row.Ref{ID: 4, Version: 1}, row.Ref{ID: 5}, row.Ref{ID: 9})
		adopted := t.get(1)
		before[0].Due, before[0].Updated = before[0].Expected, adopted.Updated
		for _, r := range before {
			t.unchanged(r)
		}
	}},
}

func (t *tester) adopt(refs ...row.Ref) {
	t.Helper()
	t.must(t.store.Adopt(t.Context(), refs))
}

var discardTests = []test{
	{"A discarded row has failed, with the reason", func(t *tester) {
		t.insert(t.keyed(1, "a", "k"))
		held := t.take(t.keyed(2, "a", "l"))
		early := t.now()
		t.discard(row.Broken{Ref: row.Ref{ID: 1}, Status: row.Pending, Reason: "headers: no object"},
			row.Broken{Ref: ref(held), Status: row.Executing, Reason: "unknown late policy 'x'"})
		late := t.now()
		for id, reason := range map[int64]string{1: "headers: no object", 2: "unknown late policy 'x'"} {
			got := t.get(id)
			if got.Status != row.Failed || got.Version != id || !strings.Contains(got.ErrorStack, reason) {
				t.Errorf("got %s, want it failed at the next version because of %q", show(got), reason)
			}
			t.within("finish_time", got.Finish, early, late)
			t.within("due_time", got.Due, early, late)
		}
		t.insert(t.keyed(3, "a", "k"), t.keyed(4, "a", "l"))
	}},
	{"A row of another version or status is left alone", func(t *tester) {
		t.insert(t.task(1))
		t.apply(change(t.get(1), row.Pending))
		before := t.get(1)
		for _, b := range []row.Broken{
			{Ref: row.Ref{ID: 1}, Status: row.Pending}, {Ref: ref(before), Status: row.Executing},
			{Ref: ref(before), Status: 77}, {Ref: row.Ref{ID: 9}},
		} {
			b.Reason = "stale"
			t.discard(b)
		}
		t.unchanged(before)
	}},
}

func (t *tester) discard(broken ...row.Broken) {
	t.Helper()
	t.must(t.store.Discard(t.Context(), broken))
}
