package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/memstore"
	"github.com/delaytask/delaytask/internal/offheap"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

func TestStopWaitsForWhatRuns(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"a": untilEnd(25*time.Second, nil)})
		id := w.save(e, "a", 0)
		time.Sleep(time.Second)
		if err := e.Stop(w.Context()); err != nil {
			w.Fatal(err)
		}
		w.completed(id, time.Second)
		if nodes, _, _ := w.store.Nodes(w.Context()); len(nodes) != 0 {
			w.Errorf("nodes left in the registry: %v", nodes)
		}
	})
}

func TestStopReleasesWhatStillRunsAtTheEndOfTheGrace(t *testing.T) {
	for name, ignores := range map[string]bool{"Obeys": false, "Ignores": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				wake := make(chan struct{})
				defer close(wake)
				e := w.engine(w.store, map[string]processor.Func{"a": func(ctx context.Context, task *processor.Task) error {
					if ignores {
						<-wake
						return nil
					}
					<-ctx.Done()
					if !errors.Is(context.Cause(ctx), processor.ErrStopping) {
						w.Errorf("the context ended with %v", context.Cause(ctx))
					}
					return ctx.Err()
				}}, func(c *Config) { c.StopGrace = 5 * time.Second })
				id := w.save(e, "a", 0, processor.WithMaxAttempts(1))
				time.Sleep(time.Second)
				w.engine(w.store, map[string]processor.Func{"a": nothing}) // takes over
				began := time.Now()
				w.lossy[e] = true
				if err := e.Stop(w.Context()); err == nil {
					w.Error("Stop did not say that it interrupted a processor")
				}
				if took := time.Since(began); took > 7*time.Second {
					w.Errorf("Stop took %v", took)
				}
				time.Sleep(7 * time.Second)
				if r := w.row(id); r.Status != row.Completed || r.Attempt != 1 || r.CrashCount != 0 {
					w.Errorf("another node: %+v", r)
				}
			})
		})
	}
}

func TestStopOfWhoeverGivesUpReleasesAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"a": untilEnd(time.Hour, nil)})
		id := w.save(e, "a", 0)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(w.Context(), 2*time.Second)
		defer cancel()
		w.lossy[e] = true
		began := time.Now()
		if err := e.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("Stop: %v", err)
		}
		if time.Since(began) > 3*time.Second {
			w.Errorf("Stop took %v", time.Since(began))
		}
		if r := w.row(id); r.Status != row.Pending || r.Attempt != 0 || r.CrashCount != 0 {
			w.Errorf("row: %+v", r)
		}
	})
}

func TestRowsClaimedAheadStartAtTheirTimeDuringAStop(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"a": nothing})
		time.Sleep(time.Second)
		id := w.save(e, "a", 3*time.Second)
		time.Sleep(3*time.Second - 5*time.Millisecond)
		if r := w.row(id); r.Status != row.Executing {
			w.Fatalf("want it claimed ahead: %+v", r)
		}
		if err := e.Stop(w.Context()); err != nil {
			w.Fatal(err)
		}
		w.completed(id, 2*time.Millisecond)
	})
}

func TestRowsClaimedAheadAreGivenBackWithTheirDueTime(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"a": nothing})
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

// The claim was applied, but nobody here knows that yet.
func TestStopReleasesWhatAClaimWithALostReplyHasWon(t *testing.T) {
	inBubble(t, func(w *world) {
		lost := make(chan struct{})
		var once sync.Once
		store := claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
			if _, err := w.store.Claim(ctx, c); err != nil {
				w.Error(err)
			}
			once.Do(func() { close(lost) })
			return row.Claimed{}, classError(row.ClassUnknown, "the reply is lost")
		}}
		e := w.engine(store, map[string]processor.Func{"a": nothing})
		time.Sleep(time.Second)
		id := w.save(e, "a", 3*time.Second)
		<-lost
		gone := time.Now()
		if err := e.Stop(w.Context()); err != nil {
			w.Fatal(err)
		}
		if took := time.Since(gone); took > 3*time.Second {
			w.Errorf("Stop took %v", took)
		}
		if r := w.row(id); r.Status != row.Pending || r.Attempt != 0 || r.CrashCount != 0 || len(w.runs.of(id)) != 0 {
			w.Errorf("row after the stop: %+v", r)
		}
	})
}

