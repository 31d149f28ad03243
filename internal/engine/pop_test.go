package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/lease"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// take pops one task of the tag and fails the test when none comes.
func (w *world) take(e *Engine, tag string) *delaytask.Task {
	w.Helper()
	tasks, err := e.Pop(w.Context(), lease.PopRequest{Tags: []string{tag}, Max: 1})
	if err != nil || len(tasks) != 1 {
		w.Fatalf("popped %v, %v", tasks, err)
	}
	return tasks[0]
}

func TestWaitingPopIsOnTimeForATagThatHadNoTaker(t *testing.T) {
	pop := lease.PopRequest{Tags: []string{"a"}, Max: 1, Waits: true, Wait: 10 * time.Second}
	popped := func(w *world, e *Engine) {
		got, err := e.Pop(w.Context(), lease.PopRequest{Tags: pop.Tags, Max: 1, Waits: true})
		if len(got) > 0 || err != nil {
			w.Fatalf("popped %v, %v", got, err)
		}
	}
	type saver = func(*Engine, time.Duration)
	inBubbles(t, map[string]func(w *world, e, other *Engine, save saver){
		"due already": func(_ *world, e, _ *Engine, save saver) { save(e, 0) },
		"due soon":    func(_ *world, e, _ *Engine, save saver) { save(e, 400*time.Millisecond) },
		"of another":  func(_ *world, _, other *Engine, save saver) { save(other, 400*time.Millisecond) },
		"saved after": func(_ *world, e, _ *Engine, save saver) { go soonAfter(e, save, 0) },
		"saved ahead": func(_ *world, e, _ *Engine, save saver) { go soonAfter(e, save, 700*time.Millisecond) },
		"popped before": func(w *world, e, _ *Engine, save saver) {
			popped(w, e)
			save(e, 0)
		},
		"popped before, of another": func(w *world, e, other *Engine, save saver) {
			popped(w, e)
			time.Sleep(3 * time.Second)
			save(other, 0)
		},
		"popped before, overdue": func(w *world, e, other *Engine, save saver) {
			popped(w, e)
			save(other, 0)
			time.Sleep(1500 * time.Millisecond)
		},
		"idle since": func(w *world, e, _ *Engine, save saver) {
			popped(w, e)
			time.Sleep(30*time.Second + 2*time.Second)
			save(e, time.Second)
		},
		"served for a while": func(w *world, e, _ *Engine, save saver) {
			popped(w, e)
			time.Sleep(3 * time.Second)
			save(e, 4*time.Second)
		},
	}, func(w *world, prepare func(w *world, e, other *Engine, save saver)) {
		e, other := w.engine(w.store, nil), w.idle(w.store, nil)
		time.Sleep(5 * time.Second)
		prepare(w, e, other, func(by *Engine, delay time.Duration) { w.save(by, "a", delay) })
		asked := row.At(time.Now())
		got, err := e.Pop(w.Context(), pop)
		if err != nil || len(got) != 1 {
			w.Fatalf("popped %v, %v", got, err)
		}
		if late := row.At(time.Now()).Sub(max(asked, row.At(got[0].Expected))); late < 0 || late > 3*time.Millisecond {
			w.Errorf("handed out %v late", late)
		}
	})
}

func TestPopsThatArriveTogetherShareReads(t *testing.T) {
	inBubbles(t, map[string]lease.PopRequest{
		"that wait":       {Tags: []string{"a"}, Max: 1, Waits: true, Wait: time.Second},
		"that do not":     {Tags: []string{"a"}, Max: 1, Waits: true},
		"of several tags": {Tags: []string{"a", "b"}, Max: 1, Waits: true, Wait: time.Second},
	}, func(w *world, pop lease.PopRequest) {
		far := &farAway{Store: w.store}
		e := w.engine(far, nil)
		time.Sleep(5 * time.Second)
		_, err := e.Pop(w.Context(), lease.PopRequest{Tags: pop.Tags, Max: 1, Waits: true})
		w.must(err)
		far.looks.Store(0)
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() {
				if got, err := e.Pop(w.Context(), pop); len(got) > 0 || err != nil {
					w.Errorf("popped %v, %v", got, err)
				}
			})
		}
		all.Wait()
		if n := far.looks.Load(); n > 1000*int64(len(pop.Tags))/64+4 {
			w.Errorf("%d looks for 1000 pops", n)
		}
	})
}

