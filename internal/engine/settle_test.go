package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/testkit/faultstore"
	"github.com/delaytask/delaytask/processor"
)

// updateHook stands in for Update.
type updateHook struct {
	store.Store
	hook func(ctx context.Context, changes []row.Change) (int, error)
}

func (s updateHook) Update(ctx context.Context, _ store.Tx, changes []row.Change) (int, error) {
	return s.hook(ctx, changes)
}

func TestOutcomeOfAnAttempt(t *testing.T) {
	boom := errors.New("boom")
	wrapped := fmt.Errorf("wrapped: %w", processor.Permanent(boom))
	later := processor.RetryAfter(boom, 3*time.Hour)
	type attempt struct {
		result   func() error
		status   row.Status
		attempt  int
		after    time.Duration // of the next attempt
		errors   bool
		attempts int // max attempts; 0 for the default
	}
	inBubbles(t, map[string]attempt{
		"Nil":       {func() error { return nil }, row.Completed, 1, 0, false, 0},
		"Error":     {func() error { return boom }, row.Pending, 1, time.Hour, true, 0},
		"LastError": {func() error { return boom }, row.Failed, 1, 0, true, 1},
		"Permanent": {func() error { return wrapped }, row.Failed, 1, 0, true, 0},
		"Snooze": {
			func() error { return processor.Snooze(2 * time.Hour) },
			row.Pending,
			0,
			2 * time.Hour,
			false,
			0,
		},
		"SnoozeAtLast": {
			func() error { return processor.Snooze(2 * time.Hour) },
			row.Pending,
			0,
			2 * time.Hour,
			false,
			1,
		},
		"RetryAfter":      {func() error { return later }, row.Pending, 1, 3 * time.Hour, true, 0},
		"RetryAfterLast":  {func() error { return later }, row.Failed, 1, 0, true, 1},
		"Panic":           {func() error { panic("boom") }, row.Pending, 1, time.Hour, true, 0},
		"Goexit":          {func() error { runtime.Goexit(); return nil }, row.Pending, 1, time.Hour, true, 0},
		"PanicInError":    {func() error { return panicking{} }, row.Pending, 1, time.Hour, true, 0},
		"TypedNilError":   {func() error { return (*pointerError)(nil) }, row.Pending, 1, time.Hour, true, 0},
		"HugeErrorText":   {func() error { return errors.New(strings.Repeat("ä", 1<<20)) }, row.Failed, 1, 0, true, 1},
		"ErrorNotUTF8":    {func() error { return errors.New("a\xffb\x00c") }, row.Failed, 1, 0, true, 1},
		"NegativeBackoff": {func() error { return processor.RetryAfter(boom, -time.Hour) }, row.Failed, 2, 0, true, 2},
	}, func(w *world, c attempt) {
		result := func(context.Context, *delaytask.Task) error { return c.result() }
		e := w.engine(w.store, serving{"a": result}, func(cfg *Config) {
			cfg.Backoff = func(attempt int) time.Duration { return time.Duration(attempt) * time.Hour }
		})
		time.Sleep(time.Second)
		id := w.save(e, "a", 0, delaytask.WithMaxAttempts(c.attempts))
		time.Sleep(5 * time.Second)
		started := row.At(w.runs.of(id)[0].at)
		r := w.row(id)
		if r.Status != c.status || r.Attempt != c.attempt || r.Execution.Sub(started).Abs() > 2*time.Millisecond {
			w.Errorf("row: %+v", r)
		}
		if c.status == row.Pending && r.Due.Sub(started.Add(c.after)).Abs() > 2*time.Millisecond {
			w.Errorf("the next attempt is due %v after this one, want %v", r.Due.Sub(started), c.after)
		}
		if (r.ErrorStack != "") != c.errors || (r.Errors != nil) != c.errors {
			w.Errorf("error %q, errors %s", r.ErrorStack, r.Errors)
		}
		if len(r.ErrorStack) > 8<<10 || c.status.Final() == r.Finish().IsZero() {
			w.Errorf("%d bytes of error, finished at %v", len(r.ErrorStack), r.Finish())
		}
		if strings.HasSuffix(w.Name(), "/Panic") && !strings.Contains(r.ErrorStack, "settle_test.go") {
			w.Errorf("the stack is missing: %s", r.ErrorStack)
		}
	})
}

