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

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
)

func TestProducerThatServesNothing(t *testing.T) {
	const ms = time.Millisecond
	inBubblesOf(t, []struct{ delay, late time.Duration }{
		{0, 600 * ms}, {500 * ms, 600 * ms}, {1500 * ms, 600 * ms}, {2000 * ms, 3 * ms}, {3000 * ms, 3 * ms},
	}, func(w *world, c struct{ delay, late time.Duration }) {
		producer := w.idle(w.store, nil)
		w.engine(w.store, serving{"a": nothing})
		w.engine(w.store, serving{"a": nothing})
		time.Sleep(5 * time.Second)
		var ids []int64
		for range 30 {
			ids = append(ids, w.save(producer, "a", c.delay))
			time.Sleep(370 * ms)
		}
		time.Sleep(10 * time.Second)
		w.allCompleted(ids, c.late)
	})
}

func TestTasksOfACrashedNodeAreCaught(t *testing.T) {
	inBubble(t, func(w *world) {
		dying := w.engine(w.store, serving{"a": nothing})
		w.engine(w.store, serving{"a": nothing})
		time.Sleep(5 * time.Second)
		var ids []int64
		for i := range 150 {
			ids = append(ids, w.save(dying, "a", 500*time.Millisecond+time.Duration(i)*50*time.Millisecond))
		}
		w.crash(dying)
		time.Sleep(20 * time.Second)
		w.allCompleted(ids, 650*time.Millisecond)
	})
}

func TestPauseAndResumeReachAllNodes(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.engine(w.store, serving{"p": untilEnd(5*time.Second, nil), "q": nothing})
		b := w.engine(w.store, serving{"p": untilEnd(5*time.Second, nil), "q": nothing})
		remote := w.idle(w.store, nil)
		time.Sleep(5 * time.Second)
		running := w.save(a, "p", 0)
		time.Sleep(100 * time.Millisecond)
		w.must(remote.Pause(w.Context(), "p", ""))
		time.Sleep(2 * time.Second)
		paused := []int64{
			w.save(a, "p", 0),
			w.save(b, "p", 0),
			w.save(remote, "p", 5*time.Second),
			w.save(b, "p", 8*time.Second),
		}
		other := w.save(b, "q", 3*time.Second)
		time.Sleep(20 * time.Second)
		w.completed(running, 10*time.Millisecond)
		w.completed(other, 2*time.Millisecond)
		for _, id := range paused {
			if r := w.row(id); r.Version != 0 {
				w.Errorf("a paused task was touched: %+v", r)
			}
		}
		w.must(remote.Resume(w.Context(), "p"))
		resumed := time.Now()
		time.Sleep(2 * time.Second)
		for _, id := range paused {
			if runs := w.ran(id, 1); runs[0].at.Sub(resumed) > 2*time.Second {
				w.Errorf("after the resume: %v", runs)
			}
		}
		soon := w.save(a, "p", time.Second)
		time.Sleep(10 * time.Second)
		w.completed(soon, 2*time.Millisecond)
	})
}

// TestPauseRacesWithTheLookAhead lets both write down what is paused at once: the lines must agree with the tags in the
// end.
func TestPauseRacesWithTheLookAhead(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		time.Sleep(time.Second)
		for i := range 1000 {
			for range 4 {
				go e.arm.Tags.Refresh()
			}
			go func() { _ = e.Pause(w.Context(), "a", "") }()
			go func() { _ = e.Resume(w.Context(), "a") }()
			synctest.Wait()
			if i%200 == 0 {
				time.Sleep(time.Second)
			}
			if open := e.runqueue.Counts().OpenTags > 0; open != e.arm.Tags.Open("a") {
				w.Fatalf("round %d: the line is open: %t, the tag is open: %t", i, open, e.arm.Tags.Open("a"))
			}
		}
	})
}

func TestRetriesAreOnTimeWhichNodeArmsThem(t *testing.T) {
	const ms = time.Millisecond
	inBubblesOf(t, []struct{ delay, backoff time.Duration }{
		{
			3000 * ms,
			300 * ms,
		}, {3000 * ms, 1900 * ms}, {3000 * ms, 2500 * ms}, {3000 * ms, 7000 * ms}, {1800 * ms, 500 * ms},
	}, func(w *world, c struct{ delay, backoff time.Duration }) {
		flaky := func(_ context.Context, task *delaytask.Task) error {
			if task.Attempt == 1 {
				return errors.New("boom")
			}
			return nil
		}
		var nodes []*Engine
		for range 3 {
			nodes = append(
				nodes,
				w.engine(
					w.store,
					serving{"a": flaky},
					func(cfg *Config) { cfg.Backoff = processor.Constant(c.backoff) },
				),
			)
		}
		time.Sleep(5400 * ms) // the last case falls between two looks ahead
		ids := w.many(nodes[0], 50, "a", c.delay)
		time.Sleep(15 * time.Second)
		for _, id := range ids {
			if runs := w.ran(id, 2); runs[1].at.Sub(runs[1].task.Due) > 3*ms {
				w.Fatalf("runs: %+v", runs)
			}
		}
	})
}

