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

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// updateHook stands in for Update.
type updateHook struct {
	Store
	hook func(ctx context.Context, changes []row.Change) (int, error)
}

func (s updateHook) Update(ctx context.Context, _ Tx, changes []row.Change) (int, error) {
	return s.hook(ctx, changes)
}

func TestOutcomeOfAnAttempt(t *testing.T) {
	boom := errors.New("boom")
	wrapped := fmt.Errorf("wrapped: %w", processor.Permanent(boom))
	later := processor.RetryAfter(boom, 3*time.Hour)
	for name, c := range map[string]struct {
		result   func() error
		status   row.Status
		attempt  int
		after    time.Duration // of the next attempt
		errors   bool
		attempts int // max attempts; 0 for the default
	}{
		"Nil":             {func() error { return nil }, row.Completed, 1, 0, false, 0},
		"Error":           {func() error { return boom }, row.Pending, 1, time.Hour, true, 0},
		"LastError":       {func() error { return boom }, row.Failed, 1, 0, true, 1},
		"Permanent":       {func() error { return wrapped }, row.Failed, 1, 0, true, 0},
		"Snooze":          {func() error { return processor.Snooze(2 * time.Hour) }, row.Pending, 0, 2 * time.Hour, false, 0},
		"SnoozeAtLast":    {func() error { return processor.Snooze(2 * time.Hour) }, row.Pending, 0, 2 * time.Hour, false, 1},
		"RetryAfter":      {func() error { return later }, row.Pending, 1, 3 * time.Hour, true, 0},
		"RetryAfterLast":  {func() error { return later }, row.Failed, 1, 0, true, 1},
		"Panic":           {func() error { panic("boom") }, row.Pending, 1, time.Hour, true, 0},
		"Goexit":          {func() error { runtime.Goexit(); return nil }, row.Pending, 1, time.Hour, true, 0},
		"PanicInError":    {func() error { return panicking{} }, row.Pending, 1, time.Hour, true, 0},
		"TypedNilError":   {func() error { return (*pointerError)(nil) }, row.Pending, 1, time.Hour, true, 0},
		"HugeErrorText":   {func() error { return errors.New(strings.Repeat("ä", 1<<20)) }, row.Failed, 1, 0, true, 1},
		"ErrorNotUTF8":    {func() error { return errors.New("a\xffb\x00c") }, row.Failed, 1, 0, true, 1},
		"NegativeBackoff": {func() error { return processor.RetryAfter(boom, -time.Hour) }, row.Failed, 2, 0, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				result := func(context.Context, *processor.Task) error { return c.result() }
				e := w.engine(w.store, map[string]processor.Func{"a": result},
					func(cfg *Config) {
						cfg.Backoff = func(attempt int) time.Duration { return time.Duration(attempt) * time.Hour }
					})
				time.Sleep(time.Second)
				id := w.save(e, "a", 0, processor.WithMaxAttempts(c.attempts))
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
				if len(r.ErrorStack) > 8<<10 || c.status.Final() == r.Finish.IsZero() {
					w.Errorf("%d bytes of error, finished at %v", len(r.ErrorStack), r.Finish)
				}
				if name == "Panic" && !strings.Contains(r.ErrorStack, "settle_test.go") {
					w.Errorf("the stack is missing: %s", r.ErrorStack)
				}
			})
		})
	}
}

type panicking struct{}

func (panicking) Error() string { panic("an error that panics") }

type pointerError struct{ text string }

func (e *pointerError) Error() string { return e.text }

