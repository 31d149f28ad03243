package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

func TestOverloadedTagKeepsNobodyElseFromBeingOnTime(t *testing.T) {
	inBubble(t, func(w *world) {
		slow := func(context.Context, *processor.Task) error { time.Sleep(100 * time.Millisecond); return nil }
		e := w.engine(w.store, map[string]processor.Func{"slow": slow, "quick": nothing}, func(c *Config) { c.Workers = 4 })
		for i := range 2000 {
			w.save(e, "slow", time.Second+time.Duration(i)*time.Millisecond)
		}
		id := w.save(e, "quick", 15*time.Second)
		time.Sleep(20 * time.Second)
		runs := w.runs.of(id)
		if len(runs) != 1 {
			w.Fatalf("ran %d times", len(runs))
		}
		if late := runs[0].at.Sub(runs[0].task.Due); late > time.Second {
			w.Errorf("started %v late beside a tag that gets more than it can run", late)
		}
		time.Sleep(60 * time.Second)
	})
}

func TestOverdueRowsAreKeptInMemoryUpToABound(t *testing.T) {
	h := handsFor(1, 1, "a")
	h.limits.backlog = 10
	h.due(sightings("a", 1, 100), false, 0)
	running := h.pickAny(1, 0)
	if got := h.pickAny(1, row.At(bubbleTime)); len(got) != 0 || len(h.lines.waiting) != 10 {
		t.Errorf("%d rows wait in memory beside %d that runs, want the bound of 10", len(h.lines.waiting), len(running))
	}
}

// More falls due at once than memory keeps once it is overdue. What was forgotten is read again while the rest runs.
func TestBurstIsRunWithoutAPause(t *testing.T) {
	inBubble(t, func(w *world) {
		const tasks = 8000
		var mu sync.Mutex
		var starts []time.Time
		e := w.idle(w.store, map[string]processor.Func{"a": func(context.Context, *processor.Task) error {
			mu.Lock()
			starts = append(starts, time.Now())
			mu.Unlock()
			time.Sleep(2 * time.Millisecond)
			return nil
		}}, func(c *Config) { c.Workers = 4 })
		due := row.At(time.Now().Add(3 * time.Second))
		for i := range int64(tasks) {
			w.plain(1000+i, "a", due)
		}
		if err := e.Start(w.Context()); err != nil {
			w.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if len(starts) != tasks {
			w.Fatalf("%d tasks ran, want %d", len(starts), tasks)
		}
		slices.SortFunc(starts, time.Time.Compare)
		for i := range starts[1:] {
			if pause := starts[i+1].Sub(starts[i]); pause > 700*time.Millisecond {
				w.Errorf("nothing started for %v after %d tasks", pause, i+1)
			}
		}
	})
}

func TestResultWaitsForTheClockRatherThanBeWrittenWithoutATime(t *testing.T) {
	inBubble(t, func(w *world) {
		var e *Engine
		calls := 0
		e = w.engine(w.store, map[string]processor.Func{
			"snooze": func(context.Context, *processor.Task) error {
				if calls++; calls == 1 {
					e.clock.Drop()
					return processor.Snooze(time.Hour)
				}
				return nil
			},
			"done": func(context.Context, *processor.Task) error { e.clock.Drop(); return nil },
		})
		snoozed, done := w.save(e, "snooze", 0), w.save(e, "done", 3*time.Second)
		time.Sleep(30 * time.Second)
		if n := len(w.runs.of(snoozed)); n != 1 {
			w.Errorf("snoozed for an hour, and ran %d times in half a minute", n)
		}
		if r := w.row(done); r.Status != row.Completed || r.Finish.IsZero() || r.Due.IsZero() {
			w.Errorf("completed without its times: %+v", r)
		}
	})
}

func TestLockedResultsHoldUpNoOthers(t *testing.T) {
	inBubble(t, func(w *world) {
		work := make(chan struct{})
		slow := func(context.Context, *processor.Task) error { <-work; return nil }
		e := w.engine(w.store, map[string]processor.Func{"locked": slow, "free": nothing}, func(c *Config) { c.Workers = 100 })
		var locked, free []int64
		for range 40 {
			locked = append(locked, w.save(e, "locked", 0))
		}
		time.Sleep(3 * time.Second)
		unlock := w.store.Lock(locked...)
		close(work)
		time.Sleep(3 * time.Second)
		for range 30 {
			free = append(free, w.save(e, "free", 0))
		}
		time.Sleep(2 * time.Second)
		for _, id := range free {
			if r := w.row(id); r.Status != row.Completed {
				w.Fatalf("a free row is %s two seconds after it ran", r.Status)
			}
		}
		unlock()
		time.Sleep(6 * time.Second)
		for _, id := range locked {
			if r := w.row(id); r.Status != row.Completed || r.Version != 2 {
				w.Fatalf("a row that was locked: %+v", r)
			}
		}
	})
}

func TestLockedResultIsAskedForLessAndLess(t *testing.T) {
	inBubble(t, func(w *world) {
		var asked atomic.Int64
		work := make(chan struct{})
		e := w.engine(lockedHook{w.store, func([]int64) { asked.Add(1) }}, map[string]processor.Func{
			"a": func(context.Context, *processor.Task) error { <-work; return nil },
		})
		id := w.save(e, "a", 0, processor.WithTTR(time.Hour)) // so that no renewal asks as well
		time.Sleep(time.Second)
		unlock := w.store.Lock(id)
		close(work)
		time.Sleep(30 * time.Second)
		if n := asked.Load(); n < 5 || n > 20 {
			w.Errorf("the locked row was asked for %d times in 30 s, want it at growing intervals", n)
		}
		unlock()
		time.Sleep(6 * time.Second)
		w.completed(id, time.Millisecond)
	})
}

func TestPopMayWaitForLongerThanItsTagIsRemembered(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		ctx, cancel := context.WithTimeout(w.Context(), 5*time.Minute)
		defer cancel()
		time.AfterFunc(time.Minute, func() { w.save(e, "a", 0) })
		got, err := e.Pop(ctx, PopRequest{Tags: []string{"a"}, Max: 1})
		if err != nil || len(got) != 1 {
			w.Errorf("popped %v, %v", got, err)
		}
	})
}

