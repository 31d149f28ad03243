package engine

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/engine/lease"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// started checks how long after its promise the row says that its first attempt was handed over.
func (w *world) started(id int64, late time.Duration) {
	w.Helper()
	r := w.row(id)
	if got := r.Execution.Sub(r.Expected); r.Execution.IsZero() || (got-late).Abs() > 50*time.Millisecond {
		w.Errorf("%v task started %v (%v late), want %v late: %+v", r.Status, r.Execution, got, late, r)
	}
}

// notStarted checks that the row names no start.
func (w *world) notStarted(id int64) {
	w.Helper()
	if r := w.row(id); !r.Execution.IsZero() {
		w.Errorf("nobody was handed the %v task, and it says that it started at %v", r.Status, r.Execution)
	}
}

// forwarding registers a processor of the tag "a" that runs no task itself.
func forwarding(f processor.Func) func(*Config) {
	return func(c *Config) { _ = c.Registry.Register("a", processor.Forward(f)) }
}

// A crash leaves no word of when its attempt started but what the claim has written.
func TestStartOfACrashedAttemptStays(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": untilEnd(time.Hour, nil)})
		id := w.save(e, "a", time.Second, delaytask.WithTTR(3*time.Second))
		time.Sleep(2 * time.Second)
		w.crash(e)
		var crashes atomic.Int64
		e = w.engine(w.store, serving{"a": func(_ context.Context, task *delaytask.Task) error {
			crashes.Store(int64(task.Crashes))
			return nil
		}})
		time.Sleep(20 * time.Second)
		if n := crashes.Load(); n != 1 {
			w.Errorf("the processor is told of %d crashes, want 1", n)
		}
		if r := w.row(id); r.Status != row.Completed || r.CrashCount != 1 {
			w.Errorf("row %+v", r)
		}
		w.started(id, 0)
		if n := w.series(e)["#lateness_seconds{a,total}"]; n != 0 {
			w.Errorf("the second start was measured %v times as the first", n)
		}
	})
}

func TestStartThatCameAfterTheClaimOutlivesACrash(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil, forwarding(func(ctx context.Context, _ *delaytask.Task) error {
			lifecycle.Sleep(ctx, 4*time.Second)
			processor.Started(ctx)
			lifecycle.Sleep(ctx, time.Hour)
			return nil
		}))
		id := w.save(e, "a", 0, delaytask.WithTTR(3*time.Second))
		time.Sleep(6 * time.Second)
		w.crash(e)
		w.started(id, 4*time.Second)
	})
}

func TestForwardedTaskStartsWhenAReceiverTakesIt(t *testing.T) {
	inBubbles(t, map[string]func(context.Context) error{
		"after snoozes":         func(context.Context) error { return processor.Snooze(time.Second) },
		"after failed attempts": func(context.Context) error { return errors.New("connection refused") },
		"within its attempt":    func(ctx context.Context) error { lifecycle.Sleep(ctx, 12*time.Second); return nil },
	}, func(w *world, wait func(context.Context) error) {
		began := time.Now()
		e := w.engine(w.store, nil, forwarding(func(ctx context.Context, _ *delaytask.Task) error {
			if time.Since(began) < 12*time.Second {
				if err := wait(ctx); err != nil {
					return err
				}
			}
			processor.Started(ctx)
			lifecycle.Sleep(ctx, 500*time.Millisecond)
			processor.Started(ctx)
			return nil
		}))
		id := w.save(e, "a", 0)
		time.Sleep(5500 * time.Millisecond)
		if !strings.HasSuffix(w.Name(), "within_its_attempt") {
			w.notStarted(id)
		}
		time.Sleep(15 * time.Second)
		if r := w.row(id); r.Status != row.Completed {
			w.Errorf("row %+v", r)
		}
		late := w.row(id).Execution.Sub(w.row(id).Expected).Round(100 * time.Millisecond)
		if late < 12*time.Second || late > 13*time.Second {
			w.Errorf("%v late, want 12s", late)
		}
		w.measured(e, "a", "total", late-50*time.Millisecond, late+50*time.Millisecond)
		w.measured(e, "a", "receiver", late-50*time.Millisecond, late+50*time.Millisecond)
		w.measured(e, "a", "pool", 0, 50*time.Millisecond)
	})
}

func TestForwardedTaskThatNoReceiverTookIsTooLateByItsFirstTime(t *testing.T) {
	inBubble(t, func(w *world) {
		snooze := func(context.Context, *delaytask.Task) error { return processor.Snooze(time.Second) }
		e := w.engine(w.store, nil, forwarding(snooze))
		id := w.save(e, "a", 0, delaytask.WithMaxLateness(5*time.Second, delaytask.LateSkip))
		time.Sleep(20 * time.Second)
		r := w.row(id)
		late := r.Finish().Sub(r.Expected)
		if r.Status != row.Cancelled || late < 5*time.Second || late > 7*time.Second {
			w.Errorf("%v after %v: %+v", r.Status, late, r)
		}
		w.notStarted(id)
		if n := w.series(e)["#lateness_seconds{a,total}"]; n != 0 {
			w.Errorf("%v starts were measured", n)
		}
	})
}