type panicking struct{}

func (panicking) Error() string { panic("an error that panics") }

type pointerError struct{ text string }

func (e *pointerError) Error() string { return e.text }

func TestRetriesGoOnUntilTheAttemptsAreUsedUp(t *testing.T) {
	inBubble(t, func(w *world) {
		failed := make(chan error, 1)
		e := w.engine(w.store, serving{"a": func(context.Context, *delaytask.Task) error {
			return errors.New("boom")
		}}, func(c *Config) {
			c.OnFailed = func(_ context.Context, _ *delaytask.Task, err error) { failed <- err }
		})
		id := w.save(e, "a", 0, delaytask.WithMaxAttempts(4))
		time.Sleep(30 * time.Second)
		runs := w.runs.of(id)
		if len(runs) != 4 {
			w.Fatalf("%d attempts, want 4", len(runs))
		}
		for i, r := range runs {
			if r.task.Attempt != i+1 || r.task.Version != int64(2*i+1) {
				w.Errorf("attempt %d: %+v", i, r.task)
			}
			if i > 0 && r.at.Sub(runs[i-1].at) > 1010*time.Millisecond {
				w.Errorf("attempt %d came %v after the one before", i+1, r.at.Sub(runs[i-1].at))
			}
		}
		if r := w.row(id); r.Status != row.Failed || strings.Count(string(r.Errors), `"n"`) != 4 {
			w.Errorf("row: %v, errors %s", r.Status, r.Errors)
		}
		if err := <-failed; err == nil || err.Error() != "boom" {
			w.Errorf("OnFailed got %v", err)
		}
	})
}

// Results that travel together are read back one by one when the fence keeps some of them out.
func TestResultOfAnotherExecutorIsNotTakenForOurs(t *testing.T) {
	inBubble(t, func(w *world) {
		told := make(chan error, 1)
		const runs = 700 * time.Millisecond // a look at the versions would tell otherwise
		e := w.engine(w.store, serving{"a": untilEnd(runs, nil), "fails": func(context.Context, *delaytask.Task) error {
			time.Sleep(runs)
			return processor.Permanent(errors.New("ours"))
		}}, func(c *Config) {
			c.OnFailed = func(_ context.Context, _ *delaytask.Task, err error) { told <- err }
		})
		time.Sleep(time.Second)
		ids := append(w.saveMany(e, "a", 10), w.save(e, "fails", 0))
		time.Sleep(500 * time.Millisecond)
		taken, failed := w.row(ids[3]), w.row(ids[10])
		taken.Version, taken.Executor = taken.Version+1, another
		failed.Version, failed.Status, failed.ErrorStack = failed.Version+1, row.Failed, "theirs"
		failed.Executor = row.Executor{}
		w.store.Plant(taken)
		w.store.Plant(failed)
		time.Sleep(time.Second)
		for i, id := range ids[:10] {
			if i != 3 {
				w.completed(id, time.Second)
			}
		}
		if r := w.row(ids[3]); r.Version != taken.Version || r.Status != row.Executing {
			w.Errorf("the row of another executor: %+v", r)
		}
		if r := w.row(ids[10]); r.ErrorStack != "theirs" || len(told) != 0 {
			w.Errorf("OnFailed was called %d times, row %+v", len(told), r)
		}
	})
}

func TestLockedRowInASettleBatchHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": untilEnd(time.Second, nil)})
		time.Sleep(time.Second)
		ids := w.saveMany(e, "a", 10)
		time.Sleep(500 * time.Millisecond)
		unlock := w.store.Lock(ids[0])
		time.Sleep(2 * time.Second)
		w.allCompleted(ids[1:], time.Second)
		for range 5 {
			id := w.save(e, "a", 0)
			time.Sleep(1500 * time.Millisecond)
			w.completed(id, time.Second)
		}
		unlock()
		time.Sleep(6 * time.Second)
		w.completed(ids[0], time.Second)
	})
}