func TestWaitingPopsAskTheStoreNothing(t *testing.T) {
	// asked counts a node's calls in half a minute without due tasks, while pops wait: each for 10 s, and then again.
	asked := func(tag string, pops int) (calls int64) {
		inBubble(t, func(w *world) {
			var all atomic.Int64
			e := w.engine(around{w.store, func(_ context.Context, _ string, do func() error) error {
				all.Add(1)
				return do()
			}}, serving{"served": nothing})
			ctx, hangUp := context.WithCancel(w.Context())
			var waiting sync.WaitGroup
			for range pops {
				waiting.Go(func() {
					for ctx.Err() == nil {
						got, err := e.Pop(
							ctx,
							lease.PopRequest{Tags: []string{tag}, Max: 50, Waits: true, Wait: 10 * time.Second},
						)
						if len(got) > 0 || err != nil && ctx.Err() == nil {
							w.Errorf("popped %v, %v", got, err)
						}
					}
				})
			}
			time.Sleep(5 * time.Second) // the first pop of a tag has a look
			before := all.Load()
			time.Sleep(30 * time.Second)
			calls = all.Load() - before
			hangUp()
			waiting.Wait()
		})
		return calls
	}
	alone := asked("served", 0)
	if alone == 0 {
		t.Fatal("a node that serves a tag never looks for it")
	}
	for _, tag := range []string{"served", "pulled"} {
		for _, pops := range []int{1, 1000} {
			calls := asked(tag, pops)
			if off := max(calls-alone, alone-calls); off > alone/20 { // periods are drawn about their length
				t.Errorf(
					"%s: while %d pops wait the store is asked %d times in 30 s; without them %d times",
					tag,
					pops,
					calls,
					alone,
				)
			}
		}
	}
}

// soonAfter saves when a pop waits.
func soonAfter(e *Engine, save func(*Engine, time.Duration), delay time.Duration) {
	time.Sleep(20 * time.Millisecond)
	save(e, delay)
}

// The claim of a row that a timer here has put in reach must not hide it from the look of the pop that it is for.
func TestPopThatShallNotWaitGetsWhatATimerHasPutInReach(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(&farAway{Store: w.store}, nil)
		now := lease.PopRequest{Tags: []string{"a"}, Max: 1, Waits: true}
		if _, err := e.Pop(w.Context(), now); err != nil { // from here on the node serves the tag
			w.Fatal(err)
		}
		for range 10 {
			id := w.save(e, "a", 0)
			time.Sleep(50 * time.Millisecond) // its timer has fired
			tasks, err := e.Pop(w.Context(), now)
			if err != nil || len(tasks) != 1 || tasks[0].ID != id {
				w.Fatalf("popped %v, %v, want %d", tasks, err, id)
			}
			w.must(e.Finish(w.Context(), id, tasks[0].Version))
		}
	})
}

// farAway is a store whose answers take a while: a claim is done by then.
type farAway struct {
	store.Store
	looks atomic.Int64 // for pops
}

func (s *farAway) Due(ctx context.Context, w row.Window) ([]row.Due, error) {
	if w.From.IsZero() && w.To > row.MinTime && w.Limit != passPage {
		s.looks.Add(1)
	}
	lifecycle.Sleep(ctx, 5*time.Millisecond)
	return s.Store.Due(ctx, w)
}

func (s *farAway) Claim(ctx context.Context, c row.Claim) (row.Claimed, error) {
	claimed, err := s.Store.Claim(ctx, c)
	lifecycle.Sleep(ctx, 20*time.Millisecond)
	return claimed, err
}

func TestManyPopsShareTheTasksAndLoseNone(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		ids := w.saveMany(e, "a", 500)
		var poppers sync.WaitGroup
		for range 10 {
			poppers.Go(func() {
				for _, err := range e.FinishAll(w.Context(), w.takeAll(e, "a", 50)) {
					if err != nil {
						w.Error(err)
					}
				}
			})
		}
		poppers.Wait()
		for _, id := range ids {
			if r := w.row(id); r.Status != row.Completed || r.Attempt != 1 {
				w.Errorf("row: %+v", r)
			}
		}
	})
}