func TestRetriesGoOnUntilTheAttemptsAreUsedUp(t *testing.T) {
	inBubble(t, func(w *world) {
		failed := make(chan error, 1)
		e := w.engine(w.store, map[string]processor.Func{"a": func(context.Context, *processor.Task) error {
			return errors.New("boom")
		}}, func(c *Config) {
			c.OnFailed = func(_ context.Context, _ *processor.Task, err error) { failed <- err }
		})
		id := w.save(e, "a", 0, processor.WithMaxAttempts(4))
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

func TestSettleWithALostReply(t *testing.T) {
	delays := map[string]time.Duration{"AppliedAtOnce": 0, "AppliedLate": 200 * time.Millisecond, "NeverApplied": -1}
	results := map[string]error{"Completed": nil, "Retried": errors.New("boom"), "Snoozed": processor.Snooze(time.Second)}
	for name, late := range delays {
		for result, err := range results {
			t.Run(name+result, func(t *testing.T) {
				inBubble(t, func(w *world) {
					calls, runs := 0, 0
					e := w.engine(updateHook{w.store, func(ctx context.Context, changes []row.Change) (int, error) {
						if calls++; calls > 1 {
							return w.store.Update(ctx, nil, changes)
						}
						if late >= 0 {
							time.AfterFunc(late, func() {
								if _, err := w.store.Update(context.Background(), nil, changes); err != nil {
									w.Error(err)
								}
							})
							time.Sleep(time.Nanosecond)
						}
						return 0, classError(row.ClassUnknown, "the reply is lost")
					}}, map[string]processor.Func{"a": func(context.Context, *processor.Task) error {
						if runs++; runs == 1 {
							return err
						}
						return nil
					}})
					time.Sleep(time.Second)
					id := w.save(e, "a", 0)
					time.Sleep(30 * time.Second)
					wantRuns, wantAttempt := 2, 2
					if err == nil {
						wantRuns = 1
					}
					if err == nil || result == "Snoozed" {
						wantAttempt = 1
					}
					r := w.row(id)
					if r.Status != row.Completed || runs != wantRuns || r.Attempt != wantAttempt || r.CrashCount != 0 {
						w.Errorf("%d runs, row %+v", runs, r)
					}
				})
			})
		}
	}
}

func TestRefusedResultsAreReadBackOneByOne(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"a": func(context.Context, *processor.Task) error {
			time.Sleep(time.Second)
			return nil
		}})
		time.Sleep(time.Second)
		var ids []int64
		for range 10 {
			ids = append(ids, w.save(e, "a", 0))
		}
		time.Sleep(500 * time.Millisecond)
		stolen := w.row(ids[3])
		stolen.Version++
		stolen.Executor = "another:1:x:1"
		w.store.Plant(stolen)
		time.Sleep(time.Second)
		for i, id := range ids {
			if i == 3 {
				if r := w.row(id); r.Version != stolen.Version || r.Status != row.Executing {
					w.Errorf("the row of another executor: %+v", r)
				}
				continue
			}
			w.completed(id, time.Second)
		}
	})
}

func TestResultOfAnotherExecutorIsNotTakenForOurs(t *testing.T) {
	inBubble(t, func(w *world) {
		told := make(chan error, 1)
		e := w.engine(w.store, map[string]processor.Func{"a": func(context.Context, *processor.Task) error {
			time.Sleep(700 * time.Millisecond)
			return processor.Permanent(errors.New("ours"))
		}}, func(c *Config) {
			c.OnFailed = func(_ context.Context, _ *processor.Task, err error) { told <- err }
		})
		time.Sleep(time.Second)
		id := w.save(e, "a", 0)
		time.Sleep(500 * time.Millisecond)
		r := w.row(id) // a rescue of another node has failed it
		r.Version, r.Status, r.Executor, r.ErrorStack = r.Version+1, row.Failed, "", "theirs"
		w.store.Plant(r)
		time.Sleep(5 * time.Second)
		if got := w.row(id); got.ErrorStack != "theirs" || len(told) != 0 {
			w.Errorf("OnFailed was called %d times, row %+v", len(told), got)
		}
	})
}

func TestReleaseNeverMovesADueTimeForward(t *testing.T) {
	for _, c := range []struct{ due, now, want row.Time }{{100, 50, 100}, {100, 150, 150}} {
		u := &run{item: &item{}, due: c.due, row: row.Row{ID: 1, Version: 3, Attempt: 2, Due: c.due + 15_000_000}}
		change := released(u, c.now).change
		if change.Due != c.want || change.Attempt != 1 || change.To != row.Pending || change.Version != 3 {
			t.Errorf("due %d, now %d: %+v", c.due, c.now, change)
		}
	}
}

