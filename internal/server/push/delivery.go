package push

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/processor/webhook"
)

// deliver returns the processor of every tag that is served by receivers.
func (r *Registry) deliver() processor.Processor {
	return processor.Forward(processor.Func(func(ctx context.Context, task *delaytask.Task) error {
		targets := r.directory.Load().find(task.Tag, task.App())
		if len(targets) == 0 {
			return processor.Snooze(r.unserved.wait(time.Now()))
		}
		return r.call(ctx, task, targets)
	}))
}

// call tries each receiver once, in turn. A task that reached none of them is snoozed.
func (r *Registry) call(ctx context.Context, task *delaytask.Task, targets []*target) error {
	call := posted(task)
	var failed, turnedAway error
	for _, to := range targets {
		call.URL, call.Secrets = to.Address, to.signing
		answer, err := r.Client.Deliver(ctx, task, call)
		switch {
		case err == nil && answer.Accepted:
			return processor.HandOver(0)
		case err == nil:
			return nil
		case isSnooze(err):
			turnedAway = sooner(turnedAway, err)
		case ctx.Err() != nil || !elsewhere(err):
			return err
		case !saysWhen(failed):
			failed = err
		}
	}
	if failed != nil {
		return failed
	}
	return turnedAway
}

// posted is the call without its receiver.
func posted(task *delaytask.Task) webhook.Call {
	contentType := "text/plain; charset=utf-8"
	if json.Valid(task.Body) {
		contentType = "application/json"
	}
	return webhook.Call{Body: task.Body, Header: http.Header{"Content-Type": {contentType}}}
}

// elsewhere reports whether the failure concerns one address, so that another may succeed. A receiver that refuses a
// task has judged the task, and the others would do the same.
func elsewhere(err error) bool {
	if _, permanent := errors.AsType[*processor.PermanentError](err); permanent {
		return false
	}
	if status, ok := errors.AsType[*webhook.StatusError](err); ok {
		return status.Status >= 500
	}
	_, unanswered := errors.AsType[*webhook.CallError](err)
	return unanswered || errors.Is(err, webhook.ErrBlockedURL) || errors.Is(err, webhook.ErrInvalidURL)
}

func isSnooze(err error) bool {
	_, ok := errors.AsType[*processor.SnoozeError](err)
	return ok
}

// sooner returns the snooze that ends first.
func sooner(a, b error) error {
	before, ok := errors.AsType[*processor.SnoozeError](a)
	after, _ := errors.AsType[*processor.SnoozeError](b)
	if ok && before.After <= after.After {
		return a
	}
	return b
}

func saysWhen(err error) bool {
	_, ok := errors.AsType[*processor.RetryAfterError](err)
	return ok
}

const (
	leastWait   = time.Second
	usualWait   = 5 * time.Second
	longestWait = time.Minute
	between     = 5 * time.Millisecond
)

// pace decides when tasks without a reachable receiver are tried again. Each try costs a write to the database, so a
// hundred thousand of them wait longer than a few: other tasks must not pay for a receiver that is away.
type pace struct {
	mu   sync.Mutex
	next time.Time // the next moment to give away
}

func (p *pace) wait(now time.Time) time.Duration {
	usual := leastWait + rand.N(usualWait-leastWait)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next.Before(now) {
		p.next = now
	}
	if p.next.Sub(now) >= longestWait { // there is no order to keep among so many
		return longestWait/2 + rand.N(longestWait/2)
	}
	p.next = p.next.Add(between)
	return max(usual, p.next.Sub(now))
}