// It can find nothing out, and must not wait for that longer than the grace.
func TestStopEndsAfterALostReplyOfADatabaseThatIsGone(t *testing.T) {
	for name, hangs := range map[string]bool{"Refused": false, "Hanging": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				far := &remote{Store: w.store}
				far.hangs.Store(hangs)
				lost := make(chan struct{})
				store := claimHook{far, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
					if far.away.Swap(true) {
						return far.Claim(ctx, c)
					}
					close(lost)
					return row.Claimed{}, classError(row.ClassUnknown, "the reply is lost")
				}}
				e := w.engine(store, map[string]processor.Func{"a": nothing}, func(c *Config) {
					c.StopGrace, c.CallTimeout = 5*time.Second, 2*time.Second
				})
				time.Sleep(time.Second)
				w.save(e, "a", 3*time.Second)
				<-lost
				gone := time.Now()
				w.lossy[e] = true
				if err := e.Stop(w.Context()); !errors.Is(err, processor.ErrGraceEnded) {
					w.Errorf("Stop: %v", err)
				}
				if took := time.Since(gone); took > 12*time.Second {
					w.Errorf("Stop took %v", took)
				}
			})
		})
	}
}

func TestStopStoresTheSavesThatWait(t *testing.T) {
	inBubble(t, func(w *world) {
		store, _ := w.slowInsert(2 * time.Second)
		e := w.engine(store, nil)
		var answers []<-chan answer
		for range 5 {
			answers = append(answers, w.saveLater(w.Context(), e, w.task("a", time.Hour)))
		}
		if err := e.Stop(w.Context()); err != nil {
			w.Fatal(err)
		}
		for _, done := range answers {
			if a := <-done; a.err != nil || !w.exists(a.id) {
				w.Errorf("save: %v", a)
			}
		}
	})
}

func TestStopGivesTheMemoryOfTimersBackForGood(t *testing.T) {
	inBubble(t, func(w *world) {
		before := offheap.Mapped()
		e := w.engine(w.store, map[string]processor.Func{"a": nothing}, func(c *Config) { c.HeapCap = 100_000 })
		arm := func() {
			for _, d := range sightings("a", 1, 50_000) {
				d.Due = row.At(time.Now().Add(time.Hour))
				e.hands.arm(d, true)
			}
		}
		arm()
		if n := e.hands.timers(); n != 50_000 {
			w.Fatalf("%d timers", n)
		}
		if err := e.Stop(w.Context()); err != nil {
			w.Fatal(err)
		}
		arm() // as a commit that was waited for does when it is seen late
		if n, left := e.hands.timers(), offheap.Mapped()-before; n != 0 || left != 0 {
			w.Errorf("%d timers and %d bytes outside of the collector's heap are left", n, left)
		}
	})
}

func TestStopIsIdempotentAndWorksBeforeStart(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(w.store, map[string]processor.Func{"a": nothing})
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if err := e.Stop(w.Context()); err != nil {
					w.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

// TestStartStopStress is for the race detector: real time, many engines, everything at once.
func TestStartStopStress(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	for range 15 {
		cfg := testConfig(store)
		if err := cfg.Registry.Register("a", processor.Func(nothing)); err != nil {
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
				task, _ := processor.NewSave("a", "", 0, processor.Limits{})
				id, _, err := e.Save(t.Context(), task)
				if err != nil && !errors.Is(err, processor.ErrClosed) {
					t.Error(err)
				}
				_, _ = e.Cancel(t.Context(), nil, Ref{ID: id}, false)
			})
			wg.Go(func() { _ = e.Pause(t.Context(), "b") })
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
