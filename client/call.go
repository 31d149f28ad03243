package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
)

const (
	// answerWait is how long an answer may take, beyond the wait that a poll asks for.
	answerWait = 15 * time.Second
	// pollWait is how long one long poll lasts.
	pollWait = 30 * time.Second
	// smallAnswer bounds an answer that holds no bodies of tasks, or a problem.
	smallAnswer = 1 << 20
	// taskAnswer bounds one task in an answer: the limits of the service, and room for escapes.
	taskAnswer = 8 << 20
	// batchAnswer bounds the answer to a batch, which has an entry for each task.
	batchAnswer = 16 << 20
	// largestAnswer bounds all answers.
	largestAnswer = 256 << 20
	// maxDrain is how much of an unread answer is read so that its connection can be used again.
	maxDrain = 64 << 10
)

// service is the other end of all calls, and how it is called.
type service struct {
	config
	base string
}

// httpCall is a call of the service.
type httpCall struct {
	method, path string // path with its escapes and query
	body         any    // sent as JSON; nil: none
	into         any    // the answer is decoded into this; a *[]byte gets its bytes; nil: it is ignored
	limit        int64  // bytes of the answer; 0: smallAnswer
	wait         time.Duration
	header       map[string]string
	again        bool // it may be repeated although it may have been carried out

	encoded []byte
	status  int // of the answer
}

// tasks returns the bound of an answer with so many tasks.
func tasks(n int) int64 { return min(smallAnswer+int64(n)*taskAnswer, largestAnswer) }

// try sends the request once.
func (s *service) try(ctx context.Context, r *httpCall) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.wait+answerWait,
		fmt.Errorf("nothing came within %v", r.wait+answerWait))
	defer cancel()
	var way way
	req, err := s.newRequest(way.watched(ctx), r)
	if err != nil {
		return err
	}
	res, err := s.http.Do(req)
	if err != nil {
		return unsent(ctx, err, &way)
	}
	defer func() {
		_, _ = io.CopyN(io.Discard, res.Body, maxDrain) // an error costs only the connection
		_ = res.Body.Close()
	}()
	r.status = res.StatusCode
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return errorOf(res)
	}
	if r.into == nil || res.StatusCode == http.StatusNoContent {
		return nil
	}
	return decode(ctx, res, r)
}

func (s *service) newRequest(ctx context.Context, r *httpCall) (*http.Request, error) {
	if r.body != nil && r.encoded == nil {
		var buffer bytes.Buffer
		encoder := json.NewEncoder(&buffer)
		encoder.SetEscapeHTML(false) // the bodies of tasks are stored as they are sent
		if err := encoder.Encode(r.body); err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		r.encoded = buffer.Bytes()
	}
	var body io.Reader = http.NoBody
	if r.encoded != nil {
		body = bytes.NewReader(r.encoded)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, s.base+r.path, body)
	if err != nil {
		return nil, err
	}
	if r.encoded != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", strings.TrimSpace(s.name+" delaytask-go"))
	s.authorize(req.Header)
	return req, nil
}

// unsent makes the error of a request without an answer, and tells whether the request may have arrived.
func unsent(ctx context.Context, err error, way *way) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // without the address, which the caller knows
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("the service cannot be trusted: %w", err)
	}
	sent := way.mayHaveSent(err)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return &noAnswer{sent: sent, err: err}
}

// way is how far a request has come. A transport that tells nothing leaves it empty.
type way struct{ asked, connected atomic.Bool }

func (w *way) watched(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { w.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { w.connected.Store(true) }, // after the handshake of TLS
	})
}

// mayHaveSent reports whether a part of the request may have left before err.
func (w *way) mayHaveSent(err error) bool {
	if w.asked.Load() {
		return w.connected.Load()
	}
	op, ok := errors.AsType[*net.OpError](err)
	return !ok || op.Op != "dial"
}

