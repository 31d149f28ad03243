package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var dueTests = []test{
	{"Rows come by due time, then by id", func(t *tester) {
		t.insert(t.dueAt(1, 30), t.dueAt(2, 10), t.dueAt(3, 20), t.dueAt(5, 10), t.dueAt(4, 10))
		t.sees(everything("order.close"), 2, 4, 5, 3, 1)
	}},
	{"A due row says all that arming it needs", func(t *tester) {
		r := t.dueAt(1, 5)
		r.Priority = 42
		t.insert(r)
		c := change(r, row.Pending)
		c.CrashCount = 3
		t.apply(c)
		got := t.due(everything(r.Tag))
		want := row.Due{ID: 1, Version: 1, Tag: r.Tag, Due: r.Due, Priority: 42, CrashCount: 3}
		if len(got) != 1 || got[0] != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}},
	{"The window begins with From and ends before To", func(t *tester) {
		t.insert(t.dueAt(1, 9), t.dueAt(2, 10), t.dueAt(3, 11), t.dueAt(4, 19), t.dueAt(5, 20))
		w := everything("order.close")
		w.From, w.To = t.start.Add(10*time.Microsecond), t.start.Add(20*time.Microsecond)
		t.sees(w, 2, 3, 4)
	}},
	{"Far-future rows stay out of the window", func(t *tester) {
		far := t.task(1)
		far.Due = row.MaxTime - 1
		t.insert(far, t.dueAt(2, 0))
		w := everything("order.close")
		w.To = t.start.Add(time.Hour)
		t.sees(w, 2)
	}},
	{"Only pending rows are due", func(t *tester) {
		for _, status := range []row.Status{row.Pending, row.Completed, row.Failed, row.Executing, row.Cancelled} {
			t.insertAs(t.task(int64(status)+1), status, t.start)
		}
		t.sees(everything("order.close"), 1)
	}},
	{"Only rows of the named tags are due", func(t *tester) {
		for i, tag := range []string{"a", "A", "b", "a.b", "a_b", "a "} {
			r := t.dueAt(int64(i+1), time.Duration(-i))
			r.Tag = tag
			t.insert(r)
		}
		t.sees(everything("a"), 1)
		t.sees(everything("A"), 2)
		t.sees(everything("b", "a", "b"), 3, 1)
		t.sees(everything("a_b", "none"), 5)
		t.sees(everything())
	}},
	{"The limit counts over all tags", func(t *tester) {
		for id := range int64(9) {
			r := t.dueAt(id+1, time.Duration(id))
			r.Tag = []string{"a", "b", "c"}[id%3]
			t.insert(r)
		}
		w := everything("a", "b", "c")
		w.Limit = 4
		t.sees(w, 1, 2, 3, 4)
	}},
	{"Rows without a due time come first when the window has no lower end", func(t *tester) {
		none := t.task(3)
		none.Due = 0
		earliest := t.task(2)
		earliest.Due = row.MinTime
		t.insert(t.dueAt(1, 0), earliest, none)
		t.sees(everything("order.close"), 3, 2, 1)
		w := everything("order.close")
		w.From = row.MinTime
		t.sees(w, 2, 1)
	}},
	{"Paging meets every row once, also where many are due at the same time", func(t *tester) {
		pagingMeetsEveryRow(t, func(id int64) row.Time { return t.start.Add(time.Duration(id/40) * time.Second) })
	}},
	{"Paging meets every row once when none has a due time", func(t *tester) {
		pagingMeetsEveryRow(t, func(int64) row.Time { return 0 })
	}},
	{"A rescheduled row is due at its new time", func(t *tester) {
		t.insert(t.dueAt(1, 0), t.dueAt(2, 10))
		c := change(t.get(1), row.Pending)
		c.Due = t.start.Add(20 * time.Microsecond)
		t.apply(c)
		t.sees(everything("order.close"), 2, 1)
	}},
	{"Many tags are read together", func(t *tester) {
		var tags []string
		var rows []row.Row
		for i := range 300 {
			r := t.dueAt(int64(i+1), time.Duration(i))
			r.Tag = fmt.Sprintf("tag.%d", i)
			tags, rows = append(tags, r.Tag), append(rows, r)
		}
		t.insert(rows...)
		if got := t.due(everything(tags...)); len(got) != len(rows) {
			t.Fatalf("found %d rows of %d", len(got), len(rows))
		}
	}},
}

// dueAt returns a task that is due some microseconds after the start of the test.
func (t *tester) dueAt(id int64, micros time.Duration) row.Row {
	r := t.task(id)
	r.Due = t.start.Add(micros * time.Microsecond)
	return r
}

func everything(tags ...string) row.Window {
	return row.Window{Tags: tags, To: row.MaxTime, Limit: 1000}
}

func (t *tester) due(w row.Window) []row.Due {
	t.Helper()
	found, err := t.store.Due(t.Context(), w)
	t.must(err)
	return found
}

func (t *tester) sees(w row.Window, want ...int64) {
	t.Helper()
	var got []int64
	for _, d := range t.due(w) {
		got = append(got, d.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("window %+v: got %v, want %v", w, got, want)
	}
}

func pagingMeetsEveryRow(t *tester, due func(id int64) row.Time) {
	const total = 200
	for id := range int64(total) {
		r := t.task(id + 1)
		r.Tag = []string{"a", "b"}[id%2]
		r.Due = due(id)
		t.insert(r)
	}
	w := everything("a", "b")
	w.Limit = 7
	seen := make(map[int64]bool)
	for range total {
		page := t.due(w)
		if len(page) == 0 {
			break
		}
		for _, d := range page {
			if seen[d.ID] {
				t.Fatalf("task %d was met twice", d.ID)
			}
			seen[d.ID] = true
		}
		last := page[len(page)-1]
		w.From, w.AfterID = last.Due, last.ID
	}
	if len(seen) != total {
		t.Fatalf("met %d rows of %d", len(seen), total)
	}
}
