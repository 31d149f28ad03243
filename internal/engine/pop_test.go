package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// take pops one task of the tag and fails the test when none comes.
func (w *world) take(e *Engine, tag string) *processor.Task {
	w.Helper()
	tasks, err := e.Pop(w.Context(), PopRequest{Tags: []string{tag}, Max: 1})
	if err != nil || len(tasks) != 1 {
		w.Fatalf("popped %v, %v", tasks, err)
	}
	return tasks[0]
}

func TestPopWaitsUntilATaskIsDue(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		saved := time.Now()
		id := w.save(e, "a", 5*time.Second)
		task := w.take(e, "a")
		if late := time.Since(saved) - 5*time.Second; late < 0 || late > 500*time.Millisecond {
			w.Errorf("handed out %v after it was due", late)
		}
		if task.ID != id || task.Attempt != 1 || string(task.Body) != "body" {
			w.Errorf("popped %+v", task)
		}
		if err := e.Finish(w.Context(), id, task.Version); err != nil {
			w.Fatal(err)
		}
		if r := w.row(id); r.Status != row.Completed || r.Execution < r.Expected {
			w.Errorf("row after Finish: %+v", r)
		}
		if err := e.Finish(w.Context(), id, task.Version); !errors.Is(err, processor.ErrLeaseLost) {
			w.Errorf("finished twice: %v", err)
		}
	})
}

func TestWaitingPopGetsATaskOnItsMillisecondOnceTheNodeServesTheTag(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		if _, err := e.Pop(w.Context(), PopRequest{Tags: []string{"a"}, Max: 1, Waits: true}); err != nil {
			w.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		saved := time.Now()
		w.save(e, "a", 4*time.Second)
		w.take(e, "a")
		if late := time.Since(saved) - 4*time.Second; late < 0 || late > 10*time.Millisecond {
			w.Errorf("handed out %v after it was due", late)
		}
	})
}

func TestWaitingPopIsOnTimeForATagThatNobodyTookFrom(t *testing.T) {
	pop := PopRequest{Tags: []string{"a"}, Max: 1, Waits: true, Wait: 10 * time.Second}
	popped := func(w *world, e *Engine) {
		if got, err := e.Pop(w.Context(), PopRequest{Tags: pop.Tags, Max: 1, Waits: true}); len(got) > 0 || err != nil {
			w.Fatalf("popped %v, %v", got, err)
		}
	}
	type saver = func(*Engine, time.Duration)
	for name, prepare := range map[string]func(w *world, e, other *Engine, save saver){
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
			time.Sleep(popServes + 2*time.Second)
			save(e, time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				e, other := w.engine(w.store, nil), w.idle(w.store, nil)
				time.Sleep(5 * time.Second)
				prepare(w, e, other, func(by *Engine, delay time.Duration) { w.save(by, "a", delay) })
				asked := row.At(time.Now())
				got, err := e.Pop(w.Context(), pop)
				if err != nil || len(got) != 1 {
					w.Fatalf("popped %v, %v", got, err)
				}
				if late := row.At(time.Now()).Sub(max(asked, row.At(got[0].Expected))); late > 3*time.Millisecond {
					w.Errorf("handed out %v late", late)
				}
			})
		})
	}
}

func TestPopsThatArriveTogetherShareReads(t *testing.T) {
	for name, pop := range map[string]PopRequest{
		"that wait":       {Tags: []string{"a"}, Max: 1, Waits: true, Wait: time.Second},
		"that do not":     {Tags: []string{"a"}, Max: 1, Waits: true},
		"of several tags": {Tags: []string{"a", "b"}, Max: 1, Waits: true, Wait: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				far := &farAway{Store: w.store}
				e := w.engine(far, nil)
				time.Sleep(5 * time.Second)
				if _, err := e.Pop(w.Context(), PopRequest{Tags: pop.Tags, Max: 1, Waits: true}); err != nil {
					w.Fatal(err)
				}
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
				if n := far.looks.Load(); n > 1000*int64(len(pop.Tags))/lookTags+4 {
					w.Errorf("%d looks for 1000 pops", n)
				}
			})
		})
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
		now := PopRequest{Tags: []string{"a"}, Max: 1, Waits: true}
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
			if err := e.Finish(w.Context(), id, tasks[0].Version); err != nil {
				w.Fatal(err)
			}
		}
	})
}

