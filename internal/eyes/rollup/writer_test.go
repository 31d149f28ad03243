package rollup

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/report"
)

// start is when bubbles begin to count: 30 s before the end of an hour.
var start = time.Date(2026, 1, 1, 9, 59, 30, 0, time.UTC)

// bench is a writer on a store, in a bubble.
type bench struct {
	*testing.T
	*memstore.Store
	counts *Counts
	writer *Writer
	away   atomic.Pointer[row.Error] // what the store answers to writes; nil: it works
	writes atomic.Int64
}

func (b *bench) PutRollups(ctx context.Context, rows []row.Rollup) error {
	b.writes.Add(1)
	if err := b.away.Load(); err != nil {
		return err
	}
	return b.Store.PutRollups(ctx, rows)
}

func onBench(t *testing.T, f func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(start))
		life := lifecycle.New(t.Context(), lifecycle.Config{
			Log: slog.New(slog.DiscardHandler), CallTimeout: time.Second,
		})
		defer life.End()
		b := &bench{T: t, Store: memstore.New(), counts: NewCounts()}
		b.writer = NewWriter(Config{Counts: b.counts, Store: b, Life: life, Node: "n",
			Now: func() (row.Time, bool) {
				reading, err := b.Now(t.Context())
				return reading.Time, err == nil
			}})
		life.Go(func() { b.writer.Loop(life.Life, func() bool { return true }) })
		synctest.Wait()
		f(b)
	})
}

// complete counts tasks, and lets a time pass.
func (b *bench) complete(n int, tag string, wait time.Duration) {
	for range n {
		b.counts.Event(tag, delaytask.EventCompleted)
	}
	time.Sleep(wait)
	synctest.Wait()
}

// completed returns how many tasks each row of a span has.
func (b *bench) completed(span row.RollupSpan) map[string]int64 {
	b.Helper()
	rows, err := b.Rollups(b.Context(), span, nil, row.MinTime, row.MaxTime)
	if err != nil {
		b.Fatal(err)
	}
	got := map[string]int64{}
	for _, r := range rows {
		got[r.Begin.Std().Format("15:04 ")+r.Tag+" "+r.Node] = r.Completed
	}
	return got
}

func (b *bench) has(span row.RollupSpan, want map[string]int64) {
	b.Helper()
	if got := b.completed(span); !reflect.DeepEqual(got, want) {
		b.Errorf("there are %v, want %v", got, want)
	}
}

func TestEachMinuteIsWrittenOnceWithItsHour(t *testing.T) {
	onBench(t, func(b *bench) {
		b.complete(2, "a", 0)
		b.complete(1, "b", time.Minute)   // 10:00:30
		b.complete(4, "a", time.Minute)   // 10:01:30
		b.complete(8, "a", 2*time.Minute) // 10:03:30
		b.has(row.SpanMinute, map[string]int64{
			"09:59  n": 3, "09:59 a n": 2, "09:59 b n": 1, "10:00  n": 4, "10:00 a n": 4, "10:01  n": 8, "10:01 a n": 8,
		})
		b.has(row.SpanHour, map[string]int64{
			"09:00  n": 3, "09:00 a n": 2, "09:00 b n": 1, "10:00  n": 12, "10:00 a n": 12,
		})
		if n := b.writes.Load(); n != 3 {
			b.Errorf("%d statements, want one for each minute that has something", n)
		}
	})
}

func TestWhatADatabaseDidNotTakeIsWrittenLater(t *testing.T) {
	onBench(t, func(b *bench) {
		b.away.Store(&row.Error{Class: row.ClassUnknown, Err: errors.New("gone away")})
		b.complete(1, "a", time.Minute)
		b.complete(2, "a", time.Minute)
		b.away.Store(nil)
		b.complete(0, "a", time.Minute)
		b.has(row.SpanMinute, map[string]int64{"09:59  n": 1, "09:59 a n": 1, "10:00  n": 2, "10:00 a n": 2})
		b.has(row.SpanHour, map[string]int64{"09:00  n": 1, "09:00 a n": 1, "10:00  n": 2, "10:00 a n": 2})
	})
}

func TestWhatADatabaseRefusesIsDropped(t *testing.T) {
	onBench(t, func(b *bench) {
		b.away.Store(&row.Error{Class: row.ClassOperator, Err: errors.New("denied")})
		b.complete(1, "a", time.Minute)
		b.away.Store(nil)
		b.complete(2, "a", time.Minute)
		b.has(row.SpanMinute, map[string]int64{"10:00  n": 2, "10:00 a n": 2})
	})
}

