package client

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

// Get returns a task with its body. Times are to the millisecond. It returns [delaytask.ErrNotFound] when it does
// not exist, or was deleted after its retention.
func (c *Client) Get(ctx context.Context, ref delaytask.Ref) (delaytask.TaskRow, error) {
	var task wire.Task
	err := c.onTask(ctx, ref, "get", &httpCall{method: http.MethodGet, into: &task, limit: tasks(1), again: true})
	return task.To(), err
}

// Body returns the body of a task alone, as bytes. Secrets in it are masked, unless raw is true. Its token needs the
// verbs read and bodies. It returns [delaytask.ErrNotFound] when there is no such task, and [delaytask.ErrBroken] when
// its row cannot be read.
func (c *Client) Body(ctx context.Context, ref delaytask.Ref, raw bool) ([]byte, error) {
	var body []byte
	path := "/body"
	if raw {
		path += "?raw=true"
	}
	err := c.onTask(ctx, ref, "get the body of", &httpCall{
		method: http.MethodGet, path: path, into: &body, limit: tasks(1), again: true,
	})
	return body, err
}

// Wait returns the task with this id once it is completed, failed or cancelled. A task that has ended already is
// returned at once. How the task ended is in its status, and is no error.
//
// It returns [delaytask.ErrNotFound] when there is no such task or it is deleted meanwhile, the context's cause when
// ctx ends first, and [ErrNoAnswer] when the service is away for longer than the client's retry time.
func (c *Client) Wait(ctx context.Context, id int64) (delaytask.TaskRow, error) {
	for {
		var task wire.Task
		err := c.onTask(ctx, delaytask.ID(id), "wait for", &httpCall{
			method: http.MethodGet, path: "?wait=" + wire.FormatDuration(pollWait), into: &task, limit: tasks(1),
			wait: pollWait, again: true,
		})
		if err != nil {
			return delaytask.TaskRow{}, err
		}
		if row := task.To(); row.Status.Final() || row.Broken != "" {
			return row, nil
		}
	}
}

// Explain returns why a task has not run. It returns [delaytask.ErrNotFound] when there is no such task.
func (c *Client) Explain(ctx context.Context, ref delaytask.Ref) (report.Explanation, error) {
	var e wire.Explanation
	err := c.onTask(ctx, ref, "explain", &httpCall{
		method: http.MethodGet, path: "/explain", into: &e, limit: tasks(1), again: true,
	})
	return e.To(), err
}

// Cancel ends a task that is not finished, and returns the status that it met: from [delaytask.Pending] it will not
// start; from [delaytask.Executing] it may have, its context ends with the next renewal of its lease, and its result is
// refused.
//
// It returns [delaytask.ErrNotFound], [delaytask.ErrFinished], [delaytask.ErrNotPending] when only a pending task was
// to be cancelled, [delaytask.ErrVersionChanged], [delaytask.ErrContended], or [ErrNoAnswer].
func (c *Client) Cancel(
	ctx context.Context, ref delaytask.Ref, opts ...delaytask.ChangeOption,
) (delaytask.Status, error) {
	cancel, err := request.NewCancel(opts...)
	if err != nil {
		return "", err
	}
	r := &httpCall{method: http.MethodDelete}
	query := url.Values{}
	if cancel.OnlyPending {
		query.Set("only_pending", "true")
	}
	if cancel.Version != nil {
		query.Set("version", strconv.FormatInt(*cancel.Version, 10))
	}
	if len(query) > 0 {
		r.path = "?" + query.Encode()
	}
	return c.change(ctx, ref, "cancel", r)
}