func TestPopOfManyTagsClaimsNoMoreThanItTakes(t *testing.T) {
	inBubble(t, func(w *world) {
		var claimed atomic.Int64
		e := w.engine(claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
			claimed.Add(int64(len(c.Rows)))
			return w.store.Claim(ctx, c)
		}}, nil)
		const tags = 20
		pop := lease.PopRequest{Max: 1, Waits: true, Wait: 5 * time.Second}
		for i := range tags {
			pop.Tags = append(pop.Tags, fmt.Sprint("tag", i))
		}
		_, err := e.Pop(w.Context(), pop)
		w.must(err)
		for _, tag := range pop.Tags {
			w.save(e, tag, 2*time.Second)
		}
		for range tags { // the first waits while they all fall due
			if got, err := e.Pop(w.Context(), pop); err != nil || len(got) != 1 {
				w.Fatalf("popped %v, %v", got, err)
			}
		}
		if n := claimed.Load(); n != tags {
			w.Errorf("%d rows were claimed to hand out %d", n, tags)
		}
	})
}

func TestTaskOfAPopThatLeftIsReleasedWithoutCost(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		_, err := e.Pop(w.Context(), lease.PopRequest{Tags: []string{"a"}, Max: 1, Waits: true})
		w.must(err)
		time.Sleep(3 * time.Second)
		id := w.save(e, "a", 3*time.Second)
		// The row is claimed ahead of its time for this pop, which leaves just before.
		justBefore := lease.PopRequest{Tags: []string{"a"}, Max: 1, Waits: true, Wait: 2999 * time.Millisecond}
		if got, err := e.Pop(w.Context(), justBefore); err != nil || len(got) > 0 {
			w.Fatalf("popped %v, %v", got, err)
		}
		time.Sleep(time.Second)
		if r := w.row(id); r.Status != row.Pending || r.Attempt != 0 {
			w.Errorf("row after the pop left: %+v", r)
		}
		w.take(e, "a")
	})
}

func TestPopAndProcessorTakeTurns(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		var popped int
		for range 20 {
			w.save(e, "a", 2*time.Second)
		}
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
		defer cancel()
		for {
			got, err := e.Pop(ctx, lease.PopRequest{Tags: []string{"a"}, Max: 20})
			if err != nil {
				break
			}
			popped += len(got)
		}
		if popped < 5 || popped > 15 {
			w.Errorf("pops got %d of 20 tasks, want about half", popped)
		}
	})
}

func TestPoppedTagIsServedForHalfAMinuteAfterTheLastPop(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		pop := func(wait time.Duration) {
			got, err := e.Pop(w.Context(), lease.PopRequest{Tags: []string{"a"}, Max: 1, Waits: true, Wait: wait})
			if err != nil || len(got) > 0 {
				w.Fatalf("popped %v, %v", got, err)
			}
		}
		served := func(want bool) {
			w.Helper()
			nodes, _, err := w.store.Nodes(w.Context())
			if err != nil || len(nodes) != 1 {
				w.Fatalf("nodes %+v, %v", nodes, err)
			}
			if open, announced := e.arm.Tags.Open("a"), slices.Contains(nodes[0].Tags, "a"); open != want ||
				announced != want {
				w.Errorf("the tag is open: %t, announced: %t, want %t", open, announced, want)
			}
		}
		pop(0)
		time.Sleep(20 * time.Second)
		pop(0) // counts anew from here
		time.Sleep(27 * time.Second)
		served(true)
		time.Sleep(6 * time.Second)
		served(false)
		pop(40 * time.Second)
		time.Sleep(27 * time.Second)
		served(true)
		time.Sleep(6 * time.Second)
		served(false)
	})
}

func TestAPopHandsOutNoMoreBytesThanItsBound(t *testing.T) {
	inBubble(t, func(w *world) {
		const popBytes = 16 << 20
		e := w.engine(w.store, nil)
		for _, size := range []int{popBytes / 2, popBytes / 2, popBytes / 2, popBytes + 1} {
			task := w.task("a", 0)
			task.Body = make([]byte, size)
			if _, _, err := e.Save(w.Context(), task); err != nil {
				w.Fatal(err)
			}
		}
		for left := 4; left > 0; {
			got, err := e.Pop(w.Context(), lease.PopRequest{Tags: []string{"a"}, Max: 100})
			if err != nil || len(got) == 0 {
				w.Fatalf("%d tasks are left and got %d, %v", left, len(got), err)
			}
			left -= len(got)
			bytes := 0
			for _, task := range got {
				bytes += len(task.Body)
				if task.Attempt != 1 || w.row(task.ID).CrashCount != 0 {
					w.Errorf("attempt %d: giving back has cost one", task.Attempt)
				}
				if err := e.Finish(w.Context(), task.ID, task.Version); err != nil {
					w.Error(err)
				}
			}
			if bytes > popBytes && len(got) > 1 {
				w.Errorf("%d tasks with %d bytes", len(got), bytes)
			}
		}
	})
}