func TestPoppedTaskThatWasCancelledIsLost(t *testing.T) {
	inBubble(t, func(w *world) {
		e, other := w.engine(w.store, nil), w.engine(w.store, nil)
		id := w.save(e, "a", 0, processor.WithTTR(time.Hour))
		task := w.take(e, "a")
		if _, err := other.Cancel(w.Context(), nil, Ref{ID: id}, false); err != nil {
			w.Fatal(err)
		}
		began := time.Now()
		if err := e.Finish(w.Context(), id, task.Version); !errors.Is(err, processor.ErrLeaseLost) {
			w.Errorf("finished a cancelled task: %v", err)
		}
		if took := time.Since(began); took > time.Second {
			w.Errorf("it took %v to say so", took)
		}
	})
}

func TestRowWithoutADueTimeIsNotPoppedBeforeItIsDue(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		r := row.Row{
			ID: e.ids.Next(), Tag: "a", TTR: 15 * time.Second,
			Expected: e.now().Add(time.Hour), Created: e.now(), Updated: e.now(),
		}
		if err := w.store.Insert(w.Context(), nil, []row.Row{r}); err != nil {
			w.Fatal(err)
		}
		got, err := e.Pop(w.Context(), PopRequest{Tags: []string{"a"}, Max: 1, Waits: true, Wait: 5 * time.Second})
		if err != nil || len(got) != 0 {
			w.Errorf("popped %v, %v: it is due in an hour", got, err)
		}
	})
}

