package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// handsOver is a processor that passes every task on, for so long, and tells the token.
func handsOver(ttr time.Duration, tokens chan<- row.Ref) processor.Func {
	return func(_ context.Context, task *processor.Task) error {
		tokens <- row.Ref{ID: task.ID, Version: task.Version}
		return fmt.Errorf("accepted: %w", processor.HandOver(ttr))
	}
}

func TestHandedOverTaskIsLikeAPoppedOne(t *testing.T) {
	inBubble(t, func(w *world) {
		tokens := make(chan row.Ref, 10)
		e := w.engine(w.store, map[string]processor.Func{"a": handsOver(time.Minute, tokens)}, func(c *Config) { c.Workers = 1 })
		other := w.engine(w.store, nil)
		id := w.save(e, "a", 2*time.Second, processor.WithTTR(2*time.Second))
		token := <-tokens
		handed := time.Now()
		time.Sleep(30 * time.Second)
		r := w.row(id)
		if r.Status != row.Executing || r.Version != token.Version || !row.Popped(r.Executor) || r.Attempt != 1 {
			w.Errorf("row: %+v", r)
		}
		if left := r.Due.Sub(row.At(handed)); left < time.Minute-time.Millisecond || left > time.Minute+time.Second {
			w.Errorf("the lease ends %v after the processor has returned, want a minute", left)
		}
		if r.Execution < r.Expected || r.Execution.Sub(r.Expected) > 10*time.Millisecond {
			w.Errorf("started at %v, expected at %v", r.Execution, r.Expected)
		}
		if err := other.Touch(w.Context(), id, token.Version, 5*time.Minute); err != nil {
			w.Fatal(err)
		}
		time.Sleep(4 * time.Minute) // the worker slot is free, and the alarm of the old end goes off meanwhile
		w.save(e, "a", 0)
		<-tokens
		if err := other.Finish(w.Context(), id, token.Version); err != nil {
			w.Fatal(err)
		}
		if r := w.row(id); r.Status != row.Completed || r.Version != token.Version+1 || r.Execution.Sub(r.Expected) > time.Second {
			w.Errorf("row: %+v", r)
		}
	})
}

func TestHandedOverTaskThatNobodyEndsHasSpentItsAttempt(t *testing.T) {
	for _, where := range []string{"ByItsNode", "ByAnotherNode"} {
		t.Run(where, func(t *testing.T) {
			inBubble(t, func(w *world) {
				tokens := make(chan row.Ref, 10)
				serve := map[string]processor.Func{"a": handsOver(0, tokens)}
				e := w.engine(w.store, serve)
				id := w.save(e, "a", 0, processor.WithTTR(10*time.Second), processor.WithMaxAttempts(2))
				first := <-tokens
				began := time.Now()
				atMost := 10100 * time.Millisecond
				if where == "ByAnotherNode" {
					time.Sleep(time.Second)
					w.crash(e)
					e = w.engine(w.store, serve)
					atMost = 14 * time.Second
				}
				second := <-tokens
				if took := time.Since(began); took < 9900*time.Millisecond || took > atMost {
					w.Errorf("run again after %v, want its TTR of 10s", took)
				}
				if r := w.row(id); r.Attempt != 2 || r.CrashCount != 0 {
					w.Errorf("row: %+v", r)
				}
				if err := e.Finish(w.Context(), id, first.Version); !errors.Is(err, processor.ErrLeaseLost) {
					w.Errorf("finished with the old token: %v", err)
				}
				time.Sleep(20 * time.Second)
				if r := w.row(id); r.Status != row.Failed || r.Version != second.Version+1 || r.CrashCount != 0 {
					w.Errorf("with its attempts used up: %+v", r)
				}
			})
		})
	}
}

