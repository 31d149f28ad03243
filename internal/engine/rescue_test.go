package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/find"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
)

func TestTaskOfACrashedNodeIsRescued(t *testing.T) {
	inBubble(t, func(w *world) {
		rescued := make(chan *delaytask.Task, 10)
		dying := w.engine(w.store, serving{"a": untilEnd(time.Hour, nil)})
		ids := []int64{
			w.save(dying, "a", 0, delaytask.WithTTR(3*time.Second), delaytask.WithMaxAttempts(1)),
			w.save(dying, "a", 0),
		}
		time.Sleep(10 * time.Second)
		w.crash(dying)
		ends := []time.Time{w.row(ids[0]).Due.Std(), w.row(ids[1]).Due.Std()}
		w.engine(w.store, serving{"a": nothing}, func(c *Config) {
			c.OnRescued = func(_ context.Context, task *delaytask.Task) { rescued <- task }
		})
		time.Sleep(30 * time.Second)
		w.standing(row.Completed, 1, 1, ids...)
		for i, id := range ids {
			runs := w.ran(id, 2)
			if late := runs[1].at.Sub(ends[i]); late < 0 || late > 5*time.Second {
				w.Errorf("rescued %v after the end of the lease", late)
			}
			if first := w.row(id).Execution; first.Sub(row.At(runs[0].at)).Abs() > 20*time.Millisecond {
				w.Errorf("execution time %v, want the first start, %v", first, runs[0].at)
			}
		}
		if len(rescued) != 2 {
			w.Errorf("OnRescued was called %d times", len(rescued))
		}
	})
}

// Other programs may have thousands of tags in the table. Oldest takes a step of the index for each of them.
func TestAnEngineSeldomReadsTagsThatItDoesNotServe(t *testing.T) {
	inBubble(t, func(w *world) {
		for i := range 3000 {
			w.store.Plant(row.Row{
				ID: int64(i + 1), Tag: fmt.Sprint("t", i), Status: row.Completed, Due: row.At(time.Now()),
			})
		}
		var walks atomic.Int64
		w.engine(at(w.store, "Oldest", func(_ context.Context, do func() error) error {
			walks.Add(1)
			time.Sleep(400 * time.Millisecond)
			return do()
		}), serving{"t7": nothing}, func(c *Config) {
			c.Retention = find.Retention{Completed: 24 * time.Hour, Failed: 24 * time.Hour, Cancelled: 24 * time.Hour}
		})
		time.Sleep(10 * time.Minute)
		if n := walks.Load(); n > 14*10 {
			w.Errorf("all tags are read %d times in 10 min, want 4 times a minute for leases and 10 for the others", n)
		}
	})
}

// A popped task may be out when its tag is popped no more, and its process may die or stop. To walk through very many
// tags takes a while, and is done less often.
func TestLeasesOfTagsThatNoNodeServesEnd(t *testing.T) {
	inBubbles(t, map[string]struct{ ttr, walk, within time.Duration }{
		"short":               {ttr: 3 * time.Second, within: 5 * time.Second},
		"long, of many tags":  {ttr: time.Hour, walk: 400 * time.Millisecond, within: 5 * time.Second},
		"short, of many tags": {ttr: 3 * time.Second, walk: 400 * time.Millisecond, within: 20 * time.Second},
	}, func(w *world, c struct{ ttr, walk, within time.Duration }) {
		w.engine(at(w.store, "Oldest", func(_ context.Context, do func() error) error {
			time.Sleep(c.walk)
			return do()
		}), serving{"other": nothing})
		time.Sleep(40 * time.Second)
		w.store.Plant(row.Row{ID: 1, Tag: "a", Status: row.Executing,
			Executor: row.Executor{Process: 9, Claim: -1}, TTR: c.ttr, Due: row.At(time.Now().Add(c.ttr))})
		time.Sleep(c.ttr + c.within)
		w.standing(row.Pending, 0, 0, 1)
	})
}

