package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// renewHook stands in for Renew.
type renewHook struct {
	Store
	hook func(ctx context.Context, leases []row.Lease) ([]row.State, error)
}

func (s renewHook) Renew(ctx context.Context, leases []row.Lease) ([]row.State, error) {
	return s.hook(ctx, leases)
}

// ended says when and why a processor's context ended.
type ended struct {
	at    time.Time
	cause error
}

// untilEnd is a processor that works for d, and obeys its context.
func untilEnd(d time.Duration, ends chan<- ended) processor.Func {
	return func(ctx context.Context, _ *processor.Task) error {
		if sleep(ctx, d) {
			return nil
		}
		if ends != nil {
			ends <- ended{time.Now(), context.Cause(ctx)}
		}
		return context.Cause(ctx)
	}
}

func TestLeaseIsRenewedForAsLongAsTheProcessorRuns(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"a": untilEnd(time.Minute, nil)})
		w.engine(w.store, nil) // would rescue
		id := w.save(e, "a", 0, processor.WithTTR(time.Second))
		time.Sleep(2 * time.Minute)
		w.completed(id, time.Second)
	})
}

func TestLockedRowInARenewalBatchCostsNobodyElseHisLease(t *testing.T) {
	for _, ttr := range []time.Duration{3 * time.Second, 15 * time.Second} {
		t.Run(ttr.String(), func(t *testing.T) {
			inBubble(t, func(w *world) {
				var waited atomic.Int64
				e := w.engine(renewHook{w.store, func(ctx context.Context, leases []row.Lease) ([]row.State, error) {
					began := time.Now()
					states, err := w.store.Renew(ctx, leases)
					if time.Since(began) > 100*time.Millisecond {
						waited.Add(1)
					}
					return states, err
				}}, map[string]processor.Func{"a": untilEnd(40*time.Second, nil)})
				w.engine(w.store, nil)
				time.Sleep(time.Second)
				var ids []int64
				for range 10 {
					ids = append(ids, w.save(e, "a", 0, processor.WithTTR(ttr)))
				}
				time.Sleep(100 * time.Millisecond)
				unlock := w.store.Lock(ids[0])
				time.Sleep(39 * time.Second)
				unlock()
				time.Sleep(20 * time.Second)
				for _, id := range ids[1:] {
					w.completed(id, time.Second)
				}
				if n := waited.Load(); n > 8 {
					w.Errorf("%d renewals waited for the lock in 39 s", n)
				}
			})
		})
	}
}

func TestContextEndsWithTheLeaseWhenRenewalsFail(t *testing.T) {
	for name, fail := range map[string]func(ctx context.Context) error{
		"Refused": func(context.Context) error { return classError(row.ClassNotApplied, "no") },
		"Hanging": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				ends := make(chan ended, 10)
				e := w.engine(renewHook{w.store, func(ctx context.Context, _ []row.Lease) ([]row.State, error) {
					return nil, fail(ctx)
				}}, map[string]processor.Func{"a": untilEnd(30*time.Second, ends)})
				time.Sleep(time.Second)
				began := time.Now()
				id := w.save(e, "a", 0, processor.WithTTR(4*time.Second), processor.WithMaxAttempts(1))
				end := <-ends
				if !errors.Is(end.cause, processor.ErrLeaseLost) {
					w.Errorf("the context ended with %v", end.cause)
				}
				if took := end.at.Sub(began); took < 3*time.Second || took > 4500*time.Millisecond {
					w.Errorf("the context ended %v after a claim with a TTR of 4 s", took)
				}
				time.Sleep(100 * time.Millisecond)
				if r := w.row(id); r.Status == row.Failed {
					w.Errorf("an attempt that lost its lease was counted: %+v", r)
				}
			})
		})
	}
}

func TestLateExecutorChangesNothing(t *testing.T) {
	inBubble(t, func(w *world) {
		first := true
		e := w.engine(w.store, map[string]processor.Func{"a": func(context.Context, *processor.Task) error {
			if first {
				first = false
				time.Sleep(3 * time.Second)
			}
			return nil
		}})
		time.Sleep(time.Second)
		id := w.save(e, "a", 0)
		time.Sleep(time.Second)
		r := w.row(id) // somebody else takes the row away and completes it
		r.Version, r.Status, r.ErrorStack, r.Finish = r.Version+5, row.Completed, "theirs", 7
		w.store.Plant(r)
		time.Sleep(10 * time.Second)
		if got := w.row(id); got.Version != r.Version || got.ErrorStack != "theirs" || got.Finish != 7 {
			w.Errorf("the late executor changed the row: %+v", got)
		}
		w.once(id)
	})
}