func TestHandOverAfterTheAnswerMeansNothing(t *testing.T) {
	ends := map[string]struct {
		end  func(*Engine, context.Context, row.Ref) error
		want row.Status
	}{
		"Finish": {func(e *Engine, ctx context.Context, r row.Ref) error { return e.Finish(ctx, r.ID, r.Version) }, row.Completed},
		"Fail": {func(e *Engine, ctx context.Context, r row.Ref) error {
			return e.Fail(ctx, r.ID, r.Version, processor.Permanent(errors.New("boom")))
		}, row.Failed},
		"Release": {func(e *Engine, ctx context.Context, r row.Ref) error {
			return e.Fail(ctx, r.ID, r.Version, processor.RetryAfter(errors.New("busy"), time.Hour))
		}, row.Pending},
	}
	for name, c := range ends {
		for _, here := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/here=%t", name, here), func(t *testing.T) {
				inBubble(t, func(w *world) {
					receiver := w.engine(w.store, nil)
					logged := &warnings{}
					var e *Engine
					e = w.idle(w.store, map[string]processor.Func{"a": func(ctx context.Context, task *processor.Task) error {
						if here {
							receiver = e
						}
						if err := c.end(receiver, ctx, row.Ref{ID: task.ID, Version: task.Version}); err != nil {
							w.Error(err)
						}
						return processor.HandOver(time.Hour)
					}}, func(c *Config) {
						c.Logger = slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
					})
					id := w.save(e, "a", 2*time.Second)
					if err := e.Start(w.Context()); err != nil {
						w.Fatal(err)
					}
					time.Sleep(10 * time.Second)
					if r := w.row(id); r.Status != c.want || r.Version != 2 {
						w.Errorf("row: %+v", r)
					}
					if e.hands.holds(id) || e.runs.len() != 0 || len(e.pops.handed) != 0 {
						w.Error("it is still in hand")
					}
					if got := logged.all(); strings.Contains(got, "lease") {
						w.Errorf("logged %s", got)
					}
				})
			})
		}
	}
}

func TestHandOverIsWrittenInTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		class row.Class
		apply bool
	}{
		"NotApplied": {row.ClassNotApplied, false},
		"Unknown":    {row.ClassUnknown, false},
		"LostReply":  {row.ClassUnknown, true},
		"Operator":   {row.ClassOperator, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				tokens := make(chan row.Ref, 10)
				var failures, renewals atomic.Int64
				began := time.Now()
				e := w.engine(renewHook{w.store, func(ctx context.Context, leases []row.Lease) ([]row.State, error) {
					if leases[0].Executor == "" {
						renewals.Add(1)
					}
					if leases[0].Executor == "" || time.Since(began) > 8*time.Second {
						return w.store.Renew(ctx, leases)
					}
					failures.Add(1)
					if c.apply {
						_, _ = w.store.Renew(ctx, leases)
					}
					return nil, classError(c.class, "no")
				}}, map[string]processor.Func{"a": handsOver(time.Minute, tokens)})
				id := w.save(e, "a", 0)
				token := <-tokens
				time.Sleep(30 * time.Second)
				if r := w.row(id); r.Version != token.Version || !row.Popped(r.Executor) || failures.Load() < 5 {
					w.Errorf("row: %+v", r)
				}
				if n := renewals.Load(); n != 0 {
					w.Errorf("renewed %d times after the processor had returned", n)
				}
				if err := e.Finish(w.Context(), id, token.Version); err != nil {
					w.Error(err)
				}
			})
		})
	}
}

func TestLockedRowHoldsUpNoOtherHandOver(t *testing.T) {
	inBubble(t, func(w *world) {
		tokens := make(chan row.Ref, 10)
		block := make(chan struct{})
		e := w.engine(w.store, map[string]processor.Func{"a": func(context.Context, *processor.Task) error {
			<-block
			return processor.HandOver(time.Minute)
		}, "b": handsOver(time.Minute, tokens)})
		ids := w.saveMany(e, "a", 3, processor.WithTTR(20*time.Second))
		time.Sleep(time.Second)
		unlock := w.store.Lock(ids[0])
		close(block)
		time.Sleep(3 * time.Second)
		late := w.save(e, "b", 0)
		<-tokens
		time.Sleep(time.Second)
		for _, id := range append(ids[1:], late) {
			if r := w.row(id); !row.Popped(r.Executor) {
				w.Errorf("row: %+v", r)
			}
		}
		unlock()
		time.Sleep(6 * time.Second)
		if r := w.row(ids[0]); !row.Popped(r.Executor) || r.Version != 1 {
			w.Errorf("row: %+v", r)
		}
	})
}

