package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bridge"
	"github.com/delaytask/delaytask/internal/server/access"
	"github.com/delaytask/delaytask/internal/wire"
)

// Authenticator finds out who calls.
type Authenticator interface {
	// Asked reports whether callers need a token at this moment. It returns access.ErrUnavailable when that cannot be
	// told.
	Asked(ctx context.Context) (bool, error)
	// Check returns access.ErrUnauthorized for a token that is unknown or over, and access.ErrUnavailable when that
	// cannot be told.
	Check(ctx context.Context, bearer string) (access.Caller, error)
}

// authenticated lets in only those who bring a token, where they are asked for; else everyone may do everything.
func (a *API) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.tokens == nil {
			next.ServeHTTP(w, r.WithContext(access.WithCaller(r.Context(), access.Everyone())))
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
		noteToken(ctx, access.From(ctx).Name())
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// metered keeps the metrics from those who may not see every tag: they name all of them.
func metered(metrics http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := access.From(r.Context()); !c.AnyTag(access.Metrics) && !c.AnyTag(access.Operate) {
			refused(w, problemOf(http.StatusForbidden, wire.CodeForbidden,
				"this token may not see the metrics of all tags; make one with: delaytask token create prometheus "+
					"--tags '*' --verbs metrics"))
			return
		}
		metrics.ServeHTTP(w, r)
	})
}

// callerOf returns who sends these Authorization headers, or a *wire.Problem.
func (a *API) callerOf(ctx context.Context, given []string) (access.Caller, error) {
	asked, err := a.tokens.Asked(ctx)
	if err != nil {
		return access.Caller{}, a.uncheckable(err)
	}
	if !asked {
		return access.Everyone(), nil
	}
	if len(given) > 1 {
		return access.Caller{}, problemOf(http.StatusBadRequest, wire.CodeInvalidHeader,
			"there is more than one Authorization header")
	}
	if len(given) == 0 {
		return access.Caller{}, unauthorized("send a token: Authorization: Bearer …")
	}
	scheme, bearer, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return access.Caller{}, unauthorized("the Authorization header does not begin with Bearer")
	}
	caller, err := a.tokens.Check(ctx, strings.TrimSpace(bearer))
	switch {
	case errors.Is(err, access.ErrUnauthorized):
		return access.Caller{}, unauthorized("the token is unknown, was revoked, or has expired")
	case err != nil:
		return access.Caller{}, a.uncheckable(err)
	}
	return caller, nil
}

func (a *API) uncheckable(err error) *wire.Problem {
	a.log.Error("tokens cannot be checked", "err", err)
	return problemOf(http.StatusServiceUnavailable, wire.CodeUnavailable, "tokens cannot be checked now; try again")
}

func unauthorized(detail string) *wire.Problem {
	return problemOf(http.StatusUnauthorized, wire.CodeUnauthorized, detail)
}

// allow refuses a caller who may not do this to tasks of the tag; to any tag when it is "".
func allow(ctx context.Context, verb access.Verb, tag string) error {
	if c := access.From(ctx); c.May(verb, tag) || tag == "" && c.SomeTag(verb) {
		return nil
	}
	if tag == "" {
		return problemOf(http.StatusForbidden, wire.CodeForbidden, fmt.Sprintf("this token may not %s", verb))
	}
	return problemOf(http.StatusForbidden, wire.CodeForbidden,
		fmt.Sprintf("this token may not %s tasks of tag %.128s", verb, tag))
}

// seen refuses a caller who may not do this to a task that was named otherwise than by its tag. The answer is that to a
// task which is not there: an id of another tag must not tell which tags there are.
func seen(ctx context.Context, verb access.Verb, named delaytask.Ref, tag string) error {
	if access.From(ctx).May(verb, tag) {
		return nil
	}
	return fmt.Errorf("get %v: %w", named, delaytask.ErrNotFound)
}

// allowTask is allow for a task whose tag has to be read. Those who may do it to all tags do not pay for the reading.
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

// allowTokens is allowTask for many, whose tags are read with one statement and without their bodies.
func (a *API) allowTokens(ctx context.Context, verb access.Verb, tokens []delaytask.Token) ([]error, error) {
	refusals := make([]error, len(tokens))
	if access.From(ctx).AnyTag(verb) {
		return refusals, nil
	}
	ids := make([]int64, len(tokens))
	for i, token := range tokens {
		ids[i] = token.ID
	}
	states, err := bridge.Store(a.scheduler).States(ctx, ids)
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
