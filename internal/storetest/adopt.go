package storetest

import "github.com/delaytask/delaytask/internal/row"

var adoptTests = []test{
	{"A row without a due time is due when it was expected", func(t *tester) {
		t.insertTasks(withoutDue, 1, 2)
		before := t.get(1)
		t.adopt(row.Ref{ID: 1}, row.Ref{ID: 9})
		got := t.get(1)
		before.Due, before.Updated = before.Expected, got.Updated
		t.same(got, before)
		if due := t.get(2).Due; !due.IsZero() {
			t.Errorf("task 2 was not named and is due %v", due)
		}
	}},
	{"A row with a due time keeps it", func(t *tester) {
		r := t.task(1)
		r.Due = t.start.Add(1e9)
		t.insert(r)
		before := t.get(1)
		t.adopt(row.Ref{ID: 1})
		t.unchanged(before)
	}},
	{"A row at another version is left alone", func(t *tester) {
		t.insertTasks(withoutDue, 1)
		before := t.get(1)
		t.adopt(row.Ref{ID: 1, Version: 1})
		t.unchanged(before)
	}},
	{"A row that is not pending is left alone", func(t *tester) {
		before := t.take(t.task(1))
		t.adopt(ref(before))
		t.unchanged(before)
	}},
	{"No rows are no error", func(t *tester) { t.adopt() }},
}

func (t *tester) adopt(refs ...row.Ref) {
	t.Helper()
	t.must(t.store.Adopt(t.Context(), refs))
}
