package dashboard

import (
	"errors"
	"net/http"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bulk"
)

var (
	errNoPage      = errors.New("there is no such page")
	errMethod      = errors.New("this address does not take the method")
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

// answers are the statuses and texts of errors. The first that fits counts.
var answers = []struct {
	status int
	text   string // its argument is the error
	errs   []error
}{
	{http.StatusNotFound, "error.no_page", []error{errNoPage}},
	{http.StatusMethodNotAllowed, "error.method", []error{errMethod}},
	{http.StatusNotFound, "nodes.not_found", []error{errNoNode}},
	{http.StatusNotFound, "receivers.not_found", []error{errNoReceiver}},
	{http.StatusNotFound, "schedule.not_found", []error{delaytask.ErrScheduleNotFound}},
	{http.StatusConflict, "schedule.conflict", []error{
		delaytask.ErrScheduleState, delaytask.ErrScheduleBusy, delaytask.ErrScheduleOwned,
	}},
	{http.StatusNotFound, "error.not_found", []error{delaytask.ErrNotFound}},
	{http.StatusUnauthorized, "error.sign_in", []error{ErrSignIn}},
	{http.StatusForbidden, "error.read_only", []error{errReadOnly}},
	{http.StatusForbidden, "error.forbidden", []error{errForbidden}},
	{http.StatusForbidden, "error.cross_origin", []error{errCrossOrigin}},
	{http.StatusBadRequest, "error.invalid", []error{
		errForm, delaytask.ErrInvalidOption, delaytask.ErrInvalidTag, delaytask.ErrInvalidKey, delaytask.ErrInvalidID,
		delaytask.ErrInvalidCursor, delaytask.ErrInvalidDelay, delaytask.ErrDelayTooLong, delaytask.ErrInvalidTime,
		delaytask.ErrInvalidRange, delaytask.ErrInvalidBody, delaytask.ErrBodyTooLarge,
	}},
	{http.StatusConflict, "error.conflict", []error{
		delaytask.ErrFinished, delaytask.ErrNotPending, delaytask.ErrNotFailed, delaytask.ErrDuplicate,
		delaytask.ErrContended, delaytask.ErrVersionChanged, delaytask.ErrBroken, bulk.ErrTooMany,
	}},
	{http.StatusServiceUnavailable, "error.not_recorded", []error{delaytask.ErrNotRecorded}},
	{http.StatusNotImplemented, "error.no_audit", []error{delaytask.ErrNoAudit}},
	{http.StatusServiceUnavailable, "error.no_user", []error{errNoUser}},
	{http.StatusServiceUnavailable, "error.slow", []error{errSlow}},
}

// statusOf returns the status of an answer with the error, and the key of its text. An unknown error is the database's.
func statusOf(err error) (status int, text string) {
	if _, typed := errors.AsType[invalid](err); typed {
		return http.StatusBadRequest, "error.invalid"
	}
	for _, answer := range answers {
		if slices.ContainsFunc(answer.errs, func(known error) bool { return errors.Is(err, known) }) {
			return answer.status, answer.text
		}
	}
	return http.StatusServiceUnavailable, "error.database"
}
