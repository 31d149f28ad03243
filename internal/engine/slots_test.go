package engine

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/processor"
)

// A tag has long tasks, one after another without an end, and may use all slots of the process. It leaves slots to
// another tag.
func TestSlowTagDoesNotStarveAQuickOne(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(
			w.store,
			serving{"slow": untilEnd(10*time.Second, nil), "slower": untilEnd(20*time.Second, nil), "quick": nothing},
		)
		w.saveMany(e, "slow", 200)
		w.saveMany(e, "slower", 200)
		time.Sleep(5 * time.Second)
		var ids []int64
		for range 400 {
			ids = append(ids, w.save(e, "quick", 2*time.Second), w.save(e, "quick", 0))
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		w.allCompleted(ids, 5*time.Millisecond)
	})
}

// Quick tasks are claimed many at a time, beyond the free slots; still no more of them run at once than the concurrency
// allows.
func TestQuickTasksAreClaimedBeyondTheSlotsAndRunWithinThem(t *testing.T) {
	inBubble(t, func(w *world) {
		var claims, running, most atomic.Int64
		store := at(w.store, "Claim", func(ctx context.Context, do func() error) error {
			claims.Add(1)
			lifecycle.Sleep(ctx, 5*time.Millisecond)
			return do()
		})
		e := w.engine(
			store,
			serving{"a": counting(&running, &most, time.Millisecond)},
			func(c *Config) { c.Concurrency = 4 },
		)
		const tasks = 1000
		ids := w.many(e, tasks, "a", 2*time.Second)
		time.Sleep(10 * time.Second)
		w.allCompleted(ids, 3*time.Second)
		if n := most.Load(); n != 4 {
			t.Errorf("%d tasks ran at once, want 4", n)
		}
		if n := claims.Load(); n > tasks/10 {
			t.Errorf("%d claims for %d tasks", n, tasks)
		}
	})
}

// counting is a processor that works for d and tells how many run at once, and did at most.
func counting(running, most *atomic.Int64, d time.Duration) processor.Func {
	return func(context.Context, *delaytask.Task) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		time.Sleep(d)
		return nil
	}
}

func TestSlowTasksAreNotClaimedBeyondTheSlots(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": untilEnd(time.Second, nil)}, func(c *Config) { c.Concurrency = 4 })
		ids := w.many(e, 20, "a", 2*time.Second)
		for range 8 {
			time.Sleep(900 * time.Millisecond)
			if n := w.executing(ids); n > 4 {
				t.Errorf("%d tasks are claimed, want 4 at most", n)
			}
		}
	})
}

// quicken runs waves of quick tasks in 2 s, after which rows are claimed beyond the slots for a moment: what is due
// wave after the last.
func (w *world) quicken(e *Engine, tag string) (ids []int64) {
	for range 10 {
		ids = append(ids, w.many(e, 50, tag, 2*time.Second)...)
		time.Sleep(wave)
	}
	return ids
}

// A wave is shorter than the span over which the run queue measures a rate, so no span is empty.
const (
	wave = 18 * time.Millisecond
	lead = 15 * time.Millisecond // this long before a due time its claim has not begun, and the last wave has ended
)

// Tasks that were quick become slow: what was claimed beyond the slots is given back, and loses no attempt.
func TestRowThatFindsNoSlotIsGivenBack(t *testing.T) {
	inBubble(t, func(w *world) {
		var slow atomic.Bool
		e := w.engine(w.store, serving{"a": func(ctx context.Context, _ *delaytask.Task) error {
			if slow.Load() {
				lifecycle.Sleep(ctx, 5*time.Second)
			}
			return nil
		}}, func(c *Config) { c.Concurrency = 2 })
		first := w.quicken(e, "a")
		second := w.many(e, 20, "a", 2*time.Second)
		time.Sleep(2*time.Second - lead)
		slow.Store(true)
		time.Sleep(lead + runqueue.SlotWait/2)
		if got := w.executing(second); got <= 2 {
			t.Errorf("%d tasks are claimed for two slots and the prefetch", got)
		}
		time.Sleep(runqueue.SlotWait)
		if got := w.executing(second); got != 2 {
			t.Errorf("%d tasks are claimed for two slots when none became free", got)
		}
		time.Sleep(time.Minute)
		w.allCompleted(slices.Concat(first, second), time.Minute)
	})
}

