package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
)

// Errors about what a caller passed in. No call was made when one of them is returned, and trying the same again cannot
// help.
var (
	// ErrInvalidURL is returned when a URL is not one to call: no http or https, no host, with user name, fragment,
	// spaces, or a host that is not ASCII (write it in punycode).
	ErrInvalidURL = errors.New("webhook: invalid URL")
	// ErrBlockedURL is returned when the guard forbids the scheme, the port, or the address that the host led to. The
	// operator may put the host or the address on the allow list.
	ErrBlockedURL = errors.New("webhook: URL is not allowed")
	// ErrInvalidHeader is returned when a header's name or value is malformed, or the header is not the caller's to
	// set.
	ErrInvalidHeader = errors.New("webhook: invalid header")
	// ErrInvalidRequest is returned when the body of an http task does not describe a request.
	ErrInvalidRequest = errors.New("webhook: invalid request")
	// ErrInvalidSecret is returned when a secret is not "whsec_" and the base64 of 24–64 bytes.
	ErrInvalidSecret = errors.New("webhook: invalid secret: want whsec_ and the base64 of 24-64 bytes")
	// ErrInvalidConfig is returned when a setting is out of its range.
	ErrInvalidConfig = errors.New("webhook: invalid configuration")
)

// Why a call is not let through now. Each is wrapped with a snooze of package processor.
var (
	// ErrHostBusy is returned when as many calls to the host run, or have begun in the last second, as may.
	ErrHostBusy = errors.New("webhook: the host has as many calls as it may have")
	// ErrHostDown is returned when the host has not answered the last calls and is left alone for a while.
	ErrHostDown = errors.New("webhook: the host does not answer")
)

// ErrMismatch is returned when the answer does not satisfy the pass rule. [MismatchError] says where.
var ErrMismatch = errors.New("webhook: the answer does not satisfy the pass rule")

// StatusError is the error of an answer whose status does not mean done. Redirects are such answers.
type StatusError struct {
	Host   string
	Status int
	Answer string // the beginning of the answer's body, printable; "" unless [Config].ShowAnswer
}

func (e *StatusError) Error() string {
	if e.Answer != "" {
		return fmt.Sprintf("webhook: %s answered %d: %s", e.Host, e.Status, e.Answer)
	}
	return fmt.Sprintf("webhook: %s answered %d", e.Host, e.Status)
}

// MismatchError names the part of the pass rule that the answer did not satisfy. It Is [ErrMismatch].
type MismatchError struct {
	Host   string
	Status int
	Reason string // names fields of the rule, never values of the answer
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("webhook: the answer of %s (%d) does not satisfy the pass rule: %s", e.Host, e.Status, e.Reason)
}
func (e *MismatchError) Unwrap() error { return ErrMismatch }

// CallError is the error of a call without a complete answer.
type CallError struct {
	Host string
	Err  error // of the network; it may hold addresses and parts of the answer, so the text leaves it out
}

func (e *CallError) Error() string {
	return fmt.Sprintf("webhook: calling %s: %s", e.Host, reason(e.Err))
}
func (e *CallError) Unwrap() error { return e.Err }

// reason describes a failure without quoting it. The errors of the standard library quote what they received and which
// address a name led to; an author of tasks could read a foreign network with them.
func reason(err error) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var errno syscall.Errno
	switch {
	case errors.Is(err, ErrBlockedURL):
		return blockedReason
	case errors.Is(err, context.Canceled):
		return "the call was given up"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "its name is not known"
	case errors.As(err, &dns):
		return "its name could not be looked up"
	case isTimeout(err):
		return "no whole answer in time"
	case errors.As(err, &certificate):
		return "its certificate is not accepted"
	case errors.As(err, &record), errors.As(err, &alert), errors.Is(err, http.ErrSchemeMismatch):
		return "the TLS handshake failed"
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection ended before the answer did"
	default:
		return "the connection broke, or the answer is not HTTP"
	}
}

func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
