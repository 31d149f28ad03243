package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/wire"
)

// authenticated refuses calls without a token where tokens are required. Elsewhere every caller has all rights.
func (a *API) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.tokens == nil {
			a.inCrowd(w, r.WithContext(access.WithCaller(r.Context(), access.Everyone())), next)
			return
		}
		given := r.Header.Values("Authorization")
		ctx, err := access.WithCheck(r.Context(), func(ctx context.Context) (access.Caller, error) {
			caller, err := a.callerOf(ctx, given)
			if p, ok := errors.AsType[*wire.Problem](err); ok && p.Status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="delaytask"`)
			}
			return caller, err
		})
		if p, ok := errors.AsType[*wire.Problem](err); ok {
			a.refuse(w, r, p)
			return
		}
		NoteToken(ctx, access.From(ctx).Name())
		a.inCrowd(w, r.WithContext(ctx), next)
	})
}

// inCrowd serves a request of a caller that has not too many others under way.
func (a *API) inCrowd(w http.ResponseWriter, r *http.Request, next http.Handler) {
	done, ok := a.rooms.Serve(r)
	if !ok {
		a.refuse(w, r, wire.NewProblem(http.StatusTooManyRequests, wire.CodeTooManyRequests,
			"this caller has too many requests under way; wait for some to end"))
		return
	}
	defer done()
	next.ServeHTTP(w, r)
}

// metered refuses callers without the right for every tag: the metrics name all of them.
func metered(metrics http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := access.From(r.Context()); !c.AnyTag(access.Metrics) && !c.AnyTag(access.Operate) {
			refused(w, wire.NewProblem(http.StatusForbidden, wire.CodeForbidden,
				"this token may not see the metrics of all tags; make one with: delaytask token create prometheus "+
					"--tags '*' --verbs metrics"))
			return
		}
		metrics.ServeHTTP(w, r)
	})
}

// callerOf returns the caller of these Authorization headers, or a *wire.Problem.
func (a *API) callerOf(ctx context.Context, given []string) (access.Caller, error) {
	asked, err := a.tokens.Asked(ctx)
	if err != nil {
		return access.Caller{}, a.uncheckable(err)
	}
	if !asked {
		return access.Everyone(), nil
	}
	if len(given) > 1 {
		return access.Caller{}, wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidHeader,
			"there is more than one Authorization header")
	}
	if len(given) == 0 {
		return access.Caller{}, unauthorized("send a token in the header Authorization, after Bearer")
	}
	scheme, bearer, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return access.Caller{}, unauthorized("the Authorization header does not begin with Bearer")
	}
	caller, err := a.tokens.Check(ctx, strings.TrimSpace(bearer))
	switch {
	case errors.Is(err, access.ErrBootstrapEnded):
		return access.Caller{}, unauthorized("the bootstrap token has ended, because it was revoked or a token with " +
			"all verbs for all tags was made; use that one")
	case errors.Is(err, access.ErrUnauthorized):
		return access.Caller{}, unauthorized("the token is unknown, was revoked, or has expired")
	case err != nil:
		return access.Caller{}, a.uncheckable(err)
	}
	return caller, nil
}

func (a *API) uncheckable(err error) *wire.Problem {
	a.log.Error("tokens cannot be checked", "err", err)
	return wire.NewProblem(http.StatusServiceUnavailable, wire.CodeUnavailable,
		"tokens cannot be checked now; try again")
}

func unauthorized(detail string) *wire.Problem {
	return wire.NewProblem(http.StatusUnauthorized, wire.CodeUnauthorized, detail)
}

// allow refuses a caller without this right for tasks of the tag, or for some tag when it is "".
func allow(ctx context.Context, verb access.Verb, tag string) error {
	return access.From(ctx).Allow(verb, tag)
}

// seen is allow for a task that was named by its id. It answers as if the task did not exist: an id of another tag must
// not reveal which tags there are.
func seen(ctx context.Context, verb access.Verb, named delaytask.Ref, tag string) error {
	if access.From(ctx).May(verb, tag) {
		return nil
	}
	return fmt.Errorf("get %v: %w", named, delaytask.ErrNotFound)
}

// allowTask is allow for a task whose tag has to be read. A caller with the right for all tags causes no read.
func (a *API) allowTask(ctx context.Context, verb access.Verb, id int64) error {
	if access.From(ctx).AnyTag(verb) {
		return nil
	}
	if err := allow(ctx, verb, ""); err != nil {
		return err
	}
	task, err := a.scheduler.Get(ctx, delaytask.ID(id))
	if err != nil {
		return a.problem(err)
	}
	return seen(ctx, verb, delaytask.ID(id), task.Tag)
}

// allowTokens is allowTask for many tasks. It reads their tags by one statement and without their bodies.
func (a *API) allowTokens(ctx context.Context, verb access.Verb, tokens []delaytask.Token) ([]error, error) {
	refusals := make([]error, len(tokens))
	if access.From(ctx).AnyTag(verb) {
		return refusals, nil
	}
	ids := make([]int64, len(tokens))
	for i, token := range tokens {
		ids[i] = token.ID
	}
	states, err := core.Of(a.scheduler).Store().States(ctx, ids)
	if err != nil {
		return nil, err
	}
	tags := make(map[int64]string, len(states))
	for _, s := range states {
		tags[s.ID] = s.Tag
	}
	for i, token := range tokens {
		refusals[i] = seen(ctx, verb, delaytask.ID(token.ID), tags[token.ID])
	}
	return refusals, nil
}