// TestArmedTimersOfAnotherNodesShareFireThereAlone lets a node join after the first one has armed everything.
func TestArmedTimersOfAnotherNodesShareFireThereAlone(t *testing.T) {
	inBubble(t, func(w *world) {
		var mu sync.Mutex
		asked := map[int64][]int{} // the nodes that asked
		node := func(i int) *Engine {
			return w.engine(claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
				mu.Lock()
				for _, r := range c.Rows {
					asked[r.ID] = append(asked[r.ID], i)
				}
				mu.Unlock()
				return w.store.Claim(ctx, c)
			}}, serving{"a": nothing})
		}
		first := node(0)
		time.Sleep(2 * time.Second)
		const tasks = 60
		ids := w.many(first, tasks, "a", 10*time.Second)
		if armed := first.runqueue.Counts().Timers; armed != tasks {
			w.Fatalf("%d timers are armed while the node is alone, want %d", armed, tasks)
		}
		second := node(1)
		time.Sleep(20 * time.Second)
		for _, id := range ids {
			w.completed(id, 2*time.Millisecond)
			want := []int{0}
			if second.arm.Mine(id, w.row(id).Expected, "a") {
				want = []int{1}
			}
			if !slices.Equal(asked[id], want) {
				w.Errorf("task %d was claimed by the nodes %v, want %v", id, asked[id], want)
			}
		}
	})
}

func TestTagThatIsUnregisteredRunsNoMoreUntilItIsRegisteredAgain(t *testing.T) {
	inBubble(t, func(w *world) {
		working, goOn := make(chan struct{}), make(chan struct{})
		e := w.engine(w.store, serving{"a": func(context.Context, *delaytask.Task) error {
			close(working)
			<-goOn
			return nil
		}, "b": nothing})
		running := w.save(e, "a", 0)
		<-working
		armed, soon, neighbour := w.save(
			e,
			"a",
			10*time.Second,
		), w.save(
			e,
			"a",
			5*time.Millisecond,
		), w.save(
			e,
			"b",
			10*time.Second,
		)
		if !e.cfg.Registry.Unregister("a") {
			w.Fatal("it had no processor")
		}
		e.Unregistered()
		if e.arm.Tags.Open("a") || !e.arm.Tags.Open("b") {
			w.Errorf("open: %v", e.arm.Tags.List())
		}
		time.Sleep(20 * time.Second)
		close(goOn)
		time.Sleep(time.Second)
		w.completed(running, time.Second)
		w.completed(neighbour, 2*time.Millisecond)
		w.standing(row.Pending, 0, 0, armed, soon)
		nodes, _, err := w.store.Nodes(w.Context())
		if err != nil || len(nodes) != 1 || slices.Contains(nodes[0].Tags, "a") {
			w.Errorf("announced: %+v, %v", nodes, err)
		}
		w.must(e.cfg.Registry.Register("a", w.runs.note(nothing)))
		e.Registered()
		again := w.save(e, "a", 3*time.Second)
		time.Sleep(10 * time.Second)
		w.standing(row.Completed, 1, 0, armed, soon)
		w.completed(again, 2*time.Millisecond)
	})
}

// A row that was claimed ahead of its time goes back when its tag is unregistered, and another node runs it.
func TestTaskClaimedAheadOfATagThatIsUnregisteredGoesToAnotherNode(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		time.Sleep(3 * time.Second)
		ids := w.many(e, 200, "a", 3*time.Second)
		time.Sleep(2999 * time.Millisecond)
		e.cfg.Registry.Unregister("a")
		e.Unregistered()
		w.engine(w.store, serving{"a": nothing})
		time.Sleep(20 * time.Second)
		w.standing(row.Completed, 1, 0, ids...)
	})
}

// clusterHook stands in for Cluster.
type clusterHook struct {
	store.Store
	hook func(ctx context.Context) error
}

func (s clusterHook) Cluster(ctx context.Context, fresh time.Duration) (store.Cluster, error) {
	if err := s.hook(ctx); err != nil {
		return store.Cluster{}, err
	}
	return s.Store.Cluster(ctx, fresh)
}

func TestLookAheadGoesOnAfterALookThatHung(t *testing.T) {
	inBubble(t, func(w *world) {
		var hangs, hung atomic.Bool
		var looks atomic.Int64
		e := w.engine(clusterHook{w.store, func(ctx context.Context) error {
			if hangs.CompareAndSwap(true, false) {
				<-ctx.Done()
				hung.Store(true)
				return classError(row.ClassNotApplied, "given up")
			}
			looks.Add(1)
			return nil
		}}, serving{"a": nothing})
		time.Sleep(3 * time.Second)
		hangs.Store(true)
		e.runqueue.Contention.Set()
		for range 600 {
			if time.Sleep(100 * time.Millisecond); hung.Load() {
				break
			}
		}
		before := looks.Load()
		time.Sleep(3500 * time.Millisecond)
		if n := looks.Load() - before; n < 3 || !hung.Load() {
			t.Errorf("%d looks in 3.5 s; one hung before: %v", n, hung.Load())
		}
	})
}
