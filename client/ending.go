package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
)

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

func tokenOf(task *delaytask.Task) delaytask.Token {
	return delaytask.Token{ID: task.ID, Version: task.Version}
}

// judge turns a processor's result into the end of its attempt, by the library's rules. cause is why its context ended,
// nil when it did not. A panic of the user's error or backoff fails the attempt.
func judge(task *delaytask.Task, reg *processor.Registration, ttr time.Duration, err, cause error) (e ending) {
	token := tokenOf(task)
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

// request is the call that reports the ending.
func (e ending) request(t delaytask.Token) *httpCall {
	text, after := t.String(), wire.Duration(e.after)
	bodies := map[string]any{
		opFinish: wire.Finish{Token: text}, opFail: e.fail,
		opRelease: wire.Release{Token: text, Delay: wire.Delay(after)}, opTouch: wire.Touch{Token: text, TTR: after},
	}
	return leaseRequest(t, e.op, bodies[e.op])
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

// failOf says how an attempt failed.
func failOf(t delaytask.Token, failure error) wire.Fail {
	f := wire.Fail{Token: t.String(), Error: failureText(failure)}
	if _, ok := errors.AsType[*processor.PermanentError](failure); ok {
		f.Permanent = true
	} else if later, ok := errors.AsType[*processor.RetryAfterError](failure); ok {
		after := wire.Duration(max(later.After, 0))
		f.RetryAfter = &after
	}
	return f
}

// longestFailure is how much of an error the service keeps by default, in bytes.
const longestFailure = 8 << 10

// failureText goes through fmt, because a typed nil inside must not panic.
func failureText(failure error) string {
	text := fmt.Sprint(failure)
	if panicked, ok := errors.AsType[*processor.PanicError](failure); ok {
		text += "\n\n" + string(panicked.Stack)
	}
	text += row.Stacks(failure, longestFailure)
	if text == "" {
		return fmt.Sprintf("an error without a text (%T)", failure)
	}
	return row.Shorten(text, longestFailure)
}

func leaseRequest(t delaytask.Token, op string, body any) *httpCall {
	return &httpCall{method: http.MethodPost, path: taskPath(t.ID) + "/" + op, body: body, again: true}
}
