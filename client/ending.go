package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
)

// The ways in which an attempt ends.
const (
	opFinish  = "finish"
	opFail    = "fail"
	opRelease = "release"
	opTouch   = "touch" // somebody else will end it
)

// ending is the result of an attempt.
type ending struct {
	op    string
	fail  wire.Fail     // of a fail
	after time.Duration // of a release, and how long a lease lasts that is handed over
}

// judge turns what a processor returned into the end of its attempt, by the library's rules. cause says why its context ended,
// nil when it did not. What a user's error or backoff does when it is looked at must not harm.
func judge(task *processor.Task, reg *processor.Registration, ttr time.Duration, err, cause error) (e ending) {
	token := processor.Token{ID: task.ID, Version: task.Version}
	defer func() {
		if v := recover(); v != nil {
			e = ending{op: opFail, fail: failOf(token, fmt.Errorf("the processor's error or the backoff of its tag panicked: %v", v))}
		}
	}()
	if err == nil {
		return ending{op: opFinish}
	}
	if errors.Is(cause, processor.ErrStopping) || errors.Is(cause, processor.ErrLeaseLost) {
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
	if errors.Is(cause, processor.ErrTimeout) && errors.Is(err, context.DeadlineExceeded) {
		err = processor.ErrTimeout
	}
	e = ending{op: opFail, fail: failOf(token, err)}
	if reg.Backoff != nil && !e.fail.Permanent && e.fail.RetryAfter == nil {
		after := wire.Duration(max(reg.Backoff(task.Attempt), 0))
		e.fail.RetryAfter = &after
	}
	return e
}

// request is the call that reports the ending.
func (e ending) request(t processor.Token) *request {
	text, after := t.String(), wire.Duration(e.after)
	bodies := map[string]any{
		opFinish: wire.Finish{Token: text}, opFail: e.fail,
		opRelease: wire.Release{Token: text, Delay: after}, opTouch: wire.Touch{Token: text, TTR: after},
	}
	return leaseRequest(t, e.op, bodies[e.op])
}

// always is the patience with which results are sent: until they are answered, or ctx ends.
const always = 100 * 365 * 24 * time.Hour

// report sends the end of an attempt until it is answered. The lease is renewed meanwhile, or the fence refuses it.
func (w *worker) report(ctx context.Context, t processor.Token, e ending) {
	var err error
	if e.op == opFinish {
		err = w.finish(ctx, t)
	} else {
		_, err = w.client.repeat(ctx, e.request(t), always)
	}
	switch {
	case err == nil:
	case isGone(err):
		w.log.Warn("the result of a task is not taken: its lease was lost, or it was cancelled", "task", t.ID, "result", e.op)
	default:
		w.log.Error("the result of a task could not be stored; it comes back when its lease ends", "task", t.ID, "result", e.op,
			"err", err)
	}
}
