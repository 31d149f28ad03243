package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/processor"
)

func TestStopWaitsForWhatRuns(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": untilEnd(25*time.Second, nil)})
		id := w.save(e, "a", 0)
		time.Sleep(time.Second)
		w.must(e.Stop(w.Context()))
		w.completed(id, time.Second)
		if nodes, _, _ := w.store.Nodes(w.Context()); len(nodes) != 0 {
			w.Errorf("nodes left in the registry: %v", nodes)
		}
	})
}

// stop stops an engine, which takes so long at most.
func (w *world) stop(e *Engine, most time.Duration) error {
	w.Helper()
	w.lossy[e] = true
	began := time.Now()
	err := e.Stop(w.Context())
	if took := time.Since(began); took > most {
		w.Errorf("Stop took %v, want at most %v", took, most)
	}
	return err
}

func TestStopReleasesWhatStillRunsAtTheEndOfTheGrace(t *testing.T) {
	inBubbles(t, map[string]bool{"Obeys": false, "Ignores": true}, func(w *world, ignores bool) {
		wake := make(chan struct{})
		defer close(wake)
		e := w.engine(w.store, serving{"a": func(ctx context.Context, _ *delaytask.Task) error {
			if ignores {
				<-wake
				return nil
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), delaytask.ErrStopping) {
				w.Errorf("the context ended with %v", context.Cause(ctx))
			}
			return ctx.Err()
		}}, func(c *Config) { c.StopGrace = 5 * time.Second })
		id := w.save(e, "a", 0, delaytask.WithMaxAttempts(1))
		time.Sleep(time.Second)
		w.engine(w.store, serving{"a": nothing}) // takes over
		if err := w.stop(e, 7*time.Second); err == nil {
			w.Error("Stop did not say that it interrupted a processor")
		}
		time.Sleep(7 * time.Second)
		w.standing(row.Completed, 1, 0, id)
	})
}

func TestStopWhoseContextEndsReleasesAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": untilEnd(time.Hour, nil)})
		id := w.save(e, "a", 0)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(w.Context(), 2*time.Second)
		defer cancel()
		w.lossy[e] = true
		began := time.Now()
		if err := e.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 3*time.Second {
			w.Errorf("Stop took %v: %v", time.Since(began), err)
		}
		w.standing(row.Pending, 0, 0, id)
	})
}

func TestRowsClaimedAheadStartAtTheirTimeDuringAStop(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		time.Sleep(time.Second)
		id := w.save(e, "a", 3*time.Second)
		time.Sleep(3*time.Second - 5*time.Millisecond)
		if r := w.row(id); r.Status != row.Executing {
			w.Fatalf("want it claimed ahead: %+v", r)
		}
		w.must(e.Stop(w.Context()))
		w.completed(id, 2*time.Millisecond)
	})
}

func TestRowsClaimedAheadAreGivenBackWithTheirDueTime(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		time.Sleep(time.Second)
		id := w.save(e, "a", 3*time.Second)
		due := w.row(id).Due
		time.Sleep(3*time.Second - 5*time.Millisecond)
		gaveUp, cancel := context.WithCancel(w.Context())
		cancel()
		w.lossy[e] = true
		_ = e.Stop(gaveUp) // what became of the row matters, not whether this was in time
		r := w.row(id)
		if r.Status == row.Completed {
			return // it was started in the moment that a stop leaves to processors
		}
		if r.Status != row.Pending || r.Due < due || r.Attempt != 0 || r.CrashCount != 0 {
			w.Errorf("row: %+v, its due time was %v", r, due)
		}
	})
}

// The claim was applied, but the claimer does not know that.
func TestStopReleasesWhatAClaimWithALostReplyHasWon(t *testing.T) {
	inBubble(t, func(w *world) {
		lost := make(chan struct{}, 10)
		e := w.engine(at(w.store, "Claim", func(_ context.Context, do func() error) error {
			if err := do(); err != nil {
				w.Error(err)
			}
			lost <- struct{}{}
			return classError(row.ClassUnknown, "the reply is lost")
		}), serving{"a": nothing})
		time.Sleep(time.Second)
		id := w.save(e, "a", 3*time.Second)
		<-lost
		w.must(w.stop(e, 3*time.Second))
		w.standing(row.Pending, 0, 0, id)
		w.ran(id, 0)
	})
}

