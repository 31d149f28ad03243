package client

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
)

// attempt is a task that runs here.
type attempt struct {
	token    delaytask.Token
	tag      string
	ttr      time.Duration
	end      context.CancelCauseFunc
	free     func() // gives its slot to another task
	returned atomic.Bool

	// Guarded by the leases.
	until      time.Time // the lease holds for certain until then
	renewAt    time.Time
	renewUntil time.Time // when renewals end: the attempt has outlived its timeout and grace; zero: never
	touching   bool
}

// work runs a task and reports its result. Its slot is free when the result is stored. If the lease is lost and the
// processor does not return, it is free after a while.
func (w *worker) work(from *poller, p *delaytask.Popped, until time.Time) {
	free := sync.OnceFunc(func() { from.put(1) })
	defer free()
	reg, known := w.registry.Lookup(p.Tag)
	if !known {
		w.report(w.reports, p.Token(), ending{op: opRelease})
		return
	}
	a := &attempt{token: p.Token(), tag: p.Tag, ttr: w.leaseOf(&reg), until: until, free: free}
	a.renewAt = earlier(time.Now().Add(a.ttr/3), until)
	ctx := w.context(a, &reg)
	w.leases.add(a)
	defer w.leases.remove(a)

	err := errGoexit
	defer func() {
		a.returned.Store(true)
		cause := context.Cause(ctx)
		a.end(nil)
		w.report(w.reports, a.token, judge(&p.Task, &reg, a.ttr, err, cause))
	}()
	err = process(ctx, &p.Task, reg.Processor)
}

// context returns the processor's context. It ends with the attempt's timeout, its lease, and the grace of a stop.
func (w *worker) context(a *attempt, reg *processor.Registration) context.Context {
	ctx, end := context.WithCancelCause(w.base)
	a.end = end
	timeout := w.timeoutOf(reg)
	if timeout == 0 {
		return ctx
	}
	a.renewUntil = time.Now().Add(timeout + w.client.grace)
	ctx, stop := context.WithTimeoutCause(ctx, timeout, delaytask.ErrTimeout)
	a.end = func(cause error) { end(cause); stop() }
	return ctx
}

var errGoexit = errors.New("the processor ended its goroutine with runtime.Goexit")

// process calls the processor. A panic becomes an error. After runtime.Goexit the caller keeps its errGoexit.
func process(ctx context.Context, task *delaytask.Task, p processor.Processor) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &processor.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return p.Process(ctx, task)
}

// freeSlotLater gives the slot of a processor that does not return to another task, after a while.
func (a *attempt) freeSlotLater(w *worker) {
	time.AfterFunc(w.client.grace, func() {
		if a.returned.Load() {
			return
		}
		w.client.log.Error("a processor goes on although its context has ended; its slot is given to another task",
			"task", a.token.ID, "tag", a.tag)
		a.free()
	})
}

// The ways in which an attempt ends.
const (
	opFinish  = "finish"
	opFail    = "fail"
	opRelease = "release"
	opTouch   = "touch" // another party ends the task later
)

// ending is the result of an attempt.
type ending struct {
	op    string
	fail  wire.Fail     // of a fail
	after time.Duration // of a release, and how long a lease lasts that is handed over
}

// judge turns a processor's result into the end of its attempt, by the library's rules. cause is why its context ended,
// nil when it did not. A panic of the user's error or backoff fails the attempt.
func judge(task *delaytask.Task, reg *processor.Registration, ttr time.Duration, err, cause error) (e ending) {
	token := delaytask.Token{ID: task.ID, Version: task.Version}
	defer func() {
		if v := recover(); v != nil {
			e = ending{op: opFail, fail: failOf(token,
				fmt.Errorf("the processor's error or the backoff of its tag panicked: %v", v))}
		}
	}()
	if err == nil {
		return ending{op: opFinish}
	}
	if errors.Is(cause, delaytask.ErrStopping) || errors.Is(cause, delaytask.ErrLeaseLost) {
		return ending{op: opRelease}
	}
	if h, ok := errors.AsType[*processor.HandOverError](err); ok {
		if h.TTR > 0 {
			ttr = h.TTR
		}
		return ending{op: opTouch, after: ttr}
	}
	if snooze, ok := errors.AsType[*processor.SnoozeError](err); ok {
		return ending{op: opRelease, after: snooze.After}
	}
	if errors.Is(cause, delaytask.ErrTimeout) && errors.Is(err, context.DeadlineExceeded) {
		err = delaytask.ErrTimeout
	}
	e = ending{op: opFail, fail: failOf(token, err)}
	if reg.Backoff != nil && !e.fail.Permanent && e.fail.RetryAfter == nil {
		after := wire.Duration(max(reg.Backoff(task.Attempt), 0))
		e.fail.RetryAfter = &after
	}
	return e
}

// httpCall is the call that reports the ending.
func (e ending) request(t delaytask.Token) *httpCall {
	text, after := t.String(), wire.Duration(e.after)
	bodies := map[string]any{
		opFinish: wire.Finish{Token: text}, opFail: e.fail,
		opRelease: wire.Release{Token: text, Delay: wire.Delay(after)}, opTouch: wire.Touch{Token: text, TTR: after},
	}
	return leaseRequest(t, e.op, bodies[e.op])
}

// retryForever is the retry time of results: they are sent until they are answered, or ctx ends.
const retryForever = 100 * 365 * 24 * time.Hour

// report sends the end of an attempt until it is answered. The lease is renewed meanwhile.
func (w *worker) report(ctx context.Context, t delaytask.Token, e ending) {
	var err error
	if e.op == opFinish {
		err = w.finish(ctx, t)
	} else {
		_, err = w.client.repeat(ctx, e.request(t), retryForever)
	}
	switch {
	case err == nil:
	case isGone(err):
		w.client.log.Warn("the result of a task is not taken: its lease was lost, or it was cancelled", "task", t.ID,
			"result", e.op)
	default:
		w.client.log.Error("the result of a task could not be stored; it comes back when its lease ends", "task", t.ID,
			"result", e.op, "err", err)
	}
}

// mostFinished is how many results one request carries.
const mostFinished = 500

// finish is a completed task. Results that arrive while a request is in flight travel together in the next one.
type finish struct {
	token  delaytask.Token
	answer chan error // takes one
}

func (w *worker) finish(ctx context.Context, t delaytask.Token) error {
	f := &finish{token: t, answer: make(chan error, 1)}
	if err := w.finishes.Add(f); err != nil {
		return err
	}
	select {
	case err := <-f.answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *worker) flush(batch []*finish) {
	tokens := make([]delaytask.Token, len(batch))
	for i, f := range batch {
		tokens[i] = f.token
	}
	answers, err := w.client.finishAll(w.reports, tokens, retryForever)
	if _, refused := errors.AsType[*Error](err); refused && len(batch) > 1 {
		// One task of the batch may be forbidden: the others must not fail with it.
		for _, f := range batch {
			w.flush([]*finish{f})
		}
		return
	}
	for i, f := range batch {
		if err != nil {
			f.answer <- err
		} else {
			f.answer <- answers[i]
		}
	}
}

func (w *worker) flushPanicked(batch []*finish, value any) {
	for _, f := range batch {
		select {
		case f.answer <- fmt.Errorf("finishing tasks panicked: %v", value):
		default: // it had its answer
		}
	}
}
