package client

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

// ErrNoAnswer is returned when no answer came, or none that tells whether the call was carried out. It may have been.
var ErrNoAnswer = errors.New("delaytask: no answer from the service: it may or may not have done what was asked")

// ErrAnswerTooLarge is returned when an answer is longer than its request allows. Ask for less at a time.
var ErrAnswerTooLarge = errors.New("delaytask: the service's answer is too large")

// Error is a refusal by the service. It Is the error of package processor that its code stands for, if there is one, so
// that errors.Is(err, delaytask.ErrLeaseLost) works as it does with the library.
type Error struct {
	Status int    // of HTTP
	Code   string // for programs; "" when the answer is not the service's
	Detail string // for people
	TaskID int64  // that the answer is about; 0 when it is about no task

	retryAfter time.Duration
	places     []wire.Detail
	notStored  bool // whatever the code says of earlier requests
}

func (e *Error) Error() string {
	if e.Detail != "" {
		return e.Detail
	}
	return fmt.Sprintf("the service answered %d %s", e.Status, http.StatusText(e.Status))
}

// Unwrap returns the error that the library would have returned.
func (e *Error) Unwrap() error {
	return (&wire.Problem{Code: e.Code, TaskID: wire.ID(e.TaskID), Errors: e.places}).To()
}

// refusal is an answer about one of many. Its code may be "": then nothing was refused.
func refusal(code, detail string, id int64) error {
	if code == "" {
		return nil
	}
	return &Error{Code: code, Detail: cmp.Or(detail, code), TaskID: id}
}

// noAnswer is a call without an answer.
type noAnswer struct {
	sent bool // the request may have arrived
	err  error
}

func (s *noAnswer) Error() string {
	if !s.sent {
		return fmt.Sprintf("delaytask: the service was not reached, and nothing was sent: %v", s.err)
	}
	return fmt.Sprintf("%v: %v", ErrNoAnswer, s.err)
}

func (s *noAnswer) Unwrap() []error { return []error{ErrNoAnswer, s.err} }

// nothingDone lists the codes of answers of 500 and above after which nothing was done for certain.
var nothingDone = map[string]bool{
	wire.CodeOverloaded: true, wire.CodeStopping: true, wire.CodeNotReady: true, wire.CodeNotRecorded: true,
	wire.CodeNotStored: true,
}

// mayBeDone reports whether the call may have been carried out although it failed.
func mayBeDone(err error) bool {
	if s, ok := errors.AsType[*noAnswer](err); ok {
		return s.sent
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status >= http.StatusInternalServerError && !nothingDone[e.Code] && !e.notStored
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	return true // an answer that could not be read
}

// isAway reports whether the call says only that the service, or its database, could not do it now.
func isAway(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return !ok || e.Status >= http.StatusInternalServerError
}

// maySucceedLater reports whether the same call may succeed later.
func maySucceedLater(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		switch e.Status {
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
			http.StatusTooManyRequests:
			return true
		}
		return false
	}
	_, ok := errors.AsType[*noAnswer](err)
	return ok
}

// unanswered adds what a caller must know when a call that is not repeated may have been carried out.
func unanswered(err error, unclear bool) error {
	if !unclear || errors.Is(err, ErrNoAnswer) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNoAnswer, err)
}

// isGone reports the answer of a call whose lease has ended before, by the call itself or by another one.
func isGone(err error) bool {
	return errors.Is(err, delaytask.ErrLeaseLost) || errors.Is(err, delaytask.ErrNotFound)
}
