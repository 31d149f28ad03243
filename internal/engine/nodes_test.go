package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

func TestProducerThatServesNothing(t *testing.T) {
	for delay, late := range map[time.Duration]time.Duration{
		0:                       600 * time.Millisecond,
		500 * time.Millisecond:  600 * time.Millisecond,
		1500 * time.Millisecond: 600 * time.Millisecond,
		2 * time.Second:         3 * time.Millisecond,
		3 * time.Second:         3 * time.Millisecond,
	} {
		t.Run(delay.String(), func(t *testing.T) {
			inBubble(t, func(w *world) {
				producer := w.idle(w.store, nil)
				w.engine(w.store, map[string]processor.Func{"a": nothing})
				w.engine(w.store, map[string]processor.Func{"a": nothing})
				time.Sleep(5 * time.Second)
				var ids []int64
				for range 30 {
					ids = append(ids, w.save(producer, "a", delay))
					time.Sleep(370 * time.Millisecond)
				}
				time.Sleep(10 * time.Second)
				for _, id := range ids {
					w.completed(id, late)
				}
			})
		})
	}
}

func TestExactlyOneNodeArmsANewTask(t *testing.T) {
	inBubble(t, func(w *world) {
		var nodes []*Engine
		for range 3 {
			nodes = append(nodes, w.engine(w.store, map[string]processor.Func{"a": nothing}))
		}
		w.engine(w.store, map[string]processor.Func{"b": nothing}) // serves another tag
		time.Sleep(5 * time.Second)
		counts := make([]int, len(nodes))
		for range 300 {
			id := w.save(nodes[0], "a", 10*time.Second)
			armed := 0
			for i, e := range nodes {
				if e.arm.mine(id, w.row(id).Due, "a") {
					armed++
					counts[i]++
				}
			}
			if armed != 1 {
				w.Fatalf("task %d is %d nodes' to arm", id, armed)
			}
		}
		for i, n := range counts {
			if n < 60 {
				w.Errorf("node %d arms %d of 300", i, n)
			}
		}
		near := w.save(nodes[1], "a", time.Second)
		for i, e := range nodes {
			if got := e.arm.mine(near, w.row(near).Due, "a"); got != (i == 1) {
				w.Errorf("node %d arms a task that node 1 saved for the next second: %t", i, got)
			}
		}
		time.Sleep(15 * time.Second)
		w.completed(near, 2*time.Millisecond)
	})
}

func TestTasksOfACrashedNodeAreCaught(t *testing.T) {
	inBubble(t, func(w *world) {
		dying := w.engine(w.store, map[string]processor.Func{"a": nothing})
		w.engine(w.store, map[string]processor.Func{"a": nothing})
		time.Sleep(5 * time.Second)
		var ids []int64
		for i := range 150 {
			ids = append(ids, w.save(dying, "a", 500*time.Millisecond+time.Duration(i)*50*time.Millisecond))
		}
		w.crash(dying)
		time.Sleep(20 * time.Second)
		for _, id := range ids {
			r := w.row(id)
			if r.Status != row.Completed || r.CrashCount != 0 {
				w.Fatalf("row: %+v", r)
			}
			if late := w.once(id); late > 650*time.Millisecond {
				w.Errorf("task %d started %v late", id, late)
			}
		}
	})
}

func TestPauseAndResumeReachAllNodes(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.engine(w.store, map[string]processor.Func{"p": untilEnd(5*time.Second, nil), "q": nothing})
		b := w.engine(w.store, map[string]processor.Func{"p": untilEnd(5*time.Second, nil), "q": nothing})
		remote := w.idle(w.store, nil)
		time.Sleep(5 * time.Second)
		running := w.save(a, "p", 0)
		time.Sleep(100 * time.Millisecond)
		if err := remote.Pause(w.Context(), "p"); err != nil {
			w.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		paused := []int64{w.save(a, "p", 0), w.save(b, "p", 0), w.save(remote, "p", 5*time.Second), w.save(b, "p", 8*time.Second)}
		other := w.save(b, "q", 3*time.Second)
		time.Sleep(20 * time.Second)
		w.completed(running, 10*time.Millisecond)
		w.completed(other, 2*time.Millisecond)
		for _, id := range paused {
			if r := w.row(id); r.Version != 0 {
				w.Errorf("a paused task was touched: %+v", r)
			}
		}
		if err := remote.Resume(w.Context(), "p"); err != nil {
			w.Fatal(err)
		}
		resumed := time.Now()
		time.Sleep(2 * time.Second)
		for _, id := range paused {
			if runs := w.runs.of(id); len(runs) != 1 || runs[0].at.Sub(resumed) > 2*time.Second {
				w.Errorf("after the resume: %v", runs)
			}
		}
		soon := w.save(a, "p", time.Second)
		time.Sleep(10 * time.Second)
		w.completed(soon, 2*time.Millisecond)
	})
}