// It can find nothing out, and must not wait for that longer than the grace.
func TestStopEndsAfterALostReplyOfADatabaseThatIsGone(t *testing.T) {
	inBubbles(t, map[string]bool{"Refused": false, "Hanging": true}, func(w *world, hangs bool) {
		far := newRemote(w.store, hangs)
		lost := make(chan struct{})
		e := w.engine(at(far, "Claim", func(_ context.Context, do func() error) error {
			if far.away.Swap(true) {
				return do()
			}
			close(lost)
			return classError(row.ClassUnknown, "the reply is lost")
		}), serving{"a": nothing}, func(c *Config) { c.StopGrace, c.CallTimeout = 5*time.Second, 2*time.Second })
		time.Sleep(time.Second)
		w.save(e, "a", 3*time.Second)
		<-lost
		if err := w.stop(e, 12*time.Second); !errors.Is(err, delaytask.ErrGraceEnded) {
			w.Errorf("Stop: %v", err)
		}
	})
}

func TestStopStoresTheSavesThatWait(t *testing.T) {
	inBubble(t, func(w *world) {
		store, _ := w.slowInsert(2 * time.Second)
		e := w.engine(store, nil)
		var answers []<-chan answer
		for range 5 {
			answers = append(answers, w.saveLater(w.Context(), e, w.task("a", time.Hour)))
		}
		w.must(e.Stop(w.Context()))
		for _, done := range answers {
			if a := <-done; a.err != nil || !w.exists(a.id) {
				w.Errorf("save: %v", a)
			}
		}
	})
}

func TestNothingIsArmedAfterAStop(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing}, func(c *Config) { c.HeapCap = 100_000 })
		arm := func() {
			for _, d := range sightings("a", 1, 50_000) {
				d.Due = row.At(time.Now().Add(time.Hour))
				e.runqueue.Arm(d, true)
			}
		}
		arm()
		if n := e.runqueue.Counts().Timers; n != 50_000 {
			w.Fatalf("%d timers", n)
		}
		w.must(e.Stop(w.Context()))
		arm() // as a commit that was waited for does when it is seen late
		if n := e.runqueue.Counts().Timers; n != 0 {
			w.Errorf("%d timers are left", n)
		}
	})
}

