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

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/internal/testkit/faultstore"
	"github.com/delaytask/delaytask/processor"
)

// scene is a scenario on a store that may fail: what was asked for, and what the processors saw.
type scene struct {
	*testing.T
	inner *memstore.Store // without faults
	mu    sync.Mutex
	runs  map[int64]int
	done  map[int64]int // successful runs
}

// run notes a run whose result the function makes. It is told how often the task has run, this time included.
func (s *scene) run(result func(task *delaytask.Task, runs int) error) processor.Func {
	return func(_ context.Context, task *delaytask.Task) error {
		reading, err := s.inner.Now(context.Background())
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil || reading.Time < row.At(task.Due) {
			s.Errorf("task %d was early, %v", task.ID, err)
		}
		s.runs[task.ID]++
		err = result(task, s.runs[task.ID])
		if err == nil {
			s.done[task.ID]++
		}
		return err
	}
}

// callTime is the longest wait for one answer of the store.
const callTime = 10 * time.Second

func (s *scene) config(store store.Store) engine.Config {
	cfg := engine.Config{
		Store: store, Registry: &processor.Registry{}, Logger: slog.New(slog.DiscardHandler), CallTimeout: callTime,
		Concurrency: 8, TTR: 3 * time.Second, Timeout: time.Minute, MaxAttempts: 5,
		Backoff:    processor.Constant(time.Second / 2),
		ErrorLimit: 8 << 10, Quarantine: 5, LookAhead: time.Second, Window: 2 * time.Second, ScanEvery: 5 * time.Second,
		Horizon: time.Hour, HeapCap: 1000,
		Heartbeat: time.Second, StopGrace: 5 * time.Second,
	}
	for tag, result := range map[string]func(task *delaytask.Task, runs int) error{
		"plain": func(*delaytask.Task, int) error { return nil },
		"flaky": func(task *delaytask.Task, _ int) error {
			if task.Attempt == 1 {
				return errors.New("boom")
			}
			return nil
		},
		"sleepy": func(_ *delaytask.Task, runs int) error {
			if runs == 1 {
				return processor.Snooze(10 * time.Millisecond)
			}
			return nil
		},
	} {
		if err := cfg.Registry.Register(tag, s.run(result)); err != nil {
			s.Fatal(err)
		}
	}
	return cfg
}

// save stores a task under whatever id it gets, as a caller who takes the promise by its word: an unknown outcome is
// saved again.
func (s *scene) save(e *engine.Engine, tag string, delay time.Duration, opts ...delaytask.Option) int64 {
	s.Helper()
	task, err := request.NewSave(tag, "body", delay, request.Limits{}, opts...)
	if err != nil {
		s.Fatal(err)
	}
	for {
		id, _, err := e.Save(s.Context(), task)
		if err == nil {
			return id
		}
		unknown, ok := errors.AsType[*delaytask.OutcomeUnknownError](err)
		if !ok {
			s.Fatalf("save: %v", err)
		}
		task.ID = unknown.ID
	}
}

// again repeats an operation until it is not a fault of the store that it meets.
func (s *scene) again(op func(ctx context.Context) error) error {
	for {
		ctx, cancel := context.WithTimeout(s.Context(), callTime)
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

// play runs the scenario, and checks at the end what must hold whatever failed.
func (s *scene) play(store store.Store) {
	var e *engine.Engine
	err := s.again(func(ctx context.Context) (err error) {
		e, err = engine.New(ctx, s.config(store))
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	stop := func() error { return e.Stop(context.WithoutCancel(s.Context())) }
	defer func() { _ = stop() }() // also when the scene breaks off; a second stop does nothing
	if err := s.again(e.Start); err != nil {
		s.Fatal(err)
	}
	ids := []int64{
		s.save(e, "plain", 0), s.save(e, "plain", time.Second), s.save(e, "plain", time.Second, delaytask.WithKey("k")),
		s.save(e, "flaky", time.Second/2), s.save(e, "sleepy", time.Second/2),
	}
	debounced := s.save(e, "plain", time.Hour, delaytask.WithKey("debounced"))
	again := s.save(e, "plain", time.Second, delaytask.WithKey("debounced"),
		delaytask.WithOnConflict(delaytask.ReplaceTime))
	if again != debounced {
		s.Errorf("task %d was saved beside %d, which carries its key", again, debounced)
	}
	cancelled, moved := s.save(e, "plain", time.Hour), s.save(e, "plain", time.Hour)
	if err := s.again(func(ctx context.Context) error {
		_, err := e.Cancel(ctx, nil, control.Ref{ID: cancelled}, false)
		return err
	}); err != nil {
		s.Errorf("cancel: %v", err)
	}
	if err := s.again(func(ctx context.Context) error {
		_, err := e.Reschedule(ctx, nil, control.Ref{ID: moved}, time.Second, time.Time{}, nil)
		return err
	}); err != nil {
		s.Errorf("reschedule: %v", err)
	}
	ids = append(ids, moved, debounced)
	s.settled(ids)
	err = stop()
	if _, fault := errors.AsType[*row.Error](err); err != nil && !fault && !row.Ended(err) {
		s.Errorf("stop: %v", err)
	}
	s.check(ids, cancelled)
}

// settled waits until all tasks are final.
func (s *scene) settled(ids []int64) {
	for began := time.Now(); time.Since(began) < 3*time.Minute; time.Sleep(90 * time.Millisecond) {
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
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.inner.All()
	if len(all) != len(ids)+1 {
		s.Errorf("%d rows, want %d", len(all), len(ids)+1)
	}
	for _, r := range all {
		status, attempts, done := row.Completed, 1, 1
		switch {
		case r.ID == cancelled:
			status, attempts, done = row.Cancelled, 0, 0
		case !slices.Contains(ids, r.ID):
			s.Errorf("nobody saved %+v", r)
		case r.Tag == "flaky":
			attempts = 2
		}
		if r.Status != status || r.Attempt != attempts || s.done[r.ID] != done || done == 0 && s.runs[r.ID] > 0 {
			s.Errorf("%s is %v after attempt %d and %d crashes, succeeded %d times: %s",
				r.Tag, r.Status, r.Attempt, r.CrashCount, s.done[r.ID], r.Errors)
		}
	}
}

func TestEveryCallOfTheStoreMayFailInAnyWay(t *testing.T) {
	for _, mode := range []faultstore.Mode{faultstore.Before, faultstore.After, faultstore.Hang, faultstore.Late} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			for n, met := 1, true; met && n < 400 && !t.Failed(); n++ {
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
						s := &scene{T: t, inner: memstore.New(), runs: map[int64]int{}, done: map[int64]int{}}
						store := faultstore.New(s.inner, faultstore.Nth(n, mode))
						s.play(store)
						store.Wait()
						met = store.Faults() > 0
					})
				})
			}
		})
	}
}
