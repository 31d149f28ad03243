package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/wire"
)

// pollWait is how long one long poll lasts.
const pollWait = 30 * time.Second

// Pop takes due tasks of a tag: it blocks until one is due, and returns the moment it is. A task that is not ended
// within its TTR has spent an attempt and is handed out again.
//
// It returns no task and no error when the wait of [delaytask.PopWait] has passed. It returns the context's cause when
// ctx has ended, and [ErrNoAnswer] when the service is away for longer than the client's retry time; tasks that it
// handed out meanwhile come back when their leases end.
func (c *Client) Pop(ctx context.Context, tag string, opts ...delaytask.PopOption) ([]*delaytask.Popped, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	p, err := request.NewPop(tag, opts...)
	if err != nil {
		return nil, err
	}
	for begun := time.Now(); ; {
		wait := pollWait
		if p.Waits {
			wait = max(min(wait, p.Wait-time.Since(begun)), 0)
		}
		r, reply := popRequest(&p, wait)
		if _, err := c.call(ctx, r); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return nil, cause
			}
			return nil, fmt.Errorf("pop: %w", err)
		}
		popped, err := c.popped(reply)
		if err != nil || len(popped) > 0 || p.Waits && time.Since(begun) >= p.Wait {
			return popped, err
		}
	}
}

func popRequest(p *delaytask.Pop, wait time.Duration) (*httpCall, *wire.PopReply) {
	q := url.Values{"tag": p.Tags, "max": {strconv.Itoa(p.Max)}, "wait": {wire.FormatDuration(wait)}}
	if p.TTR > 0 {
		q.Set("ttr", wire.FormatDuration(p.TTR))
	}
	reply := &wire.PopReply{}
	return &httpCall{
		method: http.MethodPost, path: "/v1/pop?" + q.Encode(), into: reply, limit: tasks(p.Max), wait: wait,
		again: true,
	}, reply
}

func (c *Client) popped(reply *wire.PopReply) ([]*delaytask.Popped, error) {
	var all []*delaytask.Popped
	for i := range reply.Tasks {
		task, err := reply.Tasks[i].To()
		if err != nil {
			return nil, errors.New("the service handed out a task without its token")
		}
		all = append(all, delaytask.NewPopped(task, c))
	}
	return all, nil
}