func TestResultThatTheDatabaseRefusesDoesNotStick(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(updateHook{w.store, func(ctx context.Context, changes []row.Change) (int, error) {
			for _, c := range changes {
				if strings.Contains(c.ErrorStack, "poison") && len(c.Errors) > 0 {
					return 0, classError(row.ClassCaller, "incorrect string value")
				}
			}
			return w.store.Update(ctx, nil, changes)
		}}, serving{
			"a":      nothing,
			"poison": func(context.Context, *delaytask.Task) error { return errors.New("poison") },
		})
		time.Sleep(time.Second)
		bad := w.save(e, "poison", 0, delaytask.WithMaxAttempts(1))
		good := w.save(e, "a", 0)
		time.Sleep(5 * time.Second)
		w.completed(good, time.Second)
		if r := w.row(bad); r.Status != row.Failed || r.ErrorStack == "" {
			w.Errorf("row: %+v", r)
		}
	})
}

func TestResultsAreKeptWhileTheDatabaseIsAway(t *testing.T) {
	inBubble(t, func(w *world) {
		var away atomic.Bool
		e := w.engine(at(w.store, "Update", func(_ context.Context, do func() error) error {
			if away.Load() {
				return classError(row.ClassNotApplied, "connection refused")
			}
			return do()
		}), serving{"a": nothing}, func(c *Config) { c.Concurrency = 2 })
		time.Sleep(time.Second)
		away.Store(true)
		ids := w.saveMany(e, "a", 50)
		time.Sleep(10 * time.Second)
		for _, id := range ids {
			if n := len(w.runs.of(id)); n != 1 {
				w.Fatalf("a slot is free when its result is queued, but task %d ran %d times", id, n)
			}
		}
		away.Store(false)
		time.Sleep(5 * time.Second)
		w.allCompleted(ids, time.Second)
	})
}

func TestRetryThatIsStoredHasSucceededWhateverFailsAfterIt(t *testing.T) {
	inBubble(t, func(w *world) {
		w.store.Plant(row.Row{ID: 1000, Tag: "a", Body: []byte("{}"), TTR: time.Minute, Status: row.Failed})
		second := faultstore.Method("Get", 2, faultstore.Before) // the first one finds the task
		e := w.engine(faultstore.New(w.store, second), serving{"a": nothing})
		w.must(e.Retry(w.Context(), control.Ref{ID: 1000}))
		time.Sleep(10 * time.Millisecond)
		w.ran(1000, 1)
	})
}

func TestRetryByAnOperatorStartsAfresh(t *testing.T) {
	inBubble(t, func(w *world) {
		broken := true
		e := w.engine(w.store, serving{"a": func(context.Context, *delaytask.Task) error {
			if broken {
				return errors.New("boom")
			}
			return nil
		}})
		id := w.save(e, "a", 0, delaytask.WithMaxAttempts(2), delaytask.WithKey("k"))
		time.Sleep(5 * time.Second)
		failed := w.row(id)
		rival := w.save(e, "a", time.Hour, delaytask.WithKey("k"))
		if err := e.Retry(w.Context(), control.Ref{ID: id}); !errors.Is(err, delaytask.ErrDuplicate) {
			w.Errorf("retry while the key is taken: %v", err)
		}
		_, err := e.Cancel(w.Context(), nil, control.Ref{ID: rival}, false)
		w.must(err)
		broken = false
		began := time.Now()
		w.must(e.Retry(w.Context(), control.Ref{ID: id}))
		time.Sleep(5 * time.Second)
		r, runs := w.row(id), w.runs.of(id)
		if r.Status != row.Completed || r.Attempt != 1 || string(r.Errors) != string(failed.Errors) || len(runs) != 3 {
			w.Errorf("%d runs, row %+v", len(runs), r)
		}
		if runs[2].at.Sub(began) > 10*time.Millisecond || r.Execution < row.At(began) {
			w.Errorf("retried %v later, execution time %v", runs[2].at.Sub(began), r.Execution)
		}
	})
}
