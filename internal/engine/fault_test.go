package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/faultstore"
	"github.com/delaytask/delaytask/internal/memstore"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// pace scales the scenario's delays: a bubble has all the time in the world, a real database has not.
type pace struct {
	second time.Duration // what the scenario calls a second
	ttr    time.Duration
	wait   time.Duration // how long it may take in all
	call   time.Duration // longest wait for one answer of the store
}

// scene is a scenario: what was asked for, and what the processors saw.
type scene struct {
	testing.TB
	inner engine.Store // without faults
	mu    sync.Mutex
	runs  map[int64][]processor.Task
	done  map[int64]int // successful runs
	early []string
}

func newScene(t testing.TB, inner engine.Store) *scene {
	return &scene{TB: t, inner: inner, runs: map[int64][]processor.Task{}, done: map[int64]int{}}
}

// note tells how often a task was run, this time included.
func (s *scene) note(task *processor.Task) int {
	reading, err := s.inner.Now(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && reading.Time < row.At(task.Due) {
		s.early = append(s.early, fmt.Sprintf("task %d was early", task.ID))
	}
	s.runs[task.ID] = append(s.runs[task.ID], *task)
	return len(s.runs[task.ID])
}

func (s *scene) success(task *processor.Task) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[task.ID]++
	return nil
}

// plain completes, flaky fails once, and sleepy snoozes once.
func (s *scene) plain(_ context.Context, task *processor.Task) error {
	s.note(task)
	return s.success(task)
}

func (s *scene) flaky(_ context.Context, task *processor.Task) error {
	if s.note(task); task.Attempt == 1 {
		return errors.New("boom")
	}
	return s.success(task)
}

func (s *scene) sleepy(_ context.Context, task *processor.Task) error {
	if s.note(task) == 1 {
		return processor.Snooze(10 * time.Millisecond)
	}
	return s.success(task)
}

func (s *scene) config(store engine.Store, p pace) engine.Config {
	cfg := engine.Config{
		Store: store, Registry: &processor.Registry{}, Logger: slog.New(slog.DiscardHandler), CallTimeout: p.call,
		Workers: 8, TTR: p.ttr, Timeout: time.Minute, MaxAttempts: 5, Backoff: processor.Constant(p.second / 2),
		ErrorLimit: 8 << 10, Quarantine: 5, LookAhead: time.Second, Window: 2 * time.Second, ScanEvery: 5 * time.Second,
		Horizon: time.Hour, HeapCap: 1000,
		Heartbeat: time.Second, StopGrace: 5 * time.Second,
	}
	for tag, f := range map[string]processor.Func{"plain": s.plain, "flaky": s.flaky, "sleepy": s.sleepy} {
		if err := cfg.Registry.Register(tag, f); err != nil {
			s.Fatal(err)
		}
	}
	return cfg
}

// save stores a task under whatever id it gets, as a caller who takes the promise by its word: an unknown outcome is saved again.
func (s *scene) save(e *engine.Engine, tag string, delay time.Duration, opts ...processor.Option) int64 {
	s.Helper()
	task, err := processor.NewSave(tag, "body", delay, processor.Limits{}, opts...)
	if err != nil {
		s.Fatal(err)
	}
	for {
		id, _, err := e.Save(s.Context(), task)
		if err == nil {
			return id
		}
		if unknown, ok := errors.AsType[*processor.OutcomeUnknownError](err); ok {
			task.ID = unknown.ID
			continue
		}
		s.Fatalf("save: %v", err)
	}
}

// again repeats an operation until it is not a fault of the store that it meets.
func (s *scene) again(p pace, op func(ctx context.Context) error) error {
	for {
		ctx, cancel := context.WithTimeout(s.Context(), max(p.call, 2*time.Second))
		err := op(ctx)
		cancel()
		if row.Ended(err) {
			continue
		}
		if _, fault := errors.AsType[*row.Error](err); !fault {
			return err
		}
	}
}