// The claim takes most of the lease, and no renewal comes in time. Nothing crashed, so the rescue must not find the
// rows.
func TestRowWhoseLeaseEndsBeforeItFindsASlotIsGivenBack(t *testing.T) {
	inBubble(t, func(w *world) {
		var late, hangs atomic.Bool
		store := around{w.store, func(ctx context.Context, call string, do func() error) error {
			switch {
			case call == "Claim" && late.CompareAndSwap(true, false):
				time.Sleep(700 * time.Millisecond)
			case call == "Renew" && hangs.Load():
				<-ctx.Done()
				return ctx.Err()
			}
			return do()
		}}
		e := w.engine(store, serving{"a": func(ctx context.Context, task *delaytask.Task) error {
			if task.Priority > 0 {
				lifecycle.Sleep(ctx, 5*time.Second)
			}
			return nil
		}}, func(c *Config) { c.Concurrency = 1 })
		w.quicken(e, "a")
		w.save(e, "a", 2*time.Second, delaytask.WithPriority(1))
		ids := w.many(e, 10, "a", 2*time.Second, delaytask.WithTTR(time.Second))
		time.Sleep(2*time.Second - lead)
		late.Store(true)
		hangs.Store(true)
		time.Sleep(900 * time.Millisecond)
		if got := w.executing(ids); got == 0 {
			t.Fatal("no task is claimed beyond the only slot")
		}
		time.Sleep(2 * time.Second)
		w.standing(row.Pending, 0, 0, ids...)
		hangs.Store(false)
		time.Sleep(time.Minute)
		w.allCompleted(ids, time.Minute)
		if n := e.pool.Attempts.Len(); n != 0 {
			t.Errorf("%d rows are still in the book", n)
		}
	})
}

func TestStopGivesBackWhatFoundNoSlot(t *testing.T) {
	inBubble(t, func(w *world) {
		var slow atomic.Bool
		e := w.engine(w.store, serving{"a": func(context.Context, *delaytask.Task) error {
			if slow.Load() {
				time.Sleep(time.Hour) // whatever its context says
			}
			return nil
		}}, func(c *Config) {
			c.Concurrency, c.StopGrace = 2, 100*time.Millisecond
		})
		w.quicken(e, "a")
		ids := w.many(e, 20, "a", 2*time.Second)
		time.Sleep(2*time.Second - lead)
		slow.Store(true)
		time.Sleep(lead + 10*time.Millisecond)
		if got := w.executing(ids); got <= 2 {
			t.Fatalf("%d tasks are claimed for two slots and the prefetch", got)
		}
		if err := e.Stop(w.Context()); err == nil {
			t.Error("the stop interrupted nothing")
		}
		w.lossy[e] = true
		for _, id := range ids {
			if r := w.row(id); r.Status != row.Pending || r.Attempt != 0 {
				t.Errorf("task %d is %v at attempt %d after the stop", id, r.Status, r.Attempt)
			}
		}
		time.Sleep(time.Hour) // the processors have to return before the bubble ends
	})
}

func TestProcessorThatEndsItsGoroutineLeavesItsSlotToTheNext(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": func(_ context.Context, task *delaytask.Task) error {
			if task.Attempt == 1 {
				runtime.Goexit()
			}
			return nil
		}}, func(c *Config) { c.Concurrency = 1 })
		ids := w.many(e, 10, "a", 2*time.Second)
		time.Sleep(20 * time.Second)
		for _, id := range ids {
			if r := w.row(id); r.Status != row.Completed || r.Attempt != 2 {
				t.Errorf("task %d is %v after attempt %d", id, r.Status, r.Attempt)
			}
		}
	})
}

// A claim brings 500 rows at most, and while it is under way the rows of the last claim run. So a drain takes about as
// many round trips as it has claims, once the flow is known. It may take three times as long, and a second to begin.
func TestADrainKeepsUpWithAnyRoundTrip(t *testing.T) {
	const ms = time.Millisecond
	inBubblesOf(t, []time.Duration{3 * ms, 20 * ms, 50 * ms, 100 * ms}, func(w *world, trip time.Duration) {
		const tasks = 6000
		w.backlog(tasks, "a", row.At(time.Now().Add(-time.Minute)))
		w.engine(distant(w.store, trip), serving{"a": nothing})
		time.Sleep(3*tasks/runqueue.MaxClaim*trip + time.Second)
		if done := w.done("a"); done < tasks {
			w.Errorf("%d of %d tasks are done", done, tasks)
		}
	})
}