// A renewal that is under way must not give a task back the length of the processor's lease.
func TestRenewalUnderWayLeavesTheLeaseOfAHandOverAlone(t *testing.T) {
	for name, asked := range map[string]time.Duration{"Longer": time.Hour, "Shorter": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				renewing, goOn := make(chan struct{}, 1), make(chan struct{})
				e := w.engine(renewHook{w.store, func(ctx context.Context, leases []row.Lease) ([]row.State, error) {
					if leases[0].Executor == "" {
						renewing <- struct{}{}
						<-goOn
					}
					return w.store.Renew(ctx, leases)
				}}, map[string]processor.Func{"a": func(context.Context, *processor.Task) error {
					<-renewing
					return processor.HandOver(asked)
				}})
				id := w.save(e, "a", 0, processor.WithTTR(10*time.Second))
				time.Sleep(5 * time.Second)
				close(goOn)
				time.Sleep(time.Second)
				r := w.row(id)
				left := time.Until(r.Due.Std())
				if left > asked || left < asked-2*time.Second || !row.Popped(r.Executor) {
					w.Errorf("the lease ends in %v, want %v: %+v", left, asked, r)
				}
			})
		})
	}
}

func TestStopHandsOverWhatHasBeenPassedOn(t *testing.T) {
	inBubble(t, func(w *world) {
		working := make(chan struct{})
		e := w.engine(w.store, map[string]processor.Func{"a": func(ctx context.Context, _ *processor.Task) error {
			close(working)
			lifecycle.Sleep(ctx, 5*time.Second)
			return processor.HandOver(time.Minute)
		}})
		other := w.engine(w.store, nil)
		id := w.save(e, "a", 0)
		<-working
		if err := e.Stop(w.Context()); err != nil {
			w.Fatal(err)
		}
		r := w.row(id)
		if r.Status != row.Executing || !row.Popped(r.Executor) {
			w.Errorf("row: %+v", r)
		}
		if err := other.Finish(w.Context(), id, r.Version); err != nil {
			w.Error(err)
		}
	})
}

func TestPoppedTaskThatIsFailedWithAHandOverHasSpentItsAttempt(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		w.save(e, "a", 0)
		task := w.take(e, "a")
		if err := e.Fail(w.Context(), task.ID, task.Version, processor.HandOver(time.Hour)); err != nil {
			w.Fatal(err)
		}
		if r := w.row(task.ID); r.Status != row.Pending || r.Attempt != 1 || r.ErrorStack == "" {
			w.Errorf("row: %+v", r)
		}
	})
}

// A receiver may prolong the lease before its answer has come all the way back, and before that is written down.
func TestHandOverDoesNotShortenALeaseThatItsHolderHasProlonged(t *testing.T) {
	for _, inside := range []time.Duration{0, 8 * time.Second} { // the second is renewed once more in between
		t.Run(inside.String(), func(t *testing.T) {
			inBubble(t, func(w *world) {
				receiver := w.engine(w.store, nil)
				passed := make(chan row.Ref, 10)
				w.engine(w.store, map[string]processor.Func{"a": func(ctx context.Context, task *processor.Task) error {
					if err := receiver.Touch(ctx, task.ID, task.Version, time.Hour); err != nil {
						w.Error(err)
					}
					time.Sleep(inside)
					passed <- row.Ref{ID: task.ID, Version: task.Version}
					return processor.HandOver(0)
				}})
				id := w.save(receiver, "a", 0, processor.WithTTR(15*time.Second))
				token := <-passed
				time.Sleep(time.Minute)
				if r := w.row(id); r.Status != row.Executing || r.Version != token.Version || !row.Popped(r.Executor) {
					w.Fatalf("row: %+v", r)
				}
				if err := receiver.Finish(w.Context(), id, token.Version); err != nil {
					w.Error(err)
				}
			})
		})
	}
}