// A clock is read in 30 ms here, so that it has no anchor at the moments at which the timer fires (before the task is due, by the
// lead) and at which the claimed task is to be started.
func TestStartsGoOnSoonAfterTheClockHasLostItsAnchor(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(nowHook{w.store, func(ctx context.Context) (row.Reading, error) {
			time.Sleep(30 * time.Millisecond)
			return w.store.Now(ctx)
		}}, map[string]processor.Func{"a": nothing})
		for range 10 { // the readings that come by themselves are taken in other moments each time
			for _, before := range []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond} {
				time.Sleep(3 * time.Second)
				id := w.save(e, "a", 2*time.Second)
				time.Sleep(time.Until(w.row(id).Due.Std()) - before)
				reading, err := w.store.Now(w.Context())
				if err != nil {
					w.Fatal(err)
				}
				reading.Time = reading.Time.Add(time.Minute) // of a server that took over
				e.heard(reading, time.Now(), time.Now())
				time.Sleep(2 * time.Second)
				if late := w.once(id); late > 100*time.Millisecond {
					w.Errorf("started %v late after the anchor was lost %v before it was due", late, before)
				}
			}
		}
	})
}

func TestHookThatDoesNotReturnDoesNotHoldUpAStop(t *testing.T) {
	inBubble(t, func(w *world) {
		block := make(chan struct{})
		permanent := func(context.Context, *processor.Task) error { return processor.Permanent(errors.New("no")) }
		e := w.engine(w.store, map[string]processor.Func{"a": permanent}, func(c *Config) {
			c.OnFailed = func(context.Context, *processor.Task, error) { <-block }
		})
		defer close(block)
		w.save(e, "a", 0)
		time.Sleep(time.Second)
		stopped := make(chan error, 1)
		go func() { stopped <- e.Stop(context.WithoutCancel(w.Context())) }()
		select {
		case err := <-stopped:
			if err != nil {
				w.Error(err)
			}
		case <-time.After(15 * time.Second):
			w.Error("the stop waits for the hook")
		}
	})
}

// A claim of a backlog is large and takes long; a task that is due meanwhile must not wait for it.
func TestWhatIsDueNowDoesNotTravelWithABacklog(t *testing.T) {
	inBubble(t, func(w *world) {
		old := row.At(time.Now().Add(-time.Hour))
		for i := range int64(3000) {
			w.plain(1000+i, "a", old)
		}
		store := claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
			backlog, _ := split(c.Rows, func(r row.Ref) bool { return r.ID < 10_000 })
			if len(backlog) > 0 {
				sleep(ctx, 80*time.Millisecond)
			}
			if len(backlog) > 0 && len(backlog) < len(c.Rows) {
				w.Errorf("a claim holds %d rows of the backlog and %d others", len(backlog), len(c.Rows)-len(backlog))
			}
			return w.store.Claim(ctx, c)
		}}
		e := w.engine(store, map[string]processor.Func{"a": nothing})
		var ids []int64
		for range 100 {
			ids = append(ids, w.save(e, "a", 2*time.Second), w.save(e, "a", 0))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		for _, id := range ids {
			w.completed(id, 5*time.Millisecond)
		}
	})
}

// The first claim of a backlog gets no answer until its time is up. The rest of the backlog does not wait for it.
func TestAClaimThatHangsDoesNotHoldUpTheBacklog(t *testing.T) {
	inBubble(t, func(w *world) {
		old := row.At(time.Now().Add(-time.Hour))
		for i := range int64(2000) {
			w.plain(1000+i, "a", old+row.Time(i))
		}
		var mu sync.Mutex
		var hung map[int64]bool
		store := claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
			mu.Lock()
			first := hung == nil
			if first {
				hung = map[int64]bool{}
				for _, r := range c.Rows {
					hung[r.ID] = true
				}
			}
			mu.Unlock()
			if first {
				<-ctx.Done()
				return row.Claimed{}, &row.Error{Class: row.ClassUnknown, Op: "claim", Err: context.Cause(ctx)}
			}
			return w.store.Claim(ctx, c)
		}}
		w.engine(store, map[string]processor.Func{"a": nothing})
		time.Sleep(3 * time.Second)
		for i := range int64(2000) {
			if r := w.row(1000 + i); !hung[r.ID] && r.Status != row.Completed {
				w.Fatalf("row %d is %v; %d rows of the claim hang", r.ID, r.Status, len(hung))
			}
		}
		time.Sleep(30 * time.Second)
		for i := range int64(2000) {
			w.once(1000 + i)
		}
	})
}
