package dashboard

import (
	"context"
	"errors"
	"net/http"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bulk"
)

var (
	errNoPage      = errors.New("there is no such page")
	errForbidden   = errors.New("you may not do this")
	errReadOnly    = errors.New("this dashboard only shows")
	errCrossOrigin = errors.New("the request comes from a page of another site")
	errNoUser      = errors.New("who you are cannot be told now")
	errSlow        = errors.New("the database takes too long")
	errForm        = errors.New("the form cannot be read")
)

// invalid is a mistake in what the user has typed. It names the field.
type invalid struct {
	field string
	err   error
}

func (e invalid) Error() string { return e.field + ": " + e.err.Error() }
func (e invalid) Unwrap() error { return e.err }

// mistakes are what is wrong with a request, and not with the service.
var mistakes = []error{
	delaytask.ErrInvalidOption, delaytask.ErrInvalidTag, delaytask.ErrInvalidKey, delaytask.ErrInvalidID,
	delaytask.ErrInvalidCursor, delaytask.ErrInvalidDelay, delaytask.ErrDelayTooLong, delaytask.ErrInvalidTime,
	delaytask.ErrInvalidRange,
	delaytask.ErrInvalidBody, delaytask.ErrBodyTooLarge, errForm,
}

// conflicts are changes that a task does not allow now.
var conflicts = []error{
	delaytask.ErrFinished, delaytask.ErrNotPending, delaytask.ErrNotFailed, delaytask.ErrDuplicate,
	delaytask.ErrContended, delaytask.ErrBroken, bulk.ErrTooMany,
}

// statusOf returns the status of an answer with the error, and the key of its text; the text's argument is the error.
func statusOf(err error) (status int, text string) {
	is := func(all []error) bool {
		for _, known := range all {
			if errors.Is(err, known) {
				return true
			}
		}
		return false
	}
	var typed invalid
	switch {
	case errors.Is(err, errNoPage):
		return http.StatusNotFound, "error.no_page"
	case errors.Is(err, errNoNode):
		return http.StatusNotFound, "nodes.not_found"
	case errors.Is(err, delaytask.ErrScheduleNotFound):
		return http.StatusNotFound, "schedule.not_found"
	case errors.Is(err, delaytask.ErrScheduleState), errors.Is(err, delaytask.ErrScheduleBusy),
		errors.Is(err, delaytask.ErrScheduleOwned):
		return http.StatusConflict, "schedule.conflict"
	case errors.Is(err, errNoReceiver):
		return http.StatusNotFound, "receivers.not_found"
	case errors.Is(err, delaytask.ErrNotFound):
		return http.StatusNotFound, "error.not_found"
	case errors.Is(err, ErrSignIn):
		return http.StatusUnauthorized, "error.sign_in"
	case errors.Is(err, errReadOnly):
		return http.StatusForbidden, "error.read_only"
	case errors.Is(err, errForbidden):
		return http.StatusForbidden, "error.forbidden"
	case errors.Is(err, errCrossOrigin):
		return http.StatusForbidden, "error.cross_origin"
	case errors.As(err, &typed), is(mistakes):
		return http.StatusBadRequest, "error.invalid"
	case is(conflicts):
		return http.StatusConflict, "error.conflict"
	case errors.Is(err, delaytask.ErrNotRecorded):
		return http.StatusServiceUnavailable, "error.not_recorded"
	case errors.Is(err, delaytask.ErrNoAudit):
		return http.StatusNotImplemented, "error.no_audit"
	case errors.Is(err, errNoUser):
		return http.StatusServiceUnavailable, "error.no_user"
	case errors.Is(err, errSlow), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable, "error.slow"
	default:
		return http.StatusServiceUnavailable, "error.database"
	}
}