func decode(ctx context.Context, res *http.Response, r *httpCall) error {
	limit := r.limit
	if limit == 0 {
		limit = smallAnswer
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	switch {
	case err != nil:
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return &noAnswer{sent: true, err: err}
	case int64(len(data)) > limit:
		return fmt.Errorf("%w: over %d bytes", ErrAnswerTooLarge, limit)
	}
	if bytes, ok := r.into.(*[]byte); ok {
		*bytes = data
		return nil
	}
	if err := json.Unmarshal(data, r.into); err != nil {
		return fmt.Errorf("the answer is not one of this service: %w", err)
	}
	return nil
}

// errorOf reads the answer of a refused call. It quotes only application/problem+json: other text is a proxy's page.
func errorOf(res *http.Response) error {
	e := &Error{Status: res.StatusCode, retryAfter: retryAfter(res.Header)}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		e.Detail = fmt.Sprintf("the service answered with a redirect (%d), which is not followed; "+
			"use the address that it leads to", res.StatusCode)
		return e
	}
	if media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); media != "application/problem+json" {
		return e
	}
	var p wire.Problem
	data, err := io.ReadAll(io.LimitReader(res.Body, smallAnswer))
	if err == nil && json.Unmarshal(data, &p) == nil {
		e.Code, e.Detail, e.TaskID, e.places = p.Code, p.Detail, int64(p.TaskID), p.Errors
		e.notStored = p.NotStored
		if len(p.Errors) > 0 {
			first := p.Errors[0]
			if !strings.Contains(p.Detail, first.Message) {
				e.Detail = strings.TrimSuffix(fmt.Sprintf("%s: %s: %s", p.Detail, first.Location, first.Message), ": ")
			}
		}
	}
	return e
}

// retryAfter reads seconds. It ignores the other form, a date, which depends on two clocks.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds), 60) * time.Second
}

// pauses spread the repetitions of many clients after an outage.
var pauses = processor.Exponential(50*time.Millisecond, 2*time.Second, 0.5)

// call sends the request, and repeats it within retryFor while that can help and cannot harm. unclear reports that an
// unanswered try may have been carried out.
func (s *service) call(ctx context.Context, r *httpCall) (unclear bool, err error) {
	return s.repeat(ctx, r, s.retryFor)
}

func (s *service) repeat(ctx context.Context, r *httpCall, retryFor time.Duration) (unclear bool, err error) {
	end := time.Now().Add(retryFor)
	for n := 1; ; n++ {
		err = s.try(ctx, r)
		if err == nil {
			return unclear, nil
		}
		done := mayBeDone(err)
		if done {
			unclear = true
		}
		wait := pauses(n)
		if e, ok := errors.AsType[*Error](err); ok {
			wait = max(wait, e.retryAfter)
		}
		if !maySucceedLater(err) || done && !r.again || time.Now().Add(wait).After(end) || !sleep(ctx, wait) {
			return unclear, err
		}
	}
}

// sleep waits for d and reports whether ctx lasted that long.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// callOnTask sends a request about one task. Its path is appended to the task's.
func (s *service) callOnTask(ctx context.Context, ref delaytask.Ref, op string, r *httpCall) error {
	id, tag, key, err := ref.Parts()
	if err != nil {
		return err
	}
	if id != 0 {
		r.path = taskPath(id) + r.path
	} else {
		r.path = "/v1/tags/" + wire.Segment(tag) + "/keys/" + wire.Segment(key) + withQuery(r.path, "app", ref.App())
	}
	if unclear, err := s.call(ctx, r); err != nil {
		return fmt.Errorf("%s %v: %w", op, ref, unanswered(err, unclear && !r.again))
	}
	return nil
}

// withQuery adds a parameter unless it is empty.
func withQuery(path, name, value string) string {
	switch {
	case value == "":
		return path
	case strings.Contains(path, "?"):
		path += "&"
	default:
		path += "?"
	}
	return path + name + "=" + url.QueryEscape(value)
}

func taskPath(id int64) string { return "/v1/tasks/" + wire.ID(id).String() }