// farAway is a store whose answers take a while: a claim is done by then.
type farAway struct {
	Store
	looks atomic.Int64 // for pops
}

func (s *farAway) Due(ctx context.Context, w row.Window) ([]row.Due, error) {
	if w.From.IsZero() && w.To > row.MinTime && w.Limit != scanPage {
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

func TestPoppedTaskIsHandedOutAgainWhenItsLeaseEnds(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		id := w.save(e, "a", 0, processor.WithTTR(10*time.Second), processor.WithMaxAttempts(2))
		first := w.take(e, "a")
		began := time.Now()
		second := w.take(e, "a")
		if held := time.Since(began); held < 9*time.Second || held > 11*time.Second {
			w.Errorf("handed out again after %v, want about the TTR of 10s", held)
		}
		if second.ID != id || second.Attempt != 2 {
			w.Errorf("popped %+v", second)
		}
		if err := e.Finish(w.Context(), id, first.Version); !errors.Is(err, processor.ErrLeaseLost) {
			w.Errorf("the first holder finished it: %v", err)
		}
		time.Sleep(15 * time.Second)
		if r := w.row(id); r.Status != row.Failed || r.CrashCount != 0 {
			w.Errorf("with its attempts used up: %+v", r)
		}
	})
}

// alarmOnly sees every read of states before it is made, and shows no lease that is over to the rescue.
type alarmOnly struct {
	Store
	seen func()
}

func (s alarmOnly) States(ctx context.Context, ids []int64) ([]row.State, error) {
	s.seen()
	return s.Store.States(ctx, ids)
}

func (alarmOnly) Expired(context.Context, int) ([]row.Row, []row.Broken, error) { return nil, nil, nil }

// clockAway is the store, whose clock cannot be read while away is true.
func (w *world) clockAway() (store nowHook, away *atomic.Bool) {
	away = new(atomic.Bool)
	return nowHook{w.store, func(ctx context.Context) (row.Reading, error) {
		if away.Load() {
			return row.Reading{}, classError(row.ClassNotApplied, "the clock is away")
		}
		return w.store.Now(ctx)
	}}, away
}

func TestLeaseOfAPoppedTaskThatEndsWhileTheClockHasNoAnchor(t *testing.T) {
	inBubble(t, func(w *world) {
		store, away := w.clockAway()
		var looks atomic.Int64
		seen := func() {
			if looks.Add(1) > 1000 {
				time.Sleep(time.Second) // or a node that looks without a pause would stop the time of the bubble
			}
		}
		e := w.engine(alarmOnly{store, seen}, nil)
		id := w.save(e, "a", 0, processor.WithTTR(10*time.Second))
		first := w.take(e, "a")
		time.Sleep(5 * time.Second)
		away.Store(true)
		e.clock.Drop()
		looks.Store(0)
		time.Sleep(20 * time.Second)
		if r := w.row(id); r.Status != row.Executing || r.Version != first.Version {
			w.Errorf("without a clock its lease was ended: %+v", r)
		}
		if n := looks.Load(); n > 20 {
			w.Errorf("it was looked at %d times in 20 s", n)
		}
		away.Store(false)
		again, err := e.Pop(w.Context(), PopRequest{Tags: []string{"a"}, Max: 1, Waits: true, Wait: 2 * time.Second})
		if err != nil || len(again) != 1 || again[0].Attempt != 2 {
			w.Errorf("when the clock was back, popped %v, %v: %+v", again, err, w.row(id))
		}
	})
}

// endsCounted counts the statements that end leases of popped tasks.
type endsCounted struct {
	alarmOnly
	updates atomic.Int64
}

func (s *endsCounted) Update(ctx context.Context, tx Tx, changes []row.Change) (int, error) {
	s.updates.Add(1)
	return s.Store.Update(ctx, tx, changes)
}

