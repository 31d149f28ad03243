package api

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/wire"
)

// mostFailureLines is how many failures of the database are logged each second.
const mostFailureLines = 5

// problem is an error as the answer to a request, nil for none. An unknown error comes from the database. Its text may
// name hosts and users, so it goes to the log and not to the caller.
func (a *API) problem(err error) error {
	if err == nil {
		return nil
	}
	if p, ok := errors.AsType[*wire.Problem](err); ok {
		return p
	}
	p, known := operate.Problem(err)
	if known && !p.NotStored {
		return p
	}
	if a.failureLines.Allow() { // in an outage every request fails, and for one reason
		// The outermost error may name a task by its key.
		a.log.Error("a request failed", "err", cmp.Or(errors.Unwrap(err), err))
	}
	if known {
		return p
	}
	return wire.NewProblem(http.StatusServiceUnavailable, wire.CodeUnavailable,
		"the database did not answer as it should; the log of the service says why. Try again")
}

func invalidID(err error) error {
	return wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidID, err.Error())
}

// refused answers a request that never reached a handler.
func refused(w http.ResponseWriter, p *wire.Problem) {
	maps.Copy(w.Header(), p.GetHeaders())
	w.Header().Set("Content-Type", mediaProblem)
	w.WriteHeader(p.Status)
	_ = strictJSON.Marshal(w, p) // the client may be gone
}

// The framework's own refusals get the same shape. It answers 422 to a malformed parameter; here that is 400. The
// values that it would echo are left out: a body may contain a secret.
func init() {
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		p := wire.NewProblem(status, wire.CodeInternal, message)
		switch {
		case status == http.StatusUnprocessableEntity || status == http.StatusBadRequest:
			p = wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidParameter, message)
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

// legacyPaths are the routes of the legacy protocols.
var legacyPaths = []string{"/compat/topics", "/o/add", "/o/get", "/o/complete"}

// refuse answers a request that never reached its handler, or panicked there, in the shape that its client reads.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, p *wire.Problem) {
	if a.compat != nil && slices.Contains(legacyPaths, r.URL.Path) {
		a.compat.Refuse(w, p.Status, p.Detail)
		return
	}
	if a.dashboard != nil && strings.HasPrefix(r.URL.Path, "/ui/") {
		a.dashboard.Refuse(w, r, p)
		return
	}
	refused(w, p)
}