// Reschedule makes a pending task due after a delay from now, rounded up to a millisecond, or with [delaytask.To] at a
// time. With [delaytask.Body] it replaces the body in the same step. It returns the status that it met, which is
// [delaytask.Pending].
//
// It returns [delaytask.ErrNotFound], [delaytask.ErrBroken], [delaytask.ErrFinished], [delaytask.ErrNotPending] for a
// task that is executing, [delaytask.ErrInvalidDelay], [delaytask.ErrDelayTooLong], [delaytask.ErrInvalidBody],
// [delaytask.ErrVersionChanged], [delaytask.ErrContended], or [ErrNoAnswer].
func (c *Client) Reschedule(
	ctx context.Context, ref delaytask.Ref, delay time.Duration, opts ...delaytask.ChangeOption,
) (delaytask.Status, error) {
	move, err := request.NewReschedule(delay, request.Limits{Body: c.bodyLimit}, opts...)
	if err != nil {
		return "", err
	}
	change := wire.Change{Version: move.Version}
	if move.At.IsZero() {
		d := wire.Delay(move.Delay)
		change.Delay = &d
	} else {
		change.At = wire.NotBefore(move.At)
	}
	if move.Body != nil {
		newBody(&change, move.Body)
	}
	return c.change(ctx, ref, "reschedule", &httpCall{method: http.MethodPatch, body: change})
}

// SetBody replaces the body of a pending task, and nothing else. It returns the status that it met, which is
// [delaytask.Pending]. It returns errors as Reschedule does.
func (c *Client) SetBody(
	ctx context.Context, ref delaytask.Ref, body any, opts ...delaytask.ChangeOption,
) (delaytask.Status, error) {
	edit, err := request.NewSetBody(body, request.Limits{Body: c.bodyLimit}, opts...)
	if err != nil {
		return "", err
	}
	w := wire.Change{Version: edit.Version}
	newBody(&w, edit.Body)
	return c.change(ctx, ref, "set the body of", &httpCall{method: http.MethodPatch, body: w})
}

// newBody sets the body of a change. A text field empties one, too.
func newBody(w *wire.Change, body []byte) {
	if sorted := wire.BodyOf(body); sorted.Body != nil {
		w.Body = sorted.Body
	} else {
		text := string(body)
		w.BodyText = &text
	}
}

func (c *Client) change(ctx context.Context, ref delaytask.Ref, op string, r *httpCall) (delaytask.Status, error) {
	var met wire.Met
	r.into = &met
	err := c.onTask(ctx, ref, op, r)
	return met.Met, err
}

// Retry runs a failed task again, now: with all its attempts, and with the errors of the old ones kept. It returns
// [delaytask.ErrNotFound], [delaytask.ErrNotFailed], [delaytask.ErrDuplicate] when another unfinished task carries its
// key by now, or [ErrNoAnswer].
func (c *Client) Retry(ctx context.Context, ref delaytask.Ref) error {
	if id, _, _, err := ref.Parts(); err == nil && id == 0 {
		// A key names unfinished tasks only, and the service retries by id.
		task, err := c.Get(ctx, ref)
		if err != nil {
			return fmt.Errorf("retry: %w", err)
		}
		ref = delaytask.ID(task.ID)
	}
	return c.onTask(ctx, ref, "retry", &httpCall{method: http.MethodPost, path: "/retry"})
}

func (c *Client) onTask(ctx context.Context, ref delaytask.Ref, op string, r *httpCall) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	return c.callOnTask(ctx, ref, op, r)
}

// List returns the tasks that match, page by page, as the library does. It returns [delaytask.ErrInvalidTag],
// [delaytask.ErrInvalidCursor], and [delaytask.ErrInvalidOption] when another field is out of range.
func (c *Client) List(ctx context.Context, f delaytask.Filter) (delaytask.Page, error) {
	if err := c.enter(ctx); err != nil {
		return delaytask.Page{}, err
	}
	if f.LateBy < 0 || f.Limit < 0 {
		return delaytask.Page{}, fmt.Errorf("%w: the filter's LateBy or Limit is negative", delaytask.ErrInvalidOption)
	}
	var page wire.Page
	f.Limit = min(cmp.Or(f.Limit, 100), 1000)
	query := wire.FilterValues(&f)
	query.Set("limit", strconv.Itoa(f.Limit))
	if f.Bodies {
		query.Set("bodies", "true")
	}
	r := &httpCall{method: http.MethodGet, path: "/v1/tasks?" + query.Encode(), into: &page, limit: tasks(f.Limit),
		again: true}
	if _, err := c.call(ctx, r); err != nil {
		return delaytask.Page{}, fmt.Errorf("list tasks: %w", err)
	}
	return page.To(), nil
}
