// Package reqbody is common to both HTTP APIs of the service: it reads a request's body within limits, and unclaims
// tasks of callers that are gone.
package reqbody

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/scheduler"
)

const (
	// Envelope is what a request may hold besides one task's body, in bytes.
	Envelope = 64 << 10
	// BodyWait is how long a request's body may take to arrive.
	BodyWait = 30 * time.Second
	// LongestWait bounds a long poll. Proxies cut a silent connection after a minute.
	LongestWait = 55 * time.Second
)

// BodyError says why a body was not read. Status is 413, 408, 400 or 503.
type BodyError struct {
	Status int
	text   string
}

func (e *BodyError) Error() string { return e.text }

// Is reports that [NoRoom] is a [delaytask.ErrOverloaded].
func (e *BodyError) Is(target error) bool { return e == NoRoom && target == delaytask.ErrOverloaded }

// NoRoom is the error of a body for which there is no room: too many large ones are in memory.
var NoRoom = &BodyError{http.StatusServiceUnavailable,
	"other large requests fill the memory that there is for them; try again"}

// Body reads the whole body of a request, at most limit bytes and for as long as wait. It returns a *[BodyError] when
// the body is too large, too slow, or incomplete; then the answer is sent at once and ends the connection.
func Body(w http.ResponseWriter, r *http.Request, limit int64, wait time.Duration) ([]byte, error) {
	// Errors of deadlines are ignored: only a recorder in a test does not support them.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(wait))
	body, err := readAll(http.MaxBytesReader(w, r.Body, limit), min(r.ContentLength, limit))
	if err != nil {
		// Otherwise the server would wait for more of the body before it sends the answer.
		w.Header().Set("Connection", "close")
		_ = control.SetReadDeadline(time.Now())
		return nil, unreadable(err, wait)
	}
	_ = control.SetReadDeadline(time.Time{})
	return body, nil
}

// readAll takes memory for a body of the expected length, and not before the body has its place.
func readAll(body io.Reader, expected int64) ([]byte, error) {
	var begin bytes.Buffer
	if n, err := begin.ReadFrom(io.LimitReader(body, bytes.MinRead)); err != nil || n < bytes.MinRead {
		return begin.Bytes(), err
	}
	all := bytes.NewBuffer(make([]byte, 0, max(expected, bytes.MinRead)+bytes.MinRead))
	all.Write(begin.Bytes())
	_, err := all.ReadFrom(body)
	return all.Bytes(), err
}

func unreadable(err error, wait time.Duration) *BodyError {
	if known, ok := errors.AsType[*BodyError](err); ok {
		return known
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &BodyError{http.StatusRequestEntityTooLarge,
			fmt.Sprintf("the request is larger than %d bytes; send it in parts", tooLarge.Limit)}
	}
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		return &BodyError{http.StatusRequestTimeout, fmt.Sprintf("the request's body did not arrive within %v", wait)}
	}
	return &BodyError{http.StatusBadRequest, "the request's body ended before it was complete"}
}

const releaseWait = 5 * time.Second

// HandOut checks once more, by allow, whether the caller may have the tasks: it may have waited for a while. Otherwise
// it unclaims them and returns the error of allow, or of [access.Again].
func HandOut(
	ctx context.Context, log *slog.Logger, from *scheduler.Scheduler, popped []*delaytask.Popped,
	allow func(context.Context, access.Verb, string) error,
) error {
	if len(popped) == 0 {
		return nil
	}
	ctx, err := access.Again(ctx)
	for i := 0; i < len(popped) && err == nil; i++ {
		err = allow(ctx, access.Work, popped[i].Tag)
	}
	if err != nil {
		Unclaim(log, from, popped)
	}
	return err
}

// Unclaim releases tasks that their caller does not get; otherwise they would wait for the end of their leases. They
// count as not started.
func Unclaim(log *slog.Logger, to *scheduler.Scheduler, popped []*delaytask.Popped) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWait)
	defer cancel()
	var releases sync.WaitGroup // those that are made together share statements
	for _, p := range popped {
		releases.Go(func() {
			if err := core.Of(to).Unclaim(ctx, p.Token()); err != nil {
				log.Warn("a task that its caller does not get could not be released; its lease returns it", "task",
					p.ID, "err", err)
			}
		})
	}
	releases.Wait()
}