// A task that an operator has put back is due anew.
func TestRetriedTaskIsNotTooLateByItsFirstTime(t *testing.T) {
	boom := errors.New("boom")
	inBubbles(t, map[string]error{
		"by an operator": processor.Permanent(boom), "by itself": processor.RetryAfter(boom, time.Minute),
	}, func(w *world, failure error) {
		failing := true
		e := w.engine(w.store, serving{"a": func(context.Context, *delaytask.Task) error {
			if failing {
				failing = false
				return failure
			}
			return nil
		}})
		id := w.save(e, "a", 0, delaytask.WithMaxLateness(5*time.Second, delaytask.LateSkip))
		time.Sleep(time.Minute)
		if r := w.row(id); r.Status == row.Failed {
			w.must(e.Retry(w.Context(), control.Ref{ID: id}))
		}
		time.Sleep(time.Second)
		if r := w.row(id); r.Status != row.Completed {
			w.Errorf("row %+v", r)
		}
	})
}

func TestClaimThatStartsNothingLeavesNoStart(t *testing.T) {
	inBubbles(t, map[string]func(w *world) (id int64){
		"its reply was lost": func(w *world) int64 {
			claims := 0
			e := w.engine(claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
				if claims++; claims > 1 {
					return row.Claimed{}, classError(row.ClassNotApplied, "the database is away")
				}
				_, _ = w.store.Claim(ctx, c)
				return row.Claimed{}, classError(row.ClassUnknown, "the reply was lost")
			}}, serving{"a": nothing})
			return w.save(e, "a", 0)
		},
		"it is cancelled before it is due": func(w *world) int64 {
			e := w.engine(w.store, serving{"a": nothing})
			time.Sleep(time.Second)
			id := w.save(e, "a", 5*time.Second)
			for w.row(id).Status == row.Pending {
				time.Sleep(time.Millisecond)
			}
			_, err := e.Cancel(w.Context(), nil, control.Ref{ID: id}, false)
			w.must(err)
			return id
		},
		"nobody waits any more": func(w *world) int64 {
			e := w.engine(&farAway{Store: w.store}, nil)
			id := w.save(e, "a", 0)
			ctx, cancel := context.WithTimeout(w.Context(), 10*time.Millisecond)
			defer cancel()
			_, _ = e.Pop(ctx, lease.PopRequest{Tags: []string{"a"}, Max: 1})
			return id
		},
	}, func(w *world, f func(w *world) (id int64)) {
		id := f(w)
		time.Sleep(500 * time.Millisecond)
		if r := w.row(id); r.Status == row.Executing || r.Version < 2 {
			w.Errorf("row %+v", r)
		}
		w.notStarted(id)
	})
}

// second is a processor that works for a second.
func second(ctx context.Context, _ *delaytask.Task) error {
	lifecycle.Sleep(ctx, time.Second)
	return nil
}

