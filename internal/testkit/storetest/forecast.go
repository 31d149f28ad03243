package storetest

import (
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// aLongWhile is a limit that no test reaches.
const aLongWhile = time.Minute

var forecastTests = []test{
	{"Pending rows are counted in the cell of their due time, up to its last microsecond", func(t *tester) {
		g := row.DueGrid{Tags: []string{"a", "A", "none"}, Now: t.start + 7, Start: t.start, Step: time.Hour, Steps: 3}
		hour := row.Time(time.Hour.Microseconds())
		t.insertAs(t.keyed(100, "a", ""), row.Executing, g.Now)
		t.insertAs(t.keyed(101, "a", ""), row.Failed, g.Now)
		want := map[cell]int64{}
		for i, at := range []struct {
			tag  string
			due  row.Time
			cell int
		}{
			{"a", row.MinTime, row.OverdueCell}, {"a", g.Now - 1, row.OverdueCell}, {"a", g.Now, 0},
			{"a", t.start + hour - 1, 0}, {"a", t.start + hour, 1}, {"a", t.start + 3*hour - 1, 2},
			{"a", t.start + 3*hour, 3}, {"a", row.MaxTime, 3}, {"A", t.start + 2*hour, 2},
			{"A", g.Now - 2, row.OverdueCell}, {"b", g.Now, 3},
		} {
			r := t.keyed(int64(i+1), at.tag, "")
			r.Due = at.due
			t.insert(r)
			if at.cell < g.Steps {
				want[cell{at.tag, at.cell}]++
			}
		}
		unset := t.keyed(200, "a", "")
		unset.Due = 0
		t.insert(unset)
		t.counts(g, 10, want)
		g.Steps = 0
		t.counts(g, 10, map[cell]int64{{"a", row.OverdueCell}: 2, {"A", row.OverdueCell}: 1})
		g.Tags = nil
		t.counts(g, 10, map[cell]int64{})
	}},
	{"Cells with more rows than are asked for say so, or are counted whole", func(t *tester) {
		g := row.DueGrid{Tags: []string{"a", "b"}, Now: t.start, Start: t.start, Step: time.Hour, Steps: 2}
		t.fillDue(g, 30, "a", "b")
		counts, complete, err := t.store.CountDue(t.Context(), g, 20, aLongWhile)
		t.must(err)
		if len(counts) != 2 || !complete {
			t.Fatalf("got %+v, %v", counts, complete)
		}
		for _, c := range counts {
			if capped := c.More && c.Rows >= 20 && c.Rows <= 30; !capped && (c.More || c.Rows != 30) {
				t.Errorf("got %+v of 30 rows", c)
			}
		}
		t.counts(g, 30, map[cell]int64{{"a", 1}: 30, {"b", 1}: 30})
	}},
	{"Estimates are near, or not known", func(t *tester) {
		g := row.DueGrid{Tags: []string{"a", "none", "b"}, Now: t.start, Start: t.start, Step: time.Hour, Steps: 2}
		t.fillDue(g, 400, "a")
		t.fillDue(g, 50, "b")
		about := map[cell]int64{}
		// An estimate that meets a change of the index is far off. A busy server takes a while to remove old entries.
		for began := time.Now(); time.Since(began) < 20*time.Second; {
			counts, known, err := t.store.EstimateDue(t.Context(), g)
			if t.must(err); !known {
				return
			}
			clear(about)
			for _, c := range counts {
				about[cell{c.Tag, c.Cell}] = c.Rows
			}
			a, b := about[cell{"a", 1}], about[cell{"b", 1}]
			empty := max(about[cell{"a", 0}], about[cell{"b", row.OverdueCell}], about[cell{"none", 1}])
			if a >= 200 && a <= 800 && b >= 25 && b <= 100 && empty <= 25 { // a server may tell the mean of a tag
				return
			}
		}
		t.Errorf("of 400 rows of a and 50 of b there are about %v", about)
	}},
	{"Cursors of active schedules before the moment come by their look", func(t *tester) {
		for id, change := range map[int64]func(*row.Schedule){
			1: func(*row.Schedule) {}, 2: func(s *row.Schedule) { s.State = row.SchedulePaused },
			3: func(s *row.Schedule) { s.Next = t.start + 50 }, 4: func(s *row.Schedule) { s.Look = t.start + 2 },
			5: func(s *row.Schedule) { s.Next = 0 },
		} {
			s := t.fullSchedule(id, string(rune('a'+id)))
			s.Version, s.State, s.Next, s.Look = 0, row.ScheduleActive, t.start+9, t.start+row.Time(5+id)
			change(&s)
			t.decides(row.Decision{Write: row.WriteNew, Schedule: s})
		}
		for limit, want := range map[int][]int64{0: nil, 1: {4}, 10: {4, 1}} {
			found, err := t.store.Upcoming(t.Context(), t.start+50, limit)
			t.must(err)
			var got []int64
			for _, s := range found {
				got = append(got, s.ID)
				stored := t.schedules(row.ScheduleFilter{Names: []string{s.Name}})[0].Cursor()
				if stored.Name != s.Name || stored.Tag != s.Tag || stored.Spec != s.Spec || stored.Jitter != s.Jitter ||
					stored.Next != s.Next || stored.MaxRuns != s.MaxRuns || stored.Runs != s.Runs || s.Body != nil {
					t.Errorf("got %+v, want %+v", s, stored)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("at most %d: %v, want %v", limit, got, want)
			}
		}
	}},
}

type cell struct {
	tag string
	n   int
}

// fillDue inserts rows into the cell 1, n of each tag.
func (t *tester) fillDue(g row.DueGrid, n int, tags ...string) {
	t.Helper()
	for _, tag := range tags {
		rows := make([]row.Row, n)
		for i := range rows {
			rows[i] = t.keyed(int64(i+1)+1000*int64(tag[0]), tag, "")
			rows[i].Due = g.Start.Add(time.Hour + time.Duration(i)*time.Second)
		}
		t.insert(rows...)
	}
}

// counts wants exactly these counts.
func (t *tester) counts(g row.DueGrid, most int, want map[cell]int64) {
	t.Helper()
	counts, complete, err := t.store.CountDue(t.Context(), g, most, aLongWhile)
	t.must(err)
	got := map[cell]int64{}
	for _, c := range counts {
		got[cell{c.Tag, c.Cell}] = c.Rows
		if c.More {
			t.Errorf("cell %+v has more", c)
		}
	}
	if !maps.Equal(got, want) || !complete {
		t.Errorf("got %v, want %v (complete: %v)", got, want, complete)
	}
}
