package operate

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/request"
)

// Met is a task that was changed, and the status that the change has met.
type Met struct {
	ID     int64
	Status delaytask.Status
}

// Cancel ends a task that is not finished. It takes the verb change.
func (o *Operator) Cancel(ctx context.Context, by By, ref delaytask.Ref, opts ...delaytask.ChangeOption) (Met, error) {
	return o.onTask(ctx, by, ref, act{action: audit.CancelTask},
		func(ctx context.Context, ref delaytask.Ref) (delaytask.Status, error) {
			return o.Core.Cancel(ctx, nil, ref, opts...)
		})
}

// Retry runs a failed task again. It takes the verb change.
func (o *Operator) Retry(ctx context.Context, by By, ref delaytask.Ref) (Met, error) {
	return o.onTask(ctx, by, ref, act{action: audit.RetryTask},
		func(ctx context.Context, ref delaytask.Ref) (delaytask.Status, error) {
			return delaytask.Failed, o.Core.Retry(ctx, ref)
		})
}

// Reschedule moves a pending task, and may replace its body. It takes the verb change, and for another body what
// [Operator.SetBody] takes.
func (o *Operator) Reschedule(
	ctx context.Context, by By, ref delaytask.Ref, delay time.Duration, opts ...delaytask.ChangeOption,
) (Met, error) {
	move, err := request.NewReschedule(delay, unlimited, opts...)
	if err != nil {
		return Met{}, err
	}
	a := act{action: audit.RescheduleTask, detail: when(move.Delay, move.At)}
	if move.Body != nil {
		a.detail += " with another body"
		if a, err = o.withBody(a, move.Body); err != nil {
			return Met{}, err
		}
	}
	return o.onTask(ctx, by, ref, a, func(ctx context.Context, ref delaytask.Ref) (delaytask.Status, error) {
		return o.Core.Reschedule(ctx, nil, ref, delay, opts...)
	})
}

// unlimited leaves it to the scheduler how long a body may be.
var unlimited = request.Limits{Body: math.MaxInt}

// SetBody replaces the body of a pending task. It takes the verb change. A body of the tag http names the address to
// call, which takes save_http, too. It returns [delaytask.ErrRedacted] for a body that was made from one with masks:
// these would replace the secrets. It returns the error of Config.Check.
func (o *Operator) SetBody(
	ctx context.Context, by By, ref delaytask.Ref, body []byte, opts ...delaytask.ChangeOption,
) (Met, error) {
	a, err := o.withBody(act{action: audit.ChangeBody}, body)
	if err != nil {
		return Met{}, err
	}
	return o.onTask(ctx, by, ref, a, func(ctx context.Context, ref delaytask.Ref) (delaytask.Status, error) {
		return o.Core.SetBody(ctx, ref, body, opts...)
	})
}

// toChangeBody are the rights to change the body of a task.
func toChangeBody(tag string) []access.Verb {
	if tag == access.HTTPTag {
		return []access.Verb{access.Change, access.SaveHTTP}
	}
	return toChange(tag)
}

func toChange(string) []access.Verb { return []access.Verb{access.Change} }

// MayChangeBody reports whether the caller may change the body of a task of the tag.
func (by By) MayChangeBody(tag string) bool {
	return by.lacks(toChangeBody(tag), target{tag: tag}) == nil
}

// withBody is the act with the rights and the rules of another body.
func (o *Operator) withBody(a act, body []byte) (act, error) {
	if redact.Holds(body) {
		return a, delaytask.ErrRedacted
	}
	a.needs = toChangeBody
	a.check = func(t target) error { return o.checkBody(t.tag, body) }
	return a, nil
}

func (o *Operator) checkBody(tag string, body []byte) error {
	if o.Check == nil {
		return nil
	}
	return o.Check(tag, body)
}

// onTask does one thing with one task.
func (o *Operator) onTask(
	ctx context.Context, by By, ref delaytask.Ref, a act,
	do func(context.Context, delaytask.Ref) (delaytask.Status, error),
) (met Met, err error) {
	id, tag, _, err := ref.Parts()
	if err != nil {
		return met, err
	}
	if a.tag = tag; a.needs == nil {
		a.needs = toChange
	}
	a.find = func(ctx context.Context) (target, error) { return o.task(ctx, ref, id) }
	a.do = func(ctx context.Context, t target) (tasks int64, err error) {
		met.ID = t.task
		if met.Status, err = do(ctx, delaytask.ID(t.task)); err == nil {
			tasks = 1
		}
		return tasks, err
	}
	err = o.do(ctx, by, a)
	return met, err
}

// task finds a task by its id, without its body, or by its key.
func (o *Operator) task(ctx context.Context, ref delaytask.Ref, id int64) (target, error) {
	if id == 0 {
		found, err := o.Core.Get(ctx, ref)
		return taskTarget(ref, found.ID, found.Tag), err
	}
	states, err := o.store.States(ctx, []int64{id})
	t := taskTarget(ref, id, "")
	switch {
	case err != nil:
		return t, err
	case len(states) == 0:
		return t, t.hidden
	}
	t.tag = states[0].Tag
	return t, nil
}

func taskTarget(ref delaytask.Ref, id int64, tag string) target {
	return target{
		name: strconv.FormatInt(id, 10), tag: tag, task: id,
		hidden: fmt.Errorf("get %v: %w", ref, delaytask.ErrNotFound),
	}
}