func TestCancelEndsARunningProcessorOnAnotherNode(t *testing.T) {
	inBubble(t, func(w *world) {
		ends := make(chan ended, 1)
		e := w.engine(w.store, map[string]processor.Func{"a": untilEnd(time.Hour, ends)})
		other := w.idle(w.store, nil)
		id := w.save(e, "a", 0, processor.WithTTR(10*time.Minute))
		time.Sleep(7777 * time.Millisecond)
		began := time.Now()
		met, err := other.Cancel(w.Context(), nil, Ref{ID: id}, false)
		if err != nil || met != row.Executing {
			w.Fatalf("cancel: met %v, %v", met, err)
		}
		end := <-ends
		if took := end.at.Sub(began); took > 3*time.Second || !errors.Is(end.cause, processor.ErrCancelled) {
			w.Errorf("the context ended after %v with %v", took, end.cause)
		}
		time.Sleep(5 * time.Second)
		if r := w.row(id); r.Status != row.Cancelled || r.ErrorStack != "" {
			w.Errorf("the result of a cancelled task was taken: %+v", r)
		}
	})
}

func TestCancelOnTheSameNodeEndsTheProcessorAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		ends := make(chan ended, 1)
		e := w.engine(w.store, map[string]processor.Func{"a": untilEnd(time.Hour, ends)})
		id := w.save(e, "a", 0)
		time.Sleep(time.Second)
		began := time.Now()
		if _, err := e.Cancel(w.Context(), nil, Ref{ID: id}, false); err != nil {
			w.Fatal(err)
		}
		if end := <-ends; end.at != began || !errors.Is(end.cause, processor.ErrCancelled) {
			w.Errorf("the context ended %v later with %v", end.at.Sub(began), end.cause)
		}
	})
}

func TestTaskCancelledAfterItsClaimAndBeforeItsStartNeverStarts(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"a": nothing})
		time.Sleep(time.Second)
		id := w.save(e, "a", 3*time.Second)
		time.Sleep(3*time.Second - 5*time.Millisecond)
		met, err := e.Cancel(w.Context(), nil, Ref{ID: id}, false)
		if err != nil || met != row.Executing {
			w.Fatalf("cancel: met %v, %v; want it claimed ahead", met, err)
		}
		time.Sleep(5 * time.Second)
		if n := len(w.runs.of(id)); n != 0 {
			w.Errorf("started %d times", n)
		}
	})
}

func TestAttemptEndsWithItsTimeout(t *testing.T) {
	inBubble(t, func(w *world) {
		ends := make(chan ended, 10)
		e := w.engine(w.store, map[string]processor.Func{"a": untilEnd(time.Hour, ends)}, func(c *Config) {
			c.Timeout = 7 * time.Second
			c.MaxAttempts = 1
		})
		time.Sleep(time.Second)
		began := time.Now()
		id := w.save(e, "a", 0)
		if end := <-ends; end.at.Sub(began) > 7100*time.Millisecond || !errors.Is(end.cause, processor.ErrTimeout) {
			w.Errorf("ended after %v with %v", end.at.Sub(began), end.cause)
		}
		time.Sleep(time.Second)
		if r := w.row(id); r.Status != row.Failed || r.Attempt != 1 {
			w.Errorf("row: %+v", r)
		}
	})
}

func TestProcessorThatIgnoresItsContextLosesLeaseAndSlot(t *testing.T) {
	inBubble(t, func(w *world) {
		wake := make(chan struct{})
		stuck := w.engine(w.store, map[string]processor.Func{
			"stuck": func(context.Context, *processor.Task) error { <-wake; return nil },
			"a":     nothing,
		}, func(c *Config) {
			c.Timeout, c.StopGrace, c.TTR, c.Workers = 5*time.Second, 2*time.Second, 3*time.Second, 1
		})
		time.Sleep(time.Second)
		id := w.save(stuck, "stuck", 0)
		time.Sleep(20 * time.Second)
		free := w.save(stuck, "a", 0)
		time.Sleep(5 * time.Second)
		w.completed(free, 100*time.Millisecond)

		w.engine(w.store, map[string]processor.Func{"stuck": nothing})
		time.Sleep(10 * time.Second)
		if r := w.row(id); r.Status != row.Completed || r.CrashCount != 1 || r.Attempt != 1 {
			w.Errorf("another node should have completed the task: %+v", r)
		}
		close(wake)
		time.Sleep(time.Second)
		if r := w.row(id); r.Status != row.Completed {
			w.Errorf("the late return changed the row: %+v", r)
		}
	})
}
