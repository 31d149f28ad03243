package storetest

import (
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/row"
)

var dueTests = []test{
	{"The window begins with From and ends before To, and rows without a due time come first where it has no lower end",
		func(t *tester) {
			t.insert(t.dueAt(1, 9), t.dueAt(2, 10), t.dueAt(3, 11), t.dueAt(4, 19), t.dueAt(5, 20))
			earliest, far := t.task(6), t.task(7)
			earliest.Due, far.Due = row.MinTime, row.MaxTime-1
			t.insert(earliest, far)
			t.insertTasks(withoutDue, 8)
			w := everything("order.close")
			t.sees(w, 8, 6, 1, 2, 3, 4, 5, 7)
			w.To = t.start.Add(20 * time.Microsecond)
			t.sees(w, 8, 6, 1, 2, 3, 4)
			w.From = row.MinTime
			t.sees(w, 6, 1, 2, 3, 4)
			w.From = t.start.Add(10 * time.Microsecond)
			t.sees(w, 2, 3, 4)
		}},
	{"Only rows of the named tags are due, and the limit counts over all of them", func(t *tester) {
		for i, tag := range []string{"a", "A", "b", "a.b", "a_b", "a "} {
			r := t.dueAt(int64(i+1), time.Duration(-i))
			r.Tag = tag
			t.insert(r)
		}
		t.sees(everything("a"), 1)
		t.sees(everything("A"), 2)
		t.sees(everything("b", "a", "b"), 3, 1)
		t.sees(everything("a_b", "none"), 5)
		w := everything("a", "A", "b", "a.b")
		w.Limit = 3
		t.sees(w, 4, 3, 2)
	}},
	{"Each share has the rows of its slots", func(t *tester) {
		var rows []row.Row
		for i, id := range []int64{1, 2, 3, 500, 501, 1 << 22, 1<<40 + 7, 794354227819772011, ids.Last} {
			for step := range int64(12) {
				if r := t.dueAt(id-min(id-1, step*4096), time.Duration(i)); !slices.Contains(idsOf(rows), r.ID) {
					rows = append(rows, r)
				}
			}
		}
		t.insert(rows...)
		for _, of := range []int{1, 2, 3, 30, ids.HashSlots} {
			seen := map[int64]int{}
			for at := range of {
				share, rest := new(row.Share), new(row.Share)
				for slot := range ids.HashSlots {
					if slot%of == at {
						share.Add(slot)
					} else {
						rest.Add(slot)
					}
				}
				w := everything("order.close")
				w.Share = share
				found := t.due(w)
				for _, d := range found {
					if seen[d.ID]++; !w.Has(d.ID) {
						t.Errorf("share %d of %d has task %d", at, of, d.ID)
					}
				}
				if w.Share = rest; at == 0 && len(t.due(w)) != len(rows)-len(found) {
					t.Errorf("all but share %d of %d: got %d of %d tasks", at, of, len(t.due(w)), len(rows)-len(found))
				}
			}
			for _, r := range rows {
				if n := seen[r.ID]; n != 1 {
					t.Errorf("task %d is of %d shares of %d", r.ID, n, of)
				}
			}
		}
	}},
	{"Paging reads every row once, also where many are due at one time or at none", func(t *tester) {
		t.pages("timed", func(i int64) row.Time { return t.start.Add(time.Duration(i/40) * time.Second) })
		t.pages("undated", func(int64) row.Time { return 0 })
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

// pages inserts rows of two tags whose names begin alike, and reads them page by page.
func (t *tester) pages(tag string, due func(i int64) row.Time) {
	const total = 200
	var rows []row.Row
	for i := range int64(total) {
		r := t.keyed(int64(len(tag))*1000+i, []string{tag, tag + "2"}[i%2], "")
		r.Due = due(i)
		rows = append(rows, r)
	}
	t.insert(rows...)
	w := everything(tag, tag+"2")
	w.Limit = 7
	seen := make(map[int64]bool)
	for page := t.due(w); len(page) > 0; page = t.due(w) {
		for _, d := range page {
			if seen[d.ID] {
				t.Fatalf("task %d was read twice", d.ID)
			}
			seen[d.ID] = true
		}
		last := page[len(page)-1]
		w.From, w.AfterID = last.Due, last.ID
	}
	if len(seen) != total {
		t.Fatalf("%s: read %d rows of %d", tag, len(seen), total)
	}
}
