package api

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask/internal/server/view"
	"github.com/delaytask/delaytask/internal/wire"
)

// problem is an error as the answer to a request. What is not known comes from the database: its text may name hosts
// and users, so it goes to the log and not to the caller.
func (a *API) problem(err error) error {
	if p, ok := errors.AsType[*wire.Problem](err); ok {
		return p
	}
	if p, known := view.Problem(err); known {
		return p
	}
	if a.failureLines.Allow() { // in an outage every request fails, and for one reason
		// The outermost words may name a task by its key.
		a.log.Error("a request failed", "err", cmp.Or(errors.Unwrap(err), err))
	}
	return problemOf(http.StatusServiceUnavailable, wire.CodeUnavailable,
		"the database did not answer as it should; the log of the service says why. Try again")
}

func problemOf(status int, code, detail string) *wire.Problem {
	return &wire.Problem{Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// refused is a problem of a request that never reached a handler.
func refused(w http.ResponseWriter, p *wire.Problem) {
	maps.Copy(w.Header(), p.GetHeaders())
	w.Header().Set("Content-Type", mediaProblem)
	w.WriteHeader(p.Status)
	_ = strictJSON.Marshal(w, p) // a client that is gone needs no answer
}

// What the framework refuses by itself comes in the same shape. It says 422 where a parameter cannot be read; the
// others of our answers call that 400. The values that it would echo are left out: a body may hold a secret.
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

// LegacyProtocols serves the routes of the ancestors, whose clients read one shape of answer alone.
type LegacyProtocols interface {
	http.Handler
	// Refuse says in that shape that a request was not let through.
	Refuse(w http.ResponseWriter, status int, detail string)
}

// legacyPaths are their routes.
var legacyPaths = []string{"/compat/topics", "/o/add", "/o/get", "/o/complete"}

// refuse answers a request that never reached its handler, or left it by a panic, as its client understands it.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, p *wire.Problem) {
	if a.compat != nil && slices.Contains(legacyPaths, r.URL.Path) {
		a.compat.Refuse(w, p.Status, p.Detail)
		return
	}
	refused(w, p)
}
