package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/wire"
)

// reporter tells the service how attempts ended.
type reporter struct {
	service  *service
	ctx      context.Context // ends when nothing is reported any more
	finishes *batch.Coalescer[*finish]
}

func newReporter(ctx context.Context, s *service) *reporter {
	r := &reporter{service: s, ctx: ctx}
	r.finishes = batch.New(batch.Config[*finish]{Flush: r.flush, MaxItems: mostFinished, Panicked: r.flushPanicked})
	return r
}

// retryForever is the retry time of results: they are sent until they are answered, or ctx ends.
const retryForever = 100 * 365 * 24 * time.Hour

// report sends the end of an attempt until it is answered. The lease is renewed meanwhile.
func (r *reporter) report(ctx context.Context, t delaytask.Token, e ending) {
	var err error
	if e.op == opFinish {
		err = r.finish(ctx, t)
	} else {
		_, err = r.service.repeat(ctx, e.request(t), retryForever)
	}
	switch {
	case err == nil:
	case isGone(err):
		r.service.log.Warn("the result of a task is not taken: its lease was lost, or it was cancelled", "task", t.ID,
			"result", e.op)
	default:
		r.service.log.Error("the result of a task could not be stored; it comes back when its lease ends", "task", t.ID,
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

func (r *reporter) finish(ctx context.Context, t delaytask.Token) error {
	f := &finish{token: t, answer: make(chan error, 1)}
	if err := r.finishes.Add(f); err != nil {
		return err
	}
	select {
	case err := <-f.answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *reporter) flush(batch []*finish) {
	tokens := make([]delaytask.Token, len(batch))
	for i, f := range batch {
		tokens[i] = f.token
	}
	answers, err := r.service.finishAll(r.ctx, tokens, retryForever)
	if _, refused := errors.AsType[*Error](err); refused && len(batch) > 1 {
		// One task of the batch may be forbidden: the others must not fail with it.
		for _, f := range batch {
			r.flush([]*finish{f})
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

func (r *reporter) flushPanicked(batch []*finish, value any) {
	for _, f := range batch {
		select {
		case f.answer <- fmt.Errorf("finishing tasks panicked: %v", value):
		default: // it had its answer
		}
	}
}

// finished returns the result of a Finish whose repetition was refused.
func (s *service) finished(ctx context.Context, t delaytask.Token, refused error) error {
	var task wire.Task
	err := s.callOnTask(ctx, delaytask.ID(t.ID), "get", &httpCall{
		method: http.MethodGet, into: &task, limit: tasks(1), again: true,
	})
	row := task.To()
	switch {
	case errors.Is(err, delaytask.ErrNotFound):
		return refused
	case err != nil:
		return unanswered(err, true)
	case row.Status == delaytask.Completed && row.Version == t.Version+1:
		return nil
	default:
		return refused
	}
}

func (s *service) finishAll(ctx context.Context, tokens []delaytask.Token, retryFor time.Duration) ([]error, error) {
	if len(tokens) > request.MaxItems {
		return nil, fmt.Errorf("%w: got %d", delaytask.ErrBatchTooLarge, len(tokens))
	}
	answers := make([]error, len(tokens))
	var body wire.FinishBatch
	var places []int // of what is sent in the answers
	for i, t := range tokens {
		if answers[i] = t.Check(); answers[i] == nil {
			body.Tokens, places = append(body.Tokens, t.String()), append(places, i)
		}
	}
	if len(places) == 0 {
		return answers, nil
	}
	var reply wire.FinishBatchReply
	r := &httpCall{method: http.MethodPost, path: "/v1/tasks/finish", body: body, into: &reply, limit: batchAnswer,
		again: true}
	unclear, err := s.repeat(ctx, r, retryFor)
	if err == nil && len(reply.Results) != len(places) {
		err = fmt.Errorf("the answer has %d results for %d tasks", len(reply.Results), len(places))
	}
	if err != nil {
		return nil, fmt.Errorf("finish tasks: %w", err)
	}
	for i, result := range reply.Results {
		t := tokens[places[i]]
		err := refusal(result.Code, result.Detail, t.ID)
		if unclear && errors.Is(err, delaytask.ErrLeaseLost) {
			err = s.finished(ctx, t, err)
		}
		answers[places[i]] = err
	}
	return answers, nil
}