func TestLockedRowInASettleBatchHoldsUpNobody(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"a": untilEnd(time.Second, nil)})
		time.Sleep(time.Second)
		var ids []int64
		for range 10 {
			ids = append(ids, w.save(e, "a", 0))
		}
		time.Sleep(500 * time.Millisecond)
		unlock := w.store.Lock(ids[0])
		time.Sleep(2 * time.Second)
		for _, id := range ids[1:] {
			w.completed(id, time.Second)
		}
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
		}}, map[string]processor.Func{
			"a":      nothing,
			"poison": func(context.Context, *processor.Task) error { return errors.New("poison") },
		})
		time.Sleep(time.Second)
		bad := w.save(e, "poison", 0, processor.WithMaxAttempts(1))
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
		e := w.engine(updateHook{w.store, func(ctx context.Context, changes []row.Change) (int, error) {
			if away.Load() {
				return 0, classError(row.ClassNotApplied, "connection refused")
			}
			return w.store.Update(ctx, nil, changes)
		}}, map[string]processor.Func{"a": nothing}, func(c *Config) { c.Workers = 2 })
		time.Sleep(time.Second)
		away.Store(true)
		var ids []int64
		for range 50 {
			ids = append(ids, w.save(e, "a", 0))
		}
		time.Sleep(10 * time.Second)
		for _, id := range ids {
			if n := len(w.runs.of(id)); n != 1 {
				w.Fatalf("a slot is free when its result is queued, but task %d ran %d times", id, n)
			}
		}
		away.Store(false)
		time.Sleep(5 * time.Second)
		for _, id := range ids {
			w.completed(id, time.Second)
		}
	})
}

func TestRetryByAnOperatorStartsAfresh(t *testing.T) {
	inBubble(t, func(w *world) {
		broken := true
		e := w.engine(w.store, map[string]processor.Func{"a": func(context.Context, *processor.Task) error {
			if broken {
				return errors.New("boom")
			}
			return nil
		}})
		id := w.save(e, "a", 0, processor.WithMaxAttempts(2), processor.WithKey("k"))
		time.Sleep(5 * time.Second)
		failed := w.row(id)
		rival := w.save(e, "a", time.Hour, processor.WithKey("k"))
		if err := e.Retry(w.Context(), Ref{ID: id}); !errors.Is(err, processor.ErrDuplicate) {
			w.Errorf("retry while the key is taken: %v", err)
		}
		if _, err := e.Cancel(w.Context(), nil, Ref{ID: rival}, false); err != nil {
			w.Fatal(err)
		}
		broken = false
		began := time.Now()
		if err := e.Retry(w.Context(), Ref{ID: id}); err != nil {
			w.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		r, runs := w.row(id), w.runs.of(id)
		if r.Status != row.Completed || r.Attempt != 1 || string(r.Errors) != string(failed.Errors) || len(runs) != 3 {
			w.Errorf("%d runs, row %+v", len(runs), r)
		}
		if runs[2].at.Sub(began) > 10*time.Millisecond || r.Execution < row.At(began) {
			w.Errorf("retried %v later, execution time %v", runs[2].at.Sub(began), r.Execution)
		}
		if err := e.Retry(w.Context(), Ref{ID: id}); !errors.Is(err, processor.ErrNotFailed) {
			w.Errorf("retry of a completed task: %v", err)
		}
	})
}

func TestChangeWithALostReplyIsNotReportedAsItsOwnConflict(t *testing.T) {
	for name, late := range map[string]time.Duration{"AtOnce": 0, "Late": 5 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				calls := 0
				e := w.idle(updateHook{w.store, func(ctx context.Context, changes []row.Change) (int, error) {
					if calls++; calls > 1 {
						return w.store.Update(ctx, nil, changes)
					}
					time.AfterFunc(late, func() {
						if _, err := w.store.Update(context.Background(), nil, changes); err != nil {
							w.Error(err)
						}
					})
					time.Sleep(time.Nanosecond)
					return 0, classError(row.ClassUnknown, "the reply is lost")
				}}, nil)
				id := w.save(e, "a", time.Hour)
				met, err := e.Cancel(w.Context(), nil, Ref{ID: id}, false)
				if err != nil || met != row.Pending {
					w.Errorf("cancel: met %v, %v", met, err)
				}
				if r := w.row(id); r.Status != row.Cancelled {
					w.Errorf("row: %+v", r)
				}
			})
		})
	}
}