// TestACallWithoutAnAnswerDelaysNoRescue lets the only node that is left lose one answer about the time when a lease
// ends, as it does when a connection is dead. It has answers to all other calls.
func TestACallWithoutAnAnswerDelaysNoRescue(t *testing.T) {
	type loss struct {
		call   string
		before time.Duration // the end of the lease
		found  bool          // not before a rescue has found the row
	}
	inBubbles(t, map[string]loss{
		"Expired": {call: "Expired"}, "Oldest": {call: "Oldest"},
		"Update": {call: "Update"}, "NowOfARescue": {call: "Now", found: true},
		"Now": {call: "Now", before: 7 * time.Second},
	}, func(w *world, c loss) {
		dying := w.engine(w.store, serving{"a": untilEnd(time.Hour, nil)})
		id := w.save(dying, "a", 0)
		time.Sleep(10 * time.Second)
		var armed, lost, found atomic.Bool
		w.engine(around{w.store, func(ctx context.Context, call string, do func() error) error {
			if armed.Load() && call == c.call && (found.Load() || !c.found) && lost.CompareAndSwap(false, true) {
				<-ctx.Done()
				return classError(row.ClassUnknown, "no answer")
			}
			if call == "Expired" && armed.Load() {
				defer found.Store(true)
			}
			return do()
		}}, serving{"a": nothing})
		w.crash(dying)
		end := w.row(id).Due.Std()
		time.Sleep(time.Until(end) - c.before)
		armed.Store(true)
		time.Sleep(30 * time.Second)
		if late := w.ran(id, 2)[1].at.Sub(end); late < 0 || late > 5*time.Second || !lost.Load() {
			w.Errorf("rescued %v after the end of the lease; an answer was lost: %v", late, lost.Load())
		}
	})
}

// Its rescues take longer than a connection is trusted at first.
func TestASlowDatabaseIsWaitedForAllTheSame(t *testing.T) {
	inBubble(t, func(w *world) {
		w.store.Plant(
			row.Row{
				ID:      1000,
				Tag:     "a",
				Status:  row.Executing,
				Version: 3,
				Due:     row.At(time.Now()),
				Attempt: 1,
				TTR:     time.Minute,
			},
		)
		w.store.Plant(
			row.Row{
				ID:      1001,
				Tag:     "a",
				Status:  row.Executing,
				Version: 3,
				Due:     row.At(time.Now()),
				Headers: []byte("{"),
			},
		)
		w.engine(updateHook{w.store, func(ctx context.Context, changes []row.Change) (int, error) {
			if changes[0].LeaseOver && !lifecycle.Sleep(ctx, 2*table.LockWait+time.Second) {
				return 0, classError(row.ClassUnknown, "given up")
			}
			return w.store.Update(ctx, nil, changes)
		}}, serving{"a": nothing})
		time.Sleep(30 * time.Second)
		w.standing(row.Completed, 1, 1, 1000)
		if _, broken, _ := w.store.Get(w.Context(), nil, []int64{1001}); len(broken) != 1 ||
			broken[0].Status != row.Failed {
			w.Errorf("what cannot be decoded: %v", broken)
		}
	})
}

