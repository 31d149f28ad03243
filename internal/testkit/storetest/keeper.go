package storetest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

var purgeTests = []test{
	{"Only final rows of the status that finished before the bound are deleted", func(t *tester) {
		bound := t.start.Add(-time.Hour)
		var left []int64
		for i, status := range statuses {
			old := t.insertAs(t.task(int64(2*i+1)), status, bound-1)
			left = append(left, t.insertAs(t.task(int64(2*i+2)), status, bound).ID)
			if !status.Final() {
				left = append(left, old.ID)
			}
		}
		for _, status := range statuses {
			deleted, _, err := t.store.Purge(t.Context(), status, []string{t.task(0).Tag}, bound, 100)
			if status.Final() { // for other statuses a store may return an error
				t.must(err)
			}
			if (deleted == 1) != status.Final() {
				t.Errorf("deleted %d %v tasks", deleted, status)
			}
		}
		slices.Sort(left)
		t.holdsIDs(left...)
	}},
	{"The limit bounds what is deleted, and ids and keys of deleted rows are free", func(t *tester) {
		rows := make([]row.Row, 5)
		for i, id := range upTo(5) {
			rows[i] = t.keyed(id, []string{"a", "b"}[i%2], "k"+string(rune('0'+i)))
			t.insertAs(rows[i], row.Completed, t.start.Add(-time.Hour))
		}
		other := t.insertAs(t.keyed(6, "c", "k"), row.Completed, t.start.Add(-time.Hour))
		left := []string{"b", "none", "a"}
		for _, want := range []int{2, 2, 1} {
			var deleted int
			var err error
			deleted, left, err = t.store.Purge(t.Context(), row.Completed, left, t.start, 2)
			t.must(err)
			if deleted != want || (len(left) == 0) != (want == 1) {
				t.Fatalf("deleted %d, and tags %q are left, want %d deleted", deleted, left, want)
			}
		}
		t.holdsIDs(other.ID)
		t.purges(row.Completed, t.start, 10, 1)
		t.insert(rows...)
	}},
}

// purges purges all tags.
func (t *tester) purges(status row.Status, before row.Time, limit, want int) {
	t.Helper()
	deleted, _, err := t.store.Purge(t.Context(), status, tagsWith(t, t.store, status), before, limit)
	t.must(err)
	if deleted != want {
		t.Fatalf("deleted %d %v tasks, want %d", deleted, status, want)
	}
}

// tagsWith returns the tags that have rows of the status.
func tagsWith(t interface {
	Context() context.Context
	Fatal(args ...any)
}, s store.Store, status row.Status) (tags []string) {
	oldest, err := s.Oldest(t.Context(), status)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range oldest {
		tags = append(tags, of.Tag)
	}
	return tags
}

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
		t.discard(2, row.Broken{Ref: row.Ref{ID: 1}, Status: row.Pending, Reason: "headers: no object"},
			row.Broken{Ref: ref(held), Status: row.Executing, Reason: "unknown late policy 'x'"},
			row.Broken{Ref: row.Ref{ID: 9}, Status: row.Pending, Reason: "is not there"})
		late := t.now()
		for id, reason := range map[int64]string{1: "headers: no object", 2: "unknown late policy 'x'"} {
			got := t.get(id)
			if got.Status != row.Failed || got.Version != id || !strings.Contains(got.ErrorStack, reason) {
				t.Errorf("got %s, want it failed at the next version because of %q", show(got), reason)
			}
			t.within("finish_time", got.Finish(), early, late)
			t.within("due_time", got.Due, early, late)
		}
		t.insert(t.keyed(3, "a", "k"), t.keyed(4, "a", "l"))
	}},
}

// discard wants this many rows discarded.
func (t *tester) discard(want int, broken ...row.Broken) {
	t.Helper()
	n, err := t.store.Discard(t.Context(), broken)
	t.must(err)
	if n != want {
		t.Errorf("%d rows were discarded, want %d", n, want)
	}
}

// RunBroken tests how a store treats rows that cannot be decoded. spoil makes a row such one, and leaves its status,
// version and due time.
func RunBroken(t *testing.T, open func(t *testing.T) (store store.Store, spoil func(id int64))) {
	run(t, brokenTests, func(t *testing.T) *tester {
		store, spoil := open(t)
		tt := newTester(t, store)
		tt.spoil = spoil
		return tt
	})
}

var brokenTests = []test{
	{"A broken row is due and claimed like any other, is reported by every read, and fails alone", func(t *tester) {
		t.insertTasks(plain, 1, 2, 3)
		t.spoil(2)
		t.sees(everything("order.close"), 1, 2, 3)
		t.reported(row.Ref{ID: 2}, row.Pending)(t.store.Get(t.Context(), nil, []int64{1, 2, 3}))
		t.reported(row.Ref{ID: 2}, row.Pending)(t.store.Rows(t.Context(), []int64{1, 2, 3}, true))
		claimed := t.claim(row.Ref{ID: 1}, row.Ref{ID: 2}, row.Ref{ID: 3})
		t.reported(row.Ref{ID: 2, Version: 1}, row.Executing)(claimed.Rows, claimed.Broken, nil)
		t.discard(1, claimed.Broken...)
		states, err := t.store.States(t.Context(), []int64{1, 2, 3})
		t.must(err)
		for _, s := range states {
			want := row.Executing
			if s.ID == 2 {
				want = row.Failed
			}
			if s.Status != want {
				t.Errorf("task %d is %v, want %v", s.ID, s.Status, want)
			}
		}
		t.purges(row.Failed, row.MaxTime, 10, 1)
	}},
	{"An expired row that is broken is reported", func(t *tester) {
		for _, id := range []int64{1, 2, 3} {
			t.insertAs(t.task(id), row.Executing, t.start.Add(-time.Hour))
		}
		t.spoil(2)
		t.reported(row.Ref{ID: 2, Version: 1}, row.Executing)(t.store.Expired(t.Context(), []string{t.task(2).Tag}, 10))
	}},
}

// reported wants tasks 1 and 3 read, and the broken one reported with a reason.
func (t *tester) reported(ref row.Ref, status row.Status) func([]row.Row, []row.Broken, error) {
	return func(rows []row.Row, broken []row.Broken, err error) {
		t.Helper()
		t.must(err)
		if got := slices.Sorted(slices.Values(idsOf(rows))); !slices.Equal(got, []int64{1, 3}) {
			t.Errorf("read %v, want 1 and 3", got)
		}
		if len(broken) != 1 || broken[0].Ref != ref || broken[0].Status != status || broken[0].Reason == "" ||
			broken[0].Read.ID != ref.ID || broken[0].Read.Tag == "" {
			t.Errorf("broken %+v, want %+v as %v with a reason and what could be read", broken, ref, status)
		}
	}
}
