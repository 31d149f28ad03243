package storetest

import (
	"fmt"
	"reflect"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

var rollupTests = []test{
	{"A rollup comes back as it was written", func(t *tester) {
		begin := row.SpanHour.Begin(t.start)
		whole := row.Rollup{
			Span: row.SpanHour, Begin: begin, Tag: "a", Node: "n", Completed: 1 << 40, Retried: 2, Failed: 3, Lost: 4,
			Late: row.Histogram{{Class: 0, N: 5}, {Class: row.LateClasses - 1, N: 1 << 40}},
			Max:  1000*time.Hour + time.Microsecond,
		}
		mark := row.Rollup{Begin: begin + 1, Tag: "b", Node: "n", Mark: row.Mark{Kind: report.MarkLost, Name: "höst 1"}}
		paused := row.Rollup{Begin: begin + 2, Tag: "b", Node: "n", Mark: row.Mark{Kind: report.MarkPaused}}
		t.putsRollups(whole, mark, paused)
		t.hasRollups(row.SpanHour, nil, begin, begin+1, whole)
		t.hasRollups(row.SpanMark, nil, begin, begin+3, mark, paused)
	}},
	{"A later write takes the place of the row", func(t *tester) {
		begin := row.SpanMinute.Begin(t.start)
		first := row.Rollup{Span: row.SpanMinute, Begin: begin, Tag: "a", Node: "n", Completed: 7, Max: time.Second}
		second, other := first, first
		second.Completed, second.Max = 3, 0
		other.Node = "m"
		t.putsRollups(first, other)
		t.putsRollups(second)
		t.putsRollups(second)
		t.putsRollups()
		t.hasRollups(row.SpanMinute, nil, begin, begin+1, other, second)
	}},
	{"Rollups are read by span, tags and time, in order", func(t *tester) {
		begin, minute := row.SpanHour.Begin(t.start), row.Time(60_000_000)
		at := func(span row.RollupSpan, begin row.Time, tag, node string) row.Rollup {
			return row.Rollup{Span: span, Begin: begin, Tag: tag, Node: node, Completed: 1}
		}
		early := at(row.SpanMinute, begin, "B", "n")
		all, a, c := at(row.SpanMinute, begin+minute, row.EveryTag, "n"), at(row.SpanMinute, begin+minute, "a", "m"),
			at(row.SpanMinute, begin+minute, "a", "n")
		late := at(row.SpanMinute, begin+2*minute, "a", "n")
		t.putsRollups(late, c, at(row.SpanHour, begin, "a", "n"), all, early, a)
		f := func(tags []string, from, to row.Time, want ...row.Rollup) {
			t.Helper()
			t.hasRollups(row.SpanMinute, tags, from, to, want...)
		}
		f(nil, begin, begin+3*minute, early, all, a, c, late)
		f(nil, begin+1, begin+2*minute, all, a, c)
		f(nil, begin+minute, begin+minute)
		f([]string{}, begin, begin+3*minute)
		f([]string{"a"}, begin, begin+3*minute, a, c, late)
		f([]string{"a"}, begin+1, begin+2*minute+1, a, c, late)
		f([]string{"a"}, begin+minute+1, begin+2*minute)
		f([]string{"a", "none", row.EveryTag, "a", "A"}, begin, begin+2*minute, all, a, c)
		f([]string{"a"}, begin-row.Time(row.SpanHour)*minute*24*30, begin+minute+1, a, c) // too many to be named
		many := []string{"a"}
		for i := range 3000 {
			many = append(many, fmt.Sprint("t", i))
		}
		f(many, begin, begin+3*minute, a, c, late)
	}},
	{"Old rollups of a span are deleted, the oldest first", func(t *tester) {
		begin, minute := row.SpanHour.Begin(t.start), row.Time(60_000_000)
		var rows []row.Rollup
		for i := range row.Time(6) {
			for _, tag := range []string{"a", "b"} {
				rows = append(rows, row.Rollup{Span: row.SpanMinute, Begin: begin + i*minute, Tag: tag, Node: "n"})
			}
		}
		hour := row.Rollup{Span: row.SpanHour, Begin: begin, Tag: "a", Node: "n"}
		t.putsRollups(append(rows, hour)...)
		f := func(before row.Time, limit, want int) {
			t.Helper()
			n, err := t.store.TrimRollups(t.Context(), row.SpanMinute, before, limit)
			t.must(err)
			if n != want {
				t.Errorf("%d rows were deleted, want %d", n, want)
			}
		}
		f(begin, 10, 0)
		f(begin+3*minute, 0, 0)
		f(begin+3*minute, 4, 4)
		t.hasRollups(row.SpanMinute, nil, begin, begin+9*minute, rows[4:]...)
		f(begin+3*minute+1, 10, 4)
		f(begin+3*minute+1, 10, 0)
		t.hasRollups(row.SpanMinute, nil, begin, begin+9*minute, rows[8:]...)
		t.hasRollups(row.SpanHour, nil, begin, begin+1, hour)
	}},
}

func (t *tester) putsRollups(rows ...row.Rollup) {
	t.Helper()
	t.must(t.store.PutRollups(t.Context(), rows))
}

func (t *tester) hasRollups(span row.RollupSpan, tags []string, from, to row.Time, want ...row.Rollup) {
	t.Helper()
	got, err := t.store.Rollups(t.Context(), span, tags, from, to)
	t.must(err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%d of %.50q from %v to %v: got %+v, want %+v", span, tags, from, to, got, want)
	}
}