func TestPoisonTaskIsQuarantinedAndItsNeighboursAreNot(t *testing.T) {
	inBubble(t, func(w *world) {
		failed := make(chan error, 10)
		crashed := make(chan struct{}, 1)
		stop := make(chan struct{})
		defer close(stop)
		poison := func(context.Context, *delaytask.Task) error { crashed <- struct{}{}; <-stop; return nil }
		processors := serving{"poison": poison, "a": untilEnd(4*time.Second, nil)}
		node := func() *Engine {
			return w.engine(w.store, processors, func(c *Config) {
				c.TTR = 2 * time.Second
				c.OnFailed = func(_ context.Context, _ *delaytask.Task, err error) { failed <- err }
			})
		}
		e := node()
		time.Sleep(time.Second)
		bad := w.save(e, "poison", 0)
		var good []int64
		for crashes := range 5 {
			<-crashed
			good = append(good, w.save(e, "a", 0), w.save(e, "a", 0))
			time.Sleep(100 * time.Millisecond)
			w.crash(e)
			time.Sleep(time.Second)
			e = node()
			if crashes < 4 && w.row(bad).Status == row.Failed {
				w.Fatalf("quarantined after %d crashes", crashes+1)
			}
		}
		time.Sleep(time.Minute)
		if r := w.row(bad); r.Status != row.Failed || r.CrashCount != 5 || r.ErrorStack == "" ||
			len(w.runs.of(bad)) != 5 {
			w.Errorf("after %d runs: %+v", len(w.runs.of(bad)), r)
		}
		for _, id := range good {
			if r := w.row(id); r.Status != row.Completed || r.Attempt != 1 {
				w.Errorf("a neighbour: %+v", r)
			}
		}
		if len(failed) != 1 {
			w.Errorf("OnFailed was called %d times", len(failed))
		}
	})
}

// TestManyNodesTakeTurnsAtTheRescue lets each node serve a tag of its own, so that no other has seen what it leaves.
func TestManyNodesTakeTurnsAtTheRescue(t *testing.T) {
	const nodes, turns = 8, 30
	inBubble(t, func(w *world) {
		var mu sync.Mutex
		var looks []time.Time
		counted := at(w.store, "Expired", func(_ context.Context, do func() error) error {
			mu.Lock()
			looks = append(looks, time.Now())
			mu.Unlock()
			return do()
		})
		counted = at(counted, "Oldest", func(_ context.Context, do func() error) error {
			time.Sleep(400 * time.Millisecond) // as in a table of many tags, which is seldom walked through
			return do()
		})
		var engines []*Engine
		for n := range nodes {
			run := func(ctx context.Context, task *delaytask.Task) error {
				if task.ID < 2000 {
					return nil
				}
				return untilEnd(time.Hour, nil)(ctx, task)
			}
			engines = append(engines, w.engine(counted, serving{fmt.Sprint("tag", n): run}))
		}
		time.Sleep(10 * time.Second) // all know each other
		mu.Lock()
		looks = nil
		mu.Unlock()
		time.Sleep(turns * 2 * time.Second)
		mu.Lock()
		if len(looks) < 2*turns || len(looks) > 4*turns {
			w.Errorf("%d nodes have looked %d times in %d turns, want three times in each", nodes, len(looks), turns)
		}
		for i := range looks[1:] {
			if pause := looks[i+1].Sub(looks[i]); pause > 4*time.Second {
				w.Errorf("nobody has looked for %v", pause)
			}
		}
		mu.Unlock()
		for n := range int64(nodes) { // what a live node has lost, no walk has seen
			end := row.At(time.Now())
			w.store.Plant(row.Row{
				ID: 1000 + n, Tag: fmt.Sprint("tag", n), Body: []byte("{}"), Due: end, Expected: end, Version: 1,
				Status: row.Executing, Executor: another, Attempt: 1, TTR: 3 * time.Second,
			})
			time.Sleep(5 * time.Second)
			if r := w.row(1000 + n); r.CrashCount != 1 {
				w.Errorf("5 s after its lease the lost task of node %d is %v", n, r.Status)
			}
		}
		for n, e := range engines[:3] {
			id := w.save(e, fmt.Sprint("tag", n), 0, delaytask.WithTTR(3*time.Second))
			time.Sleep(time.Second)
			w.crash(e)
			end := w.row(id).Due.Std()
			time.Sleep(time.Until(end.Add(5 * time.Second)))
			if r := w.row(id); r.Status != row.Pending {
				w.Errorf("5 s after its lease the task of node %d is %v", n, r.Status)
			}
		}
	})
}
