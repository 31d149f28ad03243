package wire

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/delaytask/delaytask"
)

// known maps each error of the library to HTTP and JSON, and back. The first match wins.
var known = []struct {
	err    error
	status int
	code   string
}{
	{delaytask.ErrInvalidTag, http.StatusBadRequest, CodeInvalidTag},
	{delaytask.ErrInvalidKey, http.StatusBadRequest, CodeInvalidKey},
	{delaytask.ErrBodyTooLarge, http.StatusRequestEntityTooLarge, CodeBodyTooLarge},
	{delaytask.ErrRedacted, http.StatusBadRequest, CodeRedacted},
	{delaytask.ErrInvalidBody, http.StatusBadRequest, CodeInvalidBody},
	{delaytask.ErrInvalidDelay, http.StatusBadRequest, CodeInvalidDelay},
	{delaytask.ErrDelayTooLong, http.StatusBadRequest, CodeDelayTooLong},
	{delaytask.ErrInvalidTime, http.StatusBadRequest, CodeInvalidTime},
	{delaytask.ErrInvalidID, http.StatusBadRequest, CodeInvalidID},
	{delaytask.ErrInvalidTTR, http.StatusBadRequest, CodeInvalidTTR},
	{delaytask.ErrInvalidMaxAttempts, http.StatusBadRequest, CodeInvalidMaxAttempts},
	{delaytask.ErrInvalidPriority, http.StatusBadRequest, CodeInvalidPriority},
	{delaytask.ErrInvalidHeaders, http.StatusBadRequest, CodeInvalidHeaders},
	{delaytask.ErrInvalidToken, http.StatusBadRequest, CodeInvalidToken},
	{delaytask.ErrInvalidCursor, http.StatusBadRequest, CodeInvalidCursor},
	{delaytask.ErrInvalidOption, http.StatusBadRequest, CodeInvalidOption},
	{delaytask.ErrInvalidSpec, http.StatusBadRequest, CodeInvalidSpec},
	{delaytask.ErrInvalidScheduleName, http.StatusBadRequest, CodeInvalidScheduleName},
	{delaytask.ErrInvalidRange, http.StatusBadRequest, CodeInvalidRange},
	{delaytask.ErrScheduleNotFound, http.StatusNotFound, CodeScheduleNotFound},
	{delaytask.ErrScheduleOwned, http.StatusConflict, CodeScheduleOwned},
	{delaytask.ErrScheduleBusy, http.StatusConflict, CodeScheduleBusy},
	{delaytask.ErrScheduleState, http.StatusConflict, CodeScheduleState},
	{delaytask.ErrScheduleExists, http.StatusPreconditionFailed, CodeScheduleExists},
	{delaytask.ErrScheduleChanged, http.StatusPreconditionFailed, CodeScheduleChanged},
	{delaytask.ErrNotRecorded, http.StatusServiceUnavailable, CodeNotRecorded},
	{delaytask.ErrBatchTooLarge, http.StatusBadRequest, CodeBatchTooLarge},
	{delaytask.ErrOutcomeUnknown, http.StatusServiceUnavailable, CodeOutcomeUnknown},
	{delaytask.ErrDuplicate, http.StatusConflict, CodeDuplicate},
	{delaytask.ErrConflict, http.StatusConflict, CodeConflict},
	{delaytask.ErrLeaseLost, http.StatusConflict, CodeLeaseLost},
	{delaytask.ErrNotFound, http.StatusNotFound, CodeNotFound},
	{delaytask.ErrNotPending, http.StatusConflict, CodeNotPending},
	{delaytask.ErrFinished, http.StatusConflict, CodeFinished},
	{delaytask.ErrNotFailed, http.StatusConflict, CodeNotFailed},
	{delaytask.ErrContended, http.StatusConflict, CodeContended},
	{delaytask.ErrVersionChanged, http.StatusConflict, CodeVersionChanged},
	{delaytask.ErrBroken, http.StatusConflict, CodeBroken},
	{delaytask.ErrChunkRefused, http.StatusConflict, CodeChunkRefused},
	{delaytask.ErrOverloaded, http.StatusServiceUnavailable, CodeOverloaded},
	{delaytask.ErrFileReplaced, http.StatusServiceUnavailable, CodeFileReplaced},
	{delaytask.ErrNotStored, http.StatusServiceUnavailable, CodeNotStored},
}

// FromError is an error of the library in JSON. It reports false for any other: the text of a database's error may name
// hosts and users.
func FromError(err error) (*Problem, bool) {
	for _, k := range known {
		if !errors.Is(err, k.err) {
			continue
		}
		p := NewProblem(k.status, k.code, Plain(err))
		if k.err == delaytask.ErrFileReplaced { //nolint:errorlint // what wraps it names the file
			p.Detail = Plain(k.err)
		}
		if unknown, ok := errors.AsType[*delaytask.OutcomeUnknownError](err); ok {
			p.TaskID = ID(unknown.ID)
		}
		if p.NotStored = errors.Is(err, delaytask.ErrNotStored); p.NotStored { // the cause names hosts
			p.Detail = notStored
			if p.TaskID != 0 {
				p.Detail += fmt.Sprintf("; an earlier request with the id %d may have stored the task", p.TaskID)
			}
		}
		if duplicate, ok := errors.AsType[*delaytask.DuplicateError](err); ok {
			p.TaskID = ID(duplicate.ID)
		}
		if wrong, ok := errors.AsType[*delaytask.SpecError](err); ok {
			p.Errors = []Detail{place(wrong)}
		}
		if busy, ok := errors.AsType[*delaytask.NotPendingError](err); ok && p.TaskID == 0 {
			p.TaskID = ID(busy.ID)
		}
		return p, true
	}
	return nil, false
}

const notStored = "this request stored nothing, because the database was not reached in time: send it again"

// place says where a spec is wrong.
func place(e *delaytask.SpecError) Detail {
	d := Detail{Location: "body", Message: e.Reason, Line: e.Line, Column: e.Column}
	if e.Line > 0 {
		d.Location = fmt.Sprintf("body.lines[%d]", e.Line-1)
	}
	return d
}

// To is the error of the library that the problem stands for, nil for any other.
func (p *Problem) To() error {
	switch {
	case p.Code == CodeDuplicate:
		return &delaytask.DuplicateError{ID: int64(p.TaskID)}
	case p.Code == CodeNotPending && p.TaskID != 0:
		return &delaytask.NotPendingError{ID: int64(p.TaskID)}
	case p.Code == CodeInvalidSpec && len(p.Errors) > 0:
		first := p.Errors[0]
		return &delaytask.SpecError{Line: first.Line, Column: first.Column, Reason: first.Message}
	}
	for _, k := range known {
		if p.Code == k.code {
			return k.err
		}
	}
	return nil
}

// Plain is the text of an error without the name of the package that an error of the library begins with.
func Plain(err error) string { return strings.Replace(err.Error(), "delaytask: ", "", 1) }
