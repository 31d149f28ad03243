package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

// problems says what each error of the library is over HTTP. The first that fits counts.
var problems = []struct {
	err    error
	status int
	code   string
}{
	{delaytask.ErrInvalidTag, http.StatusBadRequest, wire.CodeInvalidTag},
	{delaytask.ErrInvalidKey, http.StatusBadRequest, wire.CodeInvalidKey},
	{delaytask.ErrBodyTooLarge, http.StatusRequestEntityTooLarge, wire.CodeBodyTooLarge},
	{delaytask.ErrInvalidBody, http.StatusBadRequest, wire.CodeInvalidBody},
	{delaytask.ErrInvalidDelay, http.StatusBadRequest, wire.CodeInvalidDelay},
	{delaytask.ErrDelayTooLong, http.StatusBadRequest, wire.CodeDelayTooLong},
	{delaytask.ErrInvalidTime, http.StatusBadRequest, wire.CodeInvalidTime},
	{delaytask.ErrInvalidID, http.StatusBadRequest, wire.CodeInvalidID},
	{delaytask.ErrInvalidTTR, http.StatusBadRequest, wire.CodeInvalidTTR},
	{delaytask.ErrInvalidMaxAttempts, http.StatusBadRequest, wire.CodeInvalidMaxAttempts},
	{delaytask.ErrInvalidPriority, http.StatusBadRequest, wire.CodeInvalidPriority},
	{delaytask.ErrInvalidHeaders, http.StatusBadRequest, wire.CodeInvalidHeaders},
	{delaytask.ErrInvalidToken, http.StatusBadRequest, wire.CodeInvalidToken},
	{delaytask.ErrInvalidOption, http.StatusBadRequest, wire.CodeInvalidOption},
	{delaytask.ErrBatchTooLarge, http.StatusBadRequest, wire.CodeBatchTooLarge},
	{delaytask.ErrDuplicate, http.StatusConflict, wire.CodeDuplicate},
	{delaytask.ErrConflict, http.StatusConflict, wire.CodeConflict},
	{delaytask.ErrLeaseLost, http.StatusConflict, wire.CodeLeaseLost},
	{delaytask.ErrNotFound, http.StatusNotFound, wire.CodeNotFound},
	{delaytask.ErrNotPending, http.StatusConflict, wire.CodeNotPending},
	{delaytask.ErrFinished, http.StatusConflict, wire.CodeFinished},
	{delaytask.ErrNotFailed, http.StatusConflict, wire.CodeNotFailed},
	{delaytask.ErrContended, http.StatusConflict, wire.CodeContended},
	{delaytask.ErrBroken, http.StatusConflict, wire.CodeBroken},
	{delaytask.ErrOutcomeUnknown, http.StatusServiceUnavailable, wire.CodeOutcomeUnknown},
	{delaytask.ErrChunkRefused, http.StatusConflict, wire.CodeChunkRefused},
	{delaytask.ErrOverloaded, http.StatusServiceUnavailable, wire.CodeOverloaded},
	{delaytask.ErrClosed, http.StatusServiceUnavailable, wire.CodeStopping},
	{delaytask.ErrNotStarted, http.StatusServiceUnavailable, wire.CodeNotReady},
	{delaytask.ErrNotReady, http.StatusServiceUnavailable, wire.CodeNotReady},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, wire.CodeUnavailable},
	{context.Canceled, statusHungUp, wire.CodeUnavailable},
}

// statusHungUp is for the log and the metrics, where it is no failure of the service: nobody reads the answer. Others know it as
// "client closed request".
const statusHungUp = 499

// problem is an error as the answer to a request. What is not known comes from the database: its text may name hosts and users,
// so it goes to the log and not to the caller.
func (a *API) problem(err error) error {
	if p, ok := errors.AsType[*wire.Problem](err); ok {
		return p
	}
	for _, known := range problems {
		if errors.Is(err, known.err) {
			p := problemOf(known.status, known.code, plain(err.Error()))
			if unknown, ok := errors.AsType[*delaytask.OutcomeUnknownError](err); ok {
				p.TaskID = wire.ID(unknown.ID)
			}
			if duplicate, ok := errors.AsType[*delaytask.DuplicateError](err); ok {
				p.TaskID = wire.ID(duplicate.ID)
			}
			return p
		}
	}
	if errors.Is(err, context.Canceled) {
		// The caller has hung up, and nobody reads this; it is no failure of the service.
		return problemOf(http.StatusRequestTimeout, wire.CodeRequestTimeout, "the caller did not wait for the answer")
	}
	if a.complaints.Allow() { // in an outage every request fails, and for one reason
		a.log.Error("a request failed", "err", cmp.Or(errors.Unwrap(err), err)) // the outermost words may name a task by its key
	}
	return problemOf(http.StatusServiceUnavailable, wire.CodeUnavailable,
		"the database did not answer as it should; the log of the service says why. Try again")
}

// plain leaves out the name of the package that an error of the library begins with.
func plain(text string) string { return strings.Replace(text, "delaytask: ", "", 1) }

func problemOf(status int, code, detail string) *wire.Problem {
	return &wire.Problem{Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// refused is a problem of a request that never reached a handler.
func refused(w http.ResponseWriter, p *wire.Problem) {
	w.Header().Set("Content-Type", mediaProblem)
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	_ = strictJSON.Marshal(w, p) // a client that is gone needs no answer
}

// What the framework refuses by itself comes in the same shape. It says 422 where a parameter cannot be read; the others of our
// answers call that 400. The values that it would echo are left out: a body may hold a secret.
func init() {
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		p := problemOf(status, wire.CodeInternal, message)
		switch {
		case status == http.StatusUnprocessableEntity || status == http.StatusBadRequest:
			p = problemOf(http.StatusBadRequest, wire.CodeInvalidParameter, message)
		case status >= http.StatusInternalServerError:
			p.Detail = "something unexpected happened; the log of the service says more"
			return p
		}
		if message == "request body is required" {
			p.Code, p.Detail = wire.CodeInvalidJSON, "the request has no body; send JSON"
		}
		for _, err := range errs {
			d := wire.Detail{Message: err.Error()}
			if located, ok := errors.AsType[*huma.ErrorDetail](err); ok {
				d = wire.Detail{Location: located.Location, Message: located.Message}
			}
			switch {
			case d.Location == "body":
				p.Code, p.Detail = wire.CodeInvalidJSON, "the request's body does not fit: "+d.Message
			case d.Location != "" && p.Detail == message:
				p.Detail = d.Location + ": " + d.Message
			}
			p.Errors = append(p.Errors, d)
		}
		return p
	}
}