func TestLeasesThatEndTogetherShareStatements(t *testing.T) {
	inBubble(t, func(w *world) {
		const tasks = 2000
		db := &endsCounted{alarmOnly: alarmOnly{w.store, func() {}}}
		e := w.engine(db, nil)
		ids := make([]int64, tasks)
		for i := range ids {
			ids[i] = w.save(e, "a", 0, processor.WithTTR(10*time.Second))
		}
		for popped := 0; popped < tasks; {
			got, err := e.Pop(w.Context(), PopRequest{Tags: []string{"a"}, Max: 1000, Waits: true})
			if err != nil || len(got) == 0 {
				w.Fatalf("popped %d of %d: %v", popped, tasks, err)
			}
			popped += len(got)
		}
		db.updates.Store(0)
		time.Sleep(12 * time.Second)
		for _, id := range ids {
			if r := w.row(id); r.Status != row.Pending || r.Attempt != 1 || r.CrashCount != 0 {
				w.Fatalf("after its lease: %+v", r)
			}
		}
		if n := db.updates.Load(); n > tasks/20 {
			w.Errorf("%d statements end %d leases", n, tasks)
		}
	})
}

func TestLeaseWhoseEndIsSeenTwiceEndsOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		var failed atomic.Int64
		e := w.engine(w.store, nil, func(c *Config) {
			c.OnFailed = func(context.Context, *processor.Task, error) { failed.Add(1) }
		})
		id := w.save(e, "a", 0, processor.WithTTR(time.Second), processor.WithMaxAttempts(1))
		w.take(e, "a")
		unlock := w.store.Lock(id)
		time.Sleep(1100 * time.Millisecond) // the alarm waits for the lock
		e.pops.mu.Lock()
		e.pops.handed[id].alarm.Stop()
		e.pops.mu.Unlock()
		unlock()
		e.pops.expire([]int64{id, id})
		time.Sleep(time.Minute)
		if n := failed.Load(); n != 1 || w.row(id).Status != row.Failed {
			w.Errorf("the task is %v, and failed %d times", w.row(id).Status, n)
		}
	})
}

// refusesUpdates is a store that takes none while away is true.
type refusesUpdates struct {
	Store
	away *atomic.Bool
}

func (s refusesUpdates) Update(ctx context.Context, tx Tx, changes []row.Change) (int, error) {
	if s.away.Load() {
		return 0, classError(row.ClassNotApplied, "read-only")
	}
	return s.Store.Update(ctx, tx, changes)
}

func TestLeaseOfAPoppedTaskThatEndsWhileTheDatabaseIsReadOnly(t *testing.T) {
	inBubble(t, func(w *world) {
		var away atomic.Bool
		var looks atomic.Int64
		e := w.engine(alarmOnly{refusesUpdates{w.store, &away}, func() { looks.Add(1) }}, nil)
		w.save(e, "a", 0, processor.WithTTR(10*time.Second))
		w.take(e, "a")
		away.Store(true)
		looks.Store(0)
		time.Sleep(30 * time.Second)
		if n := looks.Load(); n > 25 {
			w.Errorf("in the 20 s after its lease it was looked at %d times", n)
		}
		away.Store(false)
		again, err := e.Pop(w.Context(), PopRequest{Tags: []string{"a"}, Max: 1, Waits: true, Wait: 2 * time.Second})
		if err != nil || len(again) != 1 || again[0].Attempt != 2 {
			w.Errorf("when it could be written again, popped %v, %v", again, err)
		}
	})
}

// The node's own rescue may be faster than the end of the hold: here it is half a second.
func TestPoppedTaskWhoseLeaseARescueEndsIsHandedOutAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		store, away := w.clockAway()
		e := w.engine(store, nil)
		id := w.save(e, "a", 0, processor.WithTTR(10*time.Second))
		w.take(e, "a")
		time.Sleep(8500 * time.Millisecond) // what follows is too short for an outage, after which rescues wait
		away.Store(true)
		e.clock.Drop()
		time.Sleep(time.Until(w.row(id).Due.Std()) + 1500*time.Millisecond)
		away.Store(false)
		<-e.clock.Anchored()
		e.passes.runner.Kick(passRescue)
		began := time.Now()
		second := w.take(e, "a")
		if took := time.Since(began); took > 50*time.Millisecond || second.Attempt != 2 {
			w.Errorf("handed out again after %v: %+v", took, second)
		}
	})
}

func TestTouchKeepsAPoppedTask(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		id := w.save(e, "a", 0, processor.WithTTR(5*time.Second))
		task := w.take(e, "a")
		for range 4 {
			time.Sleep(4 * time.Second)
			if err := e.Touch(w.Context(), id, task.Version, 5*time.Second); err != nil {
				w.Fatal(err)
			}
		}
		if err := e.Finish(w.Context(), id, task.Version); err != nil {
			w.Fatal(err)
		}
	})
}

