package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/report"
)

// counted returns the rows of a span, of all tags, and of one time and node.
func (w *world) counted(span row.RollupSpan) []row.Rollup {
	w.Helper()
	rows, err := w.store.Rollups(w.Context(), span, nil, row.MinTime, row.MaxTime)
	w.must(err)
	return rows
}

// marks returns what was marked, without the times.
func (w *world) marks() (marks []string) {
	w.Helper()
	for _, r := range w.counted(row.SpanMark) {
		marks = append(marks, r.Tag+" "+r.Mark.String())
	}
	return marks
}

func TestResultsAndLatenessOfEachMinuteAreKept(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{
			"good": nothing,
			"bad": func(context.Context, *delaytask.Task) error {
				return processor.Permanent(errors.New("boom"))
			},
			"flaky": func(_ context.Context, task *delaytask.Task) error {
				if task.Attempt == 1 {
					return errors.New("not yet")
				}
				return nil
			},
		})
		w.many(e, 3, "good", time.Second)
		w.many(e, 2, "bad", time.Second)
		w.save(e, "flaky", time.Second)
		time.Sleep(90 * time.Second)
		synctest.Wait()
		want := map[string][4]int64{ // completed, retried, failed, first attempts
			row.EveryTag: {4, 1, 2, 6}, "good": {3, 0, 0, 3}, "bad": {0, 0, 2, 2}, "flaky": {1, 1, 0, 1},
		}
		for _, span := range []row.RollupSpan{row.SpanMinute, row.SpanHour} {
			rows := w.counted(span)
			for _, r := range rows {
				got := [4]int64{r.Completed, r.Retried, r.Failed, r.Late.Count()}
				if got != want[r.Tag] || r.Begin != span.Begin(row.At(bubbleTime)) {
					t.Errorf("%d minutes of tag %q: %+v, want %v", span, r.Tag, r, want[r.Tag])
				}
			}
			if len(rows) != len(want) {
				t.Errorf("%d rows of %d minutes, want %d", len(rows), span, len(want))
			}
		}
	})
}

func TestALostLeaseIsCounted(t *testing.T) {
	inBubble(t, func(w *world) {
		hung := w.engine(w.store, serving{"a": untilEnd(time.Hour, nil)})
		w.save(hung, "a", 0)
		time.Sleep(time.Second)
		w.crash(hung)
		e := w.engine(w.store, serving{"a": nothing})
		time.Sleep(time.Minute)
		w.must(e.Stop(w.Context()))
		var lost int64
		for _, r := range w.counted(row.SpanHour) {
			if r.Tag == "a" {
				lost += r.Lost
			}
		}
		if lost != 1 {
			t.Errorf("%d lost leases were counted, want 1", lost)
		}
	})
}

func TestNodesAndPausesAreMarked(t *testing.T) {
	inBubble(t, func(w *world) {
		named := func(name string) func(*Config) { return func(c *Config) { c.NodeName = name } }
		tags := serving{"a": nothing}
		first := w.engine(w.store, tags, named("one"))
		time.Sleep(time.Second)
		second := w.engine(w.store, tags, named("two"))
		time.Sleep(time.Second)
		command := w.idle(w.store, nil, named("command"))
		w.must(command.Pause(w.Context(), "a", ""))
		time.Sleep(time.Second)
		w.must(command.Resume(w.Context(), "a"))
		w.must(command.Stop(w.Context()))
		time.Sleep(3 * time.Second) // a node is lost as of its last heartbeat, up to 2 s before
		before := row.At(time.Now())
		w.crash(second)
		time.Sleep(time.Minute + 15*time.Second)
		w.must(first.Stop(w.Context()))
		want := []string{" joined one", " joined two", "a paused", "a resumed", " lost two", " left one"}
		if got := w.marks(); !slices.Equal(got, want) {
			t.Errorf("marks are %q, want %q", got, want)
		}
		if lost := w.counted(row.SpanMark)[4]; before.Sub(lost.Begin) > 2*time.Second {
			t.Errorf("it was lost at %v, the crash was at %v", lost.Begin, before)
		}
	})
}

func TestAnotherServerIsMarkedOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		time.Sleep(5 * time.Second)
		w.store.SetServer("db2")
		time.Sleep(5 * time.Minute)
		w.store.SetServer("memory")
		time.Sleep(time.Minute)
		for i := range 100 { // behind a proxy that asks one after the other
			w.store.SetServer([]string{"memory", "db2"}[i%2])
			time.Sleep(time.Second)
		}
		w.must(e.Stop(w.Context()))
		var got []string
		for _, mark := range w.marks() {
			if row.ReadMark([]byte(mark[1:])).Kind == report.MarkFailover {
				got = append(got, mark)
			}
		}
		if want := []string{" failover db2", " failover memory", " failover db2"}; !slices.Equal(got, want) {
			t.Errorf("marks are %q, want %q", got, want)
		}
	})
}

// In an outage no node can send a heartbeat.
func TestAnOutageLosesNoNode(t *testing.T) {
	inBubble(t, func(w *world) {
		for range 3 {
			store := newRemote(w.store, false)
			w.engine(store, serving{"a": nothing})
			time.AfterFunc(5*time.Second, func() { store.away.Store(true) })
			time.AfterFunc(time.Minute, func() { store.away.Store(false) })
		}
		time.Sleep(3 * time.Minute)
		if got, want := w.marks(), 3; len(got) != want {
			t.Errorf("marks are %q, want %d nodes that joined", got, want)
		}
	})
}
