package storetest

import (
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

var auditTests = []test{
	{"An act has an entry before it ends, and keeps its first end", func(t *tester) {
		e := row.AuditEntry{
			Who: "höst\\'\"", Via: "command", Action: "bulk.cancel", Target: strings.Repeat("ü", row.AuditWhoBytes/2),
			Tag: " Ä", Detail: strings.Repeat("d", row.AuditDetailBytes),
		}
		before := t.now()
		e.ID = t.begins(e)
		got := t.entries(math.MaxInt64, 9)[0]
		if e.Begin = got.Begin; e.Begin < before || e.Begin > t.now() {
			t.Errorf("it began at %v, after %v", e.Begin, before)
		}
		t.hasEntries(e)
		e.Outcome, e.Tasks, e.Error = report.AuditFailed, 1<<40, strings.Repeat("e", row.AuditErrorBytes)
		t.must(t.store.EndAudit(t.Context(), e.ID, e.AuditEnd))
		if e.End = t.entries(math.MaxInt64, 9)[0].End; e.End < e.Begin {
			t.Errorf("it ended at %v, and began at %v", e.End, e.Begin)
		}
		t.must(t.store.EndAudit(t.Context(), e.ID, row.AuditEnd{Outcome: report.AuditDone}))
		t.must(t.store.EndAudit(t.Context(), e.ID+1, row.AuditEnd{Outcome: report.AuditDone}))
		t.hasEntries(e)
	}},
	{"Entries are read by page, the newest first", func(t *tester) {
		var ids []int64
		for range 5 {
			ids = append(ids, t.begins(row.AuditEntry{Action: "a"}))
		}
		f := func(below int64, limit int, want ...int64) {
			t.Helper()
			var got []int64
			for _, e := range t.entries(below, limit) {
				got = append(got, e.ID)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%d below %d: got %v, want %v", limit, below, got, want)
			}
		}
		f(math.MaxInt64, 2, ids[4], ids[3])
		f(ids[3], 2, ids[2], ids[1])
		f(ids[1], 2, ids[0])
		f(ids[0], 2)
		f(math.MaxInt64, 0)
	}},
	{"A bulk change tells how far it is until it ends, and learns that it is to stop", func(t *tester) {
		one := row.AuditEntry{Action: "bulk.cancel"}
		one.ID = t.begins(one)
		other := row.AuditEntry{Action: "bulk.cancel"}
		other.ID = t.begins(other)
		f := func(tasks int64, bulk string, stop bool) {
			t.Helper()
			asked, err := t.store.ReportAudit(t.Context(), one.ID, tasks, bulk)
			t.must(err)
			if asked != stop {
				t.Errorf("asked to stop: %t, want %t", asked, stop)
			}
		}
		g := func() row.AuditEntry { return t.entries(one.ID+1, 1)[0] }
		before := t.now()
		f(500, `{"ü":"\\'"}`, false)
		first := g()
		if first.Tasks != 500 || first.Bulk != `{"ü":"\\'"}` || first.Seen < before || first.Seen > t.now() ||
			first.Stop != 0 || first.Outcome != "" || first.End != 0 {
			t.Errorf("under way: %+v", first)
		}
		t.must(t.store.StopAudit(t.Context(), one.ID))
		asked := g()
		if asked.Stop < first.Seen || asked.Stop > t.now() || asked.Tasks != 500 {
			t.Errorf("asked to stop: %+v", asked)
		}
		f(1000, strings.Repeat("ü", 8000), true)
		t.must(t.store.StopAudit(t.Context(), one.ID))
		if again := g(); again.Stop != asked.Stop || again.Seen < asked.Stop || again.Tasks != 1000 ||
			len(again.Bulk) != 16000 {
			t.Errorf("asked twice, after %+v: %+v", asked, again)
		}
		t.must(t.store.EndAudit(t.Context(), one.ID, row.AuditEnd{Outcome: report.AuditStopped, Tasks: 1200}))
		end := g()
		f(1, "", false)
		t.must(t.store.StopAudit(t.Context(), one.ID))
		t.must(t.store.StopAudit(t.Context(), other.ID+1))
		if stays := g(); stays != end || end.Tasks != 1200 || end.Stop != asked.Stop {
			t.Errorf("it ended as %+v, and became %+v", end, stays)
		}
		if left := t.entries(math.MaxInt64, 1)[0]; left.ID != other.ID || left.Seen != 0 || left.Stop != 0 {
			t.Errorf("the other is %+v", left)
		}
	}},
	{"Entries of an action are read by page, the newest first", func(t *tester) {
		var ids []int64
		for i := range 6 {
			ids = append(ids, t.begins(row.AuditEntry{Action: []string{"bulk.retry", "bulk.cancel"}[i%2]}))
		}
		f := func(action string, below int64, limit int, want ...int64) {
			t.Helper()
			var got []int64
			found, err := t.store.AuditEntries(t.Context(), action, below, limit)
			t.must(err)
			for _, e := range found {
				if got = append(got, e.ID); e.Action != action || e.Begin == 0 {
					t.Errorf("got %+v", e)
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%d of %s below %d: got %v, want %v", limit, action, below, got, want)
			}
		}
		f("bulk.cancel", math.MaxInt64, 2, ids[5], ids[3])
		f("bulk.retry", math.MaxInt64, 9, ids[4], ids[2], ids[0])
		f("bulk.retry", ids[2], 9, ids[0])
		f("bulk.cancel", ids[1], 9)
		f("bulk", math.MaxInt64, 9)
		f("bulk.cancel", math.MaxInt64, 0)
	}},
	{"Old entries are deleted, and their ids are not given again", func(t *tester) {
		first, second := t.begins(row.AuditEntry{Action: "a"}), t.begins(row.AuditEntry{Action: "a"})
		f := func(before row.Time, limit, want int) {
			t.Helper()
			n, err := t.store.PurgeAudit(t.Context(), before, limit)
			t.must(err)
			if n != want {
				t.Errorf("%d entries were deleted, want %d", n, want)
			}
		}
		later := t.now().Add(time.Hour)
		f(t.entries(second, 1)[0].Begin, 10, 0)
		f(later, 0, 0)
		f(later, 1, 1)
		if left := t.entries(math.MaxInt64, 9); len(left) != 1 || left[0].ID != second {
			t.Errorf("of %d and %d there are %+v", first, second, left)
		}
		f(later, 10, 1)
		if third := t.begins(row.AuditEntry{Action: "a"}); third <= second {
			t.Errorf("%d follows %d", third, second)
		}
	}},
}

func (t *tester) begins(e row.AuditEntry) int64 {
	t.Helper()
	id, err := t.store.BeginAudit(t.Context(), e)
	t.must(err)
	return id
}

func (t *tester) entries(below int64, limit int) []row.AuditEntry {
	t.Helper()
	entries, err := t.store.AuditEntries(t.Context(), "", below, limit)
	t.must(err)
	return entries
}

func (t *tester) hasEntries(want ...row.AuditEntry) {
	t.Helper()
	if got := t.entries(math.MaxInt64, 9); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
