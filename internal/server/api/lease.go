package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
)

type finishInput struct {
	IDInput
	Body wire.Finish
}

type touchInput struct {
	IDInput
	Body wire.Touch
}

type releaseInput struct {
	IDInput
	Body wire.Release
}

type failInput struct {
	IDInput
	Body wire.Fail
}

type finishAllInput struct{ Body wire.FinishBatch }

func (a *API) leaseOperations() {
	const stale = " A token whose lease is over, or was ended, is 409 lease_lost, and nothing is changed."
	op := func(path, id, summary, text string) huma.Operation {
		o := a.operation(http.MethodPost, path, id, summary, text+stale, groupPull)
		o.DefaultStatus = http.StatusNoContent
		return o
	}
	huma.Register(a.spec, op("/v1/tasks/{id}/finish", "finish", "Complete a task that was handed out", "It is done."),
		func(ctx context.Context, in *finishInput) (*struct{}, error) {
			return a.end(ctx, &in.IDInput, in.Body.Token, a.scheduler.Finish)
		})
	huma.Register(a.spec, op("/v1/tasks/{id}/touch", "touch", "Make a lease end later", "It ends ttr from now."),
		func(ctx context.Context, in *touchInput) (*struct{}, error) {
			return a.end(ctx, &in.IDInput, in.Body.Token, func(ctx context.Context, t delaytask.Token) error {
				return a.scheduler.Touch(ctx, t, in.Body.TTR.Std())
			})
		})
	huma.Register(a.spec, op("/v1/tasks/{id}/release", "release", "Give a task back",
		"No attempt is spent; it is handed out again at once, or after delay."),
		func(ctx context.Context, in *releaseInput) (*struct{}, error) {
			return a.end(ctx, &in.IDInput, in.Body.Token, func(ctx context.Context, t delaytask.Token) error {
				switch d := in.Body.Delay.Std(); {
				case d < 0:
					return fmt.Errorf("%w: got %v", delaytask.ErrInvalidDelay, d)
				case d > 0:
					return a.scheduler.Fail(ctx, t, processor.Snooze(d))
				}
				return a.scheduler.Release(ctx, t)
			})
		})
	huma.Register(a.spec, op("/v1/tasks/{id}/fail", "fail", "Say that an attempt has failed",
		"The task is tried again after its backoff or retry_after, until its attempts are used up; permanent fails "+
			"it at once."),
		func(ctx context.Context, in *failInput) (*struct{}, error) {
			failure, err := failureOf(&in.Body)
			if err != nil {
				return nil, a.problem(err)
			}
			return a.end(ctx, &in.IDInput, in.Body.Token, func(ctx context.Context, t delaytask.Token) error {
				return a.scheduler.Fail(ctx, t, failure)
			})
		})
	huma.Register(a.spec, a.operation(http.MethodPost, "/v1/tasks/finish", "finishAll", "Complete many tasks",
		"Each token has an answer of its own, in the order in which they were sent.", groupPull), a.finishAll)
}

// end ends or extends the lease of a token, which must belong to the task.
func (a *API) end(
	ctx context.Context, in *IDInput, text string, how func(context.Context, delaytask.Token) error,
) (*struct{}, error) {
	id, err := wire.ParseID(in.ID)
	if err != nil {
		return nil, invalidID(err)
	}
	token, err := delaytask.ParseToken(text)
	if err == nil && token.ID != int64(id) {
		err = fmt.Errorf("%w: it belongs to another task", delaytask.ErrInvalidToken)
	}
	if err != nil {
		return nil, a.problem(err)
	}
	if err := a.allowTask(ctx, access.Work, token.ID); err != nil {
		return nil, a.problem(err)
	}
	if err := how(ctx, token); err != nil {
		return nil, a.problem(err)
	}
	return nil, nil
}

func failureOf(f *wire.Fail) (error, error) {
	if f.Error == "" {
		return nil, fmt.Errorf("%w: error is empty; say why the attempt failed", delaytask.ErrInvalidOption)
	}
	if f.Permanent && f.RetryAfter != nil {
		return nil, fmt.Errorf("%w: permanent and retry_after exclude each other", delaytask.ErrInvalidOption)
	}
	failure := errors.New(f.Error)
	switch {
	case f.Permanent:
		return processor.Permanent(failure), nil
	case f.RetryAfter != nil:
		return processor.RetryAfter(failure, f.RetryAfter.Std()), nil
	default:
		return failure, nil
	}
}

func (a *API) finishAll(ctx context.Context, in *finishAllInput) (*output[wire.FinishBatchReply], error) {
	if err := allow(ctx, access.Work, ""); err != nil {
		return nil, a.problem(err)
	}
	if in.Body.Tokens == nil {
		return nil, wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidJSON,
			"the request's body does not fit: /tokens is missing")
	}
	if len(in.Body.Tokens) > mostBatch {
		return nil, a.problem(delaytask.ErrBatchTooLarge)
	}
	tokens := make([]delaytask.Token, len(in.Body.Tokens))
	for i, text := range in.Body.Tokens {
		var err error
		if tokens[i], err = delaytask.ParseToken(text); err != nil {
			return nil, located(a.problem(err), fmt.Sprintf("body.tokens[%d]", i))
		}
	}
	answers, err := a.finishAllowed(ctx, tokens)
	if err != nil {
		return nil, a.problem(err)
	}
	out := &output[wire.FinishBatchReply]{wire.FinishBatchReply{Results: make([]wire.FinishResult, len(tokens))}}
	for i, answer := range answers {
		out.Body.Results[i].Token = in.Body.Tokens[i]
		if answer != nil {
			p, _ := errors.AsType[*wire.Problem](a.problem(answer))
			out.Body.Results[i].Code, out.Body.Results[i].Detail = p.Code, p.Detail
		}
	}
	return out, nil
}

// finishAllowed completes the tasks that the caller may complete. A task of another tag, or one that is gone, fails its
// own token alone.
func (a *API) finishAllowed(ctx context.Context, tokens []delaytask.Token) ([]error, error) {
	answers, err := a.allowTokens(ctx, access.Work, tokens)
	if err != nil {
		return nil, err
	}
	var allowed []delaytask.Token
	var places []int // of the allowed ones in the answers
	for i, token := range tokens {
		if answers[i] == nil {
			allowed, places = append(allowed, token), append(places, i)
		}
	}
	finished, err := a.scheduler.FinishAll(ctx, allowed)
	for i, answer := range finished {
		answers[places[i]] = answer
	}
	return answers, err
}
