package storetest

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var listTests = []test{
	{"Places of a span come in its order, in either direction, from any place on", func(t *tester) {
		moments := []row.Time{0, t.start, t.start + 1, t.start.Add(time.Hour)}
		var rows []row.Row
		for i := range int64(40) { // each moment many times, of other tags and statuses too
			r := t.task(i + 1)
			r.Tag = []string{"a", "b"}[i%2]
			t.insert(r)
			c := change(r, []row.Status{row.Pending, row.Failed}[i/2%2])
			c.Due = moments[i/4%4]
			t.apply(c)
			r.Status, r.Due = c.To, c.Due
			rows = append(rows, r)
		}
		ends := append([]row.Time{t.start.Add(-time.Hour), t.start.Add(30 * time.Minute)}, moments...)
		var spans []row.Span
		for _, down := range []bool{false, true} {
			for _, from := range ends {
				for _, to := range ends {
					span := row.Span{Status: row.Failed, Tag: "a", From: from, To: to, Down: down}
					spans = append(spans, span)
					for _, due := range ends {
						span.After = &row.Place{Due: due, ID: 23}
						spans = append(spans, span)
					}
				}
			}
		}
		for _, limit := range []int{3, 100} {
			got, err := t.store.Places(t.Context(), spans, limit)
			t.must(err)
			for i, span := range spans {
				if want := placesOf(rows, span, limit); !slices.Equal(got[i], want) {
					t.Fatalf("at most %d of %+v after %v: got %v, want %v", limit, span, span.After, got[i], want)
				}
			}
		}
		for _, span := range spans {
			t.firstDue(rows, span)
			for _, due := range moments[:2] {
				t.firstIDs(rows, span, due)
			}
		}
	}},
	{"The newest rows have the largest ids", func(t *tester) {
		t.insertTasks(plain, 7, math.MaxInt64-1, 9)
		t.newest(math.MaxInt64, 2, math.MaxInt64-1, 9)
		t.newest(9, 2, 7)
		t.newest(7, 2)
		t.newest(7, 0)
	}},
	{"A condition matches by every one of its parts", func(t *tester) {
		r := t.finish(1, "a", row.Failed, 3*time.Second)
		c := change(r, row.Failed)
		c.Execution, c.ErrorStack = r.Execution, "dial tcp: Connection % refused"
		t.apply(c)
		r = t.get(1)
		keyed := t.keyed(2, "a", "k")
		keyed.Expected = t.start.Add(-time.Minute)
		t.insert(keyed)
		t.finish(3, "a", row.Cancelled, 0)
		ended := t.get(3)
		ended.Execution = 0
		for _, c := range []struct {
			match row.Match
			want  []int64
		}{
			{row.Match{}, []int64{1, 2, 3}},
			{row.Match{Status: new(row.Failed)}, []int64{1}},
			{row.Match{Tag: "A"}, nil},
			{row.Match{Tag: "a "}, nil},
			{row.Match{Key: "k"}, []int64{2}},
			{row.Match{Key: "K"}, nil},
			{row.Match{Status: new(row.Failed), From: r.Due, To: r.Due + 1}, []int64{1}},
			{row.Match{Status: new(row.Failed), From: r.Due + 1}, nil},
			{row.Match{Status: new(row.Failed), To: r.Due}, nil},
			{row.Match{LateBy: 2999 * time.Millisecond}, []int64{1, 2}}, // the second has not begun
			{row.Match{LateBy: 3 * time.Second}, []int64{2}},
			{row.Match{LateBy: time.Hour}, nil},
			{row.Match{LateBy: time.Hour, LateAt: keyed.Expected.Add(time.Hour + time.Millisecond)}, []int64{2}},
			{row.Match{LateBy: time.Second, LateAt: keyed.Expected.Add(time.Second)}, []int64{1}}, // that began late
			{row.Match{Error: "Connection % re"}, []int64{1}},
			{row.Match{Error: "connection"}, nil},
			{row.Match{Error: "tcp%refused"}, nil},
			{row.Match{CreatedBy: r.Created, Status: new(row.Failed)}, []int64{1}},
			{row.Match{CreatedBy: r.Created - 1, Status: new(row.Failed)}, nil},
		} {
			sized, err := t.store.Match(t.Context(), []int64{9, 3, 2, 1}, c.match, false)
			t.must(err)
			var got []int64
			for _, s := range sized {
				got = append(got, s.ID)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%+v matches %v, want %v", c.match, got, c.want)
			}
		}
	}},
	{"A match tells how large rows are, and bodies come only when asked for", func(t *tester) {
		r := t.task(1)
		r.Body = []byte(strings.Repeat("ü", 5_000)) // 10,000 bytes
		t.insert(r)
		for _, bodies := range []bool{false, true} {
			sized, err := t.store.Match(t.Context(), []int64{1}, row.Match{}, bodies)
			t.must(err)
			rows, _, err := t.store.Rows(t.Context(), []int64{1}, bodies)
			t.must(err)
			if len(sized) != 1 || (sized[0].Bytes > 10_000) != bodies || len(rows) != 1 ||
				(len(rows[0].Body) > 0) != bodies {
				t.Fatalf("bodies %t: size %v of %d rows", bodies, sized, len(rows))
			}
			rows[0].Body = r.Body
			t.unchanged(rows[0])
		}
	}},
	{"The errors of rows are cut", func(t *tester) {
		long := strings.Repeat("e", row.FailureSize-1) + "ü"
		for id, text := range map[int64]string{1: "boom\nstack", 2: long, 3: ""} {
			r := t.keyed(id, "a", "")
			t.insert(r)
			c := change(r, row.Failed)
			c.ErrorStack = text
			t.apply(c)
		}
		found, err := t.store.Failures(t.Context(), []int64{3, 2, 1, 9})
		t.must(err)
		if len(found) != 3 {
			t.Fatalf("got %+v, want three rows", found)
		}
		for i, want := range []string{"boom\nstack", long[:row.FailureSize], ""} {
			r := t.get(int64(i + 1))
			if f := found[i]; f != (row.Failure{ID: r.ID, Tag: "a", At: r.Due, Error: want}) {
				t.Errorf("got %+v, want %q", f, want)
			}
		}
	}},
	{"Rows are counted up to a bound", func(t *tester) {
		t.insert(t.keyed(1, "a", ""), t.keyed(2, "A", ""), t.keyed(3, "a", ""), t.keyed(4, "a", ""))
		t.insertAs(t.keyed(5, "a", ""), row.Failed, t.start)
		pairs := []row.Pair{{Tag: "a"}, {Tag: "A"}, {Tag: "a", Status: row.Failed}, {Tag: "none"}}
		for most, want := range map[int][]int64{0: {0, 0, 0, 0}, 2: {2, 1, 1, 0}, 10: {3, 1, 1, 0}} {
			got, err := t.store.Count(t.Context(), pairs, most)
			t.must(err)
			if !slices.Equal(got, want) {
				t.Errorf("at most %d: %v, want %v", most, got, want)
			}
		}
	}},
	{"A tag that differs in spaces at its end is in the list of its status alone", func(t *tester) {
		t.insert(t.keyed(1, "a", ""), t.keyed(2, "a ", "")) // a plain INSERT may store it
		got, err := t.store.Places(t.Context(), []row.Span{{Tag: "a"}}, 5)
		t.must(err)
		if len(got[0]) != 1 || got[0][0].ID != 1 {
			t.Errorf("of the tag: %v, want 1", got)
		}
		oldest, err := t.store.Oldest(t.Context(), row.Pending)
		t.must(err)
		var spans []row.Span
		for _, of := range oldest {
			spans = append(spans, row.Span{Tag: of.Tag, Padded: true})
		}
		got, err = t.store.Places(t.Context(), spans, 5)
		t.must(err)
		if all := slices.Concat(got...); len(all) != 2 {
			t.Errorf("of all tags: %v, want 1 and 2", all)
		}
	}},
}