// A row that is written already must not be replaced by one that has less.
func TestAClockThatGoesBackReplacesNothing(t *testing.T) {
	onBench(t, func(b *bench) {
		b.complete(1, "a", time.Minute) // 10:00:30
		b.SetOffset(-80 * time.Second)  // 9:59:10, within what a reading may take back
		b.complete(2, "a", time.Minute) // 10:00:10
		b.SetOffset(-time.Hour)         // 9:01:30
		b.complete(4, "a", time.Minute) // 9:02:30
		b.complete(8, "a", time.Minute)
		b.has(row.SpanMinute, map[string]int64{
			"09:59  n": 1, "09:59 a n": 1, "10:00  n": 6, "10:00 a n": 6, "09:02  n-1": 8, "09:02 a n-1": 8,
		})
	})
}

func TestAStopWritesWhatThereIs(t *testing.T) {
	onBench(t, func(b *bench) {
		b.writer.Mark(row.At(start), "", "n", row.Mark{Kind: report.MarkJoined, Name: "shop"})
		b.complete(1, "a", time.Second)
		b.writer.Close(b.Context())
		b.has(row.SpanMinute, map[string]int64{"09:59  n": 1, "09:59 a n": 1})
		b.has(row.SpanHour, map[string]int64{"09:00  n": 1, "09:00 a n": 1})
		b.has(row.SpanMark, map[string]int64{"09:59  n": 0})
	})
}

func TestMinutesAreKeptForHoursAndHoursForDays(t *testing.T) {
	onBench(t, func(b *bench) {
		b.writer.Mark(row.At(start), "", "n", row.Mark{Kind: report.MarkJoined, Name: "shop"})
		b.complete(1, "a", KeepMinutes-time.Minute)
		b.has(row.SpanMinute, map[string]int64{"09:59  n": 1, "09:59 a n": 1})
		b.complete(0, "a", 2*time.Minute)
		b.has(row.SpanMinute, map[string]int64{})
		time.Sleep(KeepHours - 8*time.Hour)
		b.has(row.SpanHour, map[string]int64{"09:00  n": 1, "09:00 a n": 1})
		time.Sleep(3 * time.Hour)
		b.has(row.SpanHour, map[string]int64{})
		b.has(row.SpanMark, map[string]int64{})
	})
}

func TestProcessesAreMergedIntoOneSeries(t *testing.T) {
	rows := []row.Rollup{
		{Begin: 1, Node: "a", Completed: 1, Retried: 2, Late: row.Histogram{{Class: 3, N: 1}}, Max: 3},
		{Begin: 1, Node: "b", Failed: 4, Lost: 5, Late: row.Histogram{{Class: 2, N: 1}, {Class: 3, N: 2}}, Max: 9},
		{Begin: 3, Node: "b", Completed: 7},
	}
	want := []row.Rollup{
		{Begin: 1, Completed: 1, Retried: 2, Failed: 4, Lost: 5, Max: 9,
			Late: row.Histogram{{Class: 2, N: 1}, {Class: 3, N: 3}}},
		{Begin: 3, Completed: 7},
	}
	if got := Merge(rows); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := Merge(nil); got != nil {
		t.Errorf("of nothing came %+v", got)
	}
}

func TestMarksOfSeveralProcessesAreOne(t *testing.T) {
	at := row.At(start)
	mark := func(after time.Duration, tag, node string, kind report.MarkKind, name string) row.Rollup {
		return row.Rollup{Begin: at.Add(after), Tag: tag, Node: node, Mark: row.Mark{Kind: kind, Name: name}}
	}
	rows := []row.Rollup{
		mark(0, "", "n", report.MarkJoined, "x"), mark(1, "", "m", report.MarkJoined, "x"),
		mark(time.Second, "", "n", report.MarkFailover, "db2"),
		mark(2*time.Second, "", "m", report.MarkFailover, "db2"),
		mark(3*time.Second, "a", "n", report.MarkPaused, ""), mark(4*time.Second, "b", "n", report.MarkPaused, ""),
		mark(time.Hour, "", "n", report.MarkFailover, "db2"),
	}
	if got, want := Marks(rows, ""), append(append([]row.Rollup{}, rows[:3]...), rows[4:]...); !reflect.DeepEqual(
		got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := Marks(rows, "b"); len(got) != 5 || got[3].Tag != "b" {
		t.Errorf("of one tag %+v", got)
	}
}
