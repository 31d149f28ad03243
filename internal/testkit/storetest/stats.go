package storetest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var statsTests = []test{
	{"Oldest is the smallest due time of each tag that has rows of the status", func(t *tester) {
		t.insert(t.keyed(1, "a", ""), t.keyed(2, "A", ""))
		t.insertAs(t.keyed(3, "a", ""), row.Pending, t.start.Add(-time.Hour))
		t.insertAs(t.keyed(4, "a", ""), row.Failed, t.start.Add(-time.Minute))
		t.insertTasks(func(r *row.Row) { r.Tag, r.Due = "none", 0 }, 5)
		t.insertTasks(func(r *row.Row) { r.Tag, r.Due = "a", 0 }, 6)
		oldest, err := t.store.Oldest(t.Context(), row.Pending)
		t.must(err)
		slices.SortFunc(oldest, func(a, b row.TagCount) int { return cmp.Compare(a.Tag, b.Tag) })
		want := []row.TagCount{{Tag: "A", Oldest: t.task(0).Due}, {Tag: "a", Oldest: t.start.Add(-time.Hour)},
			{Tag: "none"}}
		if !slices.Equal(oldest, want) {
			t.Errorf("got %v, want %v", oldest, want)
		}
		if executing, err := t.store.Oldest(t.Context(), row.Executing); err != nil || len(executing) != 0 {
			t.Errorf("of executing rows %v, %v", executing, err)
		}
	}},
	{"Lateness comes from the newest completed rows of each tag", func(t *tester) {
		for id := range int64(6) {
			t.finish(id+1, "a", row.Completed, time.Duration(id)*time.Millisecond)
		}
		t.finish(7, "b", row.Completed, 1234567*time.Microsecond)
		t.finish(8, "b", row.Failed, time.Hour)
		t.finish(9, "c", row.Completed, time.Hour)
		t.insertAs(t.keyed(10, "b", ""), row.Completed, t.start.Add(time.Hour))
		t.late(0, 3, map[string][]time.Duration{
			"a": {3 * time.Millisecond, 4 * time.Millisecond, 5 * time.Millisecond},
			"b": {1234567 * time.Microsecond}, "none": nil,
		})
	}},
	{"Lateness of a window leaves out what finished before it", func(t *tester) {
		for id := range int64(6) {
			t.finish(id+1, "a", row.Completed, time.Duration(id+1)*time.Millisecond)
		}
		t.finish(7, "b", row.Completed, time.Hour)
		never := t.insertAs(t.keyed(8, "a", ""), row.Completed, t.start.Add(time.Hour))
		t.apply(row.Change{ID: 8, Version: never.Version, From: row.Completed, To: row.Completed, Execution: t.start})
		for since, want := range map[time.Duration][]time.Duration{ // after the start
			2 * time.Second:                  {3, 4, 5, 6},
			4 * time.Second:                  {4, 5, 6},
			4*time.Second + time.Microsecond: {5, 6},
			6*time.Second + time.Microsecond: {},
			-1000 * time.Hour:                {3, 4, 5, 6},
		} {
			for i := range want {
				want[i] *= time.Millisecond
			}
			t.late(t.start.Add(since), 4, map[string][]time.Duration{"a": want})
		}
	}},
}

// late compares the lateness of the tags that are named.
func (t *tester) late(since row.Time, perTag int, want map[string][]time.Duration) {
	t.Helper()
	found, err := t.store.Lateness(t.Context(), slices.Collect(maps.Keys(want)), since, perTag)
	t.must(err)
	got := make(map[string][]time.Duration)
	for _, l := range found {
		got[l.Tag] = append(got[l.Tag], l.Late)
	}
	for _, tag := range slices.Concat(slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got))) {
		slices.Sort(got[tag])
		if !slices.Equal(got[tag], want[tag]) {
			t.Errorf("since %v, tag %s: lateness %v, want %v", since, tag, got[tag], want[tag])
		}
	}
}

// finish inserts a task that started late and reached its status in the order of the ids.
func (t *tester) finish(id int64, tag string, status row.Status, late time.Duration) row.Row {
	t.Helper()
	r := t.keyed(id, tag, "")
	t.insert(r)
	c := change(r, status)
	c.Execution = r.Expected.Add(late)
	c.Due = t.start.Add(time.Duration(id) * time.Second)
	t.apply(c)
	return t.get(id)
}