func (t *tester) newest(below int64, limit int, want ...int64) {
	t.Helper()
	got, err := t.store.Newest(t.Context(), below, limit)
	t.must(err)
	if !slices.Equal(got, want) {
		t.Errorf("%d newest below %d: %v, want %v", limit, below, got, want)
	}
}

// firstIDs wants every tag that has places in the span at the due time, with the id of the first of them.
func (t *tester) firstIDs(rows []row.Row, span row.Span, due row.Time) {
	t.Helper()
	got, err := t.store.FirstIDs(t.Context(), span, due)
	t.must(err)
	for _, span.Tag = range []string{"a", "b", "none"} {
		want := placesOf(rows, span, len(rows))
		want = slices.DeleteFunc(want, func(at row.Place) bool { return at.Due != due })
		id, known := got[span.Tag]
		if known != (len(want) > 0) || known && id != want[0].ID {
			t.Fatalf("first of %+v after %v at %v: got %d, %t, want %v", span, span.After, due, id, known, want)
		}
	}
}

// firstDue wants every tag that has a place in the span, with the due time of the first, or of a place before it at the
// due time of After.
func (t *tester) firstDue(rows []row.Row, span row.Span) {
	t.Helper()
	found, err := t.store.FirstDue(t.Context(), span)
	t.must(err)
	got := map[string]row.Time{}
	for _, of := range found {
		got[of.Tag] = of.Oldest
	}
	for _, span.Tag = range []string{"a", "b", "none"} {
		want := placesOf(rows, span, 1)
		at, known := got[span.Tag]
		isBefore := known && span.After != nil && at == span.After.Due
		if !isBefore && (known != (len(want) > 0) || known && at != want[0].Due) {
			t.Fatalf("first of %+v after %v: got %v, %t, want %v", span, span.After, at, known, want)
		}
	}
}
