package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// handsOver is a processor that passes every task on, for so long, and tells the token.
func handsOver(ttr time.Duration, tokens chan<- row.Ref) processor.Func {
	return func(_ context.Context, task *delaytask.Task) error {
		tokens <- row.Ref{ID: task.ID, Version: task.Version}
		return fmt.Errorf("accepted: %w", processor.HandOver(ttr))
	}
}

// handedOut checks that a caller holds the task, by its lease token.
func (w *world) handedOut(token row.Ref) row.Row {
	w.Helper()
	r := w.row(token.ID)
	if r.Status != row.Executing || r.Version != token.Version || !r.Executor.Popped() {
		w.Fatalf("row: %+v", r)
	}
	return r
}

func TestHandedOverTaskIsLikeAPoppedOne(t *testing.T) {
	inBubble(t, func(w *world) {
		tokens := make(chan row.Ref, 10)
		e := w.engine(w.store, serving{"a": handsOver(time.Minute, tokens)}, func(c *Config) { c.Concurrency = 1 })
		other := w.engine(w.store, nil)
		id := w.save(e, "a", 2*time.Second, delaytask.WithTTR(2*time.Second))
		token := <-tokens
		handed := time.Now()
		time.Sleep(30 * time.Second)
		r := w.handedOut(token)
		if left := r.Due.Sub(row.At(handed)); left < time.Minute-time.Millisecond || left > time.Minute+time.Second ||
			r.Attempt != 1 {
			w.Errorf("the lease ends %v after the processor has returned, want a minute", left)
		}
		w.started(id, 0)
		w.must(other.Touch(w.Context(), id, token.Version, 5*time.Minute))
		time.Sleep(4 * time.Minute) // the slot is free, and the alarm of the old end goes off meanwhile
		w.save(e, "a", 0)
		<-tokens
		w.must(other.Finish(w.Context(), id, token.Version))
		w.finished([]row.Ref{token})
		w.started(id, 0)
	})
}

func TestHandOverAfterTheAnswerMeansNothing(t *testing.T) {
	type answer struct {
		end  func(*Engine, context.Context, row.Ref) error
		want row.Status
		here bool // on the node whose processor runs
	}
	finish := func(e *Engine, ctx context.Context, r row.Ref) error { return e.Finish(ctx, r.ID, r.Version) }
	fail := func(err error) func(*Engine, context.Context, row.Ref) error {
		return func(e *Engine, ctx context.Context, r row.Ref) error { return e.Fail(ctx, r.ID, r.Version, err) }
	}
	boom, busy := fail(
		processor.Permanent(errors.New("boom")),
	), fail(
		processor.RetryAfter(errors.New("busy"), time.Hour),
	)
	inBubbles(t, map[string]answer{
		"FinishHere": {finish, row.Completed, true}, "FinishThere": {finish, row.Completed, false},
		"FailHere": {boom, row.Failed, true}, "FailThere": {boom, row.Failed, false},
		"RetryHere": {busy, row.Pending, true}, "RetryThere": {busy, row.Pending, false},
	}, func(w *world, c answer) {
		receiver := w.engine(w.store, nil)
		logged, log := listen()
		var e *Engine
		e = w.idle(w.store, serving{"a": func(ctx context.Context, task *delaytask.Task) error {
			if c.here {
				receiver = e
			}
			if err := c.end(receiver, ctx, row.Ref{ID: task.ID, Version: task.Version}); err != nil {
				w.Error(err)
			}
			return processor.HandOver(time.Hour)
		}}, log)
		id := w.save(e, "a", 2*time.Second)
		w.must(e.Start(w.Context()))
		time.Sleep(10 * time.Second)
		if r := w.row(id); r.Status != c.want || r.Version != 2 {
			w.Errorf("row: %+v", r)
		}
		if e.runqueue.Owns(id) || e.pool.Attempts.Len() != 0 {
			w.Error("it is still in hand")
		}
		if got := logged.all(); strings.Contains(got, "lease") {
			w.Errorf("logged %s", got)
		}
	})
}

func TestHandOverIsWrittenInTheEnd(t *testing.T) {
	type fault struct {
		class row.Class
		apply bool
	}
	inBubbles(t, map[string]fault{
		"NotApplied": {row.ClassNotApplied, false},
		"Unknown":    {row.ClassUnknown, false},
		"LostReply":  {row.ClassUnknown, true},
		"Operator":   {row.ClassOperator, false},
	}, func(w *world, c fault) {
		tokens := make(chan row.Ref, 10)
		var failures, renewals atomic.Int64
		began := time.Now()
		e := w.engine(renewHook{w.store, func(ctx context.Context, leases []row.Lease) ([]row.State, error) {
			if leases[0].Executor == (row.Executor{}) {
				renewals.Add(1)
			}
			if leases[0].Executor == (row.Executor{}) || time.Since(began) > 8*time.Second {
				return w.store.Renew(ctx, leases)
			}
			failures.Add(1)
			if c.apply {
				_, _ = w.store.Renew(ctx, leases)
			}
			return nil, classError(c.class, "no")
		}}, serving{"a": handsOver(time.Minute, tokens)})
		id := w.save(e, "a", 0)
		token := <-tokens
		time.Sleep(30 * time.Second)
		w.handedOut(token)
		if failed, n := failures.Load(), renewals.Load(); failed < 5 || n != 0 {
			w.Errorf("it failed %d times, and was renewed %d times after the processor had returned", failed, n)
		}
		w.must(e.Finish(w.Context(), id, token.Version))
	})
}

