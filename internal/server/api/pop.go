package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/server/reqbody"
	"github.com/delaytask/delaytask/internal/wire"
)

// PopParams are the parameters of both pops.
type PopParams struct {
	Max  int    `query:"max" default:"1" doc:"Tasks at most, 1 to 1,000; more is the same as 1,000"`
	Wait string `query:"wait" doc:"How long to wait for a task, such as 30s; at most 55s; default: not at all"`
	TTR  string `query:"ttr" doc:"How long the lease lasts, such as 1m; default: each task's own TTR"`
}

type popInput struct {
	Tag string `path:"tag" doc:"A slash in it is written %2F; . and .. are written .~ and ..~"`
	PopParams
}

type popManyInput struct {
	Tags []string `query:"tag,explode" doc:"Tags to take tasks of; may be repeated"`
	PopParams
}

type popOutput struct {
	Status int
	Body   *wire.PopReply
}

func (a *API) popOperations() {
	const text = "Answers the moment a task is due, with up to max tasks, each with the lease token that ends it; " +
		"204 when the wait is over. Whatever is not finished before its lease ends is handed out again."
	one := a.operation(http.MethodPost, "/v1/tags/{tag}/pop", "pop", "Take due tasks of a tag", text, groupPull)
	one.Middlewares = huma.Middlewares{a.paged} // it has a wait of its own
	huma.Register(a.spec, one, func(ctx context.Context, in *popInput) (*popOutput, error) {
		return a.pop(ctx, []string{in.Tag}, &in.PopParams)
	})
	many := a.operation(http.MethodPost, "/v1/pop", "popTags", "Take due tasks of several tags", text, groupPull)
	many.Middlewares = one.Middlewares
	huma.Register(a.spec, many, func(ctx context.Context, in *popManyInput) (*popOutput, error) {
		return a.pop(ctx, in.Tags, &in.PopParams)
	})
}

func (a *API) pop(ctx context.Context, tags []string, in *PopParams) (*popOutput, error) {
	if len(tags) == 0 {
		return nil, a.problem(fmt.Errorf("%w: name at least one with tag=", delaytask.ErrInvalidTag))
	}
	for _, tag := range tags {
		if err := allow(ctx, access.Work, tag); err != nil {
			return nil, a.problem(err)
		}
	}
	options, err := in.options()
	if err != nil {
		return nil, a.problem(err)
	}
	waiting, done := context.WithCancel(ctx)
	defer done()
	defer context.AfterFunc(a.stopping, done)()
	room := pageRoomOf(ctx)
	room.place = a.rooms.Answers.Open(reqbody.CallerOf(room.r))
	popped, err := core.Of(a.scheduler).PopFor(waiting, reqbody.CallerOf(room.r), room.grow, tags[0],
		append(options, delaytask.PopAlso(tags[1:]...))...)
	switch {
	case ctx.Err() != nil:
		reqbody.Unclaim(a.log, a.scheduler, popped)
		return nil, a.problem(context.Cause(ctx))
	case a.stopping.Err() != nil && len(popped) == 0:
		return &popOutput{Status: http.StatusNoContent}, nil
	case err != nil:
		return nil, a.problem(err)
	case len(popped) == 0:
		return &popOutput{Status: http.StatusNoContent}, nil
	}
	if err := reqbody.HandOut(ctx, a.log, a.scheduler, popped, allow); err != nil {
		return nil, a.problem(err)
	}
	room.place.Unread(room.w)
	reply := &wire.PopReply{Tasks: make([]wire.Popped, len(popped))}
	for i, p := range popped {
		reply.Tasks[i] = wire.FromPopped(p)
	}
	return &popOutput{http.StatusOK, reply}, nil
}

func (in *PopParams) options() ([]delaytask.PopOption, error) {
	wait, err := waitOf(in.Wait)
	if err != nil {
		return nil, err
	}
	var ttr wire.Duration
	options := []delaytask.PopOption{delaytask.PopMax(in.Max), delaytask.PopWait(wait)}
	if in.TTR != "" {
		if err := ttr.UnmarshalText([]byte(in.TTR)); err != nil {
			return nil, fmt.Errorf("%w: ttr: %w", delaytask.ErrInvalidTTR, err)
		}
		options = append(options, delaytask.PopTTR(ttr.Std()))
	}
	return options, nil
}

// waitOf reads how long a long poll lasts. "" is not at all.
func waitOf(text string) (time.Duration, error) {
	var wait wire.Duration
	if text == "" {
		return 0, nil
	}
	if err := wait.UnmarshalText([]byte(text)); err != nil {
		return 0, fmt.Errorf("%w: wait: %w", delaytask.ErrInvalidOption, err)
	}
	return min(wait.Std(), reqbody.LongestWait), nil
}