func TestLateStartSaysWhy(t *testing.T) {
	concurrency := func(n int) func(*Config) { return func(c *Config) { c.Concurrency = n } }
	inBubbles(t, map[string]func(w *world) (id int64, want delaytask.LateReason){
		"in time": func(w *world) (int64, delaytask.LateReason) {
			return w.save(w.engine(w.store, serving{"a": nothing}), "a", time.Second), ""
		},
		"other tasks have all slots": func(w *world) (int64, delaytask.LateReason) {
			e := w.engine(w.store, serving{"a": second}, concurrency(1))
			return w.many(e, 2, "a", 0)[1], delaytask.LateSlot
		},
		"no caller pops": func(w *world) (int64, delaytask.LateReason) {
			e := w.engine(w.store, nil)
			w.save(e, "a", 0)
			w.take(e, "a") // the tag counts as served for a while
			id := w.save(e, "a", 0)
			time.Sleep(time.Second)
			t := w.take(e, "a")
			w.must(e.Finish(w.Context(), t.ID, t.Version))
			return id, delaytask.LateSlot
		},
		"other tasks have the tag's slots": func(w *world) (int64, delaytask.LateReason) {
			e := w.engine(w.store, nil, func(c *Config) {
				_ = c.Registry.Register("a", processor.Func(second), processor.Concurrency(1))
			})
			return w.many(e, 2, "a", 0)[1], delaytask.LateTagLimit
		},
		"an attempt found no receiver": func(w *world) (int64, delaytask.LateReason) {
			tried := false
			e := w.engine(w.store, nil, forwarding(func(ctx context.Context, _ *delaytask.Task) error {
				if !tried {
					tried = true
					return errors.New("connection refused")
				}
				processor.Started(ctx)
				return nil
			}))
			return w.save(e, "a", 0), delaytask.LateRetry
		},
		"its receiver is slow": func(w *world) (int64, delaytask.LateReason) {
			e := w.engine(w.store, nil, forwarding(func(ctx context.Context, _ *delaytask.Task) error {
				lifecycle.Sleep(ctx, time.Second)
				processor.Started(ctx)
				return nil
			}))
			return w.save(e, "a", 0), delaytask.LateReceiver
		},
		"its tag is paused": func(w *world) (int64, delaytask.LateReason) {
			e := w.engine(w.store, serving{"a": nothing})
			w.must(e.Pause(w.Context(), "a", ""))
			id := w.save(e, "a", 0)
			time.Sleep(3 * time.Second)
			w.must(e.Resume(w.Context(), "a"))
			return id, delaytask.LatePaused
		},
		"no process serves its tag": func(w *world) (int64, delaytask.LateReason) {
			id := w.save(w.idle(w.store, nil), "a", 0)
			time.Sleep(3 * time.Second)
			w.engine(w.store, serving{"a": nothing})
			return id, delaytask.LateUnserved
		},
		"a process without processors saves it": func(w *world) (int64, delaytask.LateReason) {
			// No look-ahead comes at the moment of the save.
			rarely := func(c *Config) { c.LookAhead, c.Window = time.Minute, 2*time.Minute }
			w.engine(w.store, serving{"a": nothing}, rarely)
			time.Sleep(5100 * time.Millisecond)
			return w.save(w.idle(w.store, nil), "a", 0), delaytask.LateFound
		},
		"another transaction has its row": func(w *world) (int64, delaytask.LateReason) {
			e := w.engine(w.store, serving{"a": nothing})
			id := w.save(e, "a", time.Second)
			unlock := w.store.Lock(id)
			time.Sleep(5 * time.Second)
			unlock()
			return id, delaytask.LateLocked
		},
		"claims are refused": func(w *world) (int64, delaytask.LateReason) {
			began := time.Now()
			e := w.engine(at(w.store, "Claim", func(_ context.Context, do func() error) error {
				if time.Since(began) < 5*time.Second {
					return classError(row.ClassNotApplied, "the table is read-only")
				}
				return do()
			}), serving{"a": nothing})
			return w.save(e, "a", time.Second), delaytask.LateDatabase
		},
		"the database is away": func(w *world) (int64, delaytask.LateReason) {
			store, away := w.clockAway()
			e := w.engine(store, serving{"a": nothing})
			id := w.save(e, "a", 2*time.Second)
			away.Store(true)
			e.Bounds.Drop()
			time.Sleep(5 * time.Second)
			away.Store(false)
			return id, delaytask.LateDatabase
		},
		"it was late before an operator retried it": func(w *world) (int64, delaytask.LateReason) {
			failing := true
			e := w.engine(w.store, serving{"b": second, "a": func(context.Context, *delaytask.Task) error {
				if failing {
					failing = false
					return processor.Permanent(errors.New("boom"))
				}
				return nil
			}}, concurrency(1))
			w.save(e, "b", 0)
			id := w.save(e, "a", 0)
			time.Sleep(5 * time.Second)
			if r := w.row(id); r.Status != row.Failed || r.Late != delaytask.LateSlot {
				w.Errorf("%+v", r)
			}
			w.must(e.Retry(w.Context(), control.Ref{ID: id}))
			return id, ""
		},
		"the clock is not known": func(w *world) (int64, delaytask.LateReason) {
			e := w.engine(at(w.store, "Now", func(_ context.Context, do func() error) error {
				time.Sleep(300 * time.Millisecond)
				return do()
			}), serving{"a": nothing})
			id := w.save(e, "a", 2*time.Second)
			time.Sleep(1500 * time.Millisecond)
			for range 600 { // again and again, as between two servers
				time.Sleep(time.Millisecond)
				e.Suspended(0)
			}
			return id, delaytask.LateClock
		},
	}, func(w *world, f func(w *world) (int64, delaytask.LateReason)) {
		id, want := f(w)
		time.Sleep(10 * time.Second)
		r := w.row(id)
		if r.Status != row.Completed || r.Late != want {
			late := r.Execution.Sub(r.Expected)
			w.Errorf("%v, %v late because of %q, want %q: %+v", r.Status, late, r.Late, want, r)
		}
	})
}

// A process claims the task too late, and dies before it says so.
func TestAClaimThatCameTooLateIsNoStartAfterACrash(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		id := w.save(e, "a", 0, delaytask.WithMaxLateness(5*time.Second, delaytask.LateSkip))
		time.Sleep(time.Minute)
		claimed, err := w.store.Claim(w.Context(), row.Claim{
			Executor: another, Rows: []row.Ref{{ID: id, Version: w.row(id).Version}},
		})
		if err != nil || len(claimed.Rows) != 1 {
			w.Fatalf("%+v %v", claimed, err)
		}
		w.engine(w.store, serving{"a": nothing})
		time.Sleep(2 * time.Minute)
		if r := w.row(id); r.Status != row.Cancelled || r.CrashCount != 1 {
			w.Errorf("row %+v", r)
		}
		w.notStarted(id)
	})
}
