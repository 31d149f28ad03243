package storetest

import (
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

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
			if got.Status != row.Failed || !strings.Contains(got.ErrorStack, reason) {
				t.Errorf("got %s, want it failed because of %q", show(got), reason)
			}
			if got.Version != held.Version*(id-1)+1 {
				t.Errorf("task %d is at version %d, want one more than before", id, got.Version)
			}
			if got.Finish < early || got.Finish > late || got.Due < early || got.Due > late {
				t.Errorf("finished %v and due %v, want both within [%v, %v]", got.Finish, got.Due, early, late)
			}
		}
		t.insert(t.keyed(3, "a", "k"), t.keyed(4, "a", "l"))
	}},
	{"A row that has moved on is left alone", func(t *tester) {
		t.insert(t.task(1))
		t.apply(change(t.get(1), row.Pending))
		before := t.get(1)
		t.discard(row.Broken{Ref: row.Ref{ID: 1}, Status: row.Pending, Reason: "stale"})
		t.unchanged(before)
	}},
	{"A row of another status is left alone", func(t *tester) {
		t.insert(t.task(1))
		before := t.get(1)
		t.discard(row.Broken{Ref: row.Ref{ID: 1}, Status: row.Executing, Reason: "other"},
			row.Broken{Ref: row.Ref{ID: 1}, Status: 77, Reason: "other"}, row.Broken{Ref: row.Ref{ID: 9}, Reason: "missing"})
		t.unchanged(before)
	}},
	{"No rows are no error", func(t *tester) { t.discard() }},
}

func (t *tester) discard(broken ...row.Broken) {
	t.Helper()
	t.must(t.store.Discard(t.Context(), broken))
}
