package operate

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/scheduler"
)

// refusals are the errors of a service that the library does not have. The first match wins.
var refusals = []struct {
	err    error
	status int
	code   string
}{
	{bulk.ErrUnknown, http.StatusNotFound, wire.CodeBulkNotFound},
	{bulk.ErrUntold, http.StatusConflict, wire.CodeBulkUntold},
	{bulk.ErrTooMany, http.StatusTooManyRequests, wire.CodeTooManyBulkChanges},
	{bulk.ErrClosed, http.StatusServiceUnavailable, wire.CodeStopping},
	{ErrAction, http.StatusBadRequest, wire.CodeInvalidOption},
	{access.ErrForbidden, http.StatusForbidden, wire.CodeForbidden},
	{ErrSomeTags, http.StatusForbidden, wire.CodeForbidden},
	{delaytask.ErrClosed, http.StatusServiceUnavailable, wire.CodeStopping},
	{delaytask.ErrNotStarted, http.StatusServiceUnavailable, wire.CodeNotReady},
	{scheduler.ErrNotReady, http.StatusServiceUnavailable, wire.CodeNotReady},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, wire.CodeUnavailable},
	{context.Canceled, statusHungUp, wire.CodeUnavailable},
}

// statusHungUp is for the log and the metrics, where it is no failure of the service: the client has gone. It is
// commonly called "client closed request".
const statusHungUp = 499

// Problem is an error as people are told it. It reports false for an error that is not known: the text of a database's
// error may name hosts and users.
func Problem(err error) (*wire.Problem, bool) {
	hungUp := errors.Is(err, delaytask.ErrNotStored) && errors.Is(err, context.Canceled)
	if p, known := wire.FromError(err); known && !hungUp {
		return p, true
	}
	for _, r := range refusals {
		if !errors.Is(err, r.err) {
			continue
		}
		p := wire.NewProblem(r.status, r.code, wire.Plain(err))
		if r.code == wire.CodeUnavailable {
			const inTime = "the database did not answer in time; try again"
			p.Detail = strings.Replace(p.Detail, context.DeadlineExceeded.Error(), inTime, 1)
		}
		return p, true
	}
	return nil, false
}
