package view

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

// problems says what each error of the library is in JSON, and over HTTP. The first that fits counts.
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

// statusHungUp is for the log and the metrics, where it is no failure of the service: nobody reads the answer. Others
// know it as "client closed request".
const statusHungUp = 499

// Problem is an error of the library in JSON. It reports false for any other: the text of a database's error may name
// hosts and users.
func Problem(err error) (*wire.Problem, bool) {
	for _, known := range problems {
		if !errors.Is(err, known.err) {
			continue
		}
		p := &wire.Problem{
			Title: http.StatusText(known.status), Status: known.status, Code: known.code, Detail: plain(err.Error()),
		}
		if p.Code == wire.CodeUnavailable {
			const inTime = "the database did not answer in time; try again"
			p.Detail = strings.Replace(p.Detail, context.DeadlineExceeded.Error(), inTime, 1)
		}
		if unknown, ok := errors.AsType[*delaytask.OutcomeUnknownError](err); ok {
			p.TaskID = wire.ID(unknown.ID)
		}
		if duplicate, ok := errors.AsType[*delaytask.DuplicateError](err); ok {
			p.TaskID = wire.ID(duplicate.ID)
		}
		return p, true
	}
	return nil, false
}

// plain leaves out the name of the package that an error of the library begins with.
func plain(text string) string { return strings.Replace(text, "delaytask: ", "", 1) }
