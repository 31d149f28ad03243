package scanner

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// running starts a runner of the passes and stops it when the test ends.
func running(t *testing.T, log *slog.Logger, passes ...Pass) *Runner {
	r := NewRunner(log, passes...)
	r.Start(t.Context())
	t.Cleanup(func() {
		if err := r.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func counting(name string, every time.Duration) (Pass, *atomic.Int64) {
	n := new(atomic.Int64)
	return Pass{Name: name, Every: every, Run: func(context.Context) error { n.Add(1); return nil }}, n
}

func TestPassesRunAtTheirIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		often, oftenRuns := counting("often", 1500*time.Millisecond)
		seldom, seldomRuns := counting("seldom", 5*time.Second)
		running(t, slog.New(slog.DiscardHandler), often, seldom)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if a, b := oftenRuns.Load(), seldomRuns.Load(); a != 20 || b != 6 {
			t.Fatalf("in 30 s the passes ran %d and %d times, want 20 and 6", a, b)
		}
	})
}

func TestPassesStartInARandomPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		firsts := map[time.Duration]bool{}
		began := time.Now()
		for range 20 {
			var once sync.Once
			running(t, slog.New(slog.DiscardHandler), Pass{Name: "p", Every: 5 * time.Second,
				Run: func(context.Context) error {
					once.Do(func() {
						mu.Lock()
						defer mu.Unlock()
						firsts[time.Since(began)] = true
					})
					return nil
				}})
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(firsts) < 15 {
			t.Fatalf("20 runners began at only %d different moments", len(firsts))
		}
	})
}

func TestAPassNeverRunsTwiceAtATimeAndHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, runs atomic.Int64
		slow := Pass{Name: "slow", Every: time.Second, Run: func(context.Context) error {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(3500 * time.Millisecond)
			now.Add(-1)
			runs.Add(1)
			return nil
		}}
		quick, quickRuns := counting("quick", time.Second)
		r := running(t, slog.New(slog.DiscardHandler), slow, quick)
		for range 20 {
			r.Kick("slow")
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if most.Load() != 1 || runs.Load() < 5 || quickRuns.Load() != 20 {
			t.Fatalf("slow ran %d at a time, %d in all; quick ran %d times", most.Load(), runs.Load(), quickRuns.Load())
		}
	})
}

func TestAKickRunsAtOnceAndAfterARunInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var starts []time.Duration
		began := time.Now()
		r := running(t, slog.New(slog.DiscardHandler), Pass{Name: "p", Every: 1000 * time.Hour,
			Run: func(context.Context) error {
				mu.Lock()
				starts = append(starts, time.Since(began))
				mu.Unlock()
				time.Sleep(time.Second)
				return nil
			}})
		r.Kick("p")
		r.Kick("unknown")
		time.Sleep(100 * time.Millisecond)
		for range 5 { // what these are about may have come after the run in progress looked
			r.Kick("p")
		}
		time.Sleep(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(starts) != 2 || starts[0] != 0 || starts[1] != time.Second {
			t.Fatalf("runs began at %v, want 0s and 1s", starts)
		}
	})
}

func TestATurnOfAnotherProcessIsLeftOutAndAKickIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, runs := counting("p", time.Second)
		var turns atomic.Int64
		p.Takes = func() bool { return turns.Add(1)%2 == 1 }
		r := running(t, slog.New(slog.DiscardHandler), p)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := runs.Load(); n != 5 {
			t.Errorf("of 10 turns, 5 of them its own, the pass took %d", n)
		}
		r.Kick("p")
		synctest.Wait()
		if n := runs.Load(); n != 6 {
			t.Errorf("a kick in another's turn: %d runs, want 6", n)
		}
	})
}

func TestAPassSurvivesItsPanicsAndErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var runs atomic.Int64
		r := NewRunner(slog.New(slog.NewTextHandler(&log, nil)),
			Pass{Name: "p", Every: time.Second, Run: func(context.Context) error {
				if runs.Add(1)%2 == 0 {
					return errors.New("the table is missing")
				}
				panic("a bug")
			}})
		r.Start(t.Context())
		time.Sleep(4 * time.Second)
		mustOK(t, r.Stop(t.Context()))
		for _, want := range []string{`panic="a bug"`, "runner_test.go", "pass=p", `err="the table is missing"`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q:\n%s", want, &log)
			}
		}
		if runs.Load() != 4 {
			t.Errorf("%d runs, want 4", runs.Load())
		}
	})
}

func TestStopEndsPassesAndWaitsForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Bool
		r := NewRunner(slog.New(slog.DiscardHandler), Pass{Name: "p", Every: time.Hour,
			Run: func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(2 * time.Second) // some pass takes its time
				ended.Store(true)
				return ctx.Err()
			}})
		r.Start(t.Context())
		r.Kick("p")
		synctest.Wait()

		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Stop(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Stop in too short a time: %v", err)
		}
		if err := r.Stop(t.Context()); err != nil || !ended.Load() {
			t.Fatalf("Stop: %v; the pass ended: %t", err, ended.Load())
		}
		r.Kick("p")
		r.Start(t.Context())

		p, runs := counting("never started", time.Second)
		r = NewRunner(slog.New(slog.DiscardHandler), p)
		r.Kick("never started")
		mustOK(t, r.Stop(t.Context()))
		r.Start(t.Context())
		time.Sleep(10 * time.Second)
		if runs.Load() != 0 {
			t.Fatalf("%d runs after Stop", runs.Load())
		}
	})
}

func TestPassesGoOnWhenCronRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, runs := counting("p", 2*time.Second)
		r := running(t, slog.New(slog.DiscardHandler), p)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		// What a wall clock that was set back does to cron: the next turn lies far ahead.
		r.mu.Lock()
		r.cron.Remove(r.passes[0].entry)
		r.mu.Unlock()
		before := runs.Load()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := runs.Load() - before; n < 7 {
			t.Fatalf("%d runs in 20 s, want nearly 10", n)
		}
	})
}

func TestRunnerSurvivesStartStopStress(t *testing.T) {
	t.Parallel()
	for range 20 {
		p, _ := counting("p", time.Millisecond)
		r := NewRunner(slog.New(slog.DiscardHandler), p)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { r.Start(t.Context()) })
			wg.Go(func() { r.Kick("p") })
			wg.Go(func() {
				if err := r.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}