func TestLockedRowHoldsUpNoOtherHandOver(t *testing.T) {
	inBubble(t, func(w *world) {
		tokens := make(chan row.Ref, 10)
		block := make(chan struct{})
		e := w.engine(w.store, serving{"a": func(context.Context, *delaytask.Task) error {
			<-block
			return processor.HandOver(time.Minute)
		}, "b": handsOver(time.Minute, tokens)})
		ids := w.saveMany(e, "a", 3, delaytask.WithTTR(20*time.Second))
		time.Sleep(time.Second)
		unlock := w.store.Lock(ids[0])
		close(block)
		time.Sleep(3 * time.Second)
		late := w.save(e, "b", 0)
		<-tokens
		time.Sleep(time.Second)
		for _, id := range append(ids[1:], late) {
			w.handedOut(row.Ref{ID: id, Version: 1})
		}
		unlock()
		time.Sleep(6 * time.Second)
		w.handedOut(row.Ref{ID: ids[0], Version: 1})
	})
}

// A renewal that is under way must not give a task back the length of the processor's lease.
func TestRenewalUnderWayLeavesTheLeaseOfAHandOverAlone(t *testing.T) {
	inBubbles(
		t,
		map[string]time.Duration{"Longer": time.Hour, "Shorter": 2 * time.Second},
		func(w *world, asked time.Duration) {
			renewing, goOn := make(chan struct{}, 1), make(chan struct{})
			e := w.engine(renewHook{w.store, func(ctx context.Context, leases []row.Lease) ([]row.State, error) {
				if leases[0].Executor == (row.Executor{}) {
					renewing <- struct{}{}
					<-goOn
				}
				return w.store.Renew(ctx, leases)
			}}, serving{"a": func(context.Context, *delaytask.Task) error {
				<-renewing
				return processor.HandOver(asked)
			}})
			id := w.save(e, "a", 0, delaytask.WithTTR(10*time.Second))
			time.Sleep(5 * time.Second)
			close(goOn)
			time.Sleep(time.Second)
			r := w.handedOut(row.Ref{ID: id, Version: 1})
			if left := time.Until(r.Due.Std()); left > asked || left < asked-2*time.Second {
				w.Errorf("the lease ends in %v, want %v: %+v", left, asked, r)
			}
		},
	)
}

func TestStopWritesOpenHandovers(t *testing.T) {
	inBubble(t, func(w *world) {
		working := make(chan struct{})
		e := w.engine(w.store, serving{"a": func(ctx context.Context, _ *delaytask.Task) error {
			close(working)
			lifecycle.Sleep(ctx, 5*time.Second)
			return processor.HandOver(time.Minute)
		}})
		other := w.engine(w.store, nil)
		id := w.save(e, "a", 0)
		<-working
		w.must(e.Stop(w.Context()))
		r := w.handedOut(row.Ref{ID: id, Version: 1})
		w.must(other.Finish(w.Context(), id, r.Version))
	})
}

func TestPoppedTaskThatIsFailedWithAHandOverHasSpentItsAttempt(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		w.save(e, "a", 0)
		task := w.take(e, "a")
		w.must(e.Fail(w.Context(), task.ID, task.Version, processor.HandOver(time.Hour)))
		if r := w.row(task.ID); r.Status != row.Pending || r.Attempt != 1 || r.ErrorStack == "" {
			w.Errorf("row: %+v", r)
		}
	})
}

// A receiver may prolong the lease before its answer has come all the way back, and before that is written down.
func TestHandOverDoesNotShortenALeaseThatItsHolderHasProlonged(t *testing.T) {
	inside := map[string]time.Duration{"AtOnce": 0, "RenewedOnceMoreInBetween": 8 * time.Second}
	inBubbles(t, inside, func(w *world, inside time.Duration) {
		receiver := w.engine(w.store, nil)
		passed := make(chan row.Ref, 10)
		w.engine(w.store, serving{"a": func(ctx context.Context, task *delaytask.Task) error {
			if err := receiver.Touch(ctx, task.ID, task.Version, time.Hour); err != nil {
				w.Error(err)
			}
			time.Sleep(inside)
			passed <- row.Ref{ID: task.ID, Version: task.Version}
			return processor.HandOver(0)
		}})
		id := w.save(receiver, "a", 0, delaytask.WithTTR(15*time.Second))
		token := <-passed
		time.Sleep(time.Minute)
		w.handedOut(token)
		w.must(receiver.Finish(w.Context(), id, token.Version))
	})
}