func TestPopGivesItsTasksTheLeaseThatItAsksFor(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		id := w.save(e, "a", 0, processor.WithTTR(5*time.Second))
		got, err := e.Pop(w.Context(), PopRequest{Tags: []string{"a"}, Max: 1, TTR: time.Minute})
		if err != nil || len(got) != 1 {
			w.Fatalf("popped %v, %v", got, err)
		}
		time.Sleep(50 * time.Second)
		if err := e.Finish(w.Context(), id, got[0].Version); err != nil {
			w.Error(err)
		}
	})
}

func TestReleaseAndFailOfAPoppedTask(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		id := w.save(e, "a", 0)
		task := w.take(e, "a")
		if err := e.Release(w.Context(), id, task.Version); err != nil {
			w.Fatal(err)
		}
		task = w.take(e, "a")
		if task.Attempt != 1 {
			w.Errorf("a release has cost an attempt: %d", task.Attempt)
		}
		if err := e.Fail(w.Context(), id, task.Version, errors.New("broken")); err != nil {
			w.Fatal(err)
		}
		task = w.take(e, "a")
		if r := w.row(id); task.Attempt != 2 || r.ErrorStack != "broken" {
			w.Errorf("after Fail: attempt %d, %+v", task.Attempt, r)
		}
	})
}

func TestManyPopsShareTheTasksAndLoseNone(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		const tasks = 500
		for range tasks {
			w.save(e, "a", time.Second)
		}
		ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
		defer cancel()
		var mu sync.Mutex
		seen := map[int64]int{}
		var poppers sync.WaitGroup
		for range 10 {
			poppers.Go(func() {
				for {
					got, err := e.Pop(ctx, PopRequest{Tags: []string{"a"}, Max: 20})
					if err != nil {
						return
					}
					for _, task := range got {
						if err := e.Finish(w.Context(), task.ID, task.Version); err != nil {
							w.Error(err)
						}
						mu.Lock()
						seen[task.ID]++
						mu.Unlock()
					}
				}
			})
		}
		poppers.Wait()
		for id, n := range seen {
			if n != 1 {
				w.Errorf("task %d was handed out %d times", id, n)
			}
		}
		if len(seen) != tasks {
			w.Errorf("%d of %d tasks were handed out", len(seen), tasks)
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
		pop := PopRequest{Max: 1, Waits: true, Wait: 5 * time.Second}
		for i := range tags {
			pop.Tags = append(pop.Tags, fmt.Sprint("tag", i))
		}
		if _, err := e.Pop(w.Context(), pop); err != nil {
			w.Fatal(err)
		}
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
		if _, err := e.Pop(w.Context(), PopRequest{Tags: []string{"a"}, Max: 1, Waits: true}); err != nil {
			w.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		id := w.save(e, "a", 3*time.Second)
		// The row is claimed ahead of its time for this pop, which leaves just before.
		justBefore := PopRequest{Tags: []string{"a"}, Max: 1, Waits: true, Wait: 2999 * time.Millisecond}
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
		e := w.engine(w.store, map[string]processor.Func{"a": nothing})
		var popped int
		for range 20 {
			w.save(e, "a", 2*time.Second)
		}
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
		defer cancel()
		for {
			got, err := e.Pop(ctx, PopRequest{Tags: []string{"a"}, Max: 20})
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
			got, err := e.Pop(w.Context(), PopRequest{Tags: []string{"a"}, Max: 1, Waits: true, Wait: wait})
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
			if open, announced := e.tags.open("a"), slices.Contains(nodes[0].Tags, "a"); open != want || announced != want {
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
		e := w.engine(w.store, nil)
		for _, size := range []int{popBytes / 2, popBytes / 2, popBytes / 2, popBytes + 1} {
			task := w.task("a", 0)
			task.Body = make([]byte, size)
			if _, _, err := e.Save(w.Context(), task); err != nil {
				w.Fatal(err)
			}
		}
		for left := 4; left > 0; {
			got, err := e.Pop(w.Context(), PopRequest{Tags: []string{"a"}, Max: 100})
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