// play runs the scenario on a store that may fail, and checks at the end what must hold whatever failed.
func (s *scene) play(store engine.Store, p pace) {
	s.Helper()
	var e *engine.Engine
	err := s.again(p, func(ctx context.Context) (err error) {
		e, err = engine.New(ctx, s.config(store, p))
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = e.Stop(context.WithoutCancel(s.Context())) }() // also when the scene breaks off; a second stop does nothing
	if err := s.again(p, e.Start); err != nil {
		s.Fatal(err)
	}
	runs := []int64{
		s.save(e, "plain", 0), s.save(e, "plain", p.second), s.save(e, "plain", p.second, processor.WithKey("k")),
		s.save(e, "flaky", p.second/2), s.save(e, "sleepy", p.second/2),
	}
	cancelled, moved := s.save(e, "plain", time.Hour), s.save(e, "plain", time.Hour)
	if err := s.again(p, func(ctx context.Context) error {
		_, err := e.Cancel(ctx, nil, engine.Ref{ID: cancelled}, false)
		return err
	}); err != nil {
		s.Errorf("cancel: %v", err)
	}
	if err := s.again(p, func(ctx context.Context) error {
		_, err := e.Reschedule(ctx, nil, engine.Ref{ID: moved}, p.second, time.Time{}, nil)
		return err
	}); err != nil {
		s.Errorf("reschedule: %v", err)
	}
	runs = append(runs, moved)
	s.settled(runs, p.wait)
	stopErr := e.Stop(context.WithoutCancel(s.Context()))
	if _, fault := errors.AsType[*row.Error](stopErr); stopErr != nil && !fault && !row.Ended(stopErr) {
		s.Errorf("stop: %v", stopErr)
	}
	s.check(runs, cancelled)
}

// settled waits until all tasks are final.
func (s *scene) settled(ids []int64, wait time.Duration) {
	for began := time.Now(); time.Since(began) < wait; time.Sleep(wait / 2000) {
		rows, _, err := s.inner.Get(s.Context(), nil, ids)
		if err != nil {
			s.Fatal(err)
		}
		if !slices.ContainsFunc(rows, func(r row.Row) bool { return !r.Status.Final() }) {
			return
		}
	}
}

func (s *scene) check(ids []int64, cancelled int64) {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	all, broken, err := s.inner.List(context.Background(), row.Filter{Limit: 1000}, false)
	if err != nil || len(broken) > 0 || len(all) != len(ids)+1 {
		s.Errorf("%d rows, want %d; %v, %v", len(all), len(ids)+1, broken, err)
	}
	for _, r := range all {
		if r.ID == cancelled {
			if r.Status != row.Cancelled || len(s.runs[r.ID]) > 0 {
				s.Errorf("cancelled task: %v after %d runs", r.Status, len(s.runs[r.ID]))
			}
			continue
		}
		attempts := 1
		if r.Tag == "flaky" {
			attempts = 2
		}
		if r.Status != row.Completed || r.Attempt != attempts || !slices.Contains(ids, r.ID) {
			s.Errorf("%s is %v after attempt %d and %d crashes: %s", r.Tag, r.Status, r.Attempt, r.CrashCount, r.Errors)
		}
		if s.done[r.ID] != 1 {
			s.Errorf("%s succeeded %d times, with %d crashes", r.Tag, s.done[r.ID], r.CrashCount)
		}
	}
	for _, early := range s.early {
		s.Error(early)
	}
}

func TestEveryCallOfTheStoreMayFailInAnyWay(t *testing.T) {
	p := pace{second: time.Second, ttr: 3 * time.Second, wait: 3 * time.Minute, call: 10 * time.Second}
	for _, mode := range []faultstore.Mode{faultstore.Before, faultstore.After, faultstore.Hang, faultstore.Late} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			for n, met := 1, true; met && n < 400 && !t.Failed(); n++ {
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
						inner := memstore.New()
						store := faultstore.New(inner, faultstore.Nth(n, mode))
						newScene(t, inner).play(store, p)
						store.Wait()
						met = store.Faults() > 0
					})
				})
			}
		})
	}
}