// TestStartStopStress is for the race detector: real time, many engines, everything at once.
func TestStartStopStress(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	for range 15 {
		cfg := testConfig(store)
		err := cfg.Registry.Register("a", processor.Func(nothing))
		if err != nil {
			t.Fatal(err)
		}
		e, err := New(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() { _ = e.Start(t.Context()) })
			wg.Go(func() {
				task, _ := request.NewSave("a", "", 0, request.Limits{})
				id, _, err := e.Save(t.Context(), task)
				if err != nil && !errors.Is(err, delaytask.ErrClosed) {
					t.Error(err)
				}
				_, _ = e.Cancel(t.Context(), nil, control.Ref{ID: id}, false)
			})
			wg.Go(func() { _ = e.Pause(t.Context(), "b", "") })
			wg.Go(e.Registered)
			if i > 3 {
				wg.Go(func() {
					if err := e.Stop(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
	}
}

func TestHookThatDoesNotReturnDoesNotHoldUpAStop(t *testing.T) {
	inBubble(t, func(w *world) {
		block := make(chan struct{})
		defer close(block)
		permanent := func(context.Context, *delaytask.Task) error { return processor.Permanent(errors.New("no")) }
		e := w.engine(w.store, serving{"a": permanent}, func(c *Config) {
			c.OnFailed = func(context.Context, *delaytask.Task, error) { <-block }
		})
		w.save(e, "a", 0)
		time.Sleep(time.Second)
		w.must(w.stop(e, 15*time.Second))
	})
}

func TestRollingRestartMakesNothingLate(t *testing.T) {
	inBubble(t, func(w *world) {
		var mu sync.Mutex
		var nodes []*Engine
		var ids []int64
		grow := func() {
			e := w.engine(distant(w.store, 2*time.Millisecond), serving{"a": nothing})
			mu.Lock()
			defer mu.Unlock()
			nodes = append(nodes, e)
		}
		shrink := func() { // the node stops that has been there for longest
			mu.Lock()
			old := nodes[0]
			nodes = nodes[1:]
			mu.Unlock()
			w.must(old.Stop(w.Context()))
		}
		save := func() { // by one of the nodes
			mu.Lock()
			e := nodes[rand.IntN(len(nodes))]
			mu.Unlock()
			id := w.save(e, "a", 200*time.Millisecond+rand.N(5*time.Second))
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, id)
		}
		for range 3 {
			grow()
		}
		time.Sleep(3 * time.Second)
		var saves sync.WaitGroup
		for i := range 10_000 { // 1,000 a second
			saves.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				save()
			})
		}
		for range 3 {
			time.Sleep(2 * time.Second)
			shrink()
			grow()
		}
		saves.Wait()
		time.Sleep(20 * time.Second)
		late := make([]time.Duration, len(ids))
		for i, id := range ids {
			late[i] = w.once(id)
		}
		w.standing(row.Completed, 1, 0, ids...)
		slices.Sort(late)
		if p999 := late[len(late)*999/1000]; p999 > 20*time.Millisecond { // a share that changes hands has 1 of 100
			w.Errorf("999 of 1000 tasks were at most %v late, all %v", p999, late[len(late)-1])
		}
	})
}

func TestLeavingNodeGoesOnOnlyWhileOthersTakeOver(t *testing.T) {
	type stop struct {
		others bool          // serve the tag too
		due    time.Duration // of a task that the node has armed
		least  time.Duration // the stop takes
		most   time.Duration
	}
	inBubbles(t, map[string]stop{
		"NobodyTakesOver":  {false, 500 * time.Millisecond, 0, 100 * time.Millisecond},
		"NothingIsDueSoon": {true, time.Minute, 0, 100 * time.Millisecond},
		"SomethingIsDue":   {true, 500 * time.Millisecond, 400 * time.Millisecond, 600 * time.Millisecond},
		"ItIsDueForOthers": {true, 3 * time.Second, 0, 2100 * time.Millisecond},
	}, func(w *world, c stop) {
		e := w.engine(w.store, serving{"a": nothing})
		if c.others {
			w.engine(w.store, serving{"a": nothing})
		}
		time.Sleep(3 * time.Second)
		ids := w.many(e, 20, "a", c.due)
		began := time.Now()
		w.must(e.Stop(w.Context()))
		if took := time.Since(began); took < c.least || took > c.most {
			w.Errorf("the stop took %v, want %v to %v", took, c.least, c.most)
		}
		if c.others {
			time.Sleep(2 * time.Minute)
			w.allCompleted(ids, 5*time.Millisecond)
		}
	})
}

// The transaction that has completed the task outlasts the stop, and commits.
func TestStopLeavesATransactionToItsProcessor(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(txStore{w.store}, serving{"a": completeTx(w, 30*time.Second, true, nil)},
			func(c *Config) { c.StopGrace = 5 * time.Second })
		id := w.save(e, "a", 0)
		time.Sleep(time.Second)
		err := w.stop(e, 20*time.Second)
		if !errors.Is(err, delaytask.ErrGraceEnded) || errors.Is(err, delaytask.ErrResultsNotStored) {
			w.Errorf("Stop: %v", err)
		}
		time.Sleep(30 * time.Second)
		w.standing(row.Completed, 1, 0, id)
	})
}

// Another transaction keeps results from being stored until the stop has ended.
func TestStopSaysWhichResultsAreNotStored(t *testing.T) {
	inBubbles(t, map[string]bool{"Alone": false, "BesideOneThatRuns": true}, func(w *world, runs bool) {
		var said strings.Builder
		wake := make(chan struct{})
		defer close(wake)
		e := w.engine(laned(w.store), serving{
			"a": untilEnd(time.Second, nil), "b": untilEnd(time.Second, nil),
			"c": func(context.Context, *delaytask.Task) error { <-wake; return nil },
		}, func(c *Config) { c.Logger, c.StopGrace = slog.New(slog.NewTextHandler(&said, nil)), 5*time.Second })
		kept, stored := w.save(e, "a", 0), w.save(e, "b", 0)
		if runs {
			w.save(e, "c", 0)
		}
		time.Sleep(100 * time.Millisecond)
		unlock := w.store.LockRange(func(tag string, to row.Status) bool { return tag == "a" && to == row.Completed })
		time.Sleep(2 * time.Second)
		err := w.stop(e, 20*time.Second)
		if !errors.Is(err, delaytask.ErrResultsNotStored) || errors.Is(err, delaytask.ErrGraceEnded) != runs {
			w.Errorf("Stop: %v", err)
		}
		if nodes, _, _ := w.store.Nodes(w.Context()); len(nodes) != 0 {
			w.Errorf("nodes left in the registry: %v", nodes)
		}
		w.standing(row.Executing, 1, 0, kept)
		w.standing(row.Completed, 1, 0, stored)
		text := said.String()
		if !strings.Contains(text, fmt.Sprint("tasks=[", kept, "]")) || strings.Contains(text, "hook") {
			w.Errorf("the log says:\n%s", text)
		}
		unlock()
	})
}