// TestPauseRacesWithTheLookAhead lets both write down what is paused at once: the lines must agree with the tags in the end.
func TestPauseRacesWithTheLookAhead(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"a": nothing})
		time.Sleep(time.Second)
		for i := range 1000 {
			for range 4 {
				go e.tags.refresh()
			}
			go func() { _ = e.Pause(w.Context(), "a") }()
			go func() { _ = e.Resume(w.Context(), "a") }()
			synctest.Wait()
			if i%200 == 0 {
				time.Sleep(time.Second)
			}
			e.hands.mu.Lock()
			open := e.hands.lines.line("a").open
			e.hands.mu.Unlock()
			if open != e.tags.open("a") {
				w.Fatalf("round %d: the line is open: %t, the tag is open: %t", i, open, e.tags.open("a"))
			}
		}
	})
}

func TestRetriesAreOnTimeWhoeverArmsThem(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ delay, backoff time.Duration }{
		{3000 * ms, 300 * ms}, {3000 * ms, 1900 * ms}, {3000 * ms, 2500 * ms}, {3000 * ms, 7000 * ms}, {1800 * ms, 500 * ms},
	} {
		t.Run(fmt.Sprint(c.delay, c.backoff), func(t *testing.T) {
			inBubble(t, func(w *world) {
				flaky := func(_ context.Context, task *processor.Task) error {
					if task.Attempt == 1 {
						return errors.New("boom")
					}
					return nil
				}
				var nodes []*Engine
				for range 3 {
					nodes = append(nodes, w.engine(w.store, map[string]processor.Func{"a": flaky}, func(cfg *Config) {
						cfg.Backoff = processor.Constant(c.backoff)
					}))
				}
				time.Sleep(5400 * time.Millisecond) // the last case falls between two looks ahead
				var ids []int64
				for range 50 {
					ids = append(ids, w.save(nodes[0], "a", c.delay))
				}
				time.Sleep(15 * time.Second)
				for _, id := range ids {
					runs := w.runs.of(id)
					if len(runs) != 2 || runs[1].at.Sub(runs[1].task.Due) > 3*time.Millisecond {
						w.Fatalf("runs: %+v", runs)
					}
				}
			})
		})
	}
}

// TestArmedTimersOfAnotherNodesShareFireThereAlone lets a node join after the first one has armed everything.
func TestArmedTimersOfAnotherNodesShareFireThereAlone(t *testing.T) {
	inBubble(t, func(w *world) {
		var mu sync.Mutex
		asked := map[int64][]int{} // by which nodes
		node := func(i int) *Engine {
			return w.engine(claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
				mu.Lock()
				for _, r := range c.Rows {
					asked[r.ID] = append(asked[r.ID], i)
				}
				mu.Unlock()
				return w.store.Claim(ctx, c)
			}}, map[string]processor.Func{"a": nothing})
		}
		first := node(0)
		time.Sleep(2 * time.Second)
		const tasks = 60
		var ids []int64
		for range tasks {
			ids = append(ids, w.save(first, "a", 10*time.Second))
		}
		if armed := first.hands.timers(); armed != tasks {
			w.Fatalf("%d timers are armed while the node is alone, want %d", armed, tasks)
		}
		second := node(1)
		time.Sleep(20 * time.Second)
		for _, id := range ids {
			w.completed(id, 2*time.Millisecond)
			want := []int{0}
			if second.arm.mine(id, w.row(id).Expected, "a") {
				want = []int{1}
			}
			if !slices.Equal(asked[id], want) {
				w.Errorf("task %d was claimed by the nodes %v, want %v", id, asked[id], want)
			}
		}
	})
}
